"""MLflow's experiments, read through its own client.

Every experiment is a task, its runs are the trials. Where runs are nested, every parent is a task named
experiment/parent and its children are the trials; the parent itself is none. Parameters are text in MLflow and get
their types as `recollect.history.importers.cells` says, over all runs of an experiment. FAILED and KILLED runs are
failed trials; those that are still running, and finished ones that never logged the metric, are left out and counted.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from recollect.errors import InputError, MissingExtraError, StorageError
from recollect.history.importers.asked import Asked, Found
from recollect.history.importers.cells import typed
from recollect.history.run import FAILED, Config, Direction, Run, Trial
from recollect.history.storage import shown

PARENT, NAME = "mlflow.parentRunId", "mlflow.runName"
ALLOW_FOLDERS = "MLFLOW_ALLOW_FILE_STORE"
FAILURES, UNFINISHED = ("FAILED", "KILLED"), ("RUNNING", "SCHEDULED")
PAGE = 1000


def is_folder(path: Path) -> bool:
    """Whether a folder is a tracking store: it has experiments, each a folder with a meta.yaml."""
    return any(path.glob("*/meta.yaml"))


def read_tracking(address: str, asked: Asked) -> Found:
    """Read all experiments behind a tracking URI, or the one named ``task``."""
    where = f"MLflow at {shown(address)}"
    asked.refuse_columns(where, "MLflow says what its parameters and metrics are", value=True)
    with _client(where, address) as client:
        experiments = list(_pages(lambda token: client.search_experiments(max_results=PAGE, page_token=token)))
        asked.check_task(where, [experiment.name for experiment in experiments], called="experiment")
        wanted = [experiment for experiment in experiments if asked.wants(experiment.name)]
        runs = {experiment.name: _runs(client, experiment.experiment_id) for experiment in reversed(wanted)}
    trials = [run for name in runs for run in runs[name] if run.info.run_id not in _parents(runs[name])]
    if not trials:
        raise InputError(f"{where}: expected runs, there are none in {', '.join(map(repr, runs)) or 'it'}")
    metric = _metric(where, trials, asked.value)
    skipped: Counter[str] = Counter()
    found: list[Run] = []
    for name, own in runs.items():
        found += _tasks(name, own, metric=metric, direction=asked.way(where), skipped=skipped)
    return Found(found, skipped)


@contextmanager
def _client(where: str, address: str) -> Iterator[Any]:
    """Yield MLflow's client; what it raises becomes an error of ours that says where."""
    try:
        # MLflow deprecates parts of itself and of SQLAlchemy while it is imported and used.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", FutureWarning)
            tracking = import_module("mlflow.tracking")
            failures = import_module("mlflow.exceptions").MlflowException
            try:
                with _folders_allowed():
                    yield tracking.MlflowClient(tracking_uri=address)
            except failures as error:
                raise StorageError(f"{where}: {' '.join(str(error).split())[:300]}") from error
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{where}: reading it needs {error.name}: pip install 'recollect[mlflow]'") from error


@contextmanager
def _folders_allowed() -> Iterator[None]:
    """Let MLflow read folders, which it refuses since it keeps new runs in databases, unless the user has decided."""
    if ALLOW_FOLDERS in os.environ:
        yield
        return
    os.environ[ALLOW_FOLDERS] = "true"
    try:
        yield
    finally:
        del os.environ[ALLOW_FOLDERS]


def _pages(ask: Callable[[str | None], Any]) -> Iterator[Any]:
    token: str | None = None
    while True:
        page = ask(token)
        yield from page
        token = page.token
        if not token:
            return


def _runs(client: Any, experiment: str) -> list[Any]:
    order = ["attributes.start_time ASC"]
    return list(
        _pages(lambda token: client.search_runs([experiment], max_results=PAGE, order_by=order, page_token=token))
    )


def _parents(runs: Sequence[Any]) -> set[str]:
    return {run.data.tags[PARENT] for run in runs if PARENT in run.data.tags}


def _metric(where: str, runs: Sequence[Any], wanted: str | None) -> str:
    metrics = sorted({name for run in runs for name in run.data.metrics})
    listed = ", ".join(metrics) or "none"
    if wanted is None and len(metrics) != 1:
        raise InputError(f"{where}: expected the option value to name one of the metrics: {listed}")
    if wanted is not None and wanted not in metrics:
        raise InputError(f"{where}: there is no metric {wanted!r}; the metrics are: {listed}")
    return metrics[0] if wanted is None else wanted


def _tasks(name: str, runs: Sequence[Any], *, metric: str, direction: Direction, skipped: Counter[str]) -> list[Run]:
    """Return the runs of one experiment, and count what was left out."""
    parents = _parents(runs)
    called = {run.info.run_id: run.data.tags.get(NAME) or run.info.run_id for run in runs}
    leaves = [run for run in runs if run.info.run_id not in parents]
    found: dict[str, list[Trial]] = {}
    for run, config in zip(leaves, _configs(leaves), strict=True):
        parent = run.data.tags.get(PARENT)
        if run.info.status in UNFINISHED:
            skipped["runs that are still running"] += 1
        elif run.info.status not in FAILURES and metric not in run.data.metrics:
            skipped[f"runs without the metric {metric!r}"] += 1
        else:
            task = name if parent is None else f"{name}/{called.get(parent, parent)}"
            found.setdefault(task, []).append(_trial(run, config, metric))
    return [Run(task, trials=trials, direction=direction) for task, trials in found.items()]


def _configs(runs: Sequence[Any]) -> list[Config]:
    names = dict.fromkeys(name for run in runs for name in run.data.params)
    columns = [(name, typed([run.data.params.get(name) for run in runs])) for name in names]
    return [{name: column[n] for name, column in columns if column[n] is not None} for n in range(len(runs))]


def _trial(run: Any, config: Config, metric: str) -> Trial:
    start, end = run.info.start_time, run.info.end_time
    seconds = None if start is None or end is None else (end - start) / 1000
    if run.info.status in FAILURES:
        trial = Trial.of(config, FAILED)
        notes: tuple[str, ...] = (f"MLflow run {run.info.run_id} was {run.info.status}",)
    else:
        trial = Trial.of(config, run.data.metrics[metric])
        notes = trial.notes
    return Trial(trial.config, trial.value, trial.state, seconds, notes)
