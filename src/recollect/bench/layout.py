"""How a table of the paper is laid out: rows in blocks, columns, and what was printed in the cells.

The numbers of a row are given benchmark by benchmark; where a table has several evaluation counts, all counts of the
first benchmark come first. What stands behind a number is how it was printed:

    0.21!    underlined and bold: the lowest of its column
    0.22*    bold: not significantly different from the lowest (the captions have it the other way round)
    -        no number
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Mark: TypeAlias = Literal["best", "even", ""]
"""The lowest number of a column; one that is not significantly different from it; any other."""

_MARKS: dict[str, Mark] = {"!": "best", "*": "even"}


@dataclass(frozen=True, slots=True)
class Printed:
    """A number of the paper."""

    value: float
    mark: Mark


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table; see the head of the module for how ``numbers`` are written."""

    label: str
    method: str
    numbers: str


@dataclass(frozen=True, slots=True)
class Layout:
    """A table of the paper. apart: the lowest is sought, and compared with, in each block of rows, not in all."""

    name: str
    title: str
    benchmarks: tuple[str, ...]
    evaluations: tuple[int, ...]
    blocks: tuple[tuple[Row, ...], ...]
    apart: bool
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows, of all blocks."""
        return tuple(row for block in self.blocks for row in block)

    def printed(self, row: Row, benchmark: str, evaluations: int) -> Printed | None:
        """Return what the paper has in a cell; None if it has nothing there."""
        if benchmark not in self.benchmarks or evaluations not in self.evaluations:
            return None
        place = self.benchmarks.index(benchmark) * len(self.evaluations) + self.evaluations.index(evaluations)
        text = row.numbers.split()[place]
        return None if text == "-" else Printed(float(text.rstrip("!*")), _MARKS.get(text[-1], ""))
