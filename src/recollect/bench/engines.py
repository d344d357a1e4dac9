"""Where runs are made: in this process, in processes of this computer, or on a Dask cluster.

An engine takes jobs and yields answers as soon as they are there, in any order. When a process of this computer is
killed it says which jobs were lost, and ends; who asked may ask again for these and for those that had not begun. Dask
itself gives the jobs of a lost worker to others; three times by its defaults, then the job has crashed.
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

from recollect.bench.cell import Crashed, Job, Made
from recollect.bench.results import Key
from recollect.errors import InputError, MissingExtraError, RecollectWarning, StorageError


@dataclass(frozen=True, slots=True)
class Lost:
    """A job that had been handed out when a process was killed: it was in that process, or in another or waited."""

    key: Key


Answer = Made | Crashed | Lost
Function = Callable[[Job], Made | Crashed]
PATIENCE = 5  # seconds in which a scheduler must answer
GLANCE = 1.0  # seconds after which to look whether it is still there
SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")
IN_FLIGHT = 4  # jobs sent ahead for every thread of a cluster: enough that none waits, few enough for its memory


class Engine(Protocol):
    """Makes runs."""

    def answers(self, function: Function, jobs: Sequence[Job]) -> Iterator[Answer]:
        """Yield the function's answers to the jobs."""
        ...


@dataclass(frozen=True, slots=True)
class Local:
    """This computer, with so many processes."""

    processes: int = 1

    def __post_init__(self) -> None:
        """Refuse to work with nobody."""
        if self.processes < 1:
            raise InputError(f"expected at least 1 process, got {self.processes}")

    def answers(self, function: Function, jobs: Sequence[Job]) -> Iterator[Answer]:
        """Yield the answers; end early if a process was killed, since then joblib ends all of them."""
        if self.processes == 1:
            yield from map(function, jobs)
            return
        joblib = import_module("joblib")
        broken = import_module("joblib.externals.loky.process_executor").BrokenProcessPool
        parallel = joblib.Parallel(n_jobs=self.processes, return_as="generator_unordered", batch_size=1)
        under_way: dict[Key, None] = {}

        def handed_out() -> Iterator[Any]:
            for job in jobs:
                under_way[job.key] = None
                yield joblib.delayed(function)(job)

        try:
            for answer in parallel(handed_out()):
                del under_way[answer.key]
                yield answer
        except broken:
            yield from map(Lost, list(under_way))


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Dask cluster, by the address of its scheduler; its workers need recollect and see the same files."""

    address: str

    def __post_init__(self) -> None:
        """Refuse what Dask would first try for a while."""
        parts = urlsplit(self.address if "://" in self.address else f"tcp://{self.address}")
        try:
            complete = parts.scheme in SCHEMES and parts.hostname and (parts.port or parts.scheme == "inproc")
        except ValueError:  # a port that is none
            complete = False
        if not complete:
            raise InputError(f"expected the address of a Dask scheduler, as tcp://host:8786, got {self.address!r}")

    def answers(self, function: Function, jobs: Sequence[Job]) -> Iterator[Answer]:
        """Yield the answers."""
        distributed = _distributed()
        with _quiet():
            try:
                client = distributed.Client(self.address, timeout=PATIENCE, set_as_default=False)
            except (OSError, ValueError) as error:
                raise InputError(f"there is no Dask scheduler at {self.address!r}: {error}") from error
            with client:
                threads = sum(worker["nthreads"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
                if threads == 0:
                    message = f"the scheduler at {self.address} has no workers; the runs wait until it has"
                    warnings.warn(message, RecollectWarning, stacklevel=2)
                waiting, desk = iter(jobs), _Desk(client, function)
                for job in islice(waiting, IN_FLIGHT * max(threads, 1)):
                    desk.send(job)
                while desk.sent:
                    yield desk.receive()
                    for job in islice(waiting, 1):
                        desk.send(job)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's client from logging, several times, what is raised anyway: that the scheduler is gone."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


class _Desk:
    """Jobs that a cluster has been given, and those that came back."""

    def __init__(self, client: Any, function: Function) -> None:
        self.client, self.function = client, function
        self.sent: dict[str, tuple[Job, Any]] = {}  # with their futures: Dask forgets a job whose future nobody holds
        self.arrived: SimpleQueue[Any] = SimpleQueue()

    def send(self, job: Job) -> None:
        future = self.client.submit(self.function, job, pure=False)
        self.sent[future.key] = job, future
        future.add_done_callback(self.arrived.put)

    def receive(self) -> Answer:
        """Wait for a job that is finished, one way or the other; without a scheduler none ever will be."""
        while True:
            with suppress(Empty):
                future = self.arrived.get(timeout=GLANCE)
                job, _ = self.sent.pop(future.key)
                try:
                    if future.status == "error":
                        return Crashed(job.key, f"the cluster gave up: {future.exception()!r}")
                    answer: Answer = future.result()
                except (OSError, CancelledError) as error:
                    raise self._gone() from error
                return answer
            if self.client.status not in ("running", "connecting"):
                raise self._gone()

    def _gone(self) -> StorageError:
        address = self.client.scheduler.address
        return StorageError(f"the Dask scheduler at {address} is gone; what was made is kept, the same command goes on")


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError as error:
        raise MissingExtraError("running on a cluster needs Dask: pip install 'recollect[dask]'") from error
