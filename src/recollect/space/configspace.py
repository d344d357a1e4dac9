"""From the hyperparameters and clauses of a ConfigurationSpace to columns and predicates.

What cannot be encoded exactly is refused.

Conditions and forbidden clauses are compiled to predicates, which map encoded points X (n, d) to (n,) bool. Inactive
cells are nan and are treated as in ConfigSpace's own vectors: every comparison with an inactive hyperparameter is
False, except "not equal", which is True. A relation between two hyperparameters is False unless both are active; for
ordinals it compares the values themselves, not their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from recollect.errors import SpaceError
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.space.columns import Choices, Interval, SpaceColumn, Steps

if TYPE_CHECKING:
    from ConfigSpace.hyperparameters import Hyperparameter

DECIMALS = 13  # of a float bound that ConfigSpace keeps
# Beyond these a double in [0, 1] no longer distinguishes neighbouring integers.
LARGEST_INTEGER, LARGEST_LOG_INTEGER = 2**50, 2**40
OTHER_CHOICES = "give each choice a name, such as '3x3', and let the objective look up what it stands for"

Comparison = Callable[[Any, Any], Any]

COMPARISONS: Mapping[str, Comparison] = {
    "Equals": np.equal,
    "In": np.equal,
    "NotEquals": np.not_equal,
    "LessThan": np.less,
    "LessThanEquals": np.less_equal,
    "GreaterThan": np.greater,
    "GreaterThanEquals": np.greater_equal,
}
ORDERS = ("LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
# Keyed by class name: later releases of ConfigSpace may add kinds, which are then refused rather than misread.
TESTS = {
    **{f"{name}Condition": COMPARISONS[name] for name in ("Equals", "NotEquals", "LessThan", "GreaterThan", "In")},
    **{f"Forbidden{name}Clause": COMPARISONS[name] for name in ("Equals", "In", *ORDERS)},
}
RELATIONS = {f"Forbidden{name}Relation": COMPARISONS[name] for name in ("Equals", *ORDERS)}
JUNCTIONS = {f"{kind}{name}Conjunction": name == "And" for kind in ("", "Forbidden") for name in ("And", "Or")}

Predicate: TypeAlias = Union["ValueTest", "Relation", "Junction"]


def column_of(hyperparameter: Hyperparameter[Any, Any]) -> SpaceColumn:
    """Return the column of one hyperparameter."""
    from ConfigSpace import hyperparameters as kinds

    name, default = hyperparameter.name, hyperparameter.default_value
    match hyperparameter:
        case kinds.UniformFloatHyperparameter(lower=lower, upper=upper, log=log):
            if not math.isfinite(float(upper) - float(lower)):
                bounds = f"[{float(lower)!r}, {float(upper)!r}]"
                raise SpaceError(f"hyperparameter {name!r}: expected finite bounds, got {bounds}")
            column: Interval | Steps = Interval(name, float(lower), float(upper), bool(log), math.nan)
        case kinds.UniformIntegerHyperparameter(lower=lower, upper=upper, log=log):
            check_integers(name, lower, upper, log=bool(log))
            column = Steps(name, lower, upper - lower + 1, bool(log), math.nan)
        case kinds.OrdinalHyperparameter(sequence=choices) if len(choices) > 1:
            column = Steps(name, 0, len(choices), False, math.nan, tuple(choices), index_of(name, choices))
        case kinds.OrdinalHyperparameter(sequence=choices):
            return _choices(name, choices, default, [1.0])
        case kinds.CategoricalHyperparameter(choices=choices, probabilities=probabilities):
            return _choices(name, choices, default, probabilities)
        case kinds.Constant(value=value):
            return replace(_choices(name, [value], value, [1.0]), constant=True)
        case _:
            raise SpaceError(
                f"hyperparameter {name!r} is a {type(hyperparameter).__name__}, which has no uniform encoding; use "
                "UniformFloatHyperparameter, UniformIntegerHyperparameter, CategoricalHyperparameter, "
                "OrdinalHyperparameter or Constant instead (Normal and Beta ones offer .to_uniform())"
            )
    code = float(column.codes([default])[0])
    if math.isnan(code):
        raise SpaceError(f"hyperparameter {name!r}: expected as default {column.expected()}, got {default!r}")
    return replace(column, default=code)


def _choices(name: str, choices: Sequence[Any], default: Any, probabilities: npt.ArrayLike) -> Choices:
    index = index_of(name, choices)
    total = np.cumsum(np.asarray(probabilities, dtype=np.float64))
    return Choices(name, tuple(choices), index, total / total[-1], float(index[default]))


def check_integers(name: str, lower: int, upper: int, *, log: bool) -> None:
    """Raise SpaceError for a range of integers that the encoding cannot distinguish."""
    limit = LARGEST_LOG_INTEGER if log else LARGEST_INTEGER
    if max(abs(lower), abs(upper)) > limit:
        rule = f"integers {'on a log scale ' if log else ''}must lie within +-{limit} to be encoded exactly"
        hint = "use a float hyperparameter and round it"
        raise SpaceError(f"hyperparameter {name!r}: {rule}, got [{lower}, {upper}]; {hint}")


def index_of(name: str, choices: Sequence[Any]) -> dict[Any, int]:
    """Return the position of each choice; SpaceError for choices that cannot be told apart."""
    try:
        index = {choice: position for position, choice in enumerate(choices)}
    except TypeError as error:
        raise SpaceError(f"hyperparameter {name!r}: choices must be hashable: {error}; {OTHER_CHOICES}") from error
    if any(isinstance(choice, float) and math.isnan(choice) for choice in choices):
        raise SpaceError(f"hyperparameter {name!r}: nan cannot be a choice, it does not equal itself")
    return index


@dataclass(frozen=True, slots=True, eq=False)
class ValueTest:
    """One column compared with fixed keys; any of them suffices."""

    column: SpaceColumn
    position: int
    compare: Comparison
    keys: FloatArray

    def __call__(self, X: FloatArray) -> BoolArray:
        """Return (n,) whether each row of X (n, d) satisfies it."""
        own = self.column.keys(X[:, self.position])
        return np.asarray(self.compare(own[:, None], self.keys[None, :]).any(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """Two columns compared with each other by value."""

    columns: tuple[SpaceColumn, SpaceColumn]
    positions: tuple[int, int]
    compare: Comparison

    def __call__(self, X: FloatArray) -> BoolArray:
        """Return (n,) whether each row of X (n, d) satisfies it."""
        pair = X[:, self.positions]
        both = ~np.isnan(pair).any(axis=1)
        left, right = (column.comparable(pair[both, side]) for side, column in enumerate(self.columns))
        answer = np.zeros(len(X), dtype=np.bool_)
        answer[both] = np.asarray(self.compare(left, right), dtype=np.bool_)
        return answer


@dataclass(frozen=True, slots=True, eq=False)
class Junction:
    """All of the parts (``every``), or any of them."""

    parts: tuple[Predicate, ...]
    every: bool

    def __call__(self, X: FloatArray) -> BoolArray:
        """Return (n,) whether each row of X (n, d) satisfies it."""
        answers = np.stack([part(X) for part in self.parts])
        return np.asarray((np.logical_and if self.every else np.logical_or).reduce(answers, axis=0))


def compile_predicate(clause: Any, columns: Sequence[SpaceColumn]) -> Predicate:
    """Return the predicate of a ConfigSpace condition or forbidden clause."""
    kind = type(clause).__name__
    positions = {column.name: position for position, column in enumerate(columns)}
    if kind in JUNCTIONS:
        return Junction(tuple(compile_predicate(part, columns) for part in clause.components), JUNCTIONS[kind])
    if kind in RELATIONS:
        left, right = positions[clause.left.name], positions[clause.right.name]
        return _checked_relation(Relation((columns[left], columns[right]), (left, right), RELATIONS[kind]), clause)
    if kind in TESTS:
        about = clause.hyperparameter if kind.startswith("Forbidden") else clause.parent
        position = positions[about.name]
        values = list(clause.values) if kind in ("InCondition", "ForbiddenInClause") else [clause.value]
        column = columns[position]
        return ValueTest(column, position, TESTS[kind], column.keys(column.codes(values)))
    supported = ", ".join((*TESTS, *RELATIONS, *JUNCTIONS))
    raise SpaceError(f"{clause} is a {kind}, which cannot be evaluated on encoded points; supported are {supported}")


def _checked_relation(relation: Relation, clause: Any) -> Relation:
    # A comparison such as 3 < "a" must fail when the space is compiled, not in the middle of a run.
    tables = []
    for column in relation.columns:
        cells = np.arange(column.size) if column.categorical else column.from_unit(np.linspace(0.0, 1.0, 9))
        tables.append(column.comparable(cells.astype(np.float64)))
    try:
        relation.compare(tables[0][:, None], tables[1][None, :])
    except TypeError as error:
        raise SpaceError(f"{clause} compares values that have no order: {error}") from error
    return relation
