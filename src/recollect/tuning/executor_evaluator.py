"""Trials on workers that exist already: any `concurrent.futures.Executor`, or a Dask cluster.

The objective is sent by value (cloudpickle), so it need not be importable there; recollect must be. A time limit is
enforced on the worker, where the trial then runs in a process of its own. Dask runs the trial of a lost worker on
another one, by default three times; then the trial has failed. An executor that breaks, as the standard library's pools
do when one of their processes is killed, ends the run with an error: finished trials are stored, and the same call with
a new executor resumes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

from recollect._system import available_cores
from recollect.errors import InputTypeError, RecollectError
from recollect.processes import ProcessDiedError, ProcessPool, TimeLimitError
from recollect.runs.run import Config
from recollect.tuning.objective import Evaluation, Finished, Objective, evaluate, reason_of, wait_for_any

GONE = "finished trials are stored, and the same call with a new executor resumes"


class ExecutorEvaluator:
    """Evaluates on an executor, which stays open."""

    def __init__(self, objective: Objective, executor: Any, *, time_limit: float | None = None) -> None:
        """Use an executor or a Dask client; each evaluation may take ``time_limit`` seconds."""
        is_dask = hasattr(executor, "get_executor")
        self._client: Any = executor if is_dask else None
        self._executor: Executor = executor.get_executor(pure=False) if is_dask else executor
        self._call: Callable[[Config], Evaluation]
        if isinstance(executor, ThreadPoolExecutor) and time_limit is None:
            self._call = partial(evaluate, objective)  # in this process: nothing is sent
        else:
            self._call = partial(evaluate_sent, _pickled(objective), time_limit)
        self._running: dict[Future[Evaluation], tuple[int, float]] = {}

    @property
    def capacity(self) -> int:
        """The current number of threads of a cluster, or of workers of an executor; if it does not say, of cores."""
        if self._client is None:
            return int(getattr(self._executor, "_max_workers", 0)) or available_cores()
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return max(1, sum(int(worker["nthreads"]) for worker in workers))

    def start(self, number: int, config: Config) -> None:
        """Submit a configuration."""
        try:
            self._running[self._executor.submit(self._call, config)] = number, time.monotonic()
        except (BrokenExecutor, RuntimeError) as error:
            raise RecollectError(f"the executor takes no more trials ({reason_of(error)}); {GONE}") from error

    def wait(self, seconds: float) -> Finished:
        """Wait until a worker answers or is lost."""
        done = wait_for_any(self._running, seconds)
        if not done and self._client is not None and self._client.status not in ("running", "connecting"):
            raise RecollectError(f"the Dask scheduler is gone; {GONE}")
        return [self._finished(future) for future in done]

    def close(self) -> None:
        """Cancel what has not started; what runs on the workers of others cannot be stopped."""
        for future in self._running:
            future.cancel()
        self._running.clear()

    def _finished(self, future: Future[Evaluation]) -> tuple[int, Evaluation]:
        number, start = self._running.pop(future)
        try:
            return number, future.result()
        except (BrokenExecutor, CancelledError) as error:
            raise RecollectError(f"the executor broke during trial {number} ({reason_of(error)}); {GONE}") from error
        except Exception as error:  # noqa: BLE001 - whatever a cluster raises about this one trial is its reason
            return number, Evaluation(None, time.monotonic() - start, (reason_of(error),))


def evaluate_sent(pickled: bytes, time_limit: float | None, config: Config) -> Evaluation:
    """Evaluate a configuration on a worker."""
    objective = _unpickled(pickled)
    if time_limit is None:
        return evaluate(objective, config)
    start = time.monotonic()
    with ProcessPool(partial(evaluate, objective), 1, time_limit=time_limit, one_thread=False) as pool:
        try:
            return pool.submit(config).result()
        except (TimeLimitError, ProcessDiedError) as error:
            return Evaluation(None, time.monotonic() - start, (str(error),))


def _pickled(objective: Objective) -> bytes:
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(objective))
    except Exception as error:
        raise InputTypeError(
            f"the objective cannot be sent to a worker ({reason_of(error)}): it must not hold open files, locks or "
            "connections"
        ) from error


@lru_cache(maxsize=1)
def _unpickled(pickled: bytes) -> Objective:
    import cloudpickle

    objective: Objective = cloudpickle.loads(pickled)
    return objective
