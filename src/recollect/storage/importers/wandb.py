"""Runs of Weights & Biases: from its server, or from an export as JSON or CSV.

Every run is a trial. The sweep that it belongs to is its task; without one its group, and without a group the project
or the file. Its ``config`` has the hyperparameters, nested ones with dots in their names (``optimizer.lr``); lists
become text, and what starts with an underscore is W&B's own. Its ``summary`` has the metrics. Failed, crashed, killed
and preempted runs are failed trials. Runs that are still running, and finished ones without the metric, are left out
and counted.

Three kinds of export are understood:

    JSON or JSON lines    objects with "config" and "summary" (or "summaryMetrics"), and "name", "state", "sweep", ...
    CSV of such objects   the columns "config" and "summary" hold JSON or the text of a Python dict
    CSV of the runs table one column for each hyperparameter and metric, which the file does not tell apart
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from recollect._files import read_text
from recollect.errors import InputError, MissingExtraError, StorageError
from recollect.runs.run import FAILED, Config, Run, Trial
from recollect.storage.formats.csv_columns import csv_rows, optional_number, typed_column
from recollect.storage.formats.json_lines import require_object
from recollect.storage.importers import ImportOptions, ImportResult

SUMMARIES = ("summary", "summaryMetrics", "summary_metrics")
FAILURES, UNFINISHED = ("failed", "crashed", "killed", "preempted"), ("running", "pending", "preempting")
TABLE_COLUMNS = {  # of the runs table, beside hyperparameters and metrics
    *("name", "id", "state", "notes", "user", "tags", "created", "runtime", "sweep", "group", "job type", "updated"),
    *("end time", "hostname", "host", "os", "python version", "gpu count", "gpu type", "cpu count", "commit"),
    *("github", "git", "agent", "description", "created at", "heartbeat", "jobtype", "project", "entity"),
}
TABLE_MARKS = {"created", "runtime", "sweep", "user"}  # one of which is in every runs table, beside name and state
INTERNAL_PREFIXES = ("_", "gradients/", "parameters/", "system/")
OWN_TASK_RUN = "task"  # job type of the run with which our callback sums up a task
PAGE_SIZE = 200


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """One run, wherever it was read."""

    name: str
    state: str
    config: Config
    metrics: Mapping[str, Any]
    sweep: str = ""
    group: str = ""
    job_type: str = ""
    created: str = ""


def is_export(content: Any) -> bool:
    """Whether the content of a JSON file is a list of runs of Weights & Biases."""
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, Mapping) and "config" in first and any(key in first for key in SUMMARIES)


def is_table(header: Iterable[str]) -> bool:
    """Whether the header of a CSV file is one of Weights & Biases."""
    names = [name.strip() for name in header]
    lower = {name.lower() for name in names}
    return {"config", "summary"} <= lower or ({"Name", "State"} <= set(names) and bool(lower & TABLE_MARKS))


def read_project(path: str, options: ImportOptions) -> ImportResult:
    """Read the runs of a project, ``entity/project``, from the server."""
    where = f"Weights & Biases, {path}"
    options.refuse_columns(where, "W&B tells hyperparameters and metrics apart", value=True)
    try:
        wandb = import_module("wandb")
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{where}: reading it needs wandb: pip install 'recollect[wandb]'") from error
    try:
        runs = [_from_server(run) for run in wandb.Api().runs(path, order="+created_at", per_page=PAGE_SIZE)]
    except Exception as error:  # a network, a server and a library raise anything
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise StorageError(f"{where}: {reason}") from error
    return _import(where, runs, path.rpartition("/")[2], options)


def read_export(path: Path, options: ImportOptions, content: Any) -> ImportResult:
    """Read the content of a JSON file, or of JSON lines: a list of runs."""
    where = str(path)
    options.refuse_columns(where, "W&B tells hyperparameters and metrics apart", value=True)
    if not is_export(content):
        raise InputError(f"{where}: expected a list of runs, each with 'config' and 'summary'")
    runs = [_from_object(f"{where}, entry {number}", entry) for number, entry in enumerate(content)]
    return _import(where, runs, Path(path.name.removesuffix(".gz")).stem, options)


def read_table(path: Path, options: ImportOptions) -> ImportResult:
    """Read a CSV file: a column for each hyperparameter and metric, or the columns "config" and "summary"."""
    where = str(path)
    (_, header), *body = csv_rows(where, read_text(path))
    names = [name.strip() for name in header]
    if not body:
        raise InputError(f"{where}: expected at least one run, got none")
    default = Path(path.name.removesuffix(".gz")).stem
    if {"config", "summary"} <= {name.lower() for name in names}:
        options.refuse_columns(where, "W&B tells hyperparameters and metrics apart", value=True)
        rows = [(f"{where}, line {line}", dict(zip(names, cells, strict=True))) for line, cells in body]
        return _import(where, [_from_object(place, row) for place, row in rows], default, options)
    columns = {name: [row[number] for _, row in body] for number, name in enumerate(names) if name}
    return _import(where, _from_columns(where, columns, options), default, options)


def _from_server(run: Any) -> LoggedRun:
    return LoggedRun(
        str(run.name), str(run.state), flat_config(run.config), dict(run.summary_metrics),
        str(run.sweep_name or ""), str(run.group or ""), str(run.job_type or ""), str(run.created_at or ""),
    )  # fmt: skip


def _from_object(place: str, entry: Any) -> LoggedRun:
    fields = {str(key).lower(): value for key, value in require_object(place, entry).items()}
    summary: Any = next((fields[key.lower()] for key in SUMMARIES if key.lower() in fields), {})
    config, metrics = _as_dict(f"{place}, config", fields.get("config")), _as_dict(f"{place}, summary", summary)
    sweep = fields.get("sweep", fields.get("sweepname"))
    named = sweep.get("name", sweep.get("id")) if isinstance(sweep, Mapping) else sweep
    created = fields.get("created_at", fields.get("createdat", fields.get("created")))
    return LoggedRun(
        name=str(fields.get("name", fields.get("id")) or ""),
        state=str(fields.get("state") or "finished"),
        config=flat_config(config),
        metrics=metrics,
        sweep=str(named or ""),
        group=str(fields.get("group") or ""),
        job_type=str(fields.get("job_type", fields.get("jobtype")) or ""),
        created=str(created or ""),
    )


def _from_columns(where: str, columns: Mapping[str, Sequence[str]], options: ImportOptions) -> list[LoggedRun]:
    """Return the runs of a runs table."""
    own = {name.lower(): cells for name, cells in columns.items()}
    if options.value is None or options.value not in columns:
        known = ", ".join(name for name in columns if name.lower() not in TABLE_COLUMNS)
        raise InputError(f"{where}: name the column with the metric with value= (--value), one of: {known}")
    for name, role in options.columns.items():
        if role not in ("hyperparameter", "ignore") or name not in columns:
            raise InputError(f"{where}: columns: expected existing columns to ignore, got {name!r}: {role!r}")
    typed = {
        name: typed_column(cells)
        for name, cells in columns.items()
        if options.columns.get(name) == "hyperparameter"
        or (
            name.lower() not in TABLE_COLUMNS
            and name != options.value
            and options.columns.get(name) != "ignore"
            and not name.startswith(INTERNAL_PREFIXES)
        )
    }
    nothing = [""] * len(columns[options.value])

    def text(number: int, *names: str) -> str:
        return next((own[name][number] for name in names if name in own), nothing[number]).strip()

    return [
        LoggedRun(
            text(number, "name", "id"), text(number, "state") or "finished",
            {name: cells[number] for name, cells in typed.items() if cells[number] is not None},
            {options.value: optional_number(cell, f"{where}, run {number}, column {options.value!r}"),
             "_runtime": optional_number(text(number, "runtime"), f"{where}, run {number}, column 'Runtime'")},
            text(number, "sweep"), text(number, "group"), text(number, "job type", "jobtype"),
            text(number, "created", "created at"),
        )
        for number, cell in enumerate(columns[options.value])
    ]  # fmt: skip


def _as_dict(place: str, content: Any) -> dict[str, Any]:
    """Return a dict that may be given as JSON or as the text of a Python dict."""
    if isinstance(content, str) and content.strip():
        for parse in (json.loads, ast.literal_eval):
            try:
                content = parse(content)
                break
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
    if content is None or content == "":
        return {}
    if not isinstance(content, Mapping):
        raise InputError(f"{place}: expected an object, got {str(content)[:60]!r}")
    return {str(key): value for key, value in content.items()}


def flat_config(config: Mapping[str, Any], prefix: str = "") -> Config:
    """Return a configuration without nesting, W&B's own entries and missing values; lists become text."""
    flat: Config = {}
    for key, entry in config.items():
        if str(key).startswith("_"):
            continue
        raw = isinstance(entry, Mapping) and "value" in entry and entry.keys() <= {"value", "desc"}
        value = entry["value"] if raw else entry
        if isinstance(value, Mapping):
            flat |= flat_config(value, f"{prefix}{key}.")
        elif isinstance(value, bool | int | float | str):
            flat[f"{prefix}{key}"] = value
        elif value is not None:
            flat[f"{prefix}{key}"] = json.dumps(value, default=str)
    return flat


