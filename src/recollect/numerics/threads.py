"""Keep BLAS on one thread.

The matrices of a Gaussian process on tens to hundreds of points are so small that waking a thread pool costs more than
the product itself, and several workers on one machine would fight for the cores.  Every routine of the library that
uses BLAS in a loop therefore runs inside ``single_threaded()``.

The number of threads is a property of the process, not of a Python thread, and only who has set the limit can lift it
safely.  So one Python thread at a time owns it: the first to enter.  Nested entries of the owner are counted; others
that enter meanwhile find the limit set, and do without it from the moment the owner leaves, which costs them time only.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any


class _SingleThreaded:
    """Remembers who owns the limit, and how deep the owner is inside."""

    __slots__ = ("_controller", "_depth", "_limiter", "_lock", "_owner")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._depth = 0
        self._controller: Any = None
        self._limiter: Any = None

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._lock:
            if self._owner is None:
                if self._controller is None:
                    self._controller = _find_blas()
                self._limiter = self._controller.limit(limits=1)
                self._limiter.__enter__()  # so that leaving hands control over to other threads
                self._owner = me
            if self._owner == me:
                self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._owner != threading.get_ident():
                return
            self._depth -= 1
            if self._depth == 0:
                self._limiter.__exit__(None, None, None)
                self._owner = self._limiter = None


def _find_blas() -> Any:
    """Controller of the BLAS libraries in the process; scanning takes milliseconds, so it is done once."""
    import scipy.linalg  # noqa: F401  (NumPy and SciPy may bring a BLAS each; both must be loaded before the scan)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


_SHARED = _SingleThreaded()


def single_threaded() -> _SingleThreaded:
    """Context manager inside which BLAS uses one thread; may be nested and entered from several threads."""
    return _SHARED
