"""A search space restricted to smaller ranges: the same hyperparameters, conditions and clauses, fewer values.

`narrow` builds a new ConfigurationSpace. Floats, integers and ordinals get the requested inclusive ranges (of an
ordinal, a part of its sequence); everything else, weights and choices included, stays as it is. The columns keep their
order, because conditions determine it. Paper section 5.3.

A hyperparameter that decides a condition or occurs in a forbidden clause keeps its full range: conditions and clauses
refer to its values, and could not refer to one that was cut off.

ConfigSpace rounds the bounds and the default of a float to 13 decimals, and beyond some thousands that arithmetic may
be off by the last digit. A float's range is therefore rounded outward, to the nearest bounds that ConfigSpace keeps,
but never beyond the old ones: nothing of the requested range is lost, and every value of the new space belongs to the
old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.errors import InputError, NumericalError
from recollect.space.columns import Interval, SpaceColumn, Steps
from recollect.space.configspace import DECIMALS, Junction, Predicate, Relation, ValueTest
from recollect.space.space import Space, compile_space

if TYPE_CHECKING:
    from ConfigSpace.hyperparameters import Hyperparameter

# A float range of less than this share of its larger end is one value: a log scale could not tell its ends apart.
NARROWEST_RANGE = 1e-12
MAX_OFFSET = 8  # doubles, and decimals, that are tried on either side of a bound; two suffice


def narrow(space: Space, ranges: Mapping[str, tuple[Any, Any]]) -> Space:
    """Return the space restricted to inclusive ranges ``(low, high)`` by name, each within the old one.

    ``low == high`` makes a constant; a default outside its new range moves to the nearer end. Hyperparameters that are
    not named, or that conditions or forbidden clauses refer to, keep their full range. InputError for an unknown name,
    or a range that is none of its hyperparameter.
    """
    from ConfigSpace import ConfigurationSpace

    positions = {name: position for position, name in enumerate(space.names)}
    for name in ranges:
        if name not in positions:
            raise InputError(f"narrow: unknown hyperparameter {name!r}; the space has {', '.join(space.names)}")
    requested = {name: _checked_range(space.columns[positions[name]], ends) for name, ends in ranges.items()}
    pinned = {space.names[p] for test in (*space.conditions, *space.forbidden) for p in _referenced(test)}
    source = space.source
    # Hyperparameters are immutable, so both spaces can share those that stay as they are.
    hyperparameters: dict[str, Hyperparameter[Any, Any]] = dict(source)
    for name, (low, high) in requested.items():
        if name not in pinned:
            hyperparameters[name] = _cut(source[name], space.columns[positions[name]], low, high)
    smaller = ConfigurationSpace(name=source.name, meta=source.meta)
    conditions = [_condition(condition, hyperparameters) for condition in source.conditions]
    clauses = [_clause(clause, hyperparameters) for clause in source.forbidden_clauses]
    smaller.add(*hyperparameters.values(), *conditions, *clauses)
    return compile_space(smaller)


def _checked_range(column: SpaceColumn, ends: Any) -> tuple[Any, Any]:
    """Return both ends as proper values: numbers within the old range, or positions in an ordinal's sequence."""
    if not isinstance(column, Interval | Steps):
        raise InputError(f"narrow: {column.name!r} has no order, so it has no range; it is {column.expected()}")
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InputError(f"narrow: {column.name!r}: expected a pair (low, high), got {ends!r}")
    codes = column.codes(ends)
    for end, code in zip(ends, codes, strict=True):
        if np.isnan(code):
            raise InputError(f"narrow: {column.name!r}: expected {column.expected()} as end of a range, got {end!r}")
    if isinstance(column, Interval):
        low, high = (min(max(float(end), column.lower), column.upper) for end in ends)
    else:
        low, high = (int(k) for k in column.keys(codes))
    if low > high:
        raise InputError(f"narrow: {column.name!r}: expected low <= high, got {ends!r}")
    return low, high


def _referenced(predicate: Predicate | None) -> set[int]:
    """Return the positions of the columns that a condition or forbidden clause looks at."""
    if isinstance(predicate, Junction):
        return {position for part in predicate.parts for position in _referenced(part)}
    if isinstance(predicate, Relation):
        return set(predicate.positions)
    return {predicate.position} if isinstance(predicate, ValueTest) else set()


