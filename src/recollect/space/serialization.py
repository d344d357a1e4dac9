"""Spaces as JSON: ConfigSpace's own versioned format, for spaces that it reproduces exactly."""

from __future__ import annotations

import json
from io import StringIO

from recollect.errors import SpaceError
from recollect.space.columns import Choices, Steps
from recollect.space.configspace import OTHER_CHOICES
from recollect.space.space import Space, compile_space


def to_json(space: Space) -> str:
    """Return the space as JSON text; SpaceError if JSON cannot restore the type of a choice."""
    for column in space.columns:
        choices = column.choices if isinstance(column, Choices | Steps) else None
        for choice in choices or ():
            if choice is not None and type(choice) not in (str, int, float, bool):
                rule = "only str, int, float, bool and None can be stored"
                got = f"{choice!r} ({type(choice).__name__})"
                raise SpaceError(f"hyperparameter {column.name!r}: {rule}, got {got}; {OTHER_CHOICES}")
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
