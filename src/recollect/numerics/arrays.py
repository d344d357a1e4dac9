"""Array types, encoded points as arrays, and statistics that depend on the order of numbers.

Notation: ``x (d,)`` one encoded point, ``X (n, d)`` several; nan = inactive.  What the columns mean is known to
`recollect.space` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.intp]

INACTIVE = -1.0  # may stand for nan: no code of an active entry is that small


@dataclass(frozen=True, slots=True, eq=False)
class KernelShape:
    """Kinds of columns, as far as a kernel needs them."""

    categorical: BoolArray  # (d,) columns that compare by equality
    conditional: bool  # whether rows may have inactive entries

    def __post_init__(self) -> None:
        """Check the mask and make it read-only."""
        mask = np.array(self.categorical, dtype=np.bool_)
        if mask.ndim != 1:
            raise InputError(f"KernelShape: expected categorical to be a mask (d,), got shape {mask.shape}")
        mask.flags.writeable = False
        object.__setattr__(self, "categorical", mask)

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.categorical.size


def native(value: Any) -> Any:
    """Return a NumPy scalar as Python's own number, text or boolean; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def is_inactive(X: FloatArray) -> BoolArray:
    """Mask of inactive entries: nan, or the marker -1 (or less)."""
    return ~(X > INACTIVE)


def row_key(x: FloatArray) -> bytes:
    """Return the identity of an encoded point: bit by bit, where inactive equals inactive and -0 equals 0."""
    return np.where(np.isnan(x), INACTIVE, x + 0.0).tobytes()


def row_keys(X: FloatArray) -> list[bytes]:
    """Return the identities of encoded points, each that of `row_key`."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    data, width = row_key(rows), rows.itemsize * rows.shape[1]
    return [data[begin : begin + width] for begin in range(0, len(data), width)] if width else [b""] * len(rows)


def unique_rows(X: FloatArray) -> IntArray:
    """Return the indices of the first occurrence of every distinct row, in order; nan equals nan."""
    first: dict[bytes, int] = {}
    for number, key in enumerate(row_keys(X)):
        first.setdefault(key, number)
    return np.fromiter(first.values(), dtype=np.intp, count=len(first))


def best_so_far(values: npt.ArrayLike) -> FloatArray:
    """Return the lowest value up to each trial (t,); nan (a failed trial) is skipped, inf stands until one succeeds."""
    run = np.asarray(values, dtype=np.float64)
    if run.ndim != 1:
        raise InputError(f"best_so_far: expected the values (t,) of one run, got shape {run.shape}")
    return np.asarray(np.minimum.accumulate(np.where(np.isnan(run), np.inf, run)))


def rank_correlations(rows: FloatArray) -> FloatArray:
    """Return Spearman's correlations (t, t) of rows (t, m): average ranks for ties, nan for a constant row."""
    from scipy.stats import rankdata

    ranks = rankdata(rows, axis=1)
    ranks -= ranks.mean(axis=1, keepdims=True)
    norms = np.sqrt(np.square(ranks).sum(axis=1, keepdims=True))
    directions = np.divide(ranks, norms, out=np.full_like(ranks, np.nan), where=norms > 0)
    return np.asarray(np.clip(directions @ directions.T, -1.0, 1.0), dtype=np.float64)
