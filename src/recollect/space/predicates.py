"""Conditions and forbidden clauses of a ConfigurationSpace, compiled to tests on encoded points.

A predicate maps X (n, d) to (n,) bool. Inactive cells are nan and decide as ConfigSpace decides on its own vectors:
every comparison with an inactive hyperparameter is False, except "not equal", which is True. A relation between two
hyperparameters is False unless both are active; for ordinals it compares the values themselves, not their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from recollect.errors import SpaceError
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.space.columns import Column

Comparison = Callable[[Any, Any], Any]

# Keyed by class name: later releases of ConfigSpace may add kinds, which are then refused rather than misread.
TESTS: Mapping[str, Comparison] = {
    "EqualsCondition": np.equal,
    "NotEqualsCondition": np.not_equal,
    "LessThanCondition": np.less,
    "GreaterThanCondition": np.greater,
    "InCondition": np.equal,
    "ForbiddenEqualsClause": np.equal,
    "ForbiddenInClause": np.equal,
    "ForbiddenLessThanClause": np.less,
    "ForbiddenLessThanEqualsClause": np.less_equal,
    "ForbiddenGreaterThanClause": np.greater,
    "ForbiddenGreaterThanEqualsClause": np.greater_equal,
}
RELATIONS: Mapping[str, Comparison] = {
    "ForbiddenEqualsRelation": np.equal,
    "ForbiddenLessThanRelation": np.less,
    "ForbiddenLessThanEqualsRelation": np.less_equal,
    "ForbiddenGreaterThanRelation": np.greater,
    "ForbiddenGreaterThanEqualsRelation": np.greater_equal,
}
JUNCTIONS: Mapping[str, bool] = {
    "AndConjunction": True,
    "OrConjunction": False,
    "ForbiddenAndConjunction": True,
    "ForbiddenOrConjunction": False,
}


class Predicate(Protocol):
    """A yes-or-no question about encoded points."""

    def __call__(self, X: FloatArray) -> BoolArray:
        """Answer for every row of X (n, d)."""


@dataclass(frozen=True, slots=True, eq=False)
class Test:
    """One column compared with one or several fixed keys; any of them suffices."""

    column: Column
    position: int
    compare: Comparison
    keys: FloatArray

    def __call__(self, X: FloatArray) -> BoolArray:
        """Answer for every row of X (n, d)."""
        own = self.column.keys(X[:, self.position])
        answer: BoolArray = self.compare(own[:, None], self.keys[None, :]).any(axis=1)
        return answer


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """Two columns compared with each other by value."""

    columns: tuple[Column, Column]
    positions: tuple[int, int]
    compare: Comparison

    def __call__(self, X: FloatArray) -> BoolArray:
        """Answer for every row of X (n, d)."""
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
        """Answer for every row of X (n, d)."""
        answers = np.stack([part(X) for part in self.parts])
        answer: BoolArray = (np.logical_and if self.every else np.logical_or).reduce(answers, axis=0)
        return answer


def compile_predicate(clause: Any, columns: Sequence[Column]) -> Predicate:
    """Return the predicate that asks what a ConfigSpace condition or forbidden clause asks."""
    kind = type(clause).__name__
    positions = {column.name: position for position, column in enumerate(columns)}
    if kind in JUNCTIONS:
        return Junction(tuple(compile_predicate(part, columns) for part in clause.components), JUNCTIONS[kind])
    if kind in RELATIONS:
        pair = positions[clause.left.name], positions[clause.right.name]
        return _checked_relation(Relation((columns[pair[0]], columns[pair[1]]), pair, RELATIONS[kind]), clause)
    if kind in TESTS:
        about = clause.hyperparameter if kind.startswith("Forbidden") else clause.parent
        position = positions[about.name]
        values = list(clause.values) if kind in ("InCondition", "ForbiddenInClause") else [clause.value]
        column = columns[position]
        return Test(column, position, TESTS[kind], column.keys(column.codes(values)))
    raise SpaceError(f"{clause} is a {kind}, which cannot be evaluated on encoded points; known are {_known()}")


def _checked_relation(relation: Relation, clause: Any) -> Relation:
    # A comparison such as 3 < "a" must fail when the space is made, not in the middle of a run.
    tables = []
    for column in relation.columns:
        cells = np.arange(column.size) if column.categorical else column.from_unit(np.linspace(0.0, 1.0, 9))
        tables.append(column.comparable(cells.astype(np.float64)))
    try:
        relation.compare(tables[0][:, None], tables[1][None, :])
    except TypeError as error:
        raise SpaceError(f"{clause} compares values that have no order: {error}") from error
    return relation


def _known() -> str:
    return ", ".join((*TESTS, *RELATIONS, *JUNCTIONS))
