"""Spaces as JSON: ConfigSpace's own versioned format, for spaces that it reproduces exactly, and files written by hand.

A space file is ConfigSpace's own JSON, or an object with one entry per hyperparameter::

    {"low": 1e-4, "high": 0.1, "log": true}     a range; of integers if both bounds are; "log" may be left out
    ["rbf", "poly"], {"choices": [16, 32]}      choices
    3, "adam", true, null                       a constant
"""

from __future__ import annotations

import json
import warnings
from io import StringIO
from pathlib import Path
from typing import Any

from recollect.errors import InputError, RecollectError, RecollectWarning, SpaceError
from recollect.space.columns import Choices, Steps
from recollect.space.space import Space, compile_space


def to_json(space: Space) -> str:
    """Return the space as JSON text; SpaceError if JSON cannot restore the type of a choice."""
    for column in space.columns:
        choices = column.choices if isinstance(column, Choices | Steps) else None
        for choice in choices or ():
            if choice is not None and type(choice) not in (str, int, float, bool):
                rule = "only str, int, float, bool and None can be stored as JSON"
                got = f"{choice!r} ({type(choice).__name__})"
                raise SpaceError(f"hyperparameter {column.name!r}: {rule}, got {got}")
    buffer = StringIO()
    try:
        space.source.to_json(buffer)
    except (TypeError, ValueError) as error:
        raise SpaceError(f"the search space cannot be stored as JSON: {error}") from error
    return buffer.getvalue()


def from_json(text: str) -> Space:
    """Return the space that `to_json` wrote; SpaceError if the text is something else."""
    from ConfigSpace import ConfigurationSpace

    try:
        source = ConfigurationSpace.from_serialized_dict(json.loads(text))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise SpaceError(f"expected a search space in ConfigSpace's JSON format, got {text[:80]!r}: {error}") from error
    return compile_space(source)


def read_space_file(path: Path) -> Space:
    """Return the search space in a file; InputError if it cannot be read, SpaceError naming a wrong entry."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: the search space cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SpaceError(f"{path}: expected a search space as JSON, but this is not text: {error.reason}") from error
    try:
        content = json.loads(text, object_pairs_hook=_without_duplicates)
        if not isinstance(content, dict):
            raise SpaceError(f"expected a JSON object with one entry per hyperparameter, got {text.strip()[:80]!r}")
        listed = content.get("hyperparameters")
        if isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed):
            return from_json(text)
        return compile_space({name: _specification(name, entry, str(path)) for name, entry in content.items()})
    except RecollectError as error:
        raise SpaceError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"{path}: expected a search space as JSON: {error}") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise SpaceError(f"the key {name!r} occurs twice")
        content[name] = value
    return content


def _specification(name: str, entry: Any, where: str) -> Any:
    """Return an entry of a space file in the notation of `compile_space`."""
    if isinstance(entry, list) and len(entry) == 2 and all(type(choice) in (int, float) for choice in entry):
        low, high = map(json.dumps, entry)
        warnings.warn(
            f'{where}: {name!r} has two choices; write {{"low": {low}, "high": {high}}} for a range, or '
            f'{{"choices": [{low}, {high}]}} if two choices are intended',
            RecollectWarning,
            stacklevel=2,
        )
    if not isinstance(entry, dict):
        return entry
    if entry.keys() == {"choices"} and isinstance(entry["choices"], list):
        return entry["choices"]
    log = entry.get("log", False)
    if not {"low", "high"} <= entry.keys() <= {"low", "high", "log"} or not isinstance(log, bool):
        forms = '{"low": 1, "high": 9}, also with "log": true, a list of choices, {"choices": [...]} or one constant'
        raise SpaceError(f"{name!r}: expected {forms}; got {json.dumps(entry)[:200]}")
    return (entry["low"], entry["high"], "log") if log else (entry["low"], entry["high"])
