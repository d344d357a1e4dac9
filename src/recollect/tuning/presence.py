"""Who runs a trial, and whether they are still there.

A worker writes to each of its trials who it is, and from time to time a count. Others never compare clocks: a worker is
gone when its count has stood still for `GRACE` seconds of the observer's own clock. On the same machine it is gone as
soon as its process has ended, and not before: an objective that holds Python's lock keeps its signs back.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

BEAT_KEY = "recollect:beat"
BEAT = 5.0
"""Seconds between two signs of life."""
GRACE = 45.0
"""Seconds without a sign of life after which a worker is taken for dead."""


def machine() -> str:
    """Name the machine, and the process namespace in it: process numbers mean something only inside one."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}".strip()


def begun(pid: int) -> str | None:
    """Return when a process of this machine began, None if there is none; "" where that cannot be told."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return None
    except OSError:
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return ""
    return ""


def sign(count: int = 0) -> dict[str, Any]:
    """Return this process' sign of life."""
    pid = os.getpid()
    return {"machine": machine(), "pid": pid, "begun": begun(pid), "count": count}


@dataclass(slots=True, eq=False)
class Watch:
    """Tells who is gone, from the signs seen so far."""

    grace: float = GRACE
    _seen: dict[int, tuple[Any, float]] = field(default_factory=dict)

    def gone(self, trial: int, seen: Any) -> bool:
        """Whether the worker of a trial is gone, given the sign that its trial shows now; None: not one of ours."""
        if not isinstance(seen, dict):
            return False
        if seen.get("machine") == machine():
            return begun(int(seen.get("pid", 0))) != seen.get("begun")
        now = time.monotonic()
        before = self._seen.get(trial)
        if before is None or before[0] != seen:
            self._seen[trial] = (seen, now)
            return False
        return now - before[1] > self.grace


class Pulse:
    """Gives signs of life for the trials that this process runs, from a thread of its own."""

    def __init__(self, give: Callable[[int, dict[str, Any]], None], *, every: float = BEAT) -> None:
        """``give(trial, sign)`` writes a sign to the storage."""
        self._give, self._every = give, every
        self._trials: set[int] = set()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._beat, name="recollect signs of life", daemon=True)

    def __enter__(self) -> Pulse:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End; a sign that is just being given is awaited."""
        self._stop.set()
        self._thread.join()

    def running(self, trials: Collection[int]) -> None:
        """Say which trials run now."""
        with self._lock:
            self._trials = set(trials)

    def _beat(self) -> None:
        count = 0
        while not self._stop.wait(self._every):
            count += 1
            with self._lock:
                trials = sorted(self._trials)
            for trial in trials:
                self._give(trial, sign(count))
