"""Experiments on a real Dask cluster: a scheduler and workers in their own processes on loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recollect.bench.experiment.executors import DaskExecutor, LocalExecutor
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.bench.experiment.plan import BenchmarkSpec, Plan, SourceSettings
from recollect.bench.experiment.results import read_results
from recollect.bench.experiment.runner import run_experiment
from recollect.errors import InputError, RecollectWarning, StorageError

Client = pytest.importorskip("distributed", reason="part of the extra dask").Client

PLAN = Plan(
    ("random", "gp", "smfo"),
    (BenchmarkSpec("forrester", tasks=4),),
    SourceSettings("gp", 8, 2),
    repetitions=2,
    horizon=8,
)
LIMIT = 60.0


class LocalCluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file))
        self._wait(self.file.exists)
        self.workers = [self.worker() for _ in range(workers)]
        if workers:
            with Client(self.address, timeout=LIMIT, set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=LIMIT)

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--host", "127.0.0.1", *options]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, process_group=0)

    def worker(self) -> subprocess.Popen[bytes]:
        options = ("--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", str(self.folder))
        return self._start("worker", "--scheduler-file", str(self.file), *options)

    def _wait(self, ready: object) -> None:
        until = time.monotonic() + LIMIT
        while not ready():  # type: ignore[operator]
            assert time.monotonic() < until, (self.folder / "log").read_text()
            time.sleep(0.05)

    @property
    def address(self) -> str:
        import json

        return str(json.loads(self.file.read_text())["address"])

    def close(self) -> None:
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    (tmp_path / "cluster").mkdir()
    local = LocalCluster(tmp_path / "cluster", getattr(request, "param", 2))
    yield local
    local.close()


def results_in(folder: Path) -> dict[RunKey, CompletedRun]:
    return {run.key: run for run in read_results(folder / "runs.csv")}


def test_a_worker_killed_in_the_middle_loses_nothing_and_counts_nothing_twice(
    tmp_path: Path, cluster: LocalCluster
) -> None:
    reports: Counter[str] = Counter()

    def progress(what: str, _done: int, _total: int) -> None:
        reports[what] += 1
        if what == "forrester" and reports[what] == 5:
            os.killpg(cluster.workers[0].pid, signal.SIGKILL)

    outcome = run_experiment(PLAN, tmp_path / "far", executor=DaskExecutor(cluster.address), progress=progress)
    assert cluster.workers[0].wait() == -signal.SIGKILL
    assert outcome.failed == ()
    assert outcome.runs == outcome.new == 24
    assert reports == {"forrester, past": 9, "forrester": 17}  # once before the first run
    run_experiment(PLAN, tmp_path / "here", executor=LocalExecutor())
    far, here = results_in(tmp_path / "far"), results_in(tmp_path / "here")
    assert far.keys() == here.keys()
    for key, run in here.items():
        np.testing.assert_array_equal(far[key].values, run.values)


def test_a_scheduler_that_dies_ends_the_work_with_one_sentence(tmp_path: Path, cluster: LocalCluster) -> None:
    def progress(what: str, done: int, _total: int) -> None:
        if what == "forrester" and done == 3:
            os.killpg(cluster.scheduler.pid, signal.SIGKILL)

    with pytest.raises(StorageError, match=r"the Dask scheduler at .* is gone"):
        run_experiment(PLAN, tmp_path, executor=DaskExecutor(cluster.address), progress=progress)
    before = len(results_in(tmp_path))
    assert 8 + 3 <= before < 24
    outcome = run_experiment(PLAN, tmp_path, executor=LocalExecutor())
    assert (outcome.runs, outcome.new) == (24, 24 - before)


@pytest.mark.parametrize("cluster", [0], indirect=True)
def test_a_scheduler_without_workers_gives_a_warning(tmp_path: Path, cluster: LocalCluster) -> None:
    threading.Timer(1.0, lambda: cluster.workers.append(cluster.worker())).start()
    with pytest.warns(RecollectWarning, match="has no workers; the runs wait until it has"):
        outcome = run_experiment(replace(PLAN, methods=("random",)), tmp_path, executor=DaskExecutor(cluster.address))
    assert outcome.runs == 8


@pytest.mark.parametrize("address", ["localhost", "nonsense://localhost:8786", "tcp://:8786", "tcp://localhost:x", ""])
def test_an_invalid_address_is_refused_at_once(tmp_path: Path, address: str) -> None:
    with pytest.raises(InputError, match=r"expected the address of a Dask scheduler, as tcp://host:8786, got"):
        run_experiment(PLAN, tmp_path, executor=DaskExecutor(address))


def test_without_a_scheduler_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no Dask scheduler at 'tcp://127.0.0.1:9'"):
        run_experiment(PLAN, tmp_path, executor=DaskExecutor("tcp://127.0.0.1:9"))
