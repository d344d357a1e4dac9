"""When two encoded points are the same: bit by bit, where inactive equals inactive and -0 equals 0.

Notation: x (d,) an encoded point, X (m, d) several; nan = inactive.
"""

from __future__ import annotations

import numpy as np

from recollect.numerics.arrays import FloatArray

INACTIVE = -1.0  # no active code is negative


def row_key(x: FloatArray) -> bytes:
    """Return the identity of an encoded point."""
    return np.where(np.isnan(x), INACTIVE, x + 0.0).tobytes()


def row_keys(X: FloatArray) -> list[bytes]:
    """Return the identities of encoded points, each that of `row_key`."""
    rows = np.ascontiguousarray(X, dtype=np.float64)
    data, width = row_key(rows), rows.itemsize * rows.shape[1]
    return [data[begin : begin + width] for begin in range(0, len(data), width)]
