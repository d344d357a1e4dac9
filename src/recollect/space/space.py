"""A search space compiled to arrays: configurations above, arrays below, one crossing.

Notation: X (n, d) encoded points, one row a configuration, one column a hyperparameter; nan = inactive. Columns are
ordered by depth in the condition graph, alphabetically within a depth, so that parents come first.

A space is a frozen value; the ConfigurationSpace it came from must not be changed afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError, InputTypeError, SpaceError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.space.columns import Column
from recollect.space.dicts import space_from_dict
from recollect.space.hyperparameters import column_of
from recollect.space.predicates import Junction, Predicate, compile_predicate
from recollect.space.reading import as_rows, read_column, refuse_forbidden

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Space:
    """What can be tried. Made only by `compile_space`; the arrays are read-only.

    names (d) of the columns; categorical (d,) bool: unordered, compared by equality, constants included; sizes (d,):
    number of distinct values, 0 = continuum; varying (d,) bool: size is not 1; default (d,): the encoded default
    configuration; conditional: some hyperparameter may be inactive; source: the ConfigurationSpace.
    """

    names: tuple[str, ...]
    categorical: BoolArray
    sizes: IntArray
    varying: BoolArray
    default: FloatArray
    conditional: bool
    source: ConfigurationSpace
    columns: tuple[Column, ...]
    conditions: tuple[Predicate | None, ...]
    condition_texts: tuple[str, ...]
    forbidden: tuple[Predicate, ...]
    forbidden_texts: tuple[str, ...]

    def __repr__(self) -> str:
        """Name the columns."""
        return f"Space({', '.join(self.names)})"

    def encode(self, configs: Sequence[Mapping[str, Any]]) -> FloatArray:
        """Return the encodings (n, d) of configurations, or raise ConfigError saying what is wrong with which one.

        Constants may be left out; an inactive hyperparameter may be left out or None.
        """
        rows = as_rows(configs, self.names)
        X = np.full((len(rows), len(self.names)), np.nan)
        for position, column in enumerate(self.columns):
            X[:, position] = read_column(column, rows, self._active(X, position), self.condition_texts[position])
        refuse_forbidden(rows, self._violations(X), self.forbidden_texts)
        return X

    def decode(self, X: npt.ArrayLike) -> list[dict[str, Any]]:
        """Return the configurations, with native Python values, behind encoded points; only what is active.

        A float is the shortest decimal with exactly that code, so encode(decode(encode(c))) == encode(c) bitwise.
        """
        X = self._matrix(X)
        active = self.activity(X)
        missing = np.argwhere(active & np.isnan(X))
        if len(missing):
            row, position = missing[0]
            raise InputError(f"row {row}: {self.names[position]!r} is active but its cell is nan; repair() fills it")
        return [
            {column.name: column.value(float(u)) for column, u, on in zip(self.columns, x, mask, strict=True) if on}
            for x, mask in zip(X, active, strict=True)
        ]

    def canonical(self, X: npt.ArrayLike) -> FloatArray:
        """Return proper codes: discrete columns at the centre of their cell, floats in [0, 1], inactive cells nan."""
        X = self._matrix(X)
        snapped = np.empty_like(X)
        for position, column in enumerate(self.columns):
            snapped[:, position] = column.snap(np.ascontiguousarray(X[:, position]))
        return np.where(self.activity(snapped), snapped, np.nan)

    def activity(self, X: npt.ArrayLike) -> BoolArray:
        """Return which cells (n, d) are active, as ConfigSpace decides it; what inactive cells hold does not matter."""
        X = self._matrix(X)
        active = np.ones(X.shape, dtype=np.bool_)
        if self.conditional:
            X = X.copy()
            for position in range(len(self.names)):
                active[:, position] = self._active(X, position)
                X[~active[:, position], position] = np.nan
        return active

    def repair(self, X: npt.ArrayLike) -> FloatArray:
        """Return X with inactive cells nan and active cells that are nan at the hyperparameter's default."""
        X = self._matrix(X).copy()
        for position, column in enumerate(self.columns):
            active = self._active(X, position)
            X[~active, position] = np.nan
            X[active & np.isnan(X[:, position]), position] = column.default
        return X

    def legal(self, X: npt.ArrayLike) -> BoolArray:
        """Return which rows (n,) violate no forbidden clause."""
        return np.asarray(~self._violations(self._matrix(X)).any(axis=1), dtype=np.bool_)

    def size(self) -> float:
        """Return the number of configurations, conditions and forbidden clauses ignored; inf with a continuum."""
        return math.inf if (self.sizes == 0).any() else float(math.prod(float(size) for size in self.sizes))

    def _active(self, X: FloatArray, position: int) -> BoolArray:
        condition = self.conditions[position]
        return np.ones(len(X), dtype=np.bool_) if condition is None else condition(X)

    def _violations(self, X: FloatArray) -> BoolArray:
        answers = [clause(X) for clause in self.forbidden]
        return np.stack(answers, axis=1) if answers else np.zeros((len(X), 0), dtype=np.bool_)

    def _matrix(self, X: npt.ArrayLike) -> FloatArray:
        matrix: FloatArray = np.asarray(X, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.names):
            raise InputError(f"expected encoded points of shape (n, {len(self.names)}), got shape {matrix.shape}")
        return matrix


