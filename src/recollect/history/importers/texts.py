"""Text files read whole, with an error that says what is the matter with one that cannot be."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recollect.errors import InputError


def text_of(path: Path) -> str:
    """Return the text of a file, unzipped if its name ends in .gz."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: expected a file, this is a folder") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: the file cannot be read: {error}") from error
    if b"\0" in content:
        raise InputError(f"{path}: expected text in UTF-8, got a binary file (or text in UTF-16)")
    try:
        # A byte order mark, which spreadsheets write, is no part of the text.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}, line {line}: expected text in UTF-8, got another encoding: {error.reason}"
        ) from error
    if not text.strip():
        raise InputError(f"{path}: the file is empty")
    return text


def objects_of(where: str, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON object of every line that is not blank, with the place it is at."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{where}, line {number}"
            yield place, as_object(place, as_json(place, line))


def as_json(place: str, text: str) -> Any:
    """Return what a JSON text says; InputError for one that is cut off, is something else or has a name twice."""
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: expected JSON, which may have been cut off: {error}") from error


def as_object(place: str, value: Any) -> dict[str, Any]:
    """Return a JSON object as it is; InputError for anything else."""
    if not isinstance(value, dict):
        raise InputError(f"{place}: expected a JSON object, got {json.dumps(value)[:60]}")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} comes twice")
    return found
