"""The one pool of worker processes: past-run fits, experiments, forests, suite trainings and ``minimize(workers=...)``.

Each worker is a fresh Python interpreter. It never imports the user's main script: the function is sent by value
(cloudpickle) over an authenticated connection, so scripts need no ``if __name__ == "__main__"`` and notebooks work.
One worker can be killed without the others, by the system or because an item exceeded its time limit: only that item is
lost, and a new worker takes its place. The pools of the standard library and joblib lose all workers or none. Workers
and what they started end with the pool and with this process, however it ends (`GroupGuard`).

Dask clusters have their own executor (`recollect.bench.experiment.executors`): Dask starts and supervises its workers.
Training programs (`recollect.tuning.commands`) are not Python functions and are started as plain subprocesses.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from recollect._system import GroupGuard, kill_group
from recollect.errors import InputError, RecollectError

Item = TypeVar("Item")
Answer = TypeVar("Answer")

START_SECONDS = 60.0  # that a worker may take to connect
LONGEST_POLL = 86_400.0  # seconds; operating systems take no more than 24 days at once
EXIT_SECONDS = 5.0  # that a worker may take to exit after its connection has closed
ITEMS_PER_PROCESS = 2  # one in work and one waiting, so that no worker idles while the caller handles an answer
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

# Workers do not search the working folder for modules (-P), where a random.py would be run. They get the paths of their
# parent later; a copy of recollect that only the parent's path leads to is found by its own folder, searched last.
WORKER = f"import sys; sys.path.append({str(Path(__file__).parents[1])!r}); from {__name__} import _serve; _serve()"

_state = {"worker": False}


class TimeLimitError(RecollectError):
    """An item took longer than the time limit; its worker was killed."""


class ProcessStartError(RecollectError):
    """A worker could not be started, or did not connect."""


class ProcessDiedError(RecollectError):
    """A worker ended without an answer.

    Attributes:
        exit_code: Its exit code; negative for a signal, None if the worker stopped answering but did not exit.
    """

    def __init__(self, exit_code: int | None) -> None:
        """Describe how the worker ended."""
        super().__init__(exit_code)
        self.exit_code = exit_code

    def __str__(self) -> str:
        """Return the reason in words."""
        return f"its process {'stopped answering' if self.exit_code is None else describe_exit(self.exit_code)}"


def describe_exit(exit_code: int) -> str:
    """Return how a process ended: "ended with exit code 3", "was killed by signal 11 (SIGSEGV)"."""
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    hint = ", perhaps because memory ran out" if exit_code == -9 else ""
    name = next((entry.name for entry in signal.Signals if entry == -exit_code), "unknown")
    return f"was killed by signal {-exit_code} ({name}){hint}"


def is_worker() -> bool:
    """Return whether this process was started to do part of another one's work; such a process starts no workers."""
    return _state["worker"] or multiprocessing.parent_process() is not None


def run_in_processes(
    function: Callable[[Item], Answer], items: Iterable[Item], *, processes: int, time_limit: float | None = None
) -> Iterator[tuple[Item, Future[Answer]]]:
    """Yield each item with its finished future, in the order in which they finish.

    Leaving the loop kills the workers. With one process and no time limit the function runs in this process.

    Raises:
        InputError: ``processes`` or ``time_limit`` is not positive.
    """
    if processes < 1:
        raise InputError(f"expected at least 1 process, got {processes}")
    if processes == 1 and time_limit is None:
        yield from ((item, _completed(function, item)) for item in items)
        return
    waiting = iter(items)
    with ProcessPool(function, processes, time_limit=time_limit) as pool:
        running = {pool.submit(item): item for item in islice(waiting, ITEMS_PER_PROCESS * processes)}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                item = running.pop(future)
                running |= {pool.submit(following): following for following in islice(waiting, 1)}
                yield item, future


