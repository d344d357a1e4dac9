"""Names of problems, data and scoring: the same for the same content, different for anything else.

Data are named by content, independent of the memory layout: an array in rows or in columns, a sparse matrix in any
format. The scoring (estimator, metrics, folds) is named by its pickle. What cannot be named reliably gets a different
name each time; then a search cannot be resumed, but two measurements are never mixed.
"""

from __future__ import annotations

import hashlib
import re
import sys
import uuid
from collections.abc import Collection, Mapping, Sized
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in the text of an object
NAME_DIGITS = 12  # hexadecimal
MAX_PROBLEM_LENGTH = 200  # characters; a longer name is cut and ends with a short one


def default_problem(estimator: Any, scoring: Any, metric: str | None, searched: Collection[str]) -> str:
    """Return the name of a problem: the classes of an estimator and of all inside it, and what is maximized.

    Args:
        estimator: The estimator.
        scoring: The argument ``scoring`` of the search.
        metric: The metric that is maximized where there are several; None for the first.
        searched: Hyperparameters that are searched; a step that is one of them is named, not its class.
    """
    text = f"{_classes(estimator, '', searched)}: {_metric(estimator, scoring, metric)}"
    return text if len(text) <= MAX_PROBLEM_LENGTH else f"{text[: MAX_PROBLEM_LENGTH - NAME_DIGITS]} {short(text)}"


def _classes(estimator: Any, prefix: str, searched: Collection[str]) -> str:
    inside = []
    params = estimator.get_params(deep=False)
    for name in sorted(params):
        value = params[name]
        entries = [(name, value)] if not isinstance(value, list | tuple) else value
        for entry in entries:
            step = entry[0] if isinstance(entry, tuple) and entry and isinstance(entry[0], str) else name
            path = f"{prefix}{step}"
            items = entry if isinstance(entry, tuple) else (entry,)
            part = next((item for item in items if _is_estimator(item)), None)
            if part is not None:
                inside.append(step if path in searched else _classes(part, f"{path}__", searched))
    return type(estimator).__name__ + (f"({', '.join(inside)})" if inside else "")


def _is_estimator(value: Any) -> bool:
    return hasattr(value, "get_params") and hasattr(value, "fit") and not isinstance(value, type)


def _metric(estimator: Any, scoring: Any, metric: str | None) -> str:
    """Return the name of what is maximized."""
    if scoring is None:
        return "accuracy" if is_classifier(estimator) else "r2" if is_regressor(estimator) else "score"
    if isinstance(scoring, str):
        return scoring
    if metric is not None:
        return metric
    names = list(scoring) if isinstance(scoring, Mapping | list | tuple | set) else []
    return str(names[0]) if names else text_of(scoring)


def text_of(choice: Any) -> str:
    """Return a choice as text, the same in every process."""
    named = getattr(choice, "__qualname__", None)
    text = named if isinstance(named, str) else ADDRESS.sub("", repr(choice))
    return " ".join(text.split())


def data_name(X: Any, y: Any, others: Mapping[str, Any]) -> str:
    """Return a name for a dataset and its weights or groups: size, type and a hash of the content."""
    size = getattr(X, "shape", None) or ((len(X),) if isinstance(X, Sized) else ())
    kind = getattr(X, "dtype", type(X).__name__)
    parts = [content(X), content(y), *(part for name in sorted(others) for part in (name, content(others[name])))]
    return f"{' x '.join(map(str, size))} {kind} {short(*parts)}"


def short(*parts: str) -> str:
    """Return a short name for several texts in this order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:NAME_DIGITS]


def content(value: Any) -> str:
    """Return a name for the content of a value."""
    from scipy.sparse import issparse

    if issparse(value):
        return _sparse(value)
    pandas = sys.modules.get("pandas")  # if it has not been imported, this is not one of its tables
    if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series):
        return _table(value, pandas)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return _array(value)
    return pickled(value)


def pickled(value: Any) -> str:
    """Return a name for the pickle of a value; a new one each time if it cannot be pickled."""
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
