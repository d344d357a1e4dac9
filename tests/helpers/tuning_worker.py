"""A process that tunes a shared task and logs every evaluation.

A fork server imports everything once, so that starting many workers is cheap.
"""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import alembic.command
import ConfigSpace
import optuna.storages._rdb.models
import psycopg
import scipy.optimize
import scipy.stats
import sqlalchemy.dialects.postgresql.psycopg
import sqlalchemy.dialects.sqlite

import recollect.tuning.worker
from recollect.storage.memory import Memory
from recollect.tuning.minimize import minimize

PRELOADED = (alembic, ConfigSpace, optuna, psycopg, scipy, sqlalchemy, Memory)
"""What a worker would otherwise import when it first needs it."""


def name_of(config: Mapping[str, Any]) -> str:
    """Return what identifies a configuration in the log, without blanks."""
    return f"{config['a']!r}/{config['k']}"


def tune(memory: str, log: str, seconds: float, trials: int, method: str) -> None:
    """Tune the task ``p/t``; log ``begin`` and ``end`` of each trial, and at last ``trials``, with value and pid."""
    warnings.simplefilter("error")
    recollect.tuning.worker.POLL_SECONDS = 0.1

    def write(event: str, value: object) -> None:
        with Path(log).open("a") as file:  # one short write: atomic
            file.write(f"{event} {value} {os.getpid()}\n")

    def objective(config: dict[str, Any]) -> float:
        write("begin", name_of(config))
        time.sleep(seconds)
        write("end", name_of(config))
        return float((config["a"] - 0.3) ** 2 + (config["k"] == "x"))

    space = {"a": (0.0, 1.0), "k": ["x", "y"]}
    result = minimize(
        objective, space, trials=trials, memory=memory, problem="p", task="t", method=method, seed=1, progress=False
    )
    write("trials", len(result.run))


def start_worker(memory: str, log: Path, *, seconds: float, trials: int, method: str = "random") -> ForkServerProcess:
    """Start a process that tunes the task together with others."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=tune, args=(memory, str(log), seconds, trials, method))
    process.start()
    return process
