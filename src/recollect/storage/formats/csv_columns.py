"""CSV text split into rows, and columns of text turned into typed values.

A column gets the first of these types that fits all its cells: integers (``12``, not ``12.0``), numbers, ``true`` and
``false`` in any case, text. An empty cell, and ``nan`` in any case, is a missing value and does not affect the type.
Blanks around a cell are ignored. MLflow's parameters are typed by the same rules.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from recollect.errors import InputError, InputTypeError
from recollect.validation import as_number

INTEGER = re.compile(r"[+-]?\d{1,300}\Z", re.ASCII)
BOOLEANS = {"true": True, "false": False}


def csv_rows(where: str, text: str | Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV text, or of its lines, that are not empty, the header first, each with its line number.

    Raises:
        InputError: The text is not CSV with commas, or a row has more or fewer cells than the header.
    """
    reader = csv.reader(io.StringIO(text, newline="") if isinstance(text, str) else text, strict=True)
    width = 0
    try:
        for row in filter(None, reader):
            if width == 0 and len(row) == 1 and (separators := set(";\t") & set(row[0])):
                found = f"not by {min(separators)!r}"
                raise InputError(f"{where}, line {reader.line_num}: expected cells separated by commas, {found}")
            width = width or len(row)
            if len(row) != width:
                where_row = f"{where}, line {reader.line_num}"
                raise InputError(f"{where_row}: expected {width} cells as in the header, got {len(row)}")
            yield reader.line_num, row
    except csv.Error as error:
        raise InputError(f"{where}, line {reader.line_num}: expected CSV: {error}") from error


def typed_column(cells: Sequence[str | None]) -> list[Any]:
    """Return the values of a column of text; None where a value is missing."""
    texts: dict[str | None, str | None] = {cell: _stripped(cell) for cell in dict.fromkeys(cells)}
    parse = _parser([text for text in texts.values() if text is not None])
    values = {cell: None if text is None else parse(text) for cell, text in texts.items()}
    return [values[cell] for cell in cells]


def parse_float(text: str) -> float | None:
    """Return the number that a text holds, or None; ``1_000`` is a name, not a number."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def optional_number(cell: object, where: str) -> float | None:
    """Return the number in a cell, None for a missing one; InputError for anything else."""
    content = _stripped(cell) if isinstance(cell, str) else cell
    if content is None:
        return None
    try:
        number = as_number(parse_float(content) if isinstance(content, str) else content, where)
    except InputTypeError as error:
        raise InputError(f"{where}: expected a number, got {cell!r}") from error
    return None if math.isnan(number) else number


def finite_number(text: str, where: str, expected: str) -> float:
    """Return the finite number that a text holds; InputError says where ``expected`` was expected instead."""
    value = parse_float(text)
    if value is None or not math.isfinite(value):
        raise InputError(f"{where}: expected {expected}, got {text!r}")
    return value


def _stripped(cell: str | None) -> str | None:
    text = "" if cell is None else cell.strip()
    return None if text.lower() in ("", "nan") else text


def _parser(texts: Sequence[str]) -> Callable[[str], Any]:
    if all(INTEGER.match(text) for text in texts):
        return int
    if all(parse_float(text) is not None for text in texts):
        return float
    if all(text.lower() in BOOLEANS for text in texts):
        return lambda text: BOOLEANS[text.lower()]
    return str
