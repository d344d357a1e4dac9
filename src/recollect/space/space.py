"""A search space compiled to arrays: configurations above, arrays below, one crossing.

Notation: X (n, d) encoded points, one row per configuration, one column per hyperparameter; nan = inactive. Columns are
ordered by depth in the condition graph, alphabetically within a depth, so parents come first.

A space is immutable; the ConfigurationSpace it came from must not be changed afterwards.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from recollect.errors import ConfigError, InputError, InputTypeError, SpaceError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, KernelShape
from recollect.space.columns import SpaceColumn
from recollect.space.configspace import Junction, Predicate, column_of, compile_predicate
from recollect.space.notations.alternatives import space_from_alternatives
from recollect.space.notations.entries import space_from_dict
from recollect.space.notations.space_files import read_entries

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace


class Missing(Enum):
    """Stands for a hyperparameter that a configuration does not mention; a copy is the same object."""

    MISSING = "missing"


MISSING = Missing.MISSING


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Space:
    """A search space; create one with `compile_space`. Arrays are read-only.

    Attributes:
        names: Hyperparameters, in the order of the d columns.
        categorical: Mask (d,) of unordered hyperparameters, compared by equality; constants included.
        sizes: Number of distinct values (d,); 0 stands for a continuum.
        varying: Mask (d,) of hyperparameters with more than one value.
        default: The encoded default configuration (d,).
        conditional: Whether some hyperparameter may be inactive.
        source: The ConfigurationSpace that was compiled.
        columns: How the values of each hyperparameter are encoded.
        conditions: When each hyperparameter is active; None if always.
        condition_texts: The same in words; empty if always.
        forbidden: The forbidden clauses.
        forbidden_texts: The same in words.
    """

    names: tuple[str, ...]
    categorical: BoolArray
    sizes: IntArray
    varying: BoolArray
    default: FloatArray
    conditional: bool
    source: ConfigurationSpace
    columns: tuple[SpaceColumn, ...]
    conditions: tuple[Predicate | None, ...]
    condition_texts: tuple[str, ...]
    forbidden: tuple[Predicate, ...]
    forbidden_texts: tuple[str, ...]

    @property
    def kernel_shape(self) -> KernelShape:
        """Kinds of columns, for kernels on encoded points."""
        return KernelShape(self.categorical, self.conditional)

    def __eq__(self, other: object) -> bool:
        """Compare hyperparameters, conditions and forbidden clauses."""
        return self.source == other.source if isinstance(other, Space) else NotImplemented

    def __hash__(self) -> int:
        """Return the same number for equal spaces."""
        return hash(self.names)

    def __repr__(self) -> str:
        """Return the names of the hyperparameters."""
        return f"Space({', '.join(self.names)})"

    def encode(self, configs: Sequence[Mapping[str, Any]]) -> FloatArray:
        """Encode configurations.

        Args:
            configs: A sequence of n mappings from names to values. Constants may be left out; an inactive
                hyperparameter may be left out or None.

        Returns:
            The encodings (n, d), nan where a hyperparameter is inactive.

        Raises:
            ConfigError: If a configuration does not belong to the space; says which one, and why.
        """
        rows, known = as_rows(configs), set(self.names)
        for number, row in enumerate(rows):
            for name in row:
                if name not in known:
                    raise ConfigError(f"unknown hyperparameter {name!r}; the space has {', '.join(self.names)}", number)
        X = np.full((len(rows), len(self.names)), np.nan)
        for position, column in enumerate(self.columns):
            X[:, position] = _read_column(column, rows, self._active(X, position), self.condition_texts[position])
        violated = np.argwhere(self._violations(X))
        if len(violated):
            number, clause = map(int, violated[0])
            raise ConfigError(f"{rows[number]} is forbidden by the clause: {self.forbidden_texts[clause]}", number)
        return X

    def decode(self, X: npt.ArrayLike) -> list[dict[str, Any]]:
        """Decode points.

        A float is the shortest decimal with exactly that code, so encode(decode(encode(c))) == encode(c) bitwise.

        Args:
            X: Encoded points (n, d).

        Returns:
            The configurations, with native Python values of all active hyperparameters.

        Raises:
            InputError: If X has another shape, or is nan where a hyperparameter is active.
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
        """Return which cells (n, d) are active, as in ConfigSpace; the content of inactive cells does not matter."""
        X = self._matrix(X)
        active = np.ones(X.shape, dtype=np.bool_)
        if self.conditional:
            X = X.copy()
            for position in range(len(self.names)):
                active[:, position] = self._active(X, position)
                X[~active[:, position], position] = np.nan
        return active

    def repair(self, X: npt.ArrayLike) -> FloatArray:
        """Return X with inactive cells set to nan, and active cells that are nan set to the default."""
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
        """Return the number of configurations, ignoring conditions and forbidden clauses; inf with a continuum."""
        return math.inf if (self.sizes == 0).any() else float(math.prod(float(size) for size in self.sizes))

    def _active(self, X: FloatArray, position: int) -> BoolArray:
        condition = self.conditions[position]
        return np.ones(len(X), dtype=np.bool_) if condition is None else condition(X)

    def _violations(self, X: FloatArray) -> BoolArray:
        answers = [clause(X) for clause in self.forbidden]
        return np.stack(answers, axis=1) if answers else np.zeros((len(X), 0), dtype=np.bool_)

    def _matrix(self, X: npt.ArrayLike) -> FloatArray:
        try:
            matrix: FloatArray = np.asarray(X, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputTypeError(f"expected encoded points as an array of numbers: {error}") from error
        if matrix.ndim != 2 or matrix.shape[1] != len(self.names):
            raise InputError(f"expected encoded points of shape (n, {len(self.names)}), got shape {matrix.shape}")
        return matrix


def as_rows(configs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the configurations as dicts, to be read only; InputTypeError if they are not a sequence of mappings."""
    array = isinstance(configs, np.ndarray) and configs.ndim > 0
    if not array and (isinstance(configs, Mapping | str) or not isinstance(configs, Sequence)):
        raise InputTypeError(f"expected a sequence of configurations, got {type(configs).__name__}; put one in a list")
    rows: list[dict[str, Any]] = []
    for number, config in enumerate(configs):
        if type(config) is not dict and not isinstance(config, Mapping):
            raise InputTypeError(f"configuration {number}: expected a mapping, got {config!r}")
        rows.append(config if type(config) is dict else dict(config))
    return rows


def _read_column(column: SpaceColumn, rows: list[dict[str, Any]], active: BoolArray, condition: str) -> FloatArray:
    """Return the codes (n,) of one hyperparameter, nan where it is inactive; ConfigError for a wrong value."""
    values = [row.get(column.name, MISSING) for row in rows]
    codes = np.full(len(rows), np.nan)
    for number in np.flatnonzero(~active):
        if values[number] is not MISSING and values[number] is not None:
            got = f"got {values[number]!r}; its condition is: {condition}"
            raise ConfigError(f"{column.name!r} is inactive here and must be left out, {got}", int(number))
    with_value = np.flatnonzero(active)
    if column.size == 1:
        # There is nothing to choose, so a constant need not be repeated in every configuration.
        codes[with_value] = column.default
        with_value = np.array([number for number in with_value if values[number] is not MISSING], dtype=np.intp)
    codes[with_value] = column.codes([values[number] for number in with_value])
    wrong = with_value[np.isnan(codes[with_value])]
    if wrong.size:
        value = values[wrong[0]]
        got = "but it is missing" if value is MISSING else f"got {value!r} ({type(value).__name__})"
        raise ConfigError(f"{column.name!r}: expected {column.expected()}, {got}", int(wrong[0]))
    return codes


SpaceLike: TypeAlias = Union[
    Space, "ConfigurationSpace", Mapping[str, Any], Sequence[Mapping[str, Any]], str, "os.PathLike[str]"
]
"""What users may pass as a space."""


def compile_space(space: SpaceLike) -> Space:
    """Return a compiled search space.

    Args:
        space: A dict from names to ``(low, high)``, ``(low, high, "log")``, a list of choices, a ``range``, a constant,
            ``{"low": low, "high": high, "step": step}`` or a distribution of SciPy, Optuna or ConfigSpace. Or a list of
            such dicts, which have different choices of one hyperparameter, as for ``GridSearchCV``. Or the name of a
            JSON, YAML or TOML file, or a ConfigurationSpace, or a Space, which is returned as it is.

    Returns:
        The space; its columns are ordered by depth in the condition graph, then by name.

    Raises:
        SpaceError: If the space is empty, contradictory or cannot be encoded exactly.
        InputError: If a file cannot be read.
        InputTypeError: If it is none of these types.

    Examples:
        >>> compile_space({"lr": (1e-5, 1e-1, "log"), "layers": (1, 6), "optimizer": ["adam", "sgd"]})
        Space(layers, lr, optimizer)
    """
    if isinstance(space, Space):
        return space
    from ConfigSpace import ConfigurationSpace

    # A ConfigurationSpace is a Mapping too, so it is checked first.
    if isinstance(space, ConfigurationSpace):
        return _compile(space)
    if isinstance(space, str | os.PathLike):
        return _compile_file(Path(space))
    if isinstance(space, Mapping):
        return _compile(space_from_dict(space))
    if isinstance(space, Sequence) and space and all(isinstance(entry, Mapping) for entry in space):
        dicts: Any = space
        return _compile(_from_alternatives(dicts))
    expected = "a dict, a list of dicts, the name of a file, a ConfigurationSpace or a Space"
    raise InputTypeError(f"expected {expected}, got {space!r} ({type(space).__name__})")


def _compile_file(path: Path) -> Space:
    content = read_entries(path)
    try:
        return compile_space(content)
    except SpaceError as error:
        raise SpaceError(f"{path}: {error}") from error


def _from_alternatives(dicts: Sequence[Mapping[str, Any]]) -> ConfigurationSpace:
    try:
        return space_from_alternatives(dicts)
    except (ValueError, TypeError) as error:
        if isinstance(error, SpaceError):
            raise
        raise SpaceError(f"ConfigSpace refuses this space: {error}") from error


def _compile(source: ConfigurationSpace) -> Space:
    if len(source) == 0:
        raise SpaceError("the search space is empty: it needs at least one hyperparameter")
    names = _parents_first(source)
    columns = tuple(column_of(source[name]) for name in names)
    clauses = [source.parent_conditions_of[name] for name in names]
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
    return replace(space, default=_frozen(space.repair(space.default[None])[0]))


def _condition(clauses: Sequence[Any], columns: tuple[SpaceColumn, ...]) -> Predicate | None:
    parts = tuple(compile_predicate(clause, columns) for clause in clauses)
    return Junction(parts, every=True) if len(parts) > 1 else next(iter(parts), None)


def _parents_first(source: ConfigurationSpace) -> tuple[str, ...]:
    """Order the names by depth in the condition graph, alphabetically within a depth."""

    @functools.cache
    def depth(name: str) -> int:
        return 1 + max((depth(parent.name) for parent in source.parents_of[name]), default=-1)

    return tuple(sorted(source, key=lambda name: (depth(name), name)))


def _frozen(array: Any) -> Any:
    array.setflags(write=False)
    return array
