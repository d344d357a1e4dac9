"""Past runs that are fitted when they are first needed, or before that in a background thread.

A fit is a pure function of its content (`source_fitting`), so it does not matter who computes it, when, or in which
order. What the thread has not finished when it is needed is waited for; what it has not begun is fitted then. When the
program ends, the thread is stopped after the current fits: Python may abort if a thread runs while it shuts down.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from recollect.numerics.arrays import FloatArray, IntArray, KernelShape
from recollect.processes import is_worker
from recollect.progress import progress_bars
from recollect.transfer.source_fitting import Fits, KnownFits, Progress, fit_behind, fit_sources
from recollect.transfer.sources import SourceData, SourceFit, Sources

UPDATE_INTERVAL = 0.1  # seconds between updates of the progress bar
MIN_FITS_FOR_BAR = 8  # fewer fits than this finish before a progress bar helps
STOP_SECONDS = 10.0  # that the end of the program waits for a thread at most


class SourceLibrary:
    """All past runs, of which those that are needed are fitted; may be used by several threads."""

    def __init__(
        self, data: Sequence[SourceData], *, shape: KernelShape, settings: SourceFit, cache: KnownFits | None
    ) -> None:
        """Take the past runs; nothing is fitted yet."""
        self.data, self.shape, self.settings = tuple(data), shape, settings
        self._fits = _RememberedFits(cache)
        self._done = (0, 0)  # finished fits of the thread, and how many are necessary
        self._thread: threading.Thread | None = None
        self._stopped = False

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the thread, for `pickle` and `copy`: a copy fits what it needs itself."""
        return {**vars(self), "_thread": None, "_done": (0, 0), "_stopped": False}

    def sources(self, rows: IntArray) -> Sources:
        """Return some of the past runs, fitted now if they are not yet."""
        data = [self.data[i] for i in rows.tolist()]
        with fitting_bar() as progress:
            return fit_sources(data, shape=self.shape, settings=self.settings, cache=self._fits, progress=progress)

    def do_behind(self, choose: Callable[[], IntArray]) -> None:
        """Choose past runs and fit them in a thread, unless one is at work or this is a worker process."""
        if (self._thread is not None and self._thread.is_alive()) or is_worker():
            return
        self._thread = threading.Thread(target=self._work, args=(choose,), name="fits of past runs", daemon=True)
        self._thread.start()
        _AT_WORK.add(self)

    def stop(self) -> None:
        """Stop the thread after the current fits, and wait for its end."""
        self._stopped = True
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def wait(self) -> None:
        """Wait until the thread has finished, with a progress bar."""
        thread = self._thread
        with fitting_bar() as progress:
            while thread is not None and thread.is_alive():
                thread.join(UPDATE_INTERVAL)
                progress(*self._done)

    def _work(self, choose: Callable[[], IntArray]) -> None:
        def count(done: int, total: int) -> None:
            self._done = done, total
            if self._stopped:
                raise InterruptedError

        try:
            data = [self.data[i] for i in choose().tolist()]
            fit_behind(data, shape=self.shape, settings=self.settings, cache=self._fits, progress=count)
        except Exception:  # noqa: BLE001 - the same is done again, and fails, where the result is needed
            pass
        finally:
            self._done = (0, 0)


_AT_WORK: weakref.WeakSet[SourceLibrary] = weakref.WeakSet()


@atexit.register
def _stop_threads() -> None:
    for library in list(_AT_WORK):
        library.stop()


@contextmanager
def fitting_bar() -> Iterator[Progress]:
    """Show how many past runs are fitted, unless they are few."""
    with progress_bars("count", "remaining", interactive=True, transient=True) as update:

        def show(done: int, total: int) -> None:
            if total >= MIN_FITS_FOR_BAR:
                update("fitting past runs", done, total)

        yield show


class _RememberedFits:
    """Fits in memory, and behind them a cache on disk, which may be missing or out of order."""

    def __init__(self, cache: KnownFits | None) -> None:
        self._cache, self._known = cache, Fits()

    def get(self, keys: Iterable[bytes]) -> Fits:
        wanted = list(keys)
        missing = [key for key in wanted if key not in self._known]
        if missing and self._cache is not None:
            self._known = self._known | self._cache.get(missing)  # a new one: a copy may be made of the old one now
        return {key: self._known[key] for key in wanted if key in self._known}

    def put(self, fits: Mapping[bytes, FloatArray]) -> None:
        self._known = self._known | dict(fits)
        if self._cache is not None:
            self._cache.put(fits)
