"""The tables of `recollect.bench.overview` for the page, with their marks.

Underlined and bold: the lowest of a column; bold: what is not significantly different from it. Readers who cannot see
the marks are told them in words.
"""

from __future__ import annotations

import re

from recollect.bench import tables as bench
from recollect.bench.layout import Mark
from recollect.bench.typeset import headings
from recollect.bench.typeset import number as written
from recollect.report.html import Child, joined, tag
from recollect.report.names import named
from recollect.report.table import EMPTY, Cell, Column, Table, word

SAID: dict[Mark, str] = {"best": "lowest", "even": "not significantly different from the lowest"}
HINTS = {
    "area": "100 x ADTM, mean over all evaluations",
    "rank": "mean rank at the end, 1 is best",
    "seconds": "per suggestion",
}


def sortable(table: bench.Table) -> Table:
    """Return a table of results as one of the page's."""
    columns = [Column("method", numeric=False)]
    for column, heading in zip(table.columns, headings(table.columns), strict=True):
        columns.append(Column(_shown(heading), hint=HINTS.get(column.heading, "") or _counted(column.heading)))
    blocks = tuple(
        tuple((word(named(line.label)), *map(_cell, line.cells, table.columns)) for line in block)
        for block in table.blocks
    )
    return Table(named(table.title), tuple(columns), blocks, tuple(named(note, 4000) for note in table.notes))


def _shown(heading: str) -> str:
    return f"after {heading}" if heading.isdigit() else named(heading)


def _counted(heading: str) -> str:
    return f"100 x ADTM after {heading} evaluations" if re.fullmatch(r"\d+", heading) else ""


def _cell(cell: bench.Cell, column: bench.Column) -> Cell:
    if cell.value is None and cell.printed is None:
        return Cell(EMPTY, None)
    own: Child = EMPTY if cell.value is None else _marked(written(cell.value, column.form), cell.mark)
    beside: list[Child] = []
    if cell.printed is not None:
        printed = _marked(written(cell.printed.value, column.form), cell.printed.mark)
        beside = [" ", tag("span", {"class": "beside"}, tag("span", {"class": "unseen"}, "paper: "), "(", printed, ")")]
    elif cell.word:
        beside = [" ", tag("span", {"class": "beside"}, f"({named(cell.word)})")]
    return Cell(joined([own, *beside]), cell.value)


def _marked(text: str, mark: Mark) -> Child:
    if not mark:
        return text
    return tag("span", {"class": mark}, text, tag("span", {"class": "unseen"}, f" ({SAID[mark]})"))
