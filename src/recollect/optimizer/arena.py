"""Where the search takes place: the space given, or the part of it that past optima span; all of it, or listed points.

Notation: ``rows (N, d)`` the points that may be suggested, when they are finitely many and few enough to score all.

A method with a box (paper section 5.3) searches a space that is cut down and encoded anew, so that its model
sees the box as the unit cube. Among listed points the box only says which come first: they stay in the encoding of the
space given, and when those inside are used up, the others follow. A box that holds fewer configurations than trials are
planned (the optimum of a single past run is a point) is no place to search, and the space given is searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.errors import ExhaustedError, InputError
from recollect.history.run import Config
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.optimizer.method import Method
from recollect.optimizer.past import PastRun
from recollect.space.align import align
from recollect.space.identity import row_key
from recollect.space.narrow import narrow
from recollect.space.sampling import enumerate_space, unique_rows
from recollect.space.space import Space
from recollect.transfer.box import Box, past_box

TOO_FAR = "too far from the box of past optima to be used by the model"
ENUMERABLE = 10_000
"""Spaces with at most this many configurations are searched exhaustively."""


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """``given`` is the user's space, ``space`` the one searched; ``preferred (N,)`` the rows to be suggested first.

    ``own`` are the candidates as the user listed them; ``where`` finds a row by its key.
    """

    given: Space
    space: Space
    rows: FloatArray | None
    preferred: BoolArray
    own: tuple[Config, ...] | None
    where: Mapping[bytes, int]

    def place(self, config: Mapping[str, Any]) -> FloatArray:
        """Encode any configuration of the given space; all nan if it lies too far from the space searched."""
        x = self.given.encode([config])[0]
        if self.space is self.given:
            return np.asarray(x)
        found = align(self.space, [config])
        return np.asarray(found.X[0]) if len(found.kept) else np.full(len(x), np.nan)

    def config(self, x: FloatArray, key: bytes) -> Config:
        """Return the configuration the user sees: a candidate in the very form in which it was given."""
        if self.own is not None:
            return self.own[self.where[key]]
        return self.space.decode(x[None, :])[0]

    def free(self, untaken: BoolArray) -> FloatArray | None:
        """Return the rows to choose among, given which (N,) have not been taken; None for a continuum."""
        if self.rows is None:
            return None
        first = untaken & self.preferred
        return self.rows[first if first.any() else untaken]

    def exhausted(self, count: int, untaken: BoolArray) -> ExhaustedError:
        """Return the error that says that fewer than ``count`` of the rows (N,) are left."""
        kind = "candidates" if self.own is not None else "configurations of the search space"
        return ExhaustedError(f"asked for {count} more, but {untaken.sum()} of the {len(untaken)} {kind} are left")


def make_arena(
    space: Space,
    method: Method,
    past: tuple[PastRun, ...],
    *,
    candidates: Iterable[Mapping[str, Any]] | None,
    horizon: int,
) -> Arena:
    """Decide where to search."""
    rows, own = _finite_set(space, candidates)
    box = _box(space, method, past)
    if rows is not None:
        preferred = np.ones(len(rows), dtype=np.bool_) if box is None else box.contains(rows)
        return Arena(space, space, rows, preferred, own, {row_key(x): g for g, x in enumerate(rows)})
    smaller = space if box is None else narrow(space, box.ranges(space))
    searched = space if smaller.size() < max(horizon, 2) else smaller
    return Arena(space, searched, None, np.ones(0, dtype=np.bool_), None, {})


def _box(space: Space, method: Method, past: tuple[PastRun, ...]) -> Box | None:
    data = [entry.data for entry in past if entry.data is not None]
    if method.box is None or not data:
        return None
    return past_box(space, np.array([run.X[int(run.y.argmin())] for run in data]), method.box)


def _finite_set(
    space: Space, candidates: Iterable[Mapping[str, Any]] | None
) -> tuple[FloatArray | None, tuple[Config, ...] | None]:
    if candidates is None:
        return enumerate_space(space, ENUMERABLE), None
    listed = list(candidates)
    if not listed:
        raise InputError("candidates must hold at least one configuration, got an empty list")
    grid = space.encode(listed)
    first = unique_rows(grid)
    return grid[first], tuple(dict(listed[g]) for g in first)
