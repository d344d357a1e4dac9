"""What trackers share: names that are the same in every process, and faults that do not end a run."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from recollect.errors import MissingExtraError, RecollectWarning

ID_DIGITS = 16  # hexadecimal


def tracking_id(*parts: object) -> str:
    """Return a short name for a task or a trial, the same in every process."""
    text = "\0".join(map(str, parts))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:ID_DIGITS]


def import_tracker(module: str, extra: str) -> Any:
    """Import the library of a tracker; MissingExtraError if it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they deprecate in themselves and in others
            return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"this callback needs {error.name}: pip install 'recollect[{extra}]'") from error


@contextmanager
def faults_are_warnings(tracker: str, what: str) -> Iterator[None]:
    """Warn of whatever a tracker raises: trials are in the memory, and a tracker that is down must not end a run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        try:
            yield
            return
        except Exception as error:  # noqa: BLE001 - a network, a server and two libraries raise anything
            fault = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    warnings.warn(f"{what} could not be reported to {tracker}: {fault}", RecollectWarning, stacklevel=4)
