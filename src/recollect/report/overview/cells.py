"""Values of hyperparameters and dates as cells of a table."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from recollect.report.names import IN_HOVER, named
from recollect.report.table import EMPTY, Cell, Column, number, word

MINUTE = "%Y-%m-%d %H:%M"


def is_number(value: Any) -> bool:
    """Whether a value is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def value_cell(value: Any) -> Cell:
    """Return a cell with the value of a hyperparameter; an empty one for None, which is also an inactive one."""
    if value is None:
        return Cell(EMPTY, None)
    if is_number(value):
        return number(float(value), ".4g") if isinstance(value, float) else Cell(f"{value}", float(value))
    return word(named(str(value), IN_HOVER))


def column_for(name: str, values: Iterable[Any]) -> Column:
    """Return the column of a hyperparameter with these values."""
    return Column(named(name, IN_HOVER), numeric=all(value is None or is_number(value) for value in values))


def date_cell(date: datetime | None) -> Cell:
    """Return a cell with a date, to the minute, for a column of numbers: it is sorted by its seconds."""
    return Cell(EMPTY, None) if date is None else Cell(date.strftime(MINUTE), (date - datetime.min).total_seconds())
