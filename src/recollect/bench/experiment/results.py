"""Results of experiments: self-describing CSV files with one line per run.

    format,benchmark,method,task,repetition,seed,best,worst,values,weights,seconds,version
    1,svm-grid,rgpe-taf,a9a,0,12,0.15,0.24,0.19 0.17 ...,,0.0213,0.1.0

`CompletedRun` describes the columns. values: separated by blanks. weights: empty, or one entry
``target/first/second/rest/count`` per evaluation, ``-`` where no model was used. ``pandas.read_csv(path)`` reads the
whole file, compressed (``.gz``, ``.xz``) or not.

While an experiment runs, its file is only appended to (`append_file`). `pack_results` writes a finished one: sorted,
rounded, compressed.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np

from recollect._files import make_folder, write_atomically
from recollect.bench.experiment.append_file import CsvRecords, csv_line, open_lines
from recollect.bench.experiment.experiment_run import WEIGHT_COLUMNS, CompletedRun, RunKey
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

FORMAT = 1
FIELDS = (
    *("format", "benchmark", "method", "task", "repetition", "seed"),
    *("best", "worst", "values", "weights", "seconds", "version"),
)
RESULTS_FILE = "runs.csv"  # in the folder of an experiment
PACKED_DIGITS = 10  # of packed errors: more than a figure shows, fewer than rounding leaves right
PACKED_ENDINGS = (".csv.gz", ".csv.xz", ".csv")  # xz takes two thirds of the space of gz, and longer to write
NO_MODEL = "-"


def read_results(path: Path) -> list[CompletedRun]:
    """Return the runs in a file, without a last line that is still being written; InputError for other content."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        elif path.suffix == ".xz":
            content = _unpack_xz(content)
        text = content[: content.rfind(b"\n") + 1].decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{path}: expected a file of results, but there is none") from error
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: expected a CSV file of results, but it cannot be read: {error}") from error
    return _parse(path, text)


def load_results(paths: Iterable[Path]) -> list[CompletedRun]:
    """Return the runs of files and of folders with a ``runs.csv``; InputError if a run is in two of them."""
    files: dict[RunKey, Path] = {}
    runs: list[CompletedRun] = []
    for place in paths:
        path = place / RESULTS_FILE if place.is_dir() else place
        for run in read_results(path):
            if run.key in files:
                raise InputError(f"the run {run.key} is both in {files[run.key]} and in {path}; leave one of them out")
            files[run.key] = path
            runs.append(run)
    return runs


def open_results(path: Path) -> list[CompletedRun]:
    """Return the runs of an unfinished experiment; the file is created if there is none, a cut last line dropped."""
    return _parse(path, open_lines(path, csv_line(FIELDS)))


def append_result(path: Path, run: CompletedRun) -> None:
    """Append a run, completely or not at all."""
    _RECORDS.append(path, run)


def pack_results(runs: Iterable[CompletedRun], path: Path) -> None:
    """Write finished runs, rounded (`round_run`) and sorted, without times; compressed if the name says so.

    The same runs give the same bytes, in whatever order they were completed.
    """
    packed = (replace(round_run(run), seconds=float("nan")) for run in sorted(runs, key=lambda run: run.key))
    content = (csv_line(FIELDS) + _RECORDS.lines(packed)).encode("utf-8")
    make_folder(path.parent)
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    elif path.suffix == ".xz":
        content = _import_lzma().compress(content, preset=9)
    write_atomically(path, content)


def _unpack_xz(content: bytes) -> bytes:
    lzma = _import_lzma()
    try:
        unpacked: bytes = lzma.decompress(content)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from error
    return unpacked


def _import_lzma() -> ModuleType:
    """Return Python's module lzma, which is only there if Python was built with it."""
    try:
        import lzma
    except ImportError as error:
        raise InputError("files that end in .xz need a Python with the module lzma; this one has none") from error
    return lzma


def round_run(run: CompletedRun) -> CompletedRun:
    """Return a run with errors rounded to `PACKED_DIGITS` digits of the span between best and worst."""
    span = run.worst - run.best
    if not 0.0 < span < math.inf:
        return run
    decimals = PACKED_DIGITS - 1 - math.floor(math.log10(span))
    values = np.array([round(value, decimals) for value in run.values.tolist()])
    return replace(run, best=round(run.best, decimals), worst=round(run.worst, decimals), values=values)


def _parse(path: Path, text: str) -> list[CompletedRun]:
    runs = _RECORDS.parse(path, text)
    keys: set[RunKey] = set()
    for number, run in enumerate(runs, start=2):
        if run.key in keys:
            raise InputError(f"{path}, line {number}: the run {run.key} comes twice")
        keys.add(run.key)
    return runs


def _to_cells(run: CompletedRun) -> Iterator[str]:
    yield from map(str, (FORMAT, *run.key, run.seed))
    yield from (repr(float(run.best)), repr(float(run.worst)))
    yield " ".join(repr(value).removesuffix(".0") for value in run.values.tolist())  # shortest text of the same number
    rows = np.empty((0, WEIGHT_COLUMNS)) if run.weights is None else run.weights
    yield " ".join(NO_MODEL if np.isnan(row).any() else "/".join(f"{value:.3g}" for value in row) for row in rows)
    yield from (f"{run.seconds:.3g}", run.version)


def _from_cells(cells: Sequence[str]) -> CompletedRun:
    form, benchmark, method, task, repetition, seed, best, worst, values, weights, seconds, version = cells
    if form != str(FORMAT):
        raise ValueError(f"expected results of format {FORMAT}, got {form!r}")
    if not float(best) <= float(worst):
        raise ValueError(f"expected a best error that is not above the worst one, got {best} and {worst}")
    key, errors = RunKey(benchmark, method, task, int(repetition)), np.array([float(v) for v in values.split()])
    bounds = float(best), float(worst)
    return CompletedRun(key, int(seed), *bounds, errors, _weights_from_cell(weights), float(seconds), version)


def _weights_from_cell(cell: str) -> FloatArray | None:
    if not cell:
        return None
    empty = [float("nan")] * WEIGHT_COLUMNS
    rows = [empty if entry == NO_MODEL else [float(value) for value in entry.split("/")] for entry in cell.split()]
    if any(len(row) != WEIGHT_COLUMNS for row in rows):
        raise ValueError(f"expected {WEIGHT_COLUMNS} numbers for each evaluation's weights, got {cell[:60]!r}")
    return np.array(rows)


_RECORDS = CsvRecords(FIELDS, _to_cells, _from_cells)
