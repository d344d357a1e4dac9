"""The system: user folders, cores, garbage collection, deferred signals, process groups that end with this process."""

from __future__ import annotations

import gc
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

PROCESS_VARIABLE = "RECOLLECT_PROCESS"
WATCHER = """
import os, select, sys, time
parent, groups, rest = int(sys.argv[1]), [], b""
while True:
    if select.select([0], [], [], 1.0)[0]:
        received = os.read(0, 1 << 16)
        if not received:
            break
        *lines, rest = (rest + received).split(b"\\n")
        groups = lines[-1].split() if lines else groups
    elif os.getppid() != parent:  # a fork of the parent keeps the pipe open
        break
mark = groups.pop()[1:] if groups and groups[-1].startswith(b"=") else b""
until = time.monotonic() + 5.0
while mark and time.monotonic() < until:  # a process was just being started: wait until it has its environment
    time.sleep(0.1)
    for pid in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else ()):
        try:
            if mark in open(f"/proc/{pid}/environ", "rb").read():
                groups.append(os.getpgid(int(pid)))
                until = 0.0
        except OSError:
            pass
for group in groups:
    try:
        os.killpg(int(group), 9)
    except OSError:
        pass
"""
"""Reads a line with all process groups after each change; kills them when the parent has ended.

What the parent wrote is read before anything else, because the parent may end before this process runs at all.

A line may end with ``=mark``: a process is being started, with this mark in its environment, and has no group yet.
"""


def user_folder(kind: Literal["cache", "data"], variable: str) -> Path:
    """Return the user's folder for caches or data; it need not exist.

    Args:
        kind: Which of the folders that `platformdirs` knows for each system.
        variable: Name of an environment variable that overrides it.
    """
    if override := os.environ.get(variable):
        return Path(override).expanduser()
    from platformdirs import PlatformDirs

    folders = PlatformDirs("recollect", appauthor=False, opinion=False)
    try:
        path = folders.user_cache_path if kind == "cache" else folders.user_data_path
    except RuntimeError:  # a user without a home folder, as in some containers
        return Path(tempfile.gettempdir()) / ("recollect" if kind == "cache" else "recollect-data")
    # Windows has one local folder per program, where the cache is at the top.
    return path / "data" if kind == "data" and sys.platform == "win32" else path


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Turn off garbage collection while many lasting objects are created; it would take a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if "sched_getaffinity" in dir(os) else os.cpu_count() or 1


@contextmanager
def defer_signals() -> Iterator[None]:
    """Hold back SIGINT and SIGTERM until the block has finished.

    For blocks that would leave something behind when interrupted, such as a process that nobody knows of yet. Signals
    interrupt the main thread only; elsewhere nothing changes.
    """
    handlers = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    received: list[int] = []
    for number in handlers:
        signal.signal(number, lambda number, _: received.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


class GroupGuard:
    """Starts processes that lead a group, and kills their groups if this process ends before them, however it ends.

    A small process watches this one, because nothing runs here after SIGKILL. It is started with the first process and
    belongs neither to their groups nor to that of this process.
    """

    def __init__(self) -> None:
        """Guard nothing yet."""
        self._groups: set[int] = set()
        self._watcher: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], env: Mapping[str, str], **settings: Any) -> subprocess.Popen[bytes]:
        """Start a process; ``settings`` of `subprocess.Popen` make it the leader of a group."""
        mark = secrets.token_hex(16)
        self._tell(f"={mark}")
        process = subprocess.Popen(command, env={**env, PROCESS_VARIABLE: mark}, **settings)
        self._groups.add(process.pid)
        self._tell()
        return process

    def remove(self, process: subprocess.Popen[bytes]) -> None:
        """Forget a process that has ended."""
        self._groups.discard(process.pid)
        self._tell()

    def close(self) -> None:
        """End the watcher; all processes have ended."""
        if self._watcher is not None:
            assert self._watcher.stdin is not None
            self._watcher.kill()
            self._watcher.wait()
            self._watcher.stdin.close()
            self._watcher = None

    def _tell(self, *starting: str) -> None:
        """Tell the watcher, or a new one if there is none, which groups there are and what is being started."""
        if not hasattr(os, "killpg"):
            return
        if self._watcher is None or self._watcher.poll() is not None:
            self.close()
            command = [sys.executable, "-I", "-S", "-c", WATCHER, str(os.getpid())]
            nowhere = subprocess.DEVNULL
            self._watcher = subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True
            )
        assert self._watcher.stdin is not None
        with suppress(OSError):  # it was killed: the next call starts another
            self._watcher.stdin.write(" ".join([*map(str, self._groups), *starting]).encode() + b"\n")


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads its own group, and everything it started."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
