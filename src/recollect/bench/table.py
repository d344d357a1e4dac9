"""Any tidy table as a benchmark: a CSV file (plain or .gz) with the columns task, hyperparameters..., error.

The space is inferred by the rules of `recollect.bench.tidy`, or given; then the cells are read as its hyperparameters
say, choices by their text. An empty cell is an inactive hyperparameter. Configurations are the same when their
encodings are, whatever their text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from recollect.bench.problem import About, Benchmark
from recollect.bench.tabular import shared_table, task_tables
from recollect.bench.tidy import WHOLE, Result, Tidy, as_float, infer_space, read_tidy
from recollect.errors import ConfigError, InputError
from recollect.history.run import Config
from recollect.numerics.arrays import FloatArray
from recollect.space.columns import Choices, Column, Steps
from recollect.space.identity import row_keys
from recollect.space.serial import from_json
from recollect.space.space import Space, SpaceLike, compile_space

if TYPE_CHECKING:
    from recollect.bench.forest_task import Build

Mode = Literal["table", "forest"]


def from_table(
    path: str | os.PathLike[str],
    *,
    space: SpaceLike | str | os.PathLike[str] | None = None,
    mode: Mode = "table",
    name: str | None = None,
    jobs: int | None = None,
    build: Build | None = None,
) -> Benchmark:
    """Return the benchmark in a tidy table; what is not given is inferred.

    space: a space, or the path of one in ConfigSpace's JSON format; None infers it. mode: ``"table"`` knows the listed
    configurations only, ``"forest"`` fits a random forest to every task and knows the whole space: in ``jobs``
    processes (None: one a core; 0: each when its task is first asked for), as ``build`` says. name: the file's name if
    not given.
    """
    if mode not in ("table", "forest"):
        raise InputError(f"mode must be 'table' or 'forest', got {mode!r}")
    tidy = read_tidy(Path(path))
    compiled = infer_space(tidy) if space is None else _given_space(space)
    configs = _configs(tidy, compiled)
    X = _encoded(tidy, compiled, configs)
    name = name or tidy.path.name.removesuffix(".gz").removesuffix(".csv")
    about = About(f"table {tidy.path.name}", "", "not stated", str(tidy.path), mode, mode == "table", "error as listed")
    if mode == "forest":
        from recollect.bench.forest_task import Build, forest_benchmark
        from recollect.bench.tune_forest import TABLE

        data = {task: (X[[number for number, _, _ in rows]], _errors(rows)) for task, rows in tidy.results.items()}
        return forest_benchmark(name, compiled, data, about, jobs=jobs, build=build or Build(TABLE))
    first: dict[bytes, int] = {}
    same = [first.setdefault(key, number) for number, key in enumerate(row_keys(X))]
    results = {task: _without_repeats(tidy, task, same) for task in tidy.results}
    return _as_tables(name, compiled, results, configs=configs, about=about)


def _as_tables(
    name: str, space: Space, results: Mapping[str, list[Result]], *, configs: Sequence[Config], about: About
) -> Benchmark:
    numbers = {task: [number for number, _, _ in rows] for task, rows in results.items()}
    first = sorted(next(iter(numbers.values())))
    if all(sorted(own) == first for own in numbers.values()):
        errors = {task: _errors(sorted(rows)) for task, rows in results.items()}
        return shared_table(name, space, configs=[configs[g] for g in first], errors=errors, about=about)
    tables = {task: ([configs[g] for g in numbers[task]], _errors(rows)) for task, rows in results.items()}
    return task_tables(name, space, tables=tables, about=about)


def _errors(rows: Sequence[Result]) -> FloatArray:
    return np.array([error for _, error, _ in rows])


def _without_repeats(tidy: Tidy, task: str, same: Sequence[int]) -> list[Result]:
    """Return a task's rows, those said twice only once; two errors of one configuration are refused."""
    kept: dict[int, Result] = {}
    for number, error, line in tidy.results[task]:
        before = kept.setdefault(same[number], (same[number], error, line))
        if before[1] != error:
            raise InputError(
                f"{tidy.path}, line {line}: task {task!r} has this configuration in line {before[2]} already, with the "
                f"error {before[1]}, not {error}; a table needs one (take the mean, or use mode='forest')"
            )
    return list(kept.values())


def _given_space(space: SpaceLike | str | os.PathLike[str]) -> Space:
    if isinstance(space, str | os.PathLike):
        try:
            return from_json(Path(space).read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{space}: expected a search space in ConfigSpace's JSON format: {error}") from error
    return compile_space(space)


def _configs(tidy: Tidy, space: Space) -> list[Config]:
    """Return the distinct configurations with values as the space has them."""
    by_name = dict(zip(space.names, space.columns, strict=True))
    unknown = [name for name in tidy.names if name not in by_name]
    if unknown:
        raise InputError(f"{tidy.path}: column {unknown[0]!r} is not in the space, which has {', '.join(space.names)}")
    readers = [_reader(by_name[name]) for name in tidy.names]
    return [
        {name: read(cell) for name, read, cell in zip(tidy.names, readers, cells, strict=True) if cell}
        for cells in tidy.configs
    ]


def _encoded(tidy: Tidy, space: Space, configs: Sequence[Config]) -> FloatArray:
    """Return the encodings (m, d), or raise for the first line whose configuration does not belong to the space."""
    try:
        return space.encode(configs)
    except ConfigError as error:
        lines: dict[int, int] = {}
        for rows in tidy.results.values():
            for number, _, line in rows:
                lines.setdefault(number, line)
        number, reason = _first_refused(space, configs, error)
        raise InputError(f"{tidy.path}, line {lines[number]}: {reason}") from error


def _first_refused(space: Space, configs: Sequence[Config], error: ConfigError) -> tuple[int, str]:
    for number, config in enumerate(configs):
        try:
            space.encode([config])
        except ConfigError as own:
            return number, str(own).removeprefix("configuration 0: ")
    raise error


def _reader(column: Column) -> Callable[[str], Any]:
    """Return the function that turns a cell into a value; what it cannot read stays text, which the space refuses."""
    choices = column.choices if isinstance(column, Choices | Steps) else None
    if choices is not None:
        return _choice_reader(choices)
    if isinstance(column, Steps):
        return lambda cell: int(cell) if WHOLE.match(cell) else cell
    return lambda cell: cell if (value := as_float(cell)) is None else value


def _choice_reader(choices: Sequence[Any]) -> Callable[[str], Any]:
    texts = {str(choice).lower(): choice for choice in choices if isinstance(choice, bool)}
    texts |= {str(choice): choice for choice in choices}
    numbers = {float(c): c for c in choices if isinstance(c, int | float) and not isinstance(c, bool)}

    def read(cell: str) -> Any:
        value = as_float(cell)
        return texts.get(cell, cell if value is None else numbers.get(value, cell))

    return read