def _import(where: str, runs: Sequence[LoggedRun], default: str, options: ImportOptions) -> ImportResult:
    ours = [run for run in runs if run.job_type != OWN_TASK_RUN or "trials" not in run.metrics]
    if not ours:
        raise InputError(f"{where}: expected runs, there are none")
    if all(run.created for run in ours):
        ours.sort(key=lambda run: run.created)
    named = any(run.sweep or run.group for run in ours)
    tasks = [run.sweep or run.group or (default if named or options.task is None else options.task) for run in ours]
    options.check_task(where, tasks, noun="sweep or group")
    metric, direction = _metric(where, ours, options.value), options.direction_for(where)
    skipped: Counter[str] = Counter()
    trials: dict[str, list[Trial]] = {}
    for run, task in zip(ours, tasks, strict=True):
        if options.includes(task) and (trial := _trial(where, run, metric, skipped)) is not None:
            trials.setdefault(task, []).append(trial)
    return ImportResult([Run(task, trials=own, direction=direction) for task, own in trials.items()], skipped)


def _metric(where: str, runs: Sequence[LoggedRun], wanted: str | None) -> str:
    names = sorted({
        name
        for run in runs
        for name, value in run.metrics.items()
        if not name.startswith("_") and isinstance(value, int | float) and not isinstance(value, bool)
    })  # fmt: skip
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None or all(_lookup(run.metrics, wanted) is None for run in runs):
        problem = "expected a metric" if wanted is None else f"no run has the metric {wanted!r}"
        raise InputError(f"{where}: {problem}; name it with value= (--value), one of: {', '.join(names) or 'none'}")
    return wanted


