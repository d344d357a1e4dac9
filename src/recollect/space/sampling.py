"""Points of a space: uniform draws, designs that spread, and all of them where they can be counted.

Everything returned is encoded (n, d), canonical and legal, with inactive cells nan, and survives
``space.encode(space.decode(X))`` bitwise.
"""

from __future__ import annotations

import math

import numpy as np

from recollect.errors import InputError, SpaceError
from recollect.numerics import quasirandom
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.space.columns import Choices, Steps
from recollect.space.space import Space

BATCHES = 25
LARGEST_BATCH = 50_000
ENUMERABLE = 200_000
"""How many configurations are worth listing to find the legal ones among them."""


def uniform(space: Space, n: int, rng: np.random.Generator) -> FloatArray:
    """Return n independent points, uniform on the columns' scales; choices are drawn by their weights.

    Forbidden points are drawn again. Where legal ones are so rare that this fails, they are listed and drawn with equal
    probability; SpaceError if there are none or they cannot be listed.
    """
    _check_count(n)
    kept, found, drawn = [np.empty((0, len(space.names)))], 0, 0
    batch = n
    for _ in range(BATCHES):
        if found >= n:
            return np.concatenate(kept)[:n]
        X = _weighted(space, rng.random((batch, len(space.names))))
        X = X[space.legal(X)]
        kept.append(X)
        found, drawn = found + len(X), drawn + batch
        batch = min(max(2 * batch, 64), max(LARGEST_BATCH, n))
    return _rare(space, n, rng=rng, found=np.concatenate(kept), drawn=drawn)


def latin_hypercube(space: Space, n: int, rng: np.random.Generator) -> FloatArray:
    """Return at most n points spread as a Latin hypercube; fewer where points coincide after rounding or deactivation.

    Every choice of a categorical gets an equal share (its weights are ignored); forbidden points are replaced by
    uniform ones.
    """
    _check_count(n)
    X = _legalised(space, quasirandom.latin_hypercube(n, len(space.names), rng), rng)
    return X[unique_rows(X)]


def sobol(space: Space, n: int, rng: np.random.Generator) -> FloatArray:
    """Return n points spread as a scrambled Sobol sequence; forbidden points are replaced by uniform ones."""
    _check_count(n)
    return _legalised(space, quasirandom.sobol(n, len(space.names), rng), rng)


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


def unique_rows(X: FloatArray) -> IntArray:
    """Return the indices of the first occurrence of every distinct row, in order; nan equals nan."""
    if X.shape[0] == 0 or X.shape[1] == 0:
        return np.arange(min(len(X), 1), dtype=np.intp)
    # Rows are compared as bytes, so nan must be one value (no code is infinite) and -0.0 must be 0.0.
    filled = np.ascontiguousarray(np.where(np.isnan(X), np.inf, X) + 0.0)
    keys = filled.view(np.dtype((np.void, filled.itemsize * filled.shape[1]))).ravel()
    first = np.unique(keys, return_index=True)[1]
    return np.sort(first)


def _weighted(space: Space, T: FloatArray) -> FloatArray:
    """Turn uniform points T (n, d) of the unit cube into points of the space, choices by their weights."""
    X = np.empty_like(T)
    for position, (column, t) in enumerate(zip(space.columns, np.ascontiguousarray(T.T), strict=True)):
        X[:, position] = column.weighted(t) if isinstance(column, Choices) else column.from_unit(t)
    return np.where(space.activity(X), X, np.nan)


def _legalised(space: Space, T: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Turn a design T (n, d) in the unit cube into legal points of the space."""
    X = np.empty_like(T)
    for position, (column, t) in enumerate(zip(space.columns, np.ascontiguousarray(T.T), strict=True)):
        X[:, position] = column.from_unit(t)
    X = np.where(space.activity(X), X, np.nan)
    illegal = ~space.legal(X)
    if illegal.any():
        X[illegal] = uniform(space, int(illegal.sum()), rng)
    return X


def _rare(space: Space, n: int, *, rng: np.random.Generator, found: FloatArray, drawn: int) -> FloatArray:
    """Draw n legal points where rejection found too few."""
    legal = enumerate_space(space, ENUMERABLE)
    if legal is not None and len(legal):
        return legal[rng.integers(len(legal), size=n)]
    if legal is not None:
        raise SpaceError(
            f"the search space has no legal configuration: its forbidden clauses exclude all {space.size():.0f}: "
            f"{'; '.join(space.forbidden_texts)}"
        )
    raise SpaceError(
        f"expected {n} legal configurations, found {len(found)} among {drawn} random ones: the forbidden clauses "
        f"exclude (nearly) everything: {'; '.join(space.forbidden_texts)}"
    )


def _check_count(n: int) -> None:
    if n < 0:
        raise InputError(f"expected a number of points n >= 0, got {n}")