SpaceLike: TypeAlias = Union[Space, "ConfigurationSpace", Mapping[str, Any]]
"""What users may give as a space."""


def compile_space(space: SpaceLike) -> Space:
    """Return the compiled space of a ConfigurationSpace or a dict; a Space is returned as it is."""
    if isinstance(space, Space):
        return space
    from ConfigSpace import ConfigurationSpace

    # A ConfigurationSpace is a Mapping too, so it is asked for first.
    if isinstance(space, ConfigurationSpace):
        return _compile(space)
    if isinstance(space, Mapping):
        if not space:
            raise SpaceError("the search space is empty: it needs at least one hyperparameter")
        return _compile(space_from_dict(space))
    raise InputTypeError(f"expected a dict, a ConfigurationSpace or a Space, got {space!r} ({type(space).__name__})")


def _compile(source: ConfigurationSpace) -> Space:
    if len(source) == 0:
        raise SpaceError("the search space is empty: it needs at least one hyperparameter")
    names = _parents_first(source)
    columns = tuple(column_of(source[name]) for name in names)
    clauses = [list(source.parent_conditions_of[name]) for name in names]
    conditions = tuple(_condition(own, columns) for own in clauses)
    sizes = np.array([column.size for column in columns], dtype=np.intp)
    space = Space(
        names=names,
        categorical=_frozen(np.array([column.categorical for column in columns], dtype=np.bool_)),
        sizes=_frozen(sizes),
        varying=_frozen(sizes != 1),
        default=_frozen(np.full(len(names), np.nan)),
        conditional=any(condition is not None for condition in conditions),
        source=source,
        columns=columns,
        conditions=conditions,
        condition_texts=tuple(" and ".join(map(str, own)) for own in clauses),
        forbidden=tuple(compile_predicate(clause, columns) for clause in source.forbidden_clauses),
        forbidden_texts=tuple(map(str, source.forbidden_clauses)),
    )
    default = _frozen(space.repair(np.full((1, len(names)), np.nan))[0])
    return replace(space, default=default)


def _condition(clauses: Sequence[Any], columns: tuple[Column, ...]) -> Predicate | None:
    parts = tuple(compile_predicate(clause, columns) for clause in clauses)
    return Junction(parts, every=True) if len(parts) > 1 else next(iter(parts), None)


def _parents_first(source: ConfigurationSpace) -> tuple[str, ...]:
    """Order the names by depth in the condition graph, alphabetically within a depth."""
    parents = {name: [parent.name for parent in source.parents_of[name]] for name in source}
    depths: dict[str, int] = {}

    def depth(name: str) -> int:
        if name not in depths:
            depths[name] = 1 + max((depth(parent) for parent in parents[name]), default=-1)
        return depths[name]

    return tuple(sorted(parents, key=lambda name: (depth(name), name)))


def _frozen(array: Any) -> Any:
    array.setflags(write=False)
    return array
