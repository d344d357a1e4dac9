"""Checks of what is given on the command line: numbers, places to write, and memories that have to be there."""

from __future__ import annotations

import math
import re
from pathlib import Path

import typer

from recollect.errors import InputError


def positive(option: typer.CallbackParam, value: float | None) -> float | None:
    """Return the value of an option that takes a positive number."""
    if value is not None and not value > 0:
        raise InputError(f"{option.opts[0]}: expected a positive number, got {value:g}")
    return value


def any_number(option: typer.CallbackParam, value: float | None) -> float | None:
    """Return the value of an option that takes any number."""
    if value is not None and math.isnan(value):
        raise InputError(f"{option.opts[0]}: expected a number, got {value:g}")
    return value


def refuse_input(out: Path | None, results: list[Path]) -> None:
    """Refuse to write where results are read from."""
    for place in (path for given in results for path in (given, given / "runs.csv")):
        if out is not None and out.exists() and place.exists() and out.samefile(place):
            raise InputError(f"{out}: results are read from there; name another file")


def absent(where: str) -> str:
    """Say why a file is no memory yet, nothing if it may be one; what is behind a URL shows when it is opened."""
    from recollect.history.storage import URL, faults, shown

    file, prefixed = re.subn(r"^(sqlite(\+\w+)?:///|journal:(//)?)", "", where)
    path = Path(file.partition("?")[0] if prefixed else file).expanduser()
    with faults(shown(where)):
        if URL.match(file) or (path.exists() and not (path.is_file() and path.stat().st_size == 0)):
            return ""
        return "the file is empty, it holds no memory" if path.exists() else "there is no such memory"
