"""Processes that work on units one at a time and are ended when a unit takes too long.

A training inside a C library cannot be interrupted from its own process, so each worker is a process that its parent
can end. The pools of the standard library and joblib end all their workers or none.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from recollect.errors import InputError, RecollectError

Unit = TypeVar("Unit")
Answer = TypeVar("Answer")


@dataclass(slots=True, eq=False)
class _Worker(Generic[Unit]):
    """A process, the pipe to it, what it works on and until when it may."""

    process: Any
    pipe: Connection
    unit: Unit
    deadline: float

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run_limited(
    function: Callable[[Unit], Answer], units: Iterable[Unit], *, jobs: int, limit: float
) -> Iterator[tuple[Unit, Answer | None]]:
    """Yield (unit, function(unit)) as they are finished; None for a unit that took longer than ``limit`` seconds.

    The function must be importable. What it raises is raised here, and ends all workers; so does leaving the loop.
    """
    if jobs < 1:
        raise InputError(f"expected jobs >= 1, got {jobs}")
    if not limit > 0:
        raise InputError(f"expected a limit of more than 0 seconds, got {limit}")
    waiting = iter(units)
    workers: list[_Worker[Unit]] = []
    try:
        workers += [_started(function, unit, limit) for unit in islice(waiting, jobs)]
        while workers:
            soonest = min(worker.deadline for worker in workers) - time.monotonic()
            answered = wait([worker.pipe for worker in workers], timeout=max(soonest, 0.0))
            for worker in list(workers):
                late = time.monotonic() > worker.deadline
                if worker.pipe not in answered and not late:
                    continue
                unit = worker.unit
                answer = _received(worker) if worker.pipe in answered else None
                workers.remove(worker)
                workers += _continued(function, worker, waiting=waiting, limit=limit, usable=worker.pipe in answered)
                yield unit, answer
    finally:
        for worker in workers:
            worker.end()


def _continued(
    function: Callable[[Unit], Answer], worker: _Worker[Unit], *, waiting: Iterator[Unit], limit: float, usable: bool
) -> list[_Worker[Unit]]:
    """The worker on its next unit, a new one in its place if it had to be ended, or none when all is done."""
    following = list(islice(waiting, 1))
    if not usable or not following:
        worker.end()
        return [_started(function, unit, limit) for unit in following]
    worker.unit, worker.deadline = following[0], time.monotonic() + limit
    worker.pipe.send(worker.unit)
    return [worker]


def _started(function: Callable[[Unit], Answer], unit: Unit, limit: float) -> _Worker[Unit]:
    # Fresh processes: a forked one would inherit the state of thread pools that do not survive a fork.
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(function, there), daemon=True)
    process.start()
    there.close()
    here.send(unit)
    return _Worker(process, here, unit, time.monotonic() + limit)


def _received(worker: _Worker[Any]) -> Any:
    try:
        answer, error = worker.pipe.recv()
    except (EOFError, OSError) as lost:
        worker.end()
        raise RecollectError(
            f"the process that worked on {worker.unit!r} ended with code {worker.process.exitcode}; "
            "what was finished is kept, and starting again continues there"
        ) from lost
    if error is not None:
        raise error
    return answer


def _serve(function: Callable[[Any], Any], pipe: Connection) -> None:
    """Answer units until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    while True:
        try:
            unit = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            result: tuple[Any, Exception | None] = function(unit), None
        except Exception as error:  # noqa: BLE001  (handed to the parent, which raises it)
            result = None, error
        try:
            pipe.send(result)
        except OSError:  # the parent is gone
            return