def _lookup(metrics: Mapping[str, Any], name: str) -> Any:
    """Return a metric; with dots in its name, also one of several values that W&B keeps of it, such as loss.min."""
    if name in metrics:
        return metrics[name]
    head, _, rest = name.rpartition(".")
    inner = _lookup(metrics, head) if head else None
    return inner.get(rest) if isinstance(inner, Mapping) else None


def _trial(where: str, run: LoggedRun, metric: str, skipped: Counter[str]) -> Trial | None:
    """Return a run as a trial, None if it is left out."""
    state, place = run.state.strip().lower(), f"{where}, run {run.name!r}"
    if state in UNFINISHED:
        skipped["runs that are still running"] += 1
        return None
    seconds = optional_number(run.metrics.get("_runtime"), f"{place}, runtime")
    seconds = seconds if seconds is not None and seconds >= 0 else None
    if state in FAILURES:
        return Trial(run.config, None, FAILED, seconds, notes=(f"{state} in Weights & Biases",))
    value = optional_number(_lookup(run.metrics, metric), f"{place}, metric {metric!r}")
    if value is None:
        skipped[f"finished runs without {metric!r}"] += 1
        return None
    trial = Trial.of(run.config, value)
    return Trial(trial.config, trial.value, trial.state, seconds, trial.notes)
