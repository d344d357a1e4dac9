"""Spaces as text: ConfigSpace's own JSON (it carries a format version), for spaces that it reproduces exactly."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

from recollect.errors import SpaceError
from recollect.space.columns import Choices, Steps
from recollect.space.space import Space, compile_space


def to_json(space: Space) -> str:
    """Return the space as JSON text; SpaceError if a choice is of a type that JSON does not bring back."""
    for column in space.columns:
        choices = column.choices if isinstance(column, Choices | Steps) else None
        for choice in choices or ():
            if choice is not None and type(choice) not in (str, int, float, bool):
                raise SpaceError(
                    f"hyperparameter {column.name!r}: only str, int, float, bool and None can be stored as JSON, "
                    f"got {choice!r} ({type(choice).__name__})"
                )
    buffer = StringIO()
    try:
        space.source.to_json(buffer)
    except (TypeError, ValueError) as error:
        raise SpaceError(f"the search space cannot be stored as JSON: {error}") from error
    return buffer.getvalue()


def from_json(text: str) -> Space:
    """Return the space that `to_json` wrote."""
    from ConfigSpace import ConfigurationSpace

    try:
        stored: Any = json.loads(text)
        source = ConfigurationSpace.from_serialized_dict(stored)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SpaceError(f"expected a search space in ConfigSpace's JSON format, got {text[:80]!r}: {error}") from error
    return compile_space(source)
