"""Runs that are interrupted, killed, out of disk or cut off from their database: nothing that was told is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from operator import itemgetter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recollect.storage.importers.detection import read_runs
from recollect.storage.memory import Memory
from recollect.tuning.minimize import minimize

SCRIPT = """
import sys, time, warnings
import recollect.tuning.worker
recollect.tuning.worker.RETRY_SECONDS = (0.05, 0.1, 0.2)
from recollect import RecollectError
from recollect.tuning.minimize import minimize

memory, seconds, workers, trials = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])

def objective(config):
    sys.stdout.write("trial\\n")  # in one piece, since workers write at the same time
    sys.stdout.flush()
    time.sleep(seconds)
    return config["a"]

try:
    minimize(objective, {"a": (0.0, 1.0)}, trials=trials, memory=memory, problem="p", task="t", method="random",
             workers=workers, progress=False)
except RecollectError as error:
    sys.exit(str(error))
"""


def start(
    memory: str, *, seconds: float, folder: Path, workers: int = 1, trials: int = 30, before: str = ""
) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", before + SCRIPT, memory, str(seconds), str(workers), str(trials)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)


def wait_for_trials(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdout is not None
    for _ in range(count):
        assert process.stdout.readline() == "trial\n", process.communicate()


def finish(memory: str) -> None:
    """Resume the run in this process, which is another one than that which began it."""
    settings: dict[str, Any] = {"method": "random", "progress": False}
    minimize(itemgetter("a"), {"a": (0.0, 1.0)}, trials=30, memory=memory, problem="p", task="t", **settings)
    run = Memory(memory).run("t", "p")
    assert len(run) == len(run.succeeded) == 30
    assert len({config["a"] for config in run.configs}) == 30


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_finished_trials_and_the_run_can_be_resumed(tmp_path: Path, workers: int) -> None:
    memory = str(tmp_path / "m.db")
    process = start(memory, seconds=0.2, folder=tmp_path, workers=workers)
    wait_for_trials(process, 4)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate(timeout=30)[1]
    told = Memory(memory).run("t", "p")
    assert 4 - workers - 1 <= len(told) <= 4
    assert len(told.succeeded) == len(told)
    finish(memory)


def test_a_killed_run_can_be_resumed_at_once(tmp_path: Path) -> None:
    memory = str(tmp_path / "m.db")
    process = start(memory, seconds=0.2, folder=tmp_path, workers=2)
    wait_for_trials(process, 5)
    children = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    assert len(children) == 3  # two workers, and the guard of their process groups
    process.kill()
    process.communicate()
    begun = time.monotonic()
    finish(memory)
    assert time.monotonic() - begun < 30
    while any(Path(f"/proc/{child}").exists() for child in children):
        time.sleep(0.1)
        assert time.monotonic() - begun < 40, "child processes outlived the run"


def test_a_full_disk_ends_the_run_with_one_sentence_and_a_file_of_what_is_known(tmp_path: Path) -> None:
    memory = tmp_path / "m.db"
    with Memory(memory) as created:
        assert created.store.optuna is not None  # which creates the file
    limit = memory.stat().st_size
    full = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
"""
    process = start(str(memory), seconds=0.0, folder=tmp_path, trials=200, before=full)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert "Traceback" not in error
    assert "saved in" in error
    (run,) = read_runs(error.strip().rsplit(" ", 1)[1])
    kept = Memory(memory).run("t", "p")
    assert len(run) >= len(kept)
    assert run.values[: len(kept)] == kept.values


def test_a_database_server_that_goes_away_ends_the_run_with_a_file_of_what_is_known(
    postgres: str, tmp_path: Path
) -> None:
    name = f"n{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        memory = postgres.rsplit("/", 1)[0] + f"/{name}"
        process = start(memory, seconds=0.05, folder=tmp_path)
        wait_for_trials(process, 6)
        connection.execute(f"alter database {name} allow_connections false")
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
        error = process.communicate(timeout=60)[1]
        assert process.returncode == 1
        assert f"{name}: " in error
        (run,) = read_runs(error.strip().rsplit(" ", 1)[1])
        assert len(run) >= 5
        connection.execute(f"alter database {name} allow_connections true")
    kept = Memory(memory).run("t", "p")
    assert run.values[: len(kept)] == kept.values
    finish(memory)


def test_a_database_server_that_cuts_connections_is_asked_again(postgres: str, tmp_path: Path) -> None:
    name = f"n{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        memory = postgres.rsplit("/", 1)[0] + f"/{name}"
        process = start(memory, seconds=0.05, folder=tmp_path)
        for _ in range(3):
            wait_for_trials(process, 4)
            connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
        _, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
    run = Memory(memory).run("t", "p")
    assert len(run) == len(run.succeeded) == 30


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_told_from_the_start(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    error = start(str(tmp_path / "m.db"), seconds=0.0, folder=tmp_path).communicate(timeout=60)[1]
    assert "Traceback" not in error
    assert "m.db: " in error