def _completed(function: Callable[[Item], Answer], item: Item) -> Future[Answer]:
    future: Future[Answer] = Future()
    try:
        future.set_result(function(item))
    except Exception as error:  # noqa: BLE001 - raised again where the result is read, as from a worker
        future.set_exception(error)
    return future


@dataclass(slots=True, eq=False)
class _WorkerProcess:
    process: subprocess.Popen[bytes]
    connection: Connection

    def _answers_within(self, time_limit: float | None) -> bool:
        if time_limit is None:
            return self.connection.poll(None)
        end = time.monotonic() + time_limit
        while (left := end - time.monotonic()) > LONGEST_POLL:
            if self.connection.poll(LONGEST_POLL):
                return True
        return self.connection.poll(max(left, 0.0))

    def call(self, item: bytes, time_limit: float | None) -> Any:
        try:
            self.connection.send_bytes(item)
            if not self._answers_within(time_limit):
                raise TimeLimitError(f"stopped after the time limit of {time_limit:g} s")
            answer, error = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError) as lost:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(EXIT_SECONDS)
            raise ProcessDiedError(self.process.returncode) from lost
        if error is not None:
            raise error
        return answer


class ProcessPool(Generic[Item, Answer]):
    """Calls one function in up to ``processes`` workers, each started when it is first needed.

    A thread per worker sends items and waits for answers, so workers stay busy while the caller does something else.
    """

    def __init__(
        self,
        function: Callable[[Item], Answer],
        processes: int,
        *,
        time_limit: float | None = None,
        one_thread: bool = True,
    ) -> None:
        """Prepare to call a function, which is sent by value: it must not hold open files, locks or connections.

        One item may take ``time_limit`` seconds, not counting the start of a worker. ``one_thread``: BLAS and OpenMP in
        a worker use one thread, unless the environment says otherwise.
        """
        import cloudpickle

        if time_limit is not None and not time_limit > 0:
            raise InputError(f"expected a time limit of more than 0 seconds, got {time_limit}")
        if "__mp_main__" in sys.modules:  # the main script, in a process that multiprocessing spawned
            cloudpickle.register_pickle_by_value(sys.modules["__mp_main__"])
        self._dumps: Callable[[Any], bytes] = cloudpickle.dumps
        self._function = self._dumps(function)
        self._time_limit, self._one_thread = time_limit, one_thread
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="recollect-worker")
        self._lock = threading.Lock()
        self._closed = False
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._guard = GroupGuard()
        self._free: list[_WorkerProcess] = []

    def submit(self, item: Item) -> Future[Answer]:
        """Return the future of an item.

        Its result raises what the function raised, or `TimeLimitError`, `ProcessDiedError` or `ProcessStartError`.
        """
        return self._threads.submit(self._call, self._dumps(item))

    def close(self) -> None:
        """Kill all workers and wait until they have ended; unfinished items are lost."""
        with self._lock:
            self._closed = True
            for process in self._processes:
                kill_group(process)
        self._threads.shutdown(wait=True, cancel_futures=True)
        for worker in self._free:
            worker.connection.close()
        for process in self._processes:
            process.wait()
        self._guard.close()

    def __enter__(self) -> ProcessPool[Item, Answer]:
        """Return the pool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pool."""
        self.close()

    def _call(self, item: bytes) -> Answer:
        worker = self._take_free() or self._start()
        try:
            answer: Answer = worker.call(item, self._time_limit)
        except (TimeLimitError, ProcessDiedError):
            self._discard(worker)
            raise
        except BaseException:  # raised by the function: the worker is as good as before
            self._free.append(worker)
            raise
        self._free.append(worker)
        return answer

    def _take_free(self) -> _WorkerProcess | None:
        while True:
            try:
                worker = self._free.pop()
            except IndexError:
                return None
            if worker.process.poll() is None:
                return worker
            self._discard(worker)

    def _start(self) -> _WorkerProcess:
        key = secrets.token_bytes(32)
        threads = {name: os.environ.get(name, "1") for name in THREAD_VARIABLES} if self._one_thread else {}
        with Listener(None, authkey=key) as listener:
            with self._lock:
                if self._closed:
                    raise ProcessDiedError(None)
                command, environment = [sys.executable, "-P", "-c", WORKER], {**os.environ, **threads}
                try:
                    process = self._guard.start(command, stdin=subprocess.PIPE, process_group=0, env=environment)
                except OSError as error:
                    reason = f"expected a worker process to start with {sys.executable}: {error.strerror}"
                    raise ProcessStartError(reason) from error
                self._processes.add(process)
            assert process.stdin is not None
            address: Any = listener.address
            with suppress(OSError):
                process.stdin.write(f"{address}\n{key.hex()}\n".encode())
                process.stdin.close()
            try:
                connection = _accept(listener, process)
            except ProcessStartError:
                self._forget(process)
                raise
        worker = _WorkerProcess(process, connection)
        with suppress(OSError):  # it has ended meanwhile: the first call finds out how
            connection.send(sys.path)
            connection.send_bytes(self._function)
        return worker

    def _discard(self, worker: _WorkerProcess) -> None:
        worker.connection.close()
        kill_group(worker.process)
        worker.process.wait()
        self._forget(worker.process)

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        """Forget a worker that has ended, so that nobody kills another process that gets its id."""
        with self._lock:
            self._processes.discard(process)
            self._guard.remove(process)


