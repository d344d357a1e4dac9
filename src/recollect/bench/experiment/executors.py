"""Where runs are executed: in this process, in processes of this computer, or on a Dask cluster; with retries.

An executor takes run specifications and yields outcomes as soon as they are there, in any order. Dask itself gives the
runs of a lost worker to others; by default three times, then the run has failed.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Protocol
from urllib.parse import urlsplit

from recollect.bench.benchmark import CountProgress
from recollect.bench.experiment.experiment_run import CompletedRun, FailedRun, RunKey, RunSpec, try_run
from recollect.errors import InputError, MissingExtraError, RecollectWarning, StorageError
from recollect.processes import ProcessDiedError, run_in_processes

RunOutcome = CompletedRun | FailedRun
RunFunction = Callable[[RunSpec], RunOutcome]
OnCompleted = Callable[[CompletedRun], None]
NO_OUTCOME = "the executor ended without an outcome for this run"
SCHEDULER_TIMEOUT = 5  # seconds in which a scheduler must answer
STATUS_INTERVAL = 1.0  # seconds between two looks at whether the scheduler is still there
SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")
RUNS_PER_THREAD = 4  # sent ahead to a cluster: enough that no thread waits, few enough for its memory


class Executor(Protocol):
    """Executes runs."""

    def execute(self, function: RunFunction, specs: Sequence[RunSpec]) -> Iterator[RunOutcome]:
        """Yield the outcomes of calling the function on every specification."""
        ...


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """This computer, with this many processes."""

    processes: int = 1

    def __post_init__(self) -> None:
        """Refuse fewer than one process."""
        if self.processes < 1:
            raise InputError(f"expected at least 1 process, got {self.processes}")

    def execute(self, function: RunFunction, specs: Sequence[RunSpec]) -> Iterator[RunOutcome]:
        """Yield the outcomes; a run whose process was killed has failed, the others continue."""
        for spec, future in run_in_processes(function, specs, processes=self.processes):
            try:
                yield future.result()
            except ProcessDiedError as error:
                yield FailedRun(spec.key, str(error), process_died=True)


@dataclass(frozen=True, slots=True)
class DaskExecutor:
    """A Dask cluster, by the address of its scheduler; its workers need recollect and access to the same files."""

    address: str

    def __post_init__(self) -> None:
        """Refuse an address that Dask would try for a while before it gives up."""
        parts = urlsplit(self.address if "://" in self.address else f"tcp://{self.address}")
        try:
            complete = parts.scheme in SCHEMES and parts.hostname and (parts.port or parts.scheme == "inproc")
        except ValueError:  # a port that is not a number
            complete = False
        if not complete:
            raise InputError(f"expected the address of a Dask scheduler, as tcp://host:8786, got {self.address!r}")

    def execute(self, function: RunFunction, specs: Sequence[RunSpec]) -> Iterator[RunOutcome]:
        """Yield the outcomes."""
        try:
            distributed = import_module("distributed")
        except ImportError as error:
            raise MissingExtraError("running on a cluster needs Dask: pip install 'recollect[dask]'") from error
        with _quiet_dask_client():
            try:
                client = distributed.Client(self.address, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
            except (OSError, ValueError) as error:
                raise InputError(f"there is no Dask scheduler at {self.address!r}: {error}") from error
            with client:
                threads = sum(worker["nthreads"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
                if threads == 0:
                    message = f"the scheduler at {self.address} has no workers; the runs wait until it has some"
                    warnings.warn(message, RecollectWarning, stacklevel=2)
                queue, submissions = iter(specs), _DaskSubmissions(client, function)
                for spec in islice(queue, RUNS_PER_THREAD * max(threads, 1)):
                    submissions.send(spec)
                while submissions.pending:
                    yield submissions.receive()
                    for spec in islice(queue, 1):
                        submissions.send(spec)


def run_with_retries(
    specs: Sequence[RunSpec], executor: Executor, *, on_completed: OnCompleted, progress: CountProgress
) -> tuple[FailedRun, ...]:
    """Execute runs, hand each result to ``on_completed``, and return the runs that failed twice.

    A run that fails is tried once more at the end. One whose process died is then executed alone, since memory may
    have run out. ``progress(done, total)`` counts the completed runs.
    """
    remaining = {spec.key: spec for spec in specs}
    failures: dict[RunKey, FailedRun] = {}

    def attempt(batch: Sequence[RunSpec]) -> None:
        for outcome in executor.execute(try_run, batch):
            if isinstance(outcome, FailedRun):
                failures[outcome.key] = outcome
            else:
                on_completed(outcome)
                del remaining[outcome.key]
            progress(len(specs) - len(remaining), len(specs))

    if not specs:
        return ()
    progress(0, len(specs))
    attempt(list(remaining.values()))
    alone = [spec for key, spec in remaining.items() if key in failures and failures[key].process_died]
    others = [spec for spec in remaining.values() if spec not in alone]
    for batch in filter(None, (others, *([spec] for spec in alone))):
        attempt(batch)
    return tuple(failures.get(key, FailedRun(key, NO_OUTCOME)) for key in remaining)


@contextmanager
def _quiet_dask_client() -> Iterator[None]:
    """Keep Dask's client from logging several times what is raised anyway: that the scheduler is gone."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class _DaskSubmissions:
    """Runs that were sent to a cluster, and those that came back."""

    def __init__(self, client: Any, function: RunFunction) -> None:
        self.client, self.function = client, function
        self.pending: dict[str, tuple[RunSpec, Any]] = {}  # with the futures: Dask forgets a run without one
        self.done: SimpleQueue[Any] = SimpleQueue()

    def send(self, spec: RunSpec) -> None:
        future = self.client.submit(self.function, spec, pure=False)
        self.pending[future.key] = spec, future
        future.add_done_callback(self.done.put)

    def receive(self) -> RunOutcome:
        """Wait for the next run that is finished, one way or the other; without a scheduler none ever will be."""
        while True:
            with suppress(Empty):
                future = self.done.get(timeout=STATUS_INTERVAL)
                spec, _ = self.pending.pop(future.key)
                try:
                    if future.status == "error":
                        return FailedRun(spec.key, f"the cluster gave up: {future.exception()!r}")
                    outcome: RunOutcome = future.result()
                except (OSError, CancelledError) as error:
                    raise self._scheduler_gone() from error
                return outcome
            if self.client.status not in ("running", "connecting"):
                raise self._scheduler_gone()

    def _scheduler_gone(self) -> StorageError:
        gone = f"the Dask scheduler at {self.client.scheduler.address} is gone"
        return StorageError(f"{gone}; completed runs are kept, and the same command resumes")
