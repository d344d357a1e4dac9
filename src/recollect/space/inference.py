"""The one place that guesses a search space from values that were tried.

Rules, for one hyperparameter at a time:

- Only ints: an integer range. Ints and floats: a float range. Both reach from the smallest to the largest value.
  Bounds that ConfigSpace would change are rounded outwards, to the 13 decimals that it keeps.
- Anything else: a categorical, with the distinct values in order of appearance. (True and False are not numbers.)
- A log scale, where the caller asks for one: all values are positive, the largest is at least 10 times the smallest,
  and the median lies nearer to the middle of the range on a log scale than on a linear one.
- A hyperparameter that is missing from some configurations: it has a parent if its presence is a function of one
  categorical hyperparameter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from recollect.errors import SpaceError
from recollect.space.columns import EDGE_RELATIVE
from recollect.space.configspace import DECIMALS
from recollect.space.space import Space, compile_space

MIN_LOG_RATIO = 10.0  # between the largest and the smallest value, below which a scale is linear
MAX_WIDENING = 1.01  # how much wider a range may become by rounding its bounds
PLAIN_TYPES = frozenset({bool, int, float, str, type(None)})


class InferredRange(NamedTuple):
    """Numbers from ``low`` to ``high``, both ints or both floats, which may be equal."""

    low: float
    high: float
    log: bool


def infer_values(values: Sequence[Any], *, log_scales: bool) -> InferredRange | list[Any]:
    """Return the range that holds the values, or the list of distinct values if they are not all numbers."""
    types = {type(value) for value in values}
    if not types <= {int, float}:
        return list(dict.fromkeys(values))
    number = int if types == {int} else float
    return InferredRange(number(min(values)), number(max(values)), log_scales and _favors_log_scale(values))


def infer_notation(values: Sequence[Any], *, log_scales: bool) -> Any:
    """Return the values' range, choices or constant in the notation of `recollect.space.notations.entries`."""
    inferred = infer_values(values, log_scales=log_scales)
    if not isinstance(inferred, InferredRange):
        return inferred if len(inferred) > 1 else inferred[0]
    low, high, log = inferred
    if isinstance(low, float):
        low, high = _kept_bounds(low, high, log=log)
    return low if low == high else (low, high, "log") if log else (low, high)


def _kept_bounds(low: float, high: float, *, log: bool) -> tuple[float, float]:
    """Return the bounds, rounded outwards where ConfigSpace would change them, unless that changes the range itself."""
    scale = 10.0**DECIMALS
    lower, upper = low, high
    if abs(round(low, DECIMALS) - low) > EDGE_RELATIVE * abs(low):
        lower = math.floor(low * scale) / scale
    if abs(round(high, DECIMALS) - high) > EDGE_RELATIVE * abs(high):
        upper = math.ceil(high * scale) / scale
    harmless = upper - lower <= MAX_WIDENING * (high - low) and (lower > 0 or not log)
    return (lower, upper) if harmless else (low, high)


def infer_space(configs: Sequence[Mapping[str, Any]], *, log_scales: bool, list_tiny_ranges: bool) -> Space | None:
    """Return the smallest unconditional space that holds all configurations; None if there is nothing in them.

    ``log_scales`` allows log scales. Numbers whose range ConfigSpace cannot represent become choices with
    ``list_tiny_ranges``, else the hyperparameter is left out, as always if its values are not plain (JSON) values.
    """
    hyperparameters: dict[str, Any] = {}
    for name, values in values_by_name(configs).items():
        if not {type(value) for value in values} <= PLAIN_TYPES:
            continue
        notations = [infer_notation(values, log_scales=log_scales), *[list(dict.fromkeys(values))] * list_tiny_ranges]
        for notation in notations:
            try:
                hyperparameters |= compile_space({name: notation}).source
            except SpaceError:
                continue
            break
    return compile_space(hyperparameters) if hyperparameters else None


def values_by_name(configs: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return all values of each hyperparameter, in the order of the configurations that have it."""
    values: dict[str, list[Any]] = {}
    for config in configs:
        for name, value in config.items():
            values.setdefault(name, []).append(value)
    return values


def infer_parent(
    present: Sequence[bool], candidates: Mapping[str, Sequence[Any]], *, missing: Any
) -> tuple[str, list[Any]] | None:
    """Return the first categorical that decides whether a hyperparameter is present, and the values with which it is.

    ``present (n,)`` says in which configurations it is; ``candidates`` has the values (n,) of each categorical, which
    are ``missing`` where that one is not present itself.
    """
    for parent, values in candidates.items():
        inside = {value for value, there in zip(values, present, strict=True) if there}
        outside = {value for value, there in zip(values, present, strict=True) if not there}
        # Where the parent is inactive the child must be, which any condition implies; it must say more than that.
        if missing not in inside and not inside & outside and outside - {missing}:
            return parent, sorted(inside)
    return None


def _favors_log_scale(values: Sequence[float]) -> bool:
    low, high, middle = min(values), max(values), float(median(values))
    if low <= 0 or high < MIN_LOG_RATIO * low:
        return False
    place, log_place = (middle - low) / (high - low), math.log(middle / low) / math.log(high / low)
    return abs(log_place - 0.5) < abs(place - 0.5)
