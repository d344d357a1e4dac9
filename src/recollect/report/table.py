"""Tables that readers can sort, by clicking a heading or with the keyboard, since headings are real buttons.

Rows are sorted within their block; empty cells always come last. On a narrow screen a table scrolls within its own
frame, and its first column stays in place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from recollect.errors import InputError
from recollect.report.formatting import IN_HOVER, printable
from recollect.report.html import Child, Html, tag

EMPTY = "\N{EN DASH}"
MINUTE = "%Y-%m-%d %H:%M"


@dataclass(frozen=True, slots=True)
class Column:
    """A column. numeric: whether it holds numbers; hint: what the heading means, if that is not obvious."""

    heading: str
    numeric: bool = True
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is shown, and what it is sorted by: a number, a text, or None in an empty cell."""

    content: Child
    sort_key: float | str | None


Row: TypeAlias = tuple[Cell, ...]
Values: TypeAlias = Sequence[Cell | str | float | None]


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose first column names the rows. Each block of rows is sorted separately."""

    title: str
    columns: tuple[Column, ...]
    blocks: tuple[tuple[Row, ...], ...]
    notes: tuple[str, ...] = ()
    action: Html | None = None  # what can be done with the rows: stands above the table

    def __post_init__(self) -> None:
        """Reject rows of another length."""
        for row in (row for block in self.blocks for row in block):
            if len(row) != len(self.columns):
                raise InputError(f"Table: expected rows of {len(self.columns)} cells, got one of {len(row)}")


def text_cell(text: str) -> Cell:
    """Return a cell with a text."""
    return Cell(text, text)


def link_cell(name: str, url: str | None) -> Cell:
    """Return a cell with a name, and a link if there is a page."""
    return Cell(printable(name) if url is None else tag("a", {"href": url}, printable(name)), name)


def number_cell(value: float | None, form: str = ".2f") -> Cell:
    """Return a cell with a formatted number; an empty one for None and nan."""
    if value is None or math.isnan(value):
        return Cell(EMPTY, None)
    text = format(value, form)
    return Cell(text.lstrip("-") if float(text.replace(",", "")) == 0 else text, float(value))


def simple_table(title: str, columns: Sequence[tuple[str, str]], rows: Iterable[Values], *notes: str) -> Table:
    """Return a table of one block; columns: headings, each with the format of its numbers, which is empty for texts."""
    forms = [form for _, form in columns]
    block = tuple(tuple(_cell(value, form) for value, form in zip(row, forms, strict=True)) for row in rows)
    headings = tuple(Column(heading, numeric=bool(form)) for heading, form in columns)
    return Table(title, headings, (block,), tuple(note for note in notes if note))


def _cell(value: Cell | str | float | None, form: str) -> Cell:
    if isinstance(value, Cell):
        return value
    return text_cell(value) if isinstance(value, str) else number_cell(value, form)


def param_cell(value: Any) -> Cell:
    """Return a cell with the value of a hyperparameter; an empty one for None, which also stands for inactive."""
    if value is None:
        return Cell(EMPTY, None)
    if _is_number(value):
        return number_cell(float(value), ".4g") if isinstance(value, float) else Cell(f"{value}", float(value))
    return text_cell(printable(str(value), IN_HOVER))


def param_column(name: str, values: Iterable[Any]) -> tuple[str, str]:
    """Return the heading of a hyperparameter with these values, and its format for `simple_table`."""
    return printable(name, IN_HOVER), ".4g" if all(value is None or _is_number(value) for value in values) else ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def date_cell(date: datetime | None) -> Cell:
    """Return a cell with a date, to the minute, for a numeric column: it is sorted by its seconds."""
    return Cell(EMPTY, None) if date is None else Cell(date.strftime(MINUTE), (date - datetime.min).total_seconds())


def table_html(table: Table, identity: str) -> Html:
    """Return a table with its heading and notes. identity: unique on the page."""
    title = tag("h3", {"id": identity}, table.title)
    notes = tag("ul", {"class": "notes"}, *(tag("li", {}, note) for note in table.notes)) if table.notes else ""
    head = title if table.action is None else tag("div", {"class": "head"}, title, table.action)
    return tag("section", {"class": "table", "aria-labelledby": identity}, head, scrolling_table(table), notes)


def scrolling_table(table: Table) -> Html:
    """Return only the table, in a frame that scrolls."""
    classes = ["number" if column.numeric else None for column in table.columns]
    headings = []
    for column, kind in zip(table.columns, classes, strict=True):
        button = tag("button", {"type": "button", "title": column.hint or None}, column.heading)
        headings.append(tag("th", {"scope": "col", "class": kind, "aria-sort": "none"}, button))
    head = tag("thead", {}, tag("tr", {}, *headings))
    bodies = [tag("tbody", {}, *(_row(row, classes) for row in block)) for block in table.blocks]
    frame = {"class": "frame", "role": "region", "tabindex": "0", "aria-label": f"Table: {table.title}"}
    return tag("div", frame, tag("table", {"class": "sortable", "aria-label": table.title}, head, *bodies))


def _row(row: Row, classes: Sequence[str | None]) -> Html:
    cells = []
    for place, (cell, kind) in enumerate(zip(row, classes, strict=True)):
        name, scope = ("td", None) if place else ("th", "row")
        order = None if cell.sort_key is None else str(cell.sort_key)
        cells.append(tag(name, {"scope": scope, "class": kind, "data-order": order}, cell.content))
    return tag("tr", {}, *cells)
