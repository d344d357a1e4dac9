"""Points near given points: one hyperparameter changed, or all numerical ones moved a little.

Notation: X (n, d) encoded points; step (n,) or scalar, the standard deviation of a move in the unit interval; Y (m, d)
the neighbours, owner (m,) the row of X each belongs to, in increasing order. Children that a change switches off become
nan, those it switches on start at their default; forbidden neighbours are left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.space.columns import Choices, Column, Interval, Steps
from recollect.space.space import Space

OVERDRAW = 4
"""Integers are drawn this many times more often than asked for, since some draws repeat."""

LEAST_MOVE = 2.0**-40
"""A float that a tiny step would leave where it is moves by this much."""


def one_exchange(
    space: Space, X: FloatArray, rng: np.random.Generator, *, step: npt.ArrayLike, per_column: int = 4
) -> tuple[FloatArray, IntArray]:
    """Return the one-exchange neighbours (Y, owner) of every row of X.

    For every active column that varies: a float gets ``per_column`` draws from N(u, step^2) within [0, 1]; an integer
    or ordinal up to as many distinct other cells by the same draws, all others if there are no more than that, and
    never none (the adjacent ones); a categorical all other choices.
    """
    if per_column < 1:
        raise InputError(f"expected per_column >= 1, got {per_column}")
    steps = _steps(step, len(X))
    active = space.activity(X)
    floats = np.array([isinstance(column, Interval) for column in space.columns]) & space.varying
    Y, owner = _float_moves(X, active & floats, rng, steps=steps, count=per_column)
    moved, owners = [Y], [owner]
    for position in np.flatnonzero(space.varying & ~floats):
        rows = np.flatnonzero(active[:, position])
        u = np.ascontiguousarray(X[rows, position])
        codes, valid = _column_moves(space.columns[position], u, rng, steps=steps[rows], count=per_column)
        which, _ = np.nonzero(valid)
        Y = X[rows[which]]
        Y[:, position] = codes[valid]
        moved.append(Y)
        owners.append(rows[which])
    return _settle(space, np.concatenate(moved), np.concatenate(owners))


def gaussian_moves(
    space: Space, X: FloatArray, rng: np.random.Generator, *, step: npt.ArrayLike, count: int
) -> tuple[FloatArray, IntArray]:
    """Return ``count`` copies of every row of X with all active numerical columns moved by N(0, step^2) within [0, 1].

    Categorical columns are kept; integers and ordinals end in the centre of a cell. Copies that do not move are left
    out.
    """
    if count < 0:
        raise InputError(f"expected count >= 0, got {count}")
    owner = np.repeat(np.arange(len(X), dtype=np.intp), count)
    steps = _steps(step, len(X))[owner]
    active = space.activity(X)[owner]
    Y = X[owner]
    rows, columns = np.nonzero(active & space.varying & ~space.categorical)
    Y[rows, columns] = _truncated_normals(Y[rows, columns], steps[rows], rng, count=1)[:, 0]
    for position in np.flatnonzero(space.varying & ~space.categorical & (space.sizes > 0)):
        rows = np.flatnonzero(active[:, position])
        Y[rows, position] = space.columns[position].snap(np.ascontiguousarray(Y[rows, position]))
    before = X[owner]
    moved = np.flatnonzero(((before != Y) & ~np.isnan(before)).any(axis=1))
    return _settle(space, Y[moved], owner[moved])


def _float_moves(
    X: FloatArray, cells: BoolArray, rng: np.random.Generator, *, steps: FloatArray, count: int
) -> tuple[FloatArray, IntArray]:
    """Return ``count`` copies of a row for each of its cells that is marked, moved in that cell, for all at once."""
    rows, columns = np.nonzero(cells)
    u = X[rows, columns]
    draws = _truncated_normals(u, steps[rows], rng, count=count)
    inward = np.where(u < 0.5, u + LEAST_MOVE, u - LEAST_MOVE)
    codes = np.where(draws == u[:, None], inward[:, None], draws)
    owner = np.repeat(rows, count)
    Y = X[owner]
    Y[np.arange(len(owner)), np.repeat(columns, count)] = codes.ravel()
    return Y, owner


def _column_moves(
    column: Column, u: FloatArray, rng: np.random.Generator, *, steps: FloatArray, count: int
) -> tuple[FloatArray, BoolArray]:
    """Return other codes (n, c) for one column's codes u (n,), and which of them count."""
    if isinstance(column, Choices):
        codes = (column.snap(u)[:, None] + np.arange(1, column.size)) % column.size
        return codes, np.ones(codes.shape, dtype=np.bool_)
    assert isinstance(column, Steps)
    cells, valid = _other_cells(column, u, rng, steps=steps, count=count)
    return column.centres(cells), valid


def _other_cells(
    column: Steps, u: FloatArray, rng: np.random.Generator, *, steps: FloatArray, count: int
) -> tuple[FloatArray, BoolArray]:
    """Return cells (n, c) other than that of u (n,), and which of them count: distinct, at most ``count`` a row."""
    own = column.keys(u)[:, None]
    if column.size - 1 <= count:
        cells = (own + np.arange(1, column.size)) % column.size
        return cells, np.ones(cells.shape, dtype=np.bool_)
    cells = column.keys(_truncated_normals(u, steps, rng, count=OVERDRAW * count))
    earlier = np.tril(np.ones((cells.shape[1],) * 2, dtype=np.bool_), k=-1)
    repeated = ((cells[:, :, None] == cells[:, None, :]) & earlier).any(axis=2)
    valid = (cells != own) & ~repeated
    valid &= np.cumsum(valid, axis=1) <= count
    # Where the step is too short to leave the cell, its neighbours on both sides stand in.
    adjacent = np.clip(own + np.array([-1.0, 1.0]), 0, column.size - 1)
    stuck = ~valid.any(axis=1)[:, None] & (adjacent != own)
    return np.concatenate((cells, adjacent), axis=1), np.concatenate((valid, stuck), axis=1)


def _truncated_normals(u: FloatArray, steps: FloatArray, rng: np.random.Generator, *, count: int) -> FloatArray:
    """Return (n, count) draws from N(u, step^2) conditioned on [0, 1], by inverting the distribution function."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr(-u / steps)[:, None], ndtr((1.0 - u) / steps)[:, None]
    levels = low + (high - low) * rng.random((len(u), count))
    draws: FloatArray = np.clip(u[:, None] + steps[:, None] * ndtri(levels), 0.0, 1.0)
    return draws


def _settle(space: Space, Y: FloatArray, owner: IntArray) -> tuple[FloatArray, IntArray]:
    """Switch children off and on, drop forbidden rows, order by owner."""
    if space.conditional:
        Y = space.repair(Y)
    if space.forbidden:
        legal = space.legal(Y)
        Y, owner = Y[legal], owner[legal]
    order = np.argsort(owner, kind="stable")
    return Y[order], owner[order]


def _steps(step: npt.ArrayLike, n: int) -> FloatArray:
    steps = np.asarray(step, dtype=np.float64)
    if steps.shape not in ((), (n,)) or not (np.isfinite(steps) & (steps > 0)).all():
        raise InputError(f"expected a positive finite step, one or one for each of the {n} rows, got {step!r}")
    return np.broadcast_to(steps, (n,))
