"""MLflow's experiments, read through its own client.

Every experiment is a task, and its runs are the trials. Where runs are nested, every parent is a task named
experiment/parent, and its children are the trials; the parent itself is not a trial. Parameters are text in MLflow and
get their types by the rules of `storage.formats.csv_columns`, over all runs of an experiment. FAILED and KILLED runs
are failed trials. Runs that are still running, and finished ones without the metric, are left out and counted.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from recollect.errors import InputError, MissingExtraError, RecollectError, StorageError
from recollect.runs.run import FAILED, Config, Direction, Run, Trial
from recollect.storage.formats.csv_columns import typed_column
from recollect.storage.importers import ImportOptions, ImportResult
from recollect.storage.open import without_password

PARENT, NAME = "mlflow.parentRunId", "mlflow.runName"
ALLOW_FOLDERS = "MLFLOW_ALLOW_FILE_STORE"
FAILURES, UNFINISHED = ("FAILED", "KILLED"), ("RUNNING", "SCHEDULED")
PAGE_SIZE = 1000


def is_folder(path: Path) -> bool:
    """Whether a folder is a tracking store: it has experiments, each a folder with a meta.yaml."""
    return any(path.glob("*/meta.yaml"))


def read_tracking(address: str, options: ImportOptions) -> ImportResult:
    """Read all experiments behind a tracking URI, or the one named ``task``."""
    where = f"MLflow at {without_password(address)}"
    options.refuse_columns(where, "MLflow defines its parameters and metrics", value=True)
    _check_folder(where, address)
    with _client(where, address) as client:
        experiments = list(_pages(lambda token: client.search_experiments(max_results=PAGE_SIZE, page_token=token)))
        options.check_task(where, [experiment.name for experiment in experiments], noun="experiment")
        wanted = [experiment for experiment in experiments if options.includes(experiment.name)]
        runs = {experiment.name: _runs(client, experiment.experiment_id) for experiment in reversed(wanted)}
    parents = {name: _parents(own) for name, own in runs.items()}
    trials = [run for name in runs for run in runs[name] if run.info.run_id not in parents[name]]
    if not trials:
        raise InputError(f"{where}: expected runs, there are none in {', '.join(map(repr, runs)) or 'it'}")
    metric = _metric(where, trials, options.value)
    skipped: Counter[str] = Counter()
    imported: list[Run] = []
    for name, own in runs.items():
        imported += _tasks(name, own, metric=metric, direction=options.direction_for(where), skipped=skipped)
    return ImportResult(imported, skipped)


def _check_folder(where: str, address: str) -> None:
    """Raise InputError for a folder in which MLflow would follow a link out of it or wait for a pipe.

    Artifacts are not read, so anything may be among them.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("", "file"):
        return
    root = os.path.realpath(url2pathname(parts.path) if parts.scheme else address)
    for folder, subfolders, files in os.walk(root):
        if "meta.yaml" in files and "artifacts" in subfolders:
            subfolders.remove("artifacts")
        for path in (os.path.join(folder, name) for name in (*subfolders, *files)):
            if os.path.islink(path) and os.path.commonpath([root, os.path.realpath(path)]) != root:
                raise InputError(f"{where}: {path} is a link that leaves the folder; replace it with what it links to")
            if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
                raise InputError(f"{where}: expected files and folders, but {path} is a pipe or a device; remove it")


@contextmanager
def _client(where: str, address: str) -> Iterator[Any]:
    """Yield MLflow's client; its errors become StorageErrors that name the source."""
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
            except RecollectError:
                raise
            except Exception as error:  # damaged folders make MLflow raise anything: yaml's errors, TypeErrors, ...
                kind = "" if isinstance(error, failures) else f"{type(error).__name__}: "
                raise StorageError(f"{where}: {kind}{' '.join(str(error).split())[:300]}") from error
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{where}: reading it needs {error.name}: pip install 'recollect[mlflow]'") from error


@contextmanager
def _folders_allowed() -> Iterator[None]:
    """Let MLflow read folders, which it refuses by default since it prefers databases, unless the user has decided."""
    if ALLOW_FOLDERS in os.environ:
        yield
        return
    os.environ[ALLOW_FOLDERS] = "true"
    try:
        yield
    finally:
        del os.environ[ALLOW_FOLDERS]


def _pages(request: Callable[[str | None], Any]) -> Iterator[Any]:
    token: str | None = None
    while True:
        page = request(token)
        yield from page
        token = page.token
        if not token:
            return


def _runs(client: Any, experiment: str) -> list[Any]:
    order = ["attributes.start_time ASC"]
    return list(
        _pages(lambda token: client.search_runs([experiment], max_results=PAGE_SIZE, order_by=order, page_token=token))
    )


def _parents(runs: Sequence[Any]) -> set[str]:
    return {run.data.tags[PARENT] for run in runs if PARENT in run.data.tags}


def _metric(where: str, runs: Sequence[Any], wanted: str | None) -> str:
    metrics = sorted({name for run in runs for name in run.data.metrics})
    listed = ", ".join(metrics) or "none"
    if wanted is None and len(metrics) != 1:
        raise InputError(f"{where}: name the metric with value= (--value), one of: {listed}")
    if wanted is not None and wanted not in metrics:
        raise InputError(f"{where}: there is no metric {wanted!r}; the metrics are: {listed}")
    return metrics[0] if wanted is None else wanted


def _tasks(name: str, runs: Sequence[Any], *, metric: str, direction: Direction, skipped: Counter[str]) -> list[Run]:
    """Return the runs of one experiment, and count in ``skipped`` what is left out."""
    parents = _parents(runs)
    names = {run.info.run_id: run.data.tags.get(NAME) or run.info.run_id for run in runs}
    leaves = [run for run in runs if run.info.run_id not in parents]
    trials: dict[str, list[Trial]] = {}
    for run, config in zip(leaves, _configs(leaves), strict=True):
        parent = run.data.tags.get(PARENT)
        if run.info.status in UNFINISHED:
            skipped["runs that are still running"] += 1
        elif run.info.status not in FAILURES and metric not in run.data.metrics:
            skipped[f"runs without the metric {metric!r}"] += 1
        else:
            task = name if parent is None else f"{name}/{names.get(parent, parent)}"
            trials.setdefault(task, []).append(_trial(run, config, metric))
    return [Run(task, trials=own, direction=direction) for task, own in trials.items()]


def _configs(runs: Sequence[Any]) -> list[Config]:
    names = dict.fromkeys(name for run in runs for name in run.data.params)
    columns = [(name, typed_column([run.data.params.get(name) for run in runs])) for name in names]
    return [{name: column[n] for name, column in columns if column[n] is not None} for n in range(len(runs))]


def _trial(run: Any, config: Config, metric: str) -> Trial:
    start, end = run.info.start_time, run.info.end_time
    if run.info.status in FAILURES:
        trial = Trial.of(config, FAILED)
        notes: tuple[str, ...] = (f"MLflow run {run.info.run_id} was {run.info.status}",)
    else:
        trial = Trial.of(config, run.data.metrics[metric])
        notes = trial.notes
    try:
        seconds = None if start is None or end is None else (end - start) / 1000
        return replace(trial, seconds=seconds, notes=notes)
    except (TypeError, ValueError, OverflowError) as error:
        times = f"{start!r:.40} and {end!r:.40}"
        raise InputError(f"MLflow run {run.info.run_id}: expected a start and an end, got {times}: {error}") from error
