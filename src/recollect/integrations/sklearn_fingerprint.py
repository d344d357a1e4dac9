"""Names for data and for the way they are scored: found again when both come again, another name for anything else.

Data are named by their contents, so that it does not matter how they lie in memory: an array in rows or in columns, a
sparse matrix in any format. The way of scoring (estimator, metrics, folds) is named by how it is pickled. Whatever
cannot be named reliably gets another name each time, which costs a resumption but never mixes two measurements.
"""

from __future__ import annotations

import hashlib
import sys
import uuid
from collections.abc import Mapping, Sized
from typing import Any

import numpy as np

DIGITS = 12
"""Length of a name, in hexadecimal digits."""


def data_name(X: Any, y: Any, others: Mapping[str, Any]) -> str:
    """Name a data set, with what else is given for each of its rows (weights, groups): its size, type and contents."""
    size = getattr(X, "shape", None) or ((len(X),) if isinstance(X, Sized) else ())
    kind = getattr(X, "dtype", type(X).__name__)
    parts = [content(X), content(y), *(part for name in sorted(others) for part in (name, content(others[name])))]
    return f"{' x '.join(map(str, size))} {kind} {short(*parts)}"


def short(*parts: str) -> str:
    """Return a short name for several texts in this order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:DIGITS]


def content(value: Any) -> str:
    """Name a value by its contents."""
    from scipy.sparse import issparse

    if issparse(value):
        return _sparse(value)
    pandas = sys.modules.get("pandas")  # not imported yet: then this is no table of its
    if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series):
        return _table(value, pandas)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return _array(value)
    return pickled(value)


def pickled(value: Any) -> str:
    """Name a value by how it is pickled; one that cannot be pickled gets a new name each time."""
    import cloudpickle
    import joblib

    try:
        return str(joblib.hash(value))
    except Exception:  # noqa: BLE001 - whatever an object raises when it is pickled: functions of a script, open files
        pass
    try:
        return hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
    except Exception:  # noqa: BLE001 - the same
        return uuid.uuid4().hex


def _array(array: np.ndarray[Any, Any]) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _sparse(matrix: Any) -> str:
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    places = [part.astype(np.int64) for part in (rows.indptr, rows.indices)]
    return short("sparse", str(rows.shape), *map(_array, (*places, rows.data)))


def _table(table: Any, pandas: Any) -> str:
    columns = table.to_frame() if isinstance(table, pandas.Series) else table
    try:
        rows = pandas.util.hash_pandas_object(columns, index=False).to_numpy()
    except TypeError:  # cells that cannot be hashed, such as lists
        return pickled(columns.to_dict("list"))
    return short("table", *(f"{name!r} {kind}" for name, kind in columns.dtypes.items()), _array(rows))
