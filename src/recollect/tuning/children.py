"""Evaluation in child processes: several at once, with a time limit, surviving whatever kills them.

A child is a fresh Python that never imports the user's main script: the objective is sent to it by value (cloudpickle),
so scripts need no ``if __name__ == "__main__"`` and notebooks work. It connects back to a listener of this process with
a key that it reads from its standard input. A child that ends, is killed or exceeds the time limit takes its
configuration with it as failed; the next configuration gets a new one.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Listener, wait
from typing import Any

from recollect.errors import InputTypeError
from recollect.history.run import Config
from recollect.tuning.evaluators import Ended
from recollect.tuning.outcome import Objective, Outcome, reason_of

START = 60.0
"""Seconds that a child may take to begin."""


@dataclass(slots=True, eq=False)
class _Child:
    process: subprocess.Popen[bytes]
    connection: Connection
    name: Hashable | None = None
    begun: float = 0.0


class Children:
    """Evaluates in child processes."""

    def __init__(self, objective: Objective, places: int, *, limit: float | None = None) -> None:
        """Use up to so many processes; each evaluation may take ``limit`` seconds."""
        import cloudpickle

        try:
            self._objective: bytes = cloudpickle.dumps(objective)
        except Exception as error:
            raise InputTypeError(
                f"the objective cannot be sent to another process ({reason_of(error)}): with several workers or a time "
                "limit it must not hold open files, locks or connections"
            ) from error
        self._places, self._limit = places, limit
        self._children: list[_Child] = []

    @property
    def places(self) -> int:
        """How many configurations can be evaluated at the same time."""
        return self._places

    def begin(self, name: Hashable, config: Config) -> None:
        """Send a configuration to a child that is free, or to a new one."""
        child = next((child for child in self._children if child.name is None), None)
        if child is None:
            child = self._new()
            self._children.append(child)
        child.name, child.begun = name, time.monotonic()
        with suppress(OSError):  # it has ended meanwhile: `wait` finds out how
            child.connection.send(config)

    def wait(self, seconds: float) -> Ended:
        """Wait until a child answers, ends or exceeds its time."""
        busy = {child.connection: child for child in self._children if child.name is not None}
        until = time.monotonic() + seconds
        while busy:
            ready = wait(list(busy), timeout=max(0.0, min(until, self._next_limit()) - time.monotonic()))
            ended = [self._answer(busy[connection]) for connection in ready if isinstance(connection, Connection)]
            ended += [self._overdue(child) for child in busy.values() if child.name is not None and self._late(child)]
            if ended or time.monotonic() >= until:
                return ended
        return []

    def close(self) -> None:
        """Kill all children."""
        for child in self._children:
            _kill(child)
        self._children.clear()

    def _new(self) -> _Child:
        key = secrets.token_bytes(32)
        with Listener(None, authkey=key) as listener:
            process = subprocess.Popen(
                [sys.executable, "-m", "recollect.tuning.child"], stdin=subprocess.PIPE, process_group=0
            )
            assert process.stdin is not None
            address: Any = listener.address
            process.stdin.write(f"{address}\n{key.hex()}\n".encode())
            process.stdin.close()
            connection = _accept(listener, process)
        connection.send((sys.path, os.getpid()))
        connection.send_bytes(self._objective)
        return _Child(process, connection)

    def _next_limit(self) -> float:
        if self._limit is None:
            return float("inf")
        return min((child.begun + self._limit for child in self._children if child.name is not None), default=0.0)

    def _late(self, child: _Child) -> bool:
        return self._limit is not None and time.monotonic() - child.begun >= self._limit

    def _answer(self, child: _Child) -> tuple[Hashable, Outcome]:
        name, seconds = child.name, time.monotonic() - child.begun
        assert name is not None
        try:
            value, took, notes = child.connection.recv()
        except (EOFError, OSError):
            return name, Outcome(None, seconds, (self._end_of(child),))
        child.name = None
        return name, Outcome(value, took, notes)

    def _overdue(self, child: _Child) -> tuple[Hashable, Outcome]:
        name, seconds = child.name, time.monotonic() - child.begun
        assert name is not None
        self._children.remove(child)
        _kill(child)
        return name, Outcome(None, seconds, (f"stopped after {self._limit:g} s, the time limit of a trial",))

    def _end_of(self, child: _Child) -> str:
        """Say how a child ended, and forget it."""
        self._children.remove(child)
        with suppress(subprocess.TimeoutExpired):
            child.process.wait(5.0)
        code = child.process.returncode
        _kill(child)
        if code is None:
            return "its process stopped answering"
        if code >= 0:
            return f"its process ended with exit code {code}"
        hint = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
        return f"its process was killed by signal {-code} ({signal.Signals(-code).name}){hint}"


def _accept(listener: Listener, process: subprocess.Popen[bytes]) -> Connection:
    """Wait for a new child to connect; one that dies before that must not be waited for."""
    from threading import Thread

    accepted: list[Connection] = []

    def accept() -> None:
        with suppress(OSError, EOFError):
            accepted.append(listener.accept())

    thread = Thread(target=accept, daemon=True)
    thread.start()
    until = time.monotonic() + START
    while thread.is_alive() and time.monotonic() < until and process.poll() is None:
        thread.join(0.05)
    thread.join(0.2)
    if not accepted:
        process.kill()
        raise RuntimeError(f"a worker process could not be started (exit code {process.wait()})")
    return accepted[0]


def _kill(child: _Child) -> None:
    """End a child and what it started."""
    child.connection.close()
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(child.process.pid, signal.SIGKILL)
        else:
            child.process.kill()
    child.process.wait()
