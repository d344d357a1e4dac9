"""What recollect asks of the computer it runs on: the user's folders, how many cores it may use, signals that wait."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class UserFolder:
    """A folder of the user's, where each system has such things.

    variable: the environment variable that names another one. fallback: its name among temporary files, for a user
    without a home. windows: below ``LOCALAPPDATA``. mac: below ``~/Library``. xdg: a variable of the XDG rules, and
    what it is when it is not set, below the home; on all other systems.
    """

    variable: str
    fallback: str
    windows: str
    mac: str
    xdg: tuple[str, str]

    def path(self) -> Path:
        """Return where it is; it need not exist."""
        named = os.environ.get(self.variable, "")
        if named:
            return Path(named).expanduser()
        try:
            home = Path.home()
        except RuntimeError:  # a user without a home, as in some containers
            return Path(tempfile.gettempdir()) / self.fallback
        platform: str = sys.platform  # as a plain string, or the type checker looks at one system only
        if platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA", "") or home / "AppData" / "Local") / self.windows
        if platform == "darwin":
            return home / "Library" / self.mac
        variable, usual = self.xdg
        given = Path(os.environ.get(variable, ""))
        return (given if given.is_absolute() else home / usual) / "recollect"


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if "sched_getaffinity" in dir(os) else os.cpu_count() or 1


@contextmanager
def signals_wait() -> Iterator[None]:
    """Put off what an interruption or a polite kill would do until the block is through.

    For blocks that would leave something behind, such as a process that nobody knows of yet. Only in the main thread
    do signals interrupt anything.
    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    came: list[int] = []
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
