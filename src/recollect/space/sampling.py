"""Points of a space: uniform draws, space-filling designs, all points of a finite space, and points near given ones.

All results are encoded (n, d), canonical and legal, with inactive cells nan; ``space.encode(space.decode(X))`` is X
bitwise for designs and draws.

Neighbours have one hyperparameter changed, or all numerical ones moved a little. Notation: X (n, d) encoded points;
step (n,) or scalar, the standard deviation of a move in the unit interval; Y (m, d) the neighbours, owner (m,) the row
of X each belongs to, in increasing order. Children that a change deactivates become nan, those it activates start at
their default; forbidden neighbours are left out.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError, SpaceError
from recollect.numerics import quasirandom
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, unique_rows
from recollect.space.columns import Choices, Interval, SpaceColumn, Steps
from recollect.space.space import Space

MAX_BATCHES = 25
LARGEST_BATCH = 50_000
MAX_ENUMERATED = 200_000  # configurations that are worth listing to find the legal ones among them
OVERSAMPLING = 4  # more integers are drawn than needed, since some draws repeat
SMALLEST_MOVE = 2.0**-40  # of a float that a tiny step would leave where it is


def uniform(space: Space, n: int, rng: np.random.Generator) -> FloatArray:
    """Return n independent points, uniform on the columns' scales; choices are drawn by their weights.

    Forbidden points are drawn again. If legal points are too rare for that, they are listed and drawn with equal
    probability; SpaceError if there are none, or too many to be listed.
    """
    _check_count(n)
    batches, count, drawn, batch = [np.empty((0, len(space.names)))], 0, 0, n
    for _ in range(MAX_BATCHES):
        if count >= n:
            return np.concatenate(batches)[:n]
        X = _from_unit(space, rng.random((batch, len(space.names))), weighted=True)
        X = X[space.legal(X)]
        batches.append(X)
        count, drawn = count + len(X), drawn + batch
        batch = min(max(2 * batch, 64), max(LARGEST_BATCH, n))
    return _draw_rare(space, n, rng=rng, found=count, drawn=drawn)


def latin_hypercube(space: Space, n: int, rng: np.random.Generator) -> FloatArray:
    """Return at most n points of a Latin hypercube; fewer if points coincide after rounding or deactivation.

    Every choice of a categorical gets an equal share (its weights are ignored); forbidden points are replaced by
    uniform ones.
    """
    _check_count(n)
    X = _legal_design(space, quasirandom.latin_hypercube(n, len(space.names), rng), rng)
    return X[unique_rows(X)]


def sobol(space: Space, n: int, rng: np.random.Generator) -> FloatArray:
    """Return n points of a scrambled Sobol sequence; forbidden points are replaced by uniform ones."""
    _check_count(n)
    return _legal_design(space, quasirandom.sobol(n, len(space.names), rng), rng)


def enumerate_space(space: Space, limit: int) -> FloatArray | None:
    """Return all distinct legal configurations (N, d), or None if ``space.size()`` exceeds the limit."""
    if space.size() > limit:
        return None
    # Row r of the full grid in mixed radix: one digit for every column.
    digits = np.unravel_index(np.arange(math.prod(map(int, space.sizes))), tuple(map(int, space.sizes)))
    X = np.stack([digit.astype(np.float64) for digit in digits], axis=1)
    for position, column in enumerate(space.columns):
        if isinstance(column, Steps):
            X[:, position] = column.centres(X[:, position])
    X = np.where(space.activity(X), X, np.nan)
    X = X[unique_rows(X)]
    return X[space.legal(X)]


def _from_unit(space: Space, T: FloatArray, *, weighted: bool) -> FloatArray:
    """Turn points T (n, d) of the unit cube into points of the space; choices by their weights if ``weighted``."""
    X = np.empty_like(T)
    for position, (column, t) in enumerate(zip(space.columns, np.ascontiguousarray(T.T), strict=True)):
        if weighted and isinstance(column, Choices):
            X[:, position] = column.from_unit_by_weight(t)
        else:
            X[:, position] = column.from_unit(t)
    return np.where(space.activity(X), X, np.nan)


def _legal_design(space: Space, T: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Turn a design T (n, d) in the unit cube into legal points of the space."""
    X = _from_unit(space, T, weighted=False)
    illegal = ~space.legal(X)
    if illegal.any():
        X[illegal] = uniform(space, int(illegal.sum()), rng)
    return X


def _draw_rare(space: Space, n: int, *, rng: np.random.Generator, found: int, drawn: int) -> FloatArray:
    """Draw n legal points where rejection found too few."""
    legal = enumerate_space(space, MAX_ENUMERATED)
    if legal is not None and len(legal):
        return legal[rng.integers(len(legal), size=n)]
    problem = f"expected {n} legal configurations, found {found} among {drawn} random ones"
    extent = "exclude (nearly) everything"
    if legal is not None:
        problem, extent = "the search space has no legal configuration", f"exclude all {space.size():.0f}"
    raise SpaceError(f"{problem}: its forbidden clauses {extent}: {'; '.join(space.forbidden_texts)}")


