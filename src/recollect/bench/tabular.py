"""Benchmarks that are tables: every task is a list of configurations with the error of each.

Only what is listed can be evaluated. A configuration is found by the bytes of its encoded row, hence exactly; one in
the very form in which it is listed is found without encoding it. The error for any other names the nearest one.

Notation: X (m, d) the encoded rows of a table, y (m,) their errors. Best and worst are the smallest and largest y.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.bench.problem import About, Benchmark, Task
from recollect.errors import InputError
from recollect.history.run import Config
from recollect.numerics.arrays import FloatArray
from recollect.space.identity import row_keys
from recollect.space.space import Space


@dataclass(frozen=True, slots=True, eq=False)
class Listing:
    """Configurations that can be evaluated, their encodings (m, d), and where each is."""

    space: Space
    configs: tuple[Config, ...]
    X: FloatArray
    where: Mapping[bytes, int]
    verbatim: Mapping[Hashable, int]

    def position(self, config: Mapping[str, Any], task: str) -> int:
        """Return where a configuration is in the table."""
        try:
            found = self.verbatim.get(_form(config), -1)
        except TypeError:  # a value that cannot be hashed; encoding says what is wrong with it
            found = -1
        return found if found >= 0 else self.positions(self.space.encode([config]), task)[0]

    def positions(self, X: npt.ArrayLike, task: str) -> list[int]:
        """Return where encoded points are in the table; InputError for the first that is not there."""
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != len(self.space.names):
            raise InputError(f"expected encoded points of shape (m, {len(self.space.names)}), got shape {points.shape}")
        found = [self.where.get(key, -1) for key in row_keys(points)]
        if -1 in found:
            raise InputError(self._not_listed(points[found.index(-1)], task))
        return found

    def nearest(self, x: FloatArray) -> int:
        """Return the row nearest to the point x (d,): see `distances`."""
        return int(distances(self.space, self.X, x).argmin())

    def _not_listed(self, x: FloatArray, task: str) -> str:
        closest = self.configs[self.nearest(x)]
        return (
            f"task {task!r} is a table of {len(self.configs)} configurations, and {_shown(self.space, x)} is not among "
            f"them; the nearest is {closest}"
        )


def listing(space: Space, configs: Sequence[Mapping[str, Any]]) -> Listing:
    """Return the configurations of a table; they must differ."""
    if not configs:
        raise InputError("a table needs at least one configuration, got none")
    X = space.encode(configs)
    where: dict[bytes, int] = {}
    for number, key in enumerate(row_keys(X)):
        first = where.setdefault(key, number)
        if first != number:
            raise InputError(f"configurations {first} and {number} of the table are the same: {configs[number]}")
    X.setflags(write=False)
    own = tuple(dict(config) for config in configs)
    return Listing(space, own, X, where, {_form(config): number for number, config in enumerate(own)})


def shared_table(
    name: str,
    space: Space,
    *,
    configs: Sequence[Mapping[str, Any]],
    errors: Mapping[str, npt.ArrayLike],
    about: About,
) -> Benchmark:
    """Return a benchmark whose tasks share ``configs`` (m); ``errors`` holds (m,) values for every task."""
    rows = listing(space, configs)
    values = {task: _checked(task, y, len(rows.configs)) for task, y in errors.items()}
    _some(name, values)
    return Benchmark(name, space, tuple(values), rows.configs, about, lambda task: _task(task, rows, values[task]))


def task_tables(
    name: str,
    space: Space,
    *,
    tables: Mapping[str, tuple[Sequence[Mapping[str, Any]], npt.ArrayLike]],
    about: About,
) -> Benchmark:
    """Return a benchmark whose tasks have a table each: the configurations (m) and their errors (m,)."""
    values = {task: _checked(task, y, len(configs)) for task, (configs, y) in tables.items()}
    _some(name, values)

    def make(task: str) -> Task:
        return _task(task, listing(space, tables[task][0]), values[task])

    return Benchmark(name, space, tuple(values), None, about, make)


def distances(space: Space, X: FloatArray, x: FloatArray) -> FloatArray:
    """Return how far the rows X (m, d) are from x (d,), summed over the columns.

    A number counts by the difference of the codes; a choice that differs, or a hyperparameter active on one side only,
    counts 1.
    """
    both = np.isnan(X) & np.isnan(x)
    apart = np.where(both, 0.0, np.abs(X - x))
    apart = np.where(np.isnan(apart) | (space.categorical & (apart > 0)), 1.0, apart)
    return np.asarray(apart.sum(axis=1))


def _form(config: Mapping[str, Any]) -> Hashable:
    """Return a key for a configuration as it is written; True and 1 are different."""
    return tuple(config.items()), tuple(map(type, config.values()))


def _task(name: str, rows: Listing, y: FloatArray) -> Task:
    def evaluate(config: Mapping[str, Any]) -> float:
        return float(y[rows.position(config, name)])

    def evaluate_many(X: FloatArray) -> FloatArray:
        return y[np.array(rows.positions(X, name), dtype=np.intp)]

    return Task(name, evaluate, evaluate_many, float(y.min()), float(y.max()), rows.configs)


def _checked(task: str, y: npt.ArrayLike, count: int) -> FloatArray:
    values: FloatArray = np.array(y, dtype=np.float64)
    if values.shape != (count,):
        raise InputError(f"task {task!r}: expected {count} errors, one for every configuration, got {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise InputError(f"task {task!r}, configuration {bad[0]}: expected a finite error, got {values[bad[0]]}")
    values.setflags(write=False)
    return values


def _some(name: str, values: Mapping[str, FloatArray]) -> None:
    if not values:
        raise InputError(f"benchmark {name!r} needs at least one task, got none")


def _shown(space: Space, x: FloatArray) -> str:
    try:
        return str(space.decode(x[None, :])[0])
    except InputError:  # a code that belongs to no configuration
        return f"the encoded point {x.tolist()}"
