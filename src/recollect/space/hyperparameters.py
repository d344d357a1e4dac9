"""ConfigSpace hyperparameters turned into columns, and refused where that cannot be done exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.errors import SpaceError
from recollect.numerics.arrays import FloatArray
from recollect.space.columns import Choices, Column, Interval, Steps

if TYPE_CHECKING:
    from ConfigSpace.hyperparameters import (
        CategoricalHyperparameter,
        Hyperparameter,
        UniformFloatHyperparameter,
        UniformIntegerHyperparameter,
    )

LARGEST_INTEGER = 2**50
LARGEST_LOG_INTEGER = 2**40
"""Beyond these a double in [0, 1] no longer tells neighbouring integers apart."""


def column_of(hyperparameter: Hyperparameter[Any, Any]) -> Column:
    """Return the column of one hyperparameter."""
    from ConfigSpace import hyperparameters as kinds

    if isinstance(hyperparameter, kinds.UniformFloatHyperparameter):
        return _interval(hyperparameter)
    if isinstance(hyperparameter, kinds.UniformIntegerHyperparameter):
        return _integer(hyperparameter)
    if isinstance(hyperparameter, kinds.CategoricalHyperparameter):
        return _categorical(hyperparameter)
    if isinstance(hyperparameter, kinds.OrdinalHyperparameter):
        return _ordinal(hyperparameter.name, tuple(hyperparameter.sequence), hyperparameter.default_value)
    if isinstance(hyperparameter, kinds.Constant):
        value = hyperparameter.value
        return replace(_choices(hyperparameter.name, (value,), value, np.ones(1)), constant=True)
    raise SpaceError(
        f"hyperparameter {hyperparameter.name!r} is a {type(hyperparameter).__name__}, which has no uniform encoding; "
        "use UniformFloatHyperparameter, UniformIntegerHyperparameter, CategoricalHyperparameter, "
        "OrdinalHyperparameter or Constant instead (Normal and Beta ones offer .to_uniform())"
    )


def _interval(hyperparameter: UniformFloatHyperparameter) -> Interval:
    name, lower, upper = hyperparameter.name, float(hyperparameter.lower), float(hyperparameter.upper)
    if not math.isfinite(upper - lower):
        raise SpaceError(f"hyperparameter {name!r}: expected finite bounds, got [{lower!r}, {upper!r}]")
    column = Interval(name, lower, upper, bool(hyperparameter.log), math.nan)
    return Interval(name, lower, upper, column.log, _default(column, hyperparameter.default_value))


def _integer(hyperparameter: UniformIntegerHyperparameter) -> Steps:
    name, lower, upper, log = hyperparameter.name, hyperparameter.lower, hyperparameter.upper, bool(hyperparameter.log)
    check_integers(name, lower, upper, log=log)
    column = Steps(name, lower, upper - lower + 1, log, math.nan)
    return Steps(name, lower, column.size, log, _default(column, hyperparameter.default_value))


def check_integers(name: str, lower: int, upper: int, *, log: bool) -> None:
    """Refuse a range of integers that the encoding cannot tell apart."""
    limit = LARGEST_LOG_INTEGER if log else LARGEST_INTEGER
    if max(abs(lower), abs(upper)) > limit:
        raise SpaceError(
            f"hyperparameter {name!r}: integers {'on a log scale ' if log else ''}must lie within +-{limit} to be told "
            f"apart exactly, got [{lower}, {upper}]; use a float hyperparameter and round it"
        )


def _ordinal(name: str, sequence: tuple[Any, ...], default: Any) -> Column:
    if len(sequence) == 1:
        return _choices(name, sequence, default, np.ones(1))
    index = _index(name, sequence)
    column = Steps(name, 0, len(sequence), False, math.nan, sequence, index)
    return Steps(name, 0, column.size, False, _default(column, default), sequence, index)


def _categorical(hyperparameter: CategoricalHyperparameter) -> Choices:
    probabilities = np.asarray(hyperparameter.probabilities, dtype=np.float64)
    return _choices(hyperparameter.name, tuple(hyperparameter.choices), hyperparameter.default_value, probabilities)


def _choices(name: str, choices: tuple[Any, ...], default: Any, probabilities: FloatArray) -> Choices:
    index = _index(name, choices)
    total = np.cumsum(probabilities)
    return Choices(name, choices, index, total / total[-1], float(index[default]))


def _index(name: str, choices: Sequence[Any]) -> dict[Any, int]:
    try:
        index = {choice: position for position, choice in enumerate(choices)}
    except TypeError as error:
        raise SpaceError(f"hyperparameter {name!r}: choices must be hashable (tuples, not lists): {error}") from error
    if any(isinstance(choice, float) and math.isnan(choice) for choice in choices):
        raise SpaceError(f"hyperparameter {name!r}: nan cannot be a choice, it does not equal itself")
    return index


def _default(column: Column, default: Any) -> float:
    code = float(column.codes([default])[0])
    if math.isnan(code):
        raise SpaceError(f"hyperparameter {column.name!r}: expected as default {column.expected()}, got {default!r}")
    return code
