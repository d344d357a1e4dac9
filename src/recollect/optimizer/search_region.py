"""The search region: the user's space or the part of it that past optima span; all of it, or listed candidates.

Notation: ``candidates (N, d)`` the points that may be suggested, if they are finitely many and few enough to score all.

A method with a box (paper section 5.3) searches a narrowed space with an encoding of its own, so that its model sees
the box as the unit cube. Among candidates the box only says which come first: they keep the encoding of the user's
space, and when those inside the box are used up, the others follow. A box that holds fewer configurations than trials
are planned (the optimum of a single past run is a point) is too small to search, and the user's space is searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from recollect._text import plural
from recollect.errors import ConfigError, ExhaustedError, InputError
from recollect.numerics.arrays import BoolArray, FloatArray, row_key, unique_rows
from recollect.optimizer.method import Method
from recollect.optimizer.past_runs import PastRun, source_data
from recollect.runs.run import Config, Trial
from recollect.space.alignment import align
from recollect.space.narrowing import narrow
from recollect.space.sampling import enumerate_space
from recollect.space.space import Space
from recollect.transfer.search_box import past_box
from recollect.validation import as_list

TOO_FAR = "too far from the box of past optima to be used by the model"
MAX_EXHAUSTIVE = 10_000  # spaces with at most this many configurations are searched exhaustively
Candidates: TypeAlias = Iterable[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class SearchRegion:
    """Where suggestions may lie."""

    full_space: Space  # the user's
    space: Space  # the one searched: the user's, or a part of it
    candidates: FloatArray | None  # all points (N, d) that may be suggested; None for a continuum
    preferred: BoolArray  # which candidates (N,) are suggested first
    listed: tuple[Config, ...] | None  # the candidates as the user listed them; None if there is no such list
    index: Mapping[bytes, int]  # position of a candidate by its row key

    def encode(self, config: Mapping[str, Any]) -> FloatArray:
        """Encode any configuration of the user's space; all nan if it lies too far from the space searched."""
        try:
            x = self.full_space.encode([config])[0]
        except ConfigError as error:
            raise ConfigError(error.reason) from None  # there is only this one, so it needs no number
        if self.space is self.full_space:
            return np.asarray(x)
        alignment = align(self.space, [config])
        return np.asarray(alignment.X[0]) if len(alignment.kept) else np.full(len(x), np.nan)

    def key(self, x: FloatArray, config: Mapping[str, Any]) -> bytes:
        """Return what identifies a configuration that is encoded as ``x``: the row, unless that is all nan."""
        if not np.isnan(x).all():
            return row_key(x)
        try:
            return b"far " + row_key(self.full_space.encode([config])[0])
        except ConfigError:  # it is incomplete
            return b"incomplete " + repr(config).encode()

    def encode_finished(self, trial: Trial) -> FloatArray:
        """Encode the configuration of a trial; all nan if it is incomplete, which it may be without a result."""
        try:
            return self.encode(trial.config)
        except ConfigError:
            if trial.learned_value is not None:
                raise
            return np.full(len(self.space.names), np.nan)

    def config(self, x: FloatArray, key: bytes) -> Config:
        """Return the configuration that the user sees; a listed candidate exactly as it was listed."""
        if self.listed is not None:
            return self.listed[self.index[key]]
        return self.space.decode(x[None, :])[0]

    def choices(self, free: BoolArray) -> FloatArray | None:
        """Return the candidates to choose from, given which (N,) are free; None for a continuum."""
        if self.candidates is None:
            return None
        first = free & self.preferred
        return self.candidates[first if first.any() else free]

    def exhausted(self, count: int, free: BoolArray) -> ExhaustedError:
        """Return the error that fewer than ``count`` of the candidates (N,) are free."""
        listed, left = self.listed is not None, int(free.sum())
        every = (
            plural(len(free), "candidate") if listed else f"{plural(len(free), 'configuration')} of the search space"
        )
        few = f"only {left:,}" if left else "none"
        verb = "are" if left > 1 else "is"
        return ExhaustedError(f"asked for {plural(count, 'more configuration')}, but of the {every} {few} {verb} left")


def make_search_region(
    space: Space, method: Method, past: tuple[PastRun, ...], *, candidates: Candidates | None, horizon: int
) -> SearchRegion:
    """Decide where to search."""
    rows, listed = _finite_set(space, candidates)
    optima = [run.X[int(run.y.argmin())] for run in source_data(past)]
    box = past_box(space, np.array(optima), method.box) if method.box is not None and optima else None
    if rows is not None:
        preferred = np.ones(len(rows), dtype=np.bool_) if box is None else box.contains(rows)
        return SearchRegion(space, space, rows, preferred, listed, {row_key(x): g for g, x in enumerate(rows)})
    narrowed = space if box is None else narrow(space, box.ranges(space))
    searched = space if narrowed.size() < max(horizon, 2) else narrowed
    return SearchRegion(space, searched, None, np.ones(0, dtype=np.bool_), None, {})


def _finite_set(space: Space, candidates: Candidates | None) -> tuple[FloatArray | None, tuple[Config, ...] | None]:
    if candidates is None:
        return enumerate_space(space, MAX_EXHAUSTIVE), None
    configs = as_list("candidates", candidates, of="configurations")
    if not configs:
        raise InputError("candidates must hold at least one configuration, got an empty list")
    rows = space.encode(configs)
    first = unique_rows(rows)
    return rows[first], tuple(dict(configs[g]) for g in first)
