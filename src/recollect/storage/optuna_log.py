"""Optuna's log, which is quiet while the library works: the library never prints."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _QuietLog:
    lock: threading.Lock = field(default_factory=threading.Lock)
    threads: int = 0
    level: int = 0  # of the log, to be restored


_QUIET = _QuietLog()


@contextmanager
def quiet_optuna() -> Iterator[None]:
    """Keep Optuna from printing a line for every study that is created.

    The level is that of the whole process: the first thread in changes it, and the last one out restores it.
    """
    import optuna

    with _QUIET.lock:
        if not _QUIET.threads:
            _QUIET.level = optuna.logging.get_verbosity()
            optuna.logging.set_verbosity(max(_QUIET.level, optuna.logging.WARNING))
        _QUIET.threads += 1
    try:
        yield
    finally:
        with _QUIET.lock:
            _QUIET.threads -= 1
            if not _QUIET.threads:
                optuna.logging.set_verbosity(_QUIET.level)