def _cut(old: Any, column: SpaceColumn, low: Any, high: Any) -> Hyperparameter[Any, Any]:
    """Return the hyperparameter with a smaller range, or itself if nothing is cut off."""
    from ConfigSpace.hyperparameters import Constant, OrdinalHyperparameter, UniformIntegerHyperparameter

    if isinstance(column, Interval):
        return _cut_float(old, low, high)
    assert isinstance(column, Steps)
    if (low, high) == (0, column.size - 1):
        return old  # type: ignore[no-any-return]
    default = int(np.clip(column.keys(np.array([column.default]))[0], low, high))
    if column.choices is not None:
        sequence = column.choices[low : high + 1]
        if low == high:
            return Constant(old.name, sequence[0], meta=old.meta)
        return OrdinalHyperparameter(old.name, sequence, default_value=column.choices[default], meta=old.meta)
    low, high, default = (column.lower + k for k in (low, high, default))
    if low == high:
        return Constant(old.name, low, meta=old.meta)
    return UniformIntegerHyperparameter(old.name, low, high, default_value=default, log=old.log, meta=old.meta)


def _cut_float(old: Any, low: float, high: float) -> Hyperparameter[Any, Any]:
    from ConfigSpace.hyperparameters import Constant, UniformFloatHyperparameter

    if (low, high) == (old.lower, old.upper):
        return old  # type: ignore[no-any-return]
    if high - low <= NARROWEST_RANGE * max(abs(low), abs(high)):
        return Constant(old.name, low, meta=old.meta)
    lower, kept_lower = _nearest_kept(low, old.lower, low)
    upper, kept_upper = _nearest_kept(high, high, old.upper)
    default, _ = _nearest_kept(min(max(old.default_value, kept_lower), kept_upper), kept_lower, kept_upper)
    return UniformFloatHyperparameter(old.name, lower, upper, default_value=default, log=old.log, meta=old.meta)


def _nearest_kept(value: float, least: float, most: float) -> tuple[float, float]:
    """Return what to pass to ConfigSpace, and what it rounds that to: a number near value within [least, most]."""
    steps = np.arange(-MAX_OFFSET, MAX_OFFSET + 1)
    scale = 10.0**DECIMALS
    unrounded = np.concatenate((value + steps * np.spacing(abs(value)), (np.rint(value * scale) + steps) / scale))
    rounded = np.round(unrounded, DECIMALS)
    inside = np.flatnonzero((rounded >= least) & (rounded <= most))
    if inside.size == 0:
        raise NumericalError(f"ConfigSpace keeps no bound near {value!r} within [{least!r}, {most!r}]")
    nearest = inside[np.argmin(np.abs(rounded[inside] - value))]
    return float(unrounded[nearest]), float(rounded[nearest])


def _condition(old: Any, new: Mapping[str, Any]) -> Any:
    """Return the same condition on the new hyperparameters. (ConfigSpace's own substitution flattens nested ones.)"""
    from ConfigSpace.conditions import Conjunction, InCondition

    if isinstance(old, Conjunction):
        return type(old)(*(_condition(part, new) for part in old.components))
    child, parent = new[old.child.name], new[old.parent.name]
    if isinstance(old, InCondition):
        return type(old)(child, parent, old.values)
    # ConfigSpace accepted the old condition already, with whatever value it has.
    return type(old)(child, parent, old.value, check_condition_legality=False)


def _clause(old: Any, new: Mapping[str, Any]) -> Any:
    """Return the same forbidden clause on the new hyperparameters."""
    from ConfigSpace.forbidden import ForbiddenConjunction, ForbiddenInClause, ForbiddenRelation

    if isinstance(old, ForbiddenConjunction):
        return type(old)(*(_clause(part, new) for part in old.components))
    if isinstance(old, ForbiddenRelation):
        return type(old)(new[old.left.name], new[old.right.name])
    about = new[old.hyperparameter.name]
    return type(old)(about, old.values if isinstance(old, ForbiddenInClause) else old.value)
