"""From a plain dict to a ConfigurationSpace, and from its hyperparameters and clauses to columns and predicates.

    (lo, hi)          two ints: integer; otherwise: float        (lo, hi, "log")   the same on a log scale
    [a, b, c]         categorical                                 3, "adam", None   constant
    a ConfigSpace hyperparameter                                  itself

What ConfigSpace would change silently (it rounds bounds to 13 decimals) or report obscurely is refused here, and so is
a hyperparameter that cannot be encoded exactly.

Conditions and forbidden clauses are compiled to predicates, which map encoded points X (n, d) to (n,) bool. Inactive
cells are nan and are treated as in ConfigSpace's own vectors: every comparison with an inactive hyperparameter is
False, except "not equal", which is True. A relation between two hyperparameters is False unless both are active; for
ordinals it compares the values themselves, not their order.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from recollect.errors import SpaceError
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.space.columns import EDGE_RELATIVE, Choices, Interval, SpaceColumn, Steps

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from ConfigSpace.hyperparameters import Hyperparameter

FORMS = '(lo, hi), (lo, hi, "log"), a list of choices, one constant, or a ConfigSpace hyperparameter'
DECIMALS = 13
LARGEST_BOUND = 1e290  # ConfigSpace's rounding overflows above this
# Beyond these a double in [0, 1] no longer distinguishes neighbouring integers.
LARGEST_INTEGER, LARGEST_LOG_INTEGER = 2**50, 2**40

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


def space_from_dict(mapping: Mapping[Any, Any]) -> ConfigurationSpace:
    """Return the ConfigurationSpace that the dict describes."""
    from ConfigSpace import ConfigurationSpace

    for name in mapping:
        if not isinstance(name, str) or not name:
            raise SpaceError(f"a hyperparameter's name must be a non-empty str, got {name!r} ({type(name).__name__})")
    space = ConfigurationSpace()
    try:
        space.add(*(_hyperparameter(name, spec) for name, spec in mapping.items()))
    except (ValueError, TypeError) as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError(f"ConfigSpace refuses this space: {error}") from error
    return space


def _hyperparameter(name: str, spec: Any) -> Hyperparameter[Any, Any]:
    from ConfigSpace.hyperparameters import CategoricalHyperparameter, Constant, Hyperparameter

    if isinstance(spec, Hyperparameter):
        if spec.name != name:
            raise SpaceError(f"the hyperparameter under {name!r} has the name {spec.name!r}; the two must agree")
        return spec
    if isinstance(spec, tuple):
        return _range(name, spec)
    if isinstance(spec, list):
        if not spec:
            raise SpaceError(f"{name!r}: expected at least one choice, got an empty list")
        if len(_index(name, spec)) < len(spec):
            twice = next(choice for position, choice in enumerate(spec) if choice in spec[:position])
            raise SpaceError(f"{name!r}: choices must differ (1, 1.0 and True are equal), but {twice!r} occurs twice")
        return CategoricalHyperparameter(name, spec)
    if isinstance(spec, float) and not math.isfinite(spec):
        raise SpaceError(f"{name!r}: a constant must be finite, got {spec!r}")
    if spec is None or isinstance(spec, str | numbers.Real):
        return Constant(name, spec)
    raise SpaceError(f"{name!r}: expected {FORMS}; got {spec!r} ({type(spec).__name__})")


def _range(name: str, spec: tuple[Any, ...]) -> Hyperparameter[Any, Any]:
    from ConfigSpace.hyperparameters import Constant, UniformFloatHyperparameter, UniformIntegerHyperparameter

    if len(spec) not in (2, 3) or (len(spec) == 3 and spec[2] != "log"):
        raise SpaceError(f'{name!r}: a range is (lo, hi) or (lo, hi, "log"), got {spec!r}; choices go in a list')
    for bound in spec[:2]:
        real = isinstance(bound, numbers.Real) and not isinstance(bound, bool)
        if not (real and abs(bound) < math.inf):  # math.isfinite cannot take integers beyond the largest float
            raise SpaceError(f"{name!r}: expected finite numbers as bounds, got {bound!r}; choices go in a list")
    log, whole = len(spec) == 3, all(isinstance(bound, numbers.Integral) for bound in spec[:2])
    with np.errstate(over="ignore"):  # of a comparison with a float32
        too_large = not whole and any(abs(bound) > LARGEST_BOUND for bound in spec[:2])
    if too_large:
        raise SpaceError(f"{name!r}: bounds must lie within +-{LARGEST_BOUND}, got {spec[0]!r} and {spec[1]!r}")
    lower, upper = (int(bound) if whole else float(bound) for bound in spec[:2])
    if lower > upper:
        raise SpaceError(f"{name!r}: expected the lower bound before the upper, got {spec[0]!r} and {spec[1]!r}")
    if log and lower <= 0:
        raise SpaceError(f"{name!r}: a log scale needs a lower bound above 0, got {spec[0]!r}")
    if lower == upper:
        return Constant(name, lower)
    if whole:
        _check_integers(name, int(lower), int(upper), log=log)
        return UniformIntegerHyperparameter(name, lower, upper, log=log)
    _check_decimals(name, lower, upper)
    return UniformFloatHyperparameter(name, lower, upper, log=log)


def _check_decimals(name: str, lower: float, upper: float) -> None:
    for bound in (lower, upper):
        rounded = round(bound, DECIMALS)
        if abs(rounded - bound) > EDGE_RELATIVE * abs(bound):
            change = f"ConfigSpace keeps {DECIMALS} decimals of a bound, so {bound!r} would become {rounded!r}"
            raise SpaceError(f"{name!r}: {change}; tune a rescaled quantity instead, for example its exponent")
    if round(lower, DECIMALS) == round(upper, DECIMALS):
        raise SpaceError(f"{name!r}: the bounds ({lower!r}, {upper!r}) agree in the {DECIMALS} decimals that are kept")


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
            _check_integers(name, lower, upper, log=bool(log))
            column = Steps(name, lower, upper - lower + 1, bool(log), math.nan)
        case kinds.OrdinalHyperparameter(sequence=choices) if len(choices) > 1:
            column = Steps(name, 0, len(choices), False, math.nan, tuple(choices), _index(name, choices))
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
    index = _index(name, choices)
    total = np.cumsum(np.asarray(probabilities, dtype=np.float64))
    return Choices(name, tuple(choices), index, total / total[-1], float(index[default]))


def _check_integers(name: str, lower: int, upper: int, *, log: bool) -> None:
    """Raise SpaceError for a range of integers that the encoding cannot distinguish."""
    limit = LARGEST_LOG_INTEGER if log else LARGEST_INTEGER
    if max(abs(lower), abs(upper)) > limit:
        rule = f"integers {'on a log scale ' if log else ''}must lie within +-{limit} to be encoded exactly"
        hint = "use a float hyperparameter and round it"
        raise SpaceError(f"hyperparameter {name!r}: {rule}, got [{lower}, {upper}]; {hint}")


def _index(name: str, choices: Sequence[Any]) -> dict[Any, int]:
    try:
        index = {choice: position for position, choice in enumerate(choices)}
    except TypeError as error:
        raise SpaceError(f"hyperparameter {name!r}: choices must be hashable (tuples, not lists): {error}") from error
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
