"""Where runs are made: in this process, in processes of this computer, or on a Dask cluster.

An engine takes jobs and yields answers as soon as they are there, in any order. A job whose process was killed may have
no answer at all; who asked notices and asks again. Dask itself gives the jobs of a lost worker to others; three times
by its defaults, then the job has crashed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from typing import Any, Protocol

from recollect.bench.cell import Crashed, Job, Made
from recollect.errors import InputError, MissingExtraError

Answer = Made | Crashed
Function = Callable[[Job], Answer]
PATIENCE = 5  # seconds in which a scheduler must answer
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
        try:
            yield from parallel(joblib.delayed(function)(job) for job in jobs)
        except broken:
            return


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Dask cluster, by the address of its scheduler; its workers need recollect and see the same files."""

    address: str

    def answers(self, function: Function, jobs: Sequence[Job]) -> Iterator[Answer]:
        """Yield the answers."""
        distributed = _distributed()
        try:
            client = distributed.Client(self.address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(f"there is no Dask scheduler at {self.address!r}: {error}") from error
        with client:
            threads = sum(worker["nthreads"] for worker in client.scheduler_info(n_workers=-1)["workers"].values())
            waiting = iter(jobs)
            arriving = distributed.as_completed(loop=client.loop)
            sent: dict[str, Job] = {}
            for job in islice(waiting, IN_FLIGHT * max(threads, 1)):
                _send(client, function, job, sent=sent, arriving=arriving)
            for future in arriving:
                yield _received(future, sent.pop(future.key))
                for job in islice(waiting, 1):
                    _send(client, function, job, sent=sent, arriving=arriving)


def _send(client: Any, function: Function, job: Job, *, sent: dict[str, Job], arriving: Any) -> None:
    future = client.submit(function, job, pure=False)
    sent[future.key] = job
    arriving.add(future)


def _received(future: Any, job: Job) -> Answer:
    """The answer of a job that is finished, one way or the other."""
    if future.status == "finished":
        answer: Answer = future.result()
        return answer
    return Crashed(job.key, f"the cluster gave up: {future.exception()!r}")


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError as error:
        raise MissingExtraError("running on a cluster needs Dask: pip install 'recollect[dask]'") from error
