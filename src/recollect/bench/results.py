"""Results of experiments: one line a run, in CSV files that explain themselves.

    format,benchmark,method,task,repetition,seed,best,worst,values,weights,seconds,version
    1,svm-grid,rgpe-taf,a9a,0,12,0.15,0.24,0.19 0.17 ...,,0.0213,0.1.0

values: the error of every evaluation in order, separated by blanks, ``nan`` for one that failed. best, worst: the ends
that regret is normalised with. weights: empty, or for every evaluation ``target/first/second/rest/count``: the weight
of the target's model, the two largest of past runs, all others together, and how many are not zero; ``-`` where no
model was asked. seconds: per suggestion, mean. ``pandas.read_csv(path)`` reads all of it, compressed (``.gz``) or not.

While an experiment runs its file is only appended to (`recollect.bench.lines`). `pack` writes a finished one: sorted,
rounded, compressed.

Notation: t evaluations of a run.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recollect.bench.lines import append_lines, open_lines
from recollect.bench.statistics import best_so_far
from recollect.errors import InputError
from recollect.files import put
from recollect.numerics.arrays import FloatArray

FORMAT = 1
FIELDS = (
    *("format", "benchmark", "method", "task", "repetition", "seed"),
    *("best", "worst", "values", "weights", "seconds", "version"),
)
RUNS = "runs.csv"  # in the folder of an experiment
DIGITS = 7  # of packed errors
NO_MODEL = "-"
WEIGHTS = 5  # numbers kept for each evaluation


class Key(NamedTuple):
    """What identifies a run."""

    benchmark: str
    method: str
    task: str
    repetition: int


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """One run; see the head of the module. weights: (t, 5), nan where no model was asked, or None."""

    key: Key
    seed: int
    best: float
    worst: float
    values: FloatArray
    weights: FloatArray | None
    seconds: float
    version: str

    @property
    def regret(self) -> FloatArray:
        """Normalised regret (t,) after each evaluation; 0 on a task where all errors are the same (spec 6.2)."""
        span = self.worst - self.best
        best = best_so_far(self.values)
        return np.asarray((best - self.best) / span) if span > 0 else np.zeros(len(best))

    def line(self) -> str:
        """The run as a line of the file."""
        cells = [FORMAT, *self.key, self.seed, repr(self.best), repr(self.worst)]
        cells += [" ".join(map(_short, self.values.tolist())), _weights_cell(self.weights), f"{self.seconds:.3g}"]
        return _csv_line([*map(str, cells), self.version])


def read_runs(path: Path) -> list[Finished]:
    """Return the runs in a file; InputError with file, line and reason for one that holds something else.

    A last line that is just being written is left out.
    """
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        text = content[: content.rfind(b"\n") + 1].decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{path}: expected a file of results, but there is none") from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: expected a CSV file of results, but it cannot be read: {error}") from error
    return _parsed_file(path, text)


def gather(places: Iterable[Path]) -> list[Finished]:
    """Return the runs of files, and of folders that hold a ``runs.csv``; InputError if one run is in two of them."""
    found: dict[Key, Path] = {}
    runs: list[Finished] = []
    for place in places:
        path = place / RUNS if place.is_dir() else place
        for run in read_runs(path):
            if run.key in found:
                raise InputError(f"the run {' '.join(map(str, run.key))} is both in {found[run.key]} and in {path}")
            found[run.key] = path
            runs.append(run)
    return runs


def open_runs(path: Path) -> list[Finished]:
    """Return the runs of an unfinished experiment, whose file is begun if there is none; a cut last line is dropped."""
    return _parsed_file(path, open_lines(path, _csv_line(FIELDS)))


def append_run(path: Path, run: Finished) -> None:
    """Add one run, at once or not at all."""
    append_lines(path, run.line())


def pack(runs: Iterable[Finished], path: Path) -> None:
    """Write finished runs, sorted, as a compressed file: errors with `DIGITS` significant digits, without times.

    The same runs give the same bytes, in whatever order they were made.
    """
    lines = [_csv_line(FIELDS)]
    for run in sorted(runs, key=lambda run: run.key):
        values = [float(f"{value:.{DIGITS}g}") for value in run.values.tolist()]
        lines.append(replace(run, values=np.array(values), seconds=float("nan")).line())
    path.parent.mkdir(parents=True, exist_ok=True)
    put(path, gzip.compress("".join(lines).encode("utf-8"), mtime=0))


def _parsed_file(path: Path, text: str) -> list[Finished]:
    rows = csv.reader(io.StringIO(text, newline=""))
    header = next(rows, [])
    if tuple(header) != FIELDS:
        raise InputError(f"{path}, line 1: expected {','.join(FIELDS)}, got {','.join(header)[:80]!r}")
    found: dict[Key, Finished] = {}
    for number, row in enumerate(rows, start=2):
        try:
            run = _parsed(row)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        if run.key in found:
            raise InputError(f"{path}, line {number}: the run {run.key} comes twice")
        found[run.key] = run
    return list(found.values())


def _parsed(row: Sequence[str]) -> Finished:
    if len(row) != len(FIELDS):
        raise ValueError(f"expected {len(FIELDS)} cells, got {len(row)}")
    form, benchmark, method, task, repetition, seed, best, worst, values, weights, seconds, version = row
    if form != str(FORMAT):
        raise ValueError(f"expected results of format {FORMAT}, got {form!r}")
    return Finished(
        Key(benchmark, method, task, int(repetition)),
        int(seed),
        float(best),
        float(worst),
        np.array([float(value) for value in values.split()]),
        _weights_of(weights),
        float(seconds),
        version,
    )


def _weights_cell(weights: FloatArray | None) -> str:
    if weights is None:
        return ""
    steps = (NO_MODEL if np.isnan(row).any() else "/".join(f"{value:.3g}" for value in row) for row in weights)
    return " ".join(steps)


def _weights_of(cell: str) -> FloatArray | None:
    if not cell:
        return None
    empty = [float("nan")] * WEIGHTS
    steps = [empty if step == NO_MODEL else [float(value) for value in step.split("/")] for step in cell.split()]
    if any(len(step) != WEIGHTS for step in steps):
        raise ValueError(f"expected {WEIGHTS} numbers for each evaluation's weights, got {cell[:60]!r}")
    return np.array(steps)


def _short(value: float) -> str:
    """The shortest text that gives the same number."""
    return repr(value).removesuffix(".0")


def _csv_line(cells: Sequence[str]) -> str:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()
