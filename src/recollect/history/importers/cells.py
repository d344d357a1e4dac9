"""Columns of text turned into values: what CSV files and MLflow hold.

A column is of one type, the first of these that fits all its cells: integers (``12``, not ``12.0``), numbers, ``true``
and ``false`` in any case, text. An empty cell, and ``nan`` in any case, is no value; it does not matter for the type.
Blanks around a cell do not count.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Sequence
from typing import Any

from recollect.errors import InputError

WHOLE = re.compile(r"[+-]?\d{1,300}\Z", re.ASCII)
TRUTH = {"true": True, "false": False}


def typed(cells: Sequence[str | None]) -> list[Any]:
    """Return the values of a column; None where there is none."""
    known: dict[str | None, Any] = {cell: _trimmed(cell) for cell in dict.fromkeys(cells)}
    read = _reader([text for text in known.values() if text is not None])
    values = {cell: None if text is None else read(text) for cell, text in known.items()}
    return [values[cell] for cell in cells]


def as_value(cell: object, where: str) -> float | None:
    """Return the number in a cell, None for an empty one and for nan; InputError for anything else."""
    text = _trimmed(cell) if isinstance(cell, str) else cell
    if text is None:
        return None
    value = as_float(text) if isinstance(text, str) else _as_real(text)
    if value is None:
        raise InputError(f"{where}: expected a number, got {cell!r}")
    return None if math.isnan(value) else value


def as_float(text: str) -> float | None:
    """Return the number that a text holds, or None; ``1_000`` is a name, not a number."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _as_real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def _trimmed(cell: str | None) -> str | None:
    text = "" if cell is None else cell.strip()
    return None if text.lower() in ("", "nan") else text


def _reader(texts: Sequence[str]) -> Callable[[str], Any]:
    if all(WHOLE.match(text) for text in texts):
        return int
    if all(as_float(text) is not None for text in texts):
        return float
    if all(text.lower() in TRUTH for text in texts):
        return lambda text: TRUTH[text.lower()]
    return str
