"""Tables that readers can sort: by a click on a heading, or with the keyboard, since headings hold real buttons.

Rows are sorted within their block; a cell without a value is always last. On a narrow screen a table scrolls within its
own frame, the first column staying where it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from recollect.errors import InputError
from recollect.report.html import Child, Html, joined, tag

EMPTY = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Column:
    """A column; numeric: it holds numbers. hint: what the heading means, if that is not plain."""

    heading: str
    numeric: bool = True
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, and what it is sorted by: a number, a text, or None where there is nothing."""

    shown: Child
    order: float | str | None


Row: TypeAlias = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first column names the rows. Each block of rows is sorted for itself."""

    title: str
    columns: tuple[Column, ...]
    blocks: tuple[tuple[Row, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse rows of another length."""
        for row in (row for block in self.blocks for row in block):
            if len(row) != len(self.columns):
                raise InputError(f"Table: expected rows of {len(self.columns)} cells, got one of {len(row)}")


def word(text: str) -> Cell:
    """Return a cell with a text."""
    return Cell(text, text)


def number(value: float | None, form: str = ".2f") -> Cell:
    """Return a cell with a number, written in this form; an empty one for None and nan."""
    if value is None or math.isnan(value):
        return Cell(EMPTY, None)
    text = format(value, form)
    return Cell(text.lstrip("-") if float(text.replace(",", "")) == 0 else text, float(value))


def table_html(table: Table, identity: str, *, level: int = 3) -> Html:
    """Return a table with its heading and notes. identity: not used for anything else on the page."""
    return tag(
        "section",
        {"class": "table", "aria-labelledby": identity},
        tag(f"h{level}", {"id": identity}, table.title),
        frame(table),
        tag("ul", {"class": "notes"}, *(tag("li", {}, note) for note in table.notes)) if table.notes else "",
    )


def frame(table: Table) -> Html:
    """Return the table alone, in a frame that scrolls."""
    head = tag("tr", {}, *(_heading(column) for column in table.columns))
    bodies = [tag("tbody", {}, *(_row(row, table.columns) for row in block)) for block in table.blocks]
    return tag(
        "div",
        {"class": "frame", "role": "region", "tabindex": 0, "aria-label": f"Table: {table.title}"},
        tag("table", {"class": "sortable", "aria-label": table.title}, tag("thead", {}, head), *bodies),
    )


def _heading(column: Column) -> Html:
    button = tag("button", {"type": "button", "title": column.hint or None}, column.heading)
    return tag("th", {"scope": "col", "class": _class(column), "aria-sort": "none"}, button)


def _row(row: Row, columns: Sequence[Column]) -> Html:
    cells = [
        tag(
            "td" if place else "th",
            {
                "scope": None if place else "row",
                "class": _class(column),
                "data-order": None if cell.order is None else str(cell.order),
            },
            cell.shown,
        )
        for place, (cell, column) in enumerate(zip(row, columns, strict=True))
    ]
    return tag("tr", {}, joined(cells))


def _class(column: Column) -> str | None:
    return "number" if column.numeric else None