def _check_count(n: int) -> None:
    if n < 0:
        raise InputError(f"expected a number of points n >= 0, got {n}")


def one_exchange(
    space: Space, X: FloatArray, rng: np.random.Generator,
    *, step: npt.ArrayLike, per_column: int = 4, discrete_only: bool = False,
) -> tuple[FloatArray, IntArray]:  # fmt: skip
    """Return the one-exchange neighbours (Y, owner) of every row of X; with ``discrete_only`` floats stay as they are.

    For every active column that varies: a float gets ``per_column`` draws from N(u, step^2) within [0, 1]. An integer
    or ordinal gets up to as many distinct other cells by the same draws: all others if there are no more than that, and
    at least the adjacent ones. A categorical gets all other choices.
    """
    if per_column < 1:
        raise InputError(f"expected per_column >= 1, got {per_column}")
    steps = _steps(step, len(X))
    active = space.activity(X)
    floats = np.array([isinstance(column, Interval) for column in space.columns]) & space.varying
    Y, owner = _float_moves(X, active & floats & (not discrete_only), rng, steps=steps, count=per_column)
    moved, owners = [Y], [owner]
    for position in np.flatnonzero(space.varying & ~floats):
        rows = np.flatnonzero(active[:, position])
        u = np.ascontiguousarray(X[rows, position])
        codes, valid = _other_codes(space.columns[position], u, rng, steps=steps[rows], count=per_column)
        which, _ = np.nonzero(valid)
        Y = X[rows[which]]
        Y[:, position] = codes[valid]
        moved.append(Y)
        owners.append(rows[which])
    return _repaired(space, np.concatenate(moved), np.concatenate(owners))


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
    return _repaired(space, Y[moved], owner[moved])


def _float_moves(
    X: FloatArray, cells: BoolArray, rng: np.random.Generator, *, steps: FloatArray, count: int
) -> tuple[FloatArray, IntArray]:
    """Return ``count`` copies of a row for each of its cells that is marked, moved in that cell."""
    rows, columns = np.nonzero(cells)
    u = X[rows, columns]
    draws = _truncated_normals(u, steps[rows], rng, count=count)
    inward = np.where(u < 0.5, u + SMALLEST_MOVE, u - SMALLEST_MOVE)
    codes = np.where(draws == u[:, None], inward[:, None], draws)
    owner = np.repeat(rows, count)
    Y = X[owner]
    Y[np.arange(len(owner)), np.repeat(columns, count)] = codes.ravel()
    return Y, owner


def _other_codes(
    column: SpaceColumn, u: FloatArray, rng: np.random.Generator, *, steps: FloatArray, count: int
) -> tuple[FloatArray, BoolArray]:
    """Return codes (n, c) other than u (n,), and a mask: distinct, and at most ``count`` per row unless categorical."""
    own = column.keys(u)[:, None]
    if not isinstance(column, Steps) or column.size - 1 <= count:
        cells = (own + np.arange(1, column.size)) % column.size
        return column.centres(cells) if isinstance(column, Steps) else cells, np.ones(cells.shape, dtype=np.bool_)
    cells = column.keys(_truncated_normals(u, steps, rng, count=OVERSAMPLING * count))
    earlier = np.tril(np.ones((cells.shape[1],) * 2, dtype=np.bool_), k=-1)
    repeated = ((cells[:, :, None] == cells[:, None, :]) & earlier).any(axis=2)
    valid = (cells != own) & ~repeated
    valid &= np.cumsum(valid, axis=1) <= count
    # Where the step is too short to leave the cell, its neighbours on both sides are used instead.
    adjacent = np.clip(own + np.array([-1.0, 1.0]), 0, column.size - 1)
    stuck = ~valid.any(axis=1)[:, None] & (adjacent != own)
    cells = np.concatenate((cells, adjacent), axis=1)
    return column.centres(cells), np.concatenate((valid, stuck), axis=1)


def _truncated_normals(u: FloatArray, steps: FloatArray, rng: np.random.Generator, *, count: int) -> FloatArray:
    """Return (n, count) draws from N(u, step^2) conditioned on [0, 1], by inverting the distribution function."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr(-u / steps)[:, None], ndtr((1.0 - u) / steps)[:, None]
    levels = low + (high - low) * rng.random((len(u), count))
    draws: FloatArray = np.clip(u[:, None] + steps[:, None] * ndtri(levels), 0.0, 1.0)
    return draws


def _repaired(space: Space, Y: FloatArray, owner: IntArray) -> tuple[FloatArray, IntArray]:
    """Deactivate and activate children, drop forbidden rows, order by owner."""
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
