"""Measurements of the scaling study, in a CSV file that explains itself: one line each.

    format,benchmark,observations,kind,method,x,repetition,seconds,version
    1,adaboost-grid,50,online,rgpe-mean,25,0,0.0363,0.3.0

`recollect.bench.scaling` says what the kinds are. Lines are appended as they are measured, so that a study which was
stopped goes on where it was.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from recollect import __version__
from recollect.bench.lines import append_lines, csv_line, open_lines
from recollect.errors import InputError

Kind = Literal["once", "online", "many", "resamples"]
FORMAT = 1
FIELDS = ("format", "benchmark", "observations", "kind", "method", "x", "repetition", "seconds", "version")


class MeasurementKey(NamedTuple):
    """What is measured."""

    kind: Kind
    method: str
    x: int
    repetition: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """How many seconds of one core it took."""

    key: MeasurementKey
    seconds: float


@dataclass(frozen=True, slots=True)
class MeasurementFile:
    """Measurements on one benchmark with so many observations on every task."""

    path: Path
    benchmark: str
    observations: int

    def open(self) -> list[Measurement]:
        """Return what it holds; it is begun if it is not there, and a line that was cut off is dropped."""
        text = open_lines(self.path, csv_line(FIELDS))
        rows = csv.reader(io.StringIO(text, newline=""))
        if next(rows, None) != list(FIELDS):
            raise InputError(f"{self.path}, line 1: expected {','.join(FIELDS)}; name another folder")
        return [self._parsed(row, number) for number, row in enumerate(rows, start=2)]

    def append(self, rows: Iterable[Measurement]) -> list[Measurement]:
        """Write rows as they come, and return them."""
        written = []
        for row in rows:
            cells = (FORMAT, self.benchmark, self.observations, *row.key, f"{row.seconds:.4g}", __version__)
            append_lines(self.path, csv_line(cells))
            written.append(row)
        return written

    def _parsed(self, row: list[str], number: int) -> Measurement:
        where = f"{self.path}, line {number}"
        try:
            form, benchmark, observations, kind, method, x, repetition, seconds, _ = row
            if form != str(FORMAT) or kind not in get_args(Kind):
                raise ValueError(f"expected a measurement of format {FORMAT}, got {','.join(row)[:80]!r}")
            key = MeasurementKey(cast("Kind", kind), method, int(x), int(repetition))
            found = Measurement(key, float(seconds))
        except ValueError as error:
            raise InputError(f"{where}: {error}") from error
        if (benchmark, observations) != (self.benchmark, str(self.observations)):
            wanted = f"{self.benchmark} with {self.observations} observations"
            raise InputError(f"{where}: measured on {benchmark} with {observations}, not {wanted}; name another folder")
        return found
