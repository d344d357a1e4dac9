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
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recollect.bench.lines import append_lines, csv_line, open_lines
from recollect.bench.statistics import best_so_far
from recollect.errors import InputError
from recollect.files import make_folder, put
from recollect.numerics.arrays import FloatArray

FORMAT = 1
FIELDS = (
    *("format", "benchmark", "method", "task", "repetition", "seed"),
    *("best", "worst", "values", "weights", "seconds", "version"),
)
RUNS = "runs.csv"  # in the folder of an experiment
DIGITS = 10  # of packed errors: more than a figure shows, fewer than rounding leaves right
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
        """Normalised regret (t,) after each evaluation; 0 on a task where all errors are the same."""
        span = self.worst - self.best
        best = best_so_far(self.values)
        return np.asarray((best - self.best) / span) if span > 0 else np.zeros(len(best))

    def line(self) -> str:
        """The run as a line of the file."""
        cells = [FORMAT, *self.key, self.seed, repr(float(self.best)), repr(float(self.worst))]
        cells += [" ".join(map(_short, self.values.tolist())), _weights_cell(self.weights), f"{self.seconds:.3g}"]
        return csv_line([*map(str, cells), self.version])


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
    return _parsed_file(path, open_lines(path, csv_line(FIELDS)))


def append_run(path: Path, run: Finished) -> None:
    """Add one run, at once or not at all."""
    append_lines(path, run.line())


def pack(runs: Iterable[Finished], path: Path) -> None:
    """Write finished runs, `rounded` and sorted, without times; compressed if ``.gz``.

    The same runs give the same bytes, in whatever order they were made.
    """
    lines = [csv_line(FIELDS)]
    for run in sorted(runs, key=lambda run: run.key):
        lines.append(replace(rounded(run), seconds=float("nan")).line())
    content = "".join(lines).encode("utf-8")
    make_folder(path.parent)
    put(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def rounded(run: Finished) -> Finished:
    """Return a run whose errors have `DIGITS` digits in units of what lies between best and worst, as packed ones."""
    span = run.worst - run.best
    if not 0.0 < span < math.inf:
        return run
    decimals = DIGITS - 1 - math.floor(math.log10(span))
    values = np.array([round(value, decimals) for value in run.values.tolist()])
    return replace(run, best=round(run.best, decimals), worst=round(run.worst, decimals), values=values)


def _parsed_file(path: Path, text: str) -> list[Finished]:
    found: dict[Key, Finished] = {}
    for number, row in enumerate(_rows(path, text), start=1):
        if number == 1:
            if tuple(row) != FIELDS:
                raise InputError(f"{path}, line 1: expected {','.join(FIELDS)}, got {','.join(row)[:200]!r}")
            continue
        try:
            run = _parsed(row)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        if run.key in found:
            raise InputError(f"{path}, line {number}: the run {run.key} comes twice")
        found[run.key] = run
    return list(found.values())


def _rows(path: Path, text: str) -> list[list[str]]:
    """The cells of all lines, however long they are, at least one line of them."""
    before = csv.field_size_limit(len(text) + 1)
    try:
        return list(csv.reader(io.StringIO(text, newline=""))) or [[]]
    except csv.Error as error:
        raise InputError(f"{path}: expected a CSV file of results: {error}") from error
    finally:
        csv.field_size_limit(before)


def _parsed(row: Sequence[str]) -> Finished:
    if len(row) != len(FIELDS):
        raise ValueError(f"expected {len(FIELDS)} cells, got {len(row)}")
    form, benchmark, method, task, repetition, seed, best, worst, values, weights, seconds, version = row
    if form != str(FORMAT):
        raise ValueError(f"expected results of format {FORMAT}, got {form!r}")
    if not float(best) <= float(worst):
        raise ValueError(f"expected a best error that is not above the worst one, got {best} and {worst}")
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
