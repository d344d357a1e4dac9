"""`minimize` on executors and on a real Dask cluster, with workers that are killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.dask_cluster import dask_cluster

from recollect import FailedTrialWarning, InputTypeError, Memory, RecollectError, minimize

SPACE = {"n": (1, 40)}
QUIET: dict[str, Any] = {"method": "random", "progress": False, "task": "t"}


def test_threads_share_the_callers_objects() -> None:
    seen: list[int] = []

    def objective(config: dict[str, Any]) -> float:
        seen.append(config["n"])
        return float(config["n"])

    with ThreadPoolExecutor(3) as executor:
        result = minimize(objective, SPACE, trials=7, workers=executor, **QUIET)
        assert executor.submit(int).result() == 0  # it stays open
    assert sorted(seen) == sorted(config["n"] for config in result.run.configs)
    assert len(seen) == 7


def test_a_closure_runs_in_processes_with_a_time_limit() -> None:
    def objective(config: dict[str, Any]) -> float:
        if config["n"] == 3:
            time.sleep(60)
        return float(os.getpid())

    options: dict[str, Any] = {"trial_seconds": 3.0, "first": [{"n": 3}, {"n": 4}], **QUIET}
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor, pytest.warns(FailedTrialWarning):
        result = minimize(objective, SPACE, trials=2, workers=executor, **options)
    assert [trial.ok for trial in result.run.trials] == [False, True]
    assert "time limit of 3 s" in result.run.trials[0].notes[0]
    assert result.best_value != os.getpid()


def test_an_executor_that_breaks_ends_the_run_and_the_same_call_resumes_it(tmp_path: Path) -> None:
    marker = str(tmp_path / "killed")

    def objective(config: dict[str, Any]) -> float:
        if config["n"] == 3 and not os.path.exists(marker):
            with open(marker, "w"):
                os.kill(os.getpid(), signal.SIGKILL)
        return float(config["n"])

    options: dict[str, Any] = {"memory": tmp_path / "m.db", "first": [{"n": 4}, {"n": 3}], **QUIET}
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as executor, pytest.raises(RecollectError, match="resumes"):
        minimize(objective, SPACE, trials=3, workers=executor, **options)
    assert Memory(tmp_path / "m.db").run("t").configs == [{"n": 4}]
    with ProcessPoolExecutor(1, mp_context=spawn) as executor:
        result = minimize(objective, SPACE, trials=3, workers=executor, **options)
    assert result.run.configs[:2] == [{"n": 4}, {"n": 3}]
    assert len(result.run.succeeded) == 3


def test_what_is_no_executor_is_refused() -> None:
    with pytest.raises(InputTypeError, match="workers"):
        minimize(lambda config: config["n"], SPACE, workers="four", **QUIET)  # type: ignore[arg-type]


def test_a_dask_worker_that_is_killed_loses_no_trial(tmp_path: Path) -> None:
    Client = pytest.importorskip("distributed", reason="part of the extra dask").Client

    log = str(tmp_path / "trials")

    def objective(config: dict[str, Any]) -> float:
        with open(log, "a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.3)
        return float(config["n"])

    with dask_cluster(tmp_path, 2) as cluster, Client(cluster.address, timeout=60, set_as_default=False) as client:

        def kill_one() -> None:
            while not os.path.exists(log):
                time.sleep(0.02)
            os.killpg(cluster.workers[0].pid, signal.SIGKILL)

        client.wait_for_workers(2, timeout=60)
        killer = threading.Thread(target=kill_one)
        killer.start()
        result = minimize(objective, SPACE, trials=8, workers=client, memory=tmp_path / "m.db", **QUIET)
        killer.join()
        assert cluster.workers[0].wait() == -signal.SIGKILL
    assert len(result.run.succeeded) == 8
    assert str(os.getpid()) not in Path(log).read_text().split()
