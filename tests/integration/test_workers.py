"""Several processes tune one task together, some are killed: no trial is lost, none is done twice."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from tests.helpers.tuning_worker import name_of, start_worker

from recollect.storage.memory import Memory
from recollect.storage.studies import VOID_KEY, find_study


def check(memory: str, log: Path, *, trials: int, killed: set[int]) -> None:
    run = Memory(memory).run("t", "p")
    assert len(run) == trials
    lost = [trial for trial in run.trials if not trial.ok]
    assert all("twice" in trial.notes[0] for trial in lost), "only a trial that was lost twice may fail"
    assert 2 * len(lost) <= len(killed)
    assert len({name_of(trial.config) for trial in run.trials}) == trials
    lines = [line.split() for line in log.read_text().splitlines()]
    begun = Counter(a for what, a, _ in lines if what == "begin")
    ended = Counter(a for what, a, _ in lines if what == "end")
    assert {name_of(trial.config) for trial in run.succeeded} <= set(ended)
    for a, times in begun.items():
        died = [pid for what, other, pid in lines if what == "begin" and other == a and int(pid) in killed]
        assert times <= 1 + len(died), f"{a} was begun {times} times, by {died} among others"
    for a, times in ended.items():
        assert times == 1 or any(other == a and int(pid) in killed for _, other, pid in lines)
    for trial in run.succeeded:
        assert trial.value == pytest.approx((trial.config["a"] - 0.3) ** 2 + (trial.config["k"] == "x"))


def together(memory: str, log: Path, *, workers: int, kill: int, trials: int, seed: int) -> None:
    """Run workers, kill some of them at random moments, replace some of those, wait for the end, check the result."""
    rng = random.Random(seed)
    team = [start_worker(memory, log, seconds=0.15, trials=trials) for _ in range(workers)]
    killed: set[int] = set()
    try:
        while not log.exists():
            time.sleep(0.02)
            assert any(worker.is_alive() for worker in team)
        for _ in range(kill):
            time.sleep(rng.uniform(0.05, 0.6))
            victim = rng.choice([worker for worker in team if worker.pid not in killed])
            victim.kill()
            victim.join()
            killed.add(cast(int, victim.pid))
            if rng.random() < 0.5:
                team.append(start_worker(memory, log, seconds=0.15, trials=trials))
        for worker in team:
            worker.join(timeout=120)
            assert worker.pid in killed or worker.exitcode == 0
    finally:
        for worker in team:
            worker.kill()
            worker.join()
    survivors = {worker.pid for worker in team} - killed
    results = [line.split() for line in log.read_text().splitlines() if line.startswith("trials ")]
    counts = {int(pid): int(count) for _, count, pid in results}  # a worker may be killed after it has finished
    assert {pid: counts.get(pid) for pid in survivors} == dict.fromkeys(survivors, trials)
    check(memory, log, trials=trials, killed=killed)


def test_eight_processes_on_postgresql_lose_and_double_nothing_when_some_are_killed(
    postgres: str, tmp_path: Path
) -> None:
    name = f"n{uuid.uuid4().hex}"
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    url = postgres.rsplit("/", 1)[0] + f"/{name}"
    seed = int(os.environ.get("RECOLLECT_KILL_SEED", "0"))
    together(url, tmp_path / "log", workers=8, kill=4, trials=24, seed=seed)


def test_four_processes_on_sqlite_lose_and_double_nothing_when_one_is_killed(tmp_path: Path) -> None:
    together(str(tmp_path / "tuning.db"), tmp_path / "log", workers=4, kill=1, trials=14, seed=3)


def test_processes_that_suggest_by_model_never_try_the_same_configuration(tmp_path: Path) -> None:
    memory, log = str(tmp_path / "tuning.db"), tmp_path / "log"
    team = [start_worker(memory, log, seconds=0.0, trials=14, method="gp") for _ in range(3)]
    for worker in team:
        worker.join(timeout=120)
        assert worker.exitcode == 0
    check(memory, log, trials=14, killed=set())
    store = Memory(memory).store
    entry = find_study(store, "p", "t")
    assert entry is not None
    trials = store.optuna.get_all_trials(entry.id)
    assert sum(VOID_KEY not in trial.user_attrs for trial in trials) == 14
