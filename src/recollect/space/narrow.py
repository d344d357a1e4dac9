"""A search space cut down to smaller ranges: the same hyperparameters, conditions and clauses, fewer values.

`narrow` builds a new ConfigurationSpace. Floats, integers and ordinals get the inclusive ranges asked for (an ordinal's
range is a stretch of its sequence); everything else, weights and choices included, is taken over as it is. The columns
keep their order, because conditions decide it. Paper section 5.3.

A hyperparameter that decides a condition or occurs in a forbidden clause keeps its full range: conditions and clauses
name values of it, and one whose value had been cut off could no longer be written down.

ConfigSpace rounds the bounds and the default of a float to 13 decimals, and beyond some thousands that arithmetic may
miss by a last digit. So a float's range is rounded outward, to the nearest bounds that ConfigSpace keeps, never beyond
the old ones: nothing that was asked for is lost, and every value of the new space belongs to the old one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.errors import InputError, NumericalError
from recollect.space.columns import Column, Interval, Steps
from recollect.space.dicts import DECIMALS
from recollect.space.predicates import Junction, Predicate, Relation, Test
from recollect.space.space import Space, compile_space

if TYPE_CHECKING:
    from ConfigSpace.hyperparameters import Hyperparameter

NARROWEST = 1e-12
"""A float range of less than this share of its larger end is one value: a log scale could not tell its ends apart."""

TRIES = 8
"""How many doubles, and how many decimals, are tried on either side of a bound; two suffice."""


def narrow(space: Space, ranges: Mapping[str, tuple[Any, Any]]) -> Space:
    """Return the space with these inclusive value ranges, each within the old one; low == high makes a constant.

    A default outside its new range moves to the nearer end. Hyperparameters that conditions or forbidden clauses refer
    to keep their full range (see the module's docstring), and so does what is not named.
    """
    from ConfigSpace import ConfigurationSpace

    positions = {name: position for position, name in enumerate(space.names)}
    for name in ranges:
        if name not in positions:
            raise InputError(f"narrow: unknown hyperparameter {name!r}; the space has {', '.join(space.names)}")
    asked = {name: _checked(space.columns[positions[name]], ends) for name, ends in ranges.items()}
    pinned = {space.names[p] for test in (*space.conditions, *space.forbidden) for p in _referred(test)}
    source = space.source
    # Hyperparameters never change once made, so those that stay as they are can serve both spaces.
    made: dict[str, Hyperparameter[Any, Any]] = dict(source)
    for name, (low, high) in asked.items():
        if name not in pinned:
            made[name] = _cut(source[name], space.columns[positions[name]], low, high)
    smaller = ConfigurationSpace(name=source.name, meta=source.meta)
    smaller.add(
        *made.values(),
        *(_condition(condition, made) for condition in source.conditions),
        *(_clause(clause, made) for clause in source.forbidden_clauses),
    )
    return compile_space(smaller)


def _checked(column: Column, ends: Any) -> tuple[Any, Any]:
    """Return both ends as proper values: numbers within the old range, or positions in an ordinal's sequence."""
    if not isinstance(column, Interval | Steps):
        raise InputError(
            f"narrow: {column.name!r} has no order, so no range of it can be taken; it is {column.expected()}"
        )
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


def _referred(predicate: Predicate | None) -> set[int]:
    """Return the positions of the columns that a condition or forbidden clause looks at."""
    if isinstance(predicate, Junction):
        return {position for part in predicate.parts for position in _referred(part)}
    if isinstance(predicate, Relation):
        return set(predicate.positions)
    return {predicate.position} if isinstance(predicate, Test) else set()


def _cut(old: Any, column: Column, low: Any, high: Any) -> Hyperparameter[Any, Any]:
    """Return the hyperparameter with a smaller range, or itself if nothing is cut off."""
    from ConfigSpace.hyperparameters import Constant, OrdinalHyperparameter, UniformIntegerHyperparameter

    if isinstance(column, Interval):
        return _cut_float(old, low, high)
    assert isinstance(column, Steps)
    if (low, high) == (0, column.size - 1):
        return old  # type: ignore[no-any-return]
    default = int(np.clip(column.keys(np.array([column.default]))[0], low, high))
    if column.choices is not None:
        kept = column.choices[low : high + 1]
        if low == high:
            return Constant(old.name, kept[0], meta=old.meta)
        return OrdinalHyperparameter(old.name, kept, default_value=column.choices[default], meta=old.meta)
    low, high, default = (column.lower + k for k in (low, high, default))
    if low == high:
        return Constant(old.name, low, meta=old.meta)
    return UniformIntegerHyperparameter(old.name, low, high, default_value=default, log=old.log, meta=old.meta)


def _cut_float(old: Any, low: float, high: float) -> Hyperparameter[Any, Any]:
    from ConfigSpace.hyperparameters import Constant, UniformFloatHyperparameter

    if (low, high) == (old.lower, old.upper):
        return old  # type: ignore[no-any-return]
    if high - low <= NARROWEST * max(abs(low), abs(high)):
        return Constant(old.name, low, meta=old.meta)
    lower, kept_lower = _surviving(low, old.lower, low)
    upper, kept_upper = _surviving(high, high, old.upper)
    default, _ = _surviving(min(max(old.default_value, kept_lower), kept_upper), kept_lower, kept_upper)
    return UniformFloatHyperparameter(old.name, lower, upper, default_value=default, log=old.log, meta=old.meta)


def _surviving(value: float, least: float, most: float) -> tuple[float, float]:
    """Return (given, kept): what to give to ConfigSpace so that it keeps, within [least, most], a number near value."""
    steps = np.arange(-TRIES, TRIES + 1)
    scale = 10.0**DECIMALS
    given = np.concatenate((value + steps * np.spacing(abs(value)), (np.rint(value * scale) + steps) / scale))
    kept = np.round(given, DECIMALS)
    inside = np.flatnonzero((kept >= least) & (kept <= most))
    if inside.size == 0:
        raise NumericalError(f"ConfigSpace keeps no bound near {value!r} within [{least!r}, {most!r}]")
    nearest = inside[np.argmin(np.abs(kept[inside] - value))]
    return float(given[nearest]), float(kept[nearest])


def _condition(old: Any, made: Mapping[str, Any]) -> Any:
    """Return the same condition on the new hyperparameters. (ConfigSpace's own substitution flattens nested ones.)"""
    from ConfigSpace.conditions import Conjunction, InCondition

    if isinstance(old, Conjunction):
        return type(old)(*(_condition(part, made) for part in old.components))
    child, parent = made[old.child.name], made[old.parent.name]
    if isinstance(old, InCondition):
        return type(old)(child, parent, old.values)
    # The old condition was let in already, with whatever value it names.
    return type(old)(child, parent, old.value, check_condition_legality=False)


def _clause(old: Any, made: Mapping[str, Any]) -> Any:
    """Return the same forbidden clause on the new hyperparameters."""
    from ConfigSpace.forbidden import ForbiddenConjunction, ForbiddenInClause, ForbiddenRelation

    if isinstance(old, ForbiddenConjunction):
        return type(old)(*(_clause(part, made) for part in old.components))
    if isinstance(old, ForbiddenRelation):
        return type(old)(made[old.left.name], made[old.right.name])
    about = made[old.hyperparameter.name]
    return type(old)(about, old.values if isinstance(old, ForbiddenInClause) else old.value)
