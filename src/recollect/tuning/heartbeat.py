"""Heartbeats: which process runs a trial, and whether it is still alive.

A worker writes to each of its trials who it is and, every few seconds, a count. Observers never compare clocks: a
worker on another machine is dead when its count has not changed for `GRACE_SECONDS` of the observer's own clock. A
worker on the same machine is dead as soon as its process has ended, and not before: an objective that holds Python's
global lock delays its heartbeats.
"""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

HEARTBEAT_KEY = "recollect:beat"
HEARTBEAT_SECONDS = 5.0  # between two heartbeats
GRACE_SECONDS = 45.0  # without a heartbeat, after which a worker is presumed dead


def machine_id() -> str:
    """Return what identifies this machine since its start, and the process namespace, where process ids are unique.

    Cloned machines may have the same host name and machine id, but not the same boot id. After a restart, the workers
    from before it are therefore on another machine.
    """
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace} {_boot()}"


@cache
def _boot() -> str:
    """Return a hash of the machine id, which is to be kept confidential, and the boot id; of nothing if unknown."""
    identity = hashlib.sha256()
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        with suppress(OSError):
            identity.update(Path(path).read_bytes())
    if sys.platform == "darwin":
        with suppress(OSError):
            identity.update(
                subprocess.run(["sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, check=False).stdout
            )
    return identity.hexdigest()[:16]


def process_start(pid: int) -> str | None:
    """Return when a process of this machine started; None if it does not run, "" where that is not known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return None
    except OSError:
        return ""
    try:
        if sys.platform != "win32":  # where os.kill would end it
            os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return ""
    return ""


def heartbeat(count: int = 0) -> dict[str, Any]:
    """Return a heartbeat of this process, as it is written to a trial."""
    pid = os.getpid()
    return {"machine": machine_id(), "pid": pid, "begun": _start_of_this_process(pid), "count": count}


@cache
def _start_of_this_process(pid: int) -> str | None:
    """Return when this process started, which does not change; a forked process has another id."""
    return process_start(pid)


@dataclass(slots=True, eq=False)
class HeartbeatMonitor:
    """Decides from the heartbeats seen so far which workers are dead."""

    grace: float = GRACE_SECONDS
    _last_change: dict[int, tuple[Any, float]] = field(default_factory=dict)

    def is_dead(self, trial: int, latest: Any) -> bool:
        """Return whether the worker of a trial is dead; ``latest``: its heartbeat, None for a trial of Optuna's own."""
        if not isinstance(latest, dict):
            return False
        if latest.get("machine") == machine_id() and isinstance(pid := latest.get("pid"), int):
            return process_start(pid) != latest.get("begun")
        now = time.monotonic()
        previous = self._last_change.get(trial)
        if previous is None or previous[0] != latest:
            self._last_change[trial] = (latest, now)
            return False
        return now - previous[1] > self.grace


class Heartbeat:
    """Writes heartbeats for the trials that this process runs, in a thread of its own."""

    def __init__(self, write: Callable[[int, dict[str, Any]], None], *, interval: float = HEARTBEAT_SECONDS) -> None:
        """Prepare; ``write(trial_id, heartbeat)`` stores a heartbeat."""
        self._write, self._interval = write, interval
        self._trials: set[int] = set()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="recollect heartbeat", daemon=True)

    def __enter__(self) -> Heartbeat:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the thread, after a heartbeat that is being written."""
        self._stop.set()
        self._thread.join()

    def set_trials(self, trials: Collection[int]) -> None:
        """Set the ids of the trials that are running now."""
        with self._lock:
            self._trials = set(trials)

    def _run(self) -> None:
        count = 0
        while not self._stop.wait(self._interval):
            count += 1
            with self._lock:
                trials = sorted(self._trials)
            for trial in trials:
                self._write(trial, heartbeat(count))
