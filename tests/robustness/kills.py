"""Processes killed in the middle of writes: three tune one task with an objective that takes no time.

Almost all the time is spent writing, so a kill at a random moment nearly always interrupts a write. Workers are forked
from a server process that has loaded everything, and replaced when they are killed. In the end the task must be
complete: as many trials as planned, no configuration twice, none stuck, every value right, and the memory readable.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from tests.helpers.servers import ServerMissingError, postgres_server
from tests.robustness.harness import Skip

import recollect

WORKERS, TRIALS, KILLS = 3, 30, 10
LOCK_SECONDS = 30
"""How long the others wait for the lock of a journal whose owner was killed; 30 is Optuna's own setting.

It stays: on a network file system an owner may be that slow, and taking a lock from a living owner damages the journal.
"""
SPACE: dict[str, Any] = {"a": (0.0, 1.0), "k": ["x", "y"]}
PATIENCE = 120.0
"""Seconds after the last kill in which the remaining workers must finish."""

_servers = ExitStack()
_postgres: list[str] = []


def value(config: dict[str, Any]) -> float:
    """The objective, without the log."""
    return float((config["a"] - 0.3) ** 2 + (config["k"] == "x"))


def _work(memory: str, log: str, trials: int, lock_seconds: int) -> None:
    from optuna.storages.journal import JournalFileSymlinkLock

    JournalFileSymlinkLock.__init__.__defaults__ = (lock_seconds,)  # type: ignore[attr-defined]

    def objective(config: dict[str, Any]) -> float:
        with Path(log).open("a") as file:  # one short write: atomic
            file.write(f"{config['a']!r} {os.getpid()}\n")
        return value(config)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings: dict[str, Any] = {"trials": trials, "method": "random", "seed": 1, "progress": False}
    recollect.minimize(objective, SPACE, memory=memory, problem="p", task="t", **settings)


def _attack(rng: np.random.Generator, folder: Path, memory: str) -> int:
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["recollect.tuning.minimize", "optuna", "sqlalchemy", "ConfigSpace"])
    log = folder / "log"
    log.touch()

    def start() -> Any:
        worker = processes.Process(target=_work, args=(memory, str(log), TRIALS, LOCK_SECONDS))
        worker.start()
        return worker

    team = [start() for _ in range(WORKERS)]
    killed: set[int] = set()
    try:
        while log.stat().st_size == 0 and any(worker.is_alive() for worker in team):
            time.sleep(0.002)
        for _ in range(KILLS):
            time.sleep(float(rng.uniform(0.0, 0.08)))
            alive = [worker for worker in team if worker.is_alive()]
            if not alive:
                break
            victim = alive[int(rng.integers(len(alive)))]
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            killed.add(victim.pid)
            team.append(start())
        end = time.monotonic() + PATIENCE
        for worker in team:
            worker.join(max(0.0, end - time.monotonic()))
            assert not worker.is_alive(), "a worker did not finish: a trial is stuck or the memory is locked"
            assert worker.pid in killed or worker.exitcode == 0, f"a worker ended with code {worker.exitcode}"
    finally:
        for worker in team:
            worker.kill()
            worker.join()
    _check(memory, log, killed)
    return len(killed)


def _check(memory: str, log: Path, killed: set[int]) -> None:
    with recollect.Memory(memory) as stored:
        run = stored.run("t", "p")
    assert len(run) == TRIALS, f"{len(run)} of {TRIALS} trials are there"
    assert len({trial.config["a"] for trial in run.trials}) == TRIALS, "a configuration was evaluated as two trials"
    failed = [trial for trial in run.trials if not trial.ok]
    assert 2 * len(failed) <= len(killed), f"{len(failed)} trials failed after {len(killed)} kills"
    for trial in run.succeeded:
        assert trial.value == value(trial.config), "a value was changed"
    evaluations = Counter(line.split()[0] for line in log.read_text().splitlines())
    by_killed = Counter(a for a, pid in map(str.split, log.read_text().splitlines()) if int(pid) in killed)
    for a, times in evaluations.items():
        assert times <= 1 + by_killed[a], f"{a} was evaluated {times} times, {by_killed[a]} of them by killed workers"


def sqlite(rng: np.random.Generator, folder: Path) -> int:
    """A SQLite file."""
    return _attack(rng, folder, str(folder / "tuning.db"))


def journal(rng: np.random.Generator, folder: Path) -> int:
    """Optuna's journal file."""
    return _attack(rng, folder, f"journal:{folder / 'tuning.log'}")


def postgres(rng: np.random.Generator, folder: Path) -> int:
    """A PostgreSQL server, started once."""
    import psycopg

    if not _postgres:
        try:
            _postgres.append(_servers.enter_context(postgres_server()))
            atexit.register(_servers.close)  # now: before temporary folders are removed
        except ServerMissingError as missing:
            raise Skip(str(missing)) from None
    name = f"n{uuid.uuid4().hex}"
    with psycopg.connect(_postgres[0], autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return _attack(rng, folder, _postgres[0].rsplit("/", 1)[0] + f"/{name}")