def _accept(listener: Listener, process: subprocess.Popen[bytes]) -> Connection:
    """Wait until a new worker connects; do not wait for one that dies before that."""
    accepted: list[Connection] = []

    def accept() -> None:
        with suppress(OSError, EOFError):
            accepted.append(listener.accept())

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while thread.is_alive() and time.monotonic() < deadline and process.poll() is None:
        thread.join(0.05)
    thread.join(0.2)
    if not accepted:
        late = process.poll() is None
        kill_group(process)
        end = f"{describe_exit(process.wait())}; standard error shows why"
        end = f"did not connect within {START_SECONDS:g} s" if late else end
        raise ProcessStartError(f"expected a worker process to start with {sys.executable}, but it {end}")
    return accepted[0]


def _serve() -> None:
    """Run a worker: connect to the parent, receive the function, call it until the connection closes."""
    import cloudpickle  # noqa: F401 - before the paths of the parent count, one of which may be the working folder

    _state["worker"] = True
    with suppress(EOFError, OSError, AuthenticationError):  # the parent has closed the connection, or is gone
        address, key = sys.stdin.readline().strip(), bytes.fromhex(sys.stdin.readline().strip())
        if not key:
            return
        with Client(address, authkey=key) as connection:
            sys.path[:] = connection.recv()
            _answer_calls(connection)


def _answer_calls(connection: Connection) -> None:
    import cloudpickle

    pickled = connection.recv_bytes()
    function: Callable[[Any], Any] | None = None
    try:
        function = cloudpickle.loads(pickled)
    except Exception as error:  # noqa: BLE001 - answered to every call
        reason = f"{type(error).__name__}: {error}"
        broken = RecollectError(
            f"the function could not be rebuilt in a worker process: {reason}; define it in a module "
            "that can be imported, or in the main script"
        )
    while True:
        item = connection.recv_bytes()
        try:
            if function is None:
                raise broken
            answer = cloudpickle.dumps((function(pickle.loads(item)), None))
        except Exception as error:  # noqa: BLE001 - handed to the parent, which raises it
            answer = _pickled_error(error)
        connection.send_bytes(answer)


def _pickled_error(error: Exception) -> bytes:
    """Return an exception for the parent, as plain text if it does not survive pickling."""
    import cloudpickle

    try:
        pickled: bytes = cloudpickle.dumps((None, error))
        pickle.loads(pickled)
    except Exception:  # noqa: BLE001 - whatever the exception's own code raises
        pickled = cloudpickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
    return pickled
