"""`read_runs`: detect what a source is, and read its runs.

These sources are understood:

    an optuna.Study; an Optuna storage, its URL (``sqlite:///...``, ``postgresql://...``), a SQLite file with studies
    a pandas DataFrame; a .csv, .jsonl or .json file, plain or .gz                 `storage.importers.trial_tables`
    a file that `write_runs` wrote                                                 `storage.formats.json_lines`
    SMAC3's runhistory.json, or the folder it is in                                `storage.importers.smac`
    an MLflow folder (mlruns) or database; ``mlflow:`` and a tracking URI          `storage.importers.mlflow`
    an export of Weights & Biases; ``wandb:`` and entity/project                   `storage.importers.wandb`
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from recollect._files import read_text
from recollect._text import name_list
from recollect._warnings import warn_caller
from recollect.errors import InputError
from recollect.runs.run import Direction, Run, sign_of
from recollect.storage.formats.csv_columns import csv_rows
from recollect.storage.formats.json_lines import MARK, from_lines, json_objects, parse_json
from recollect.storage.importers import ImportOptions, ImportResult
from recollect.storage.importers.mlflow import is_folder, read_tracking
from recollect.storage.importers.optuna import is_optuna, read_storage, read_study
from recollect.storage.importers.smac import RUN_HISTORY, is_history, read_history
from recollect.storage.importers.trial_tables import read_csv, read_frame, read_json_lines, read_json_rows
from recollect.storage.importers.wandb import is_export, is_table, read_export, read_project, read_table
from recollect.storage.open import JOURNAL, URL, Store, sqlite_address, without_password
from recollect.storage.run_reading import StoredRun
from recollect.storage.sqlite_file import read_only_connection, table_names
from recollect.storage.studies import DEFAULT_PROBLEM

KINDS = ("csv", "jsonl", "json", "smac", "optuna", "mlflow", "wandb")
NAMED_SOURCES = (
    "a .csv, .jsonl or .json file (also .gz), SMAC3's runhistory.json, a .db file of Optuna or MLflow, an MLflow "
    "folder (mlruns), the URL of an Optuna storage (sqlite:///..., postgresql://...), 'mlflow:' and a tracking URI, or "
    "'wandb:' and entity/project"
)
SOURCES = f"an optuna.Study, an Optuna storage, a pandas DataFrame, or the name of one of: {NAMED_SOURCES}"
MLFLOW, WANDB = "mlflow:", "wandb:"
SQLITE_MAGIC = b"SQLite format 3\0"
Reader = Callable[[ImportOptions], ImportResult]


def read_runs(
    source: Any,
    *,
    task: str | None = None,
    kind: str | None = None,
    value: str | None = None,
    direction: Direction | None = None,
    columns: Mapping[str, str] | None = None,
) -> list[Run]:
    """Read the runs of a source.

    Trials that are left out, because they are still running or have no value, are counted in a warning.

    Args:
        source: An `optuna.Study`, an Optuna storage or its URL, a pandas DataFrame, a .csv, .jsonl or .json file (also
            .gz), SMAC3's runhistory.json, an MLflow folder or database, ``"mlflow:"`` followed by a tracking URI, an
            export of Weights & Biases, or ``"wandb:"`` followed by entity/project.
        task: The only task to read where a source names several (tasks of a table, studies, experiments, sweeps);
            otherwise the name of the run.
        kind: The format of a file that is not recognised: csv, jsonl, json, smac, optuna, mlflow or wandb.
        value: The column or metric with the value of a trial.
        direction: "minimize" unless the source says otherwise.
        columns: Roles of a table's columns by name: "task", "value", "state", "seconds", "hyperparameter" or "ignore".

    Returns:
        One run per task, study or experiment.

    Raises:
        InputError: The source is not understood, or an option does not fit it.
        StorageError: A storage cannot be read.
        MissingExtraError: A library that reads the source is not installed.

    Examples:
        >>> runs = recollect.read_runs("svm.csv", value="error")
        >>> runs = recollect.read_runs("sqlite:///studies.db", task="iris")
    """
    return _read(source, kind, ImportOptions(task, value, direction, columns or {})).runs


def read_stored_runs(
    source: Any,
    problem: str | None = None,
    *,
    into: Store | None = None,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    **options: Any,
) -> list[StoredRun]:
    """Read the runs of a source like `read_runs`, each with its problem: ``problem``, or its own if None.

    Of a memory that has ``problem``, only the runs of this problem are read. A memory is not imported ``into`` itself.
    """
    result = _read(source, kind, ImportOptions(**options, columns=columns or {}, problem=problem, into=into))
    problems = result.problems or [None] * len(result.runs)
    labels = result.labels or [((), "")] * len(result.runs)
    stored_runs = [
        StoredRun((own or DEFAULT_PROBLEM) if problem is None else problem, run, *described)
        for run, own, described in zip(result.runs, problems, labels, strict=True)
    ]
    for (name, task), count in Counter((stored.problem, stored.run.task) for stored in stored_runs).items():
        if count > 1:
            raise InputError(
                f"{_source_name(source)}: {count} runs would become task {task!r} of problem {name!r}; "
                "nothing was imported: import them one at a time, under different problems"
            )
    return stored_runs


def _read(source: Any, kind: str | None, options: ImportOptions) -> ImportResult:
    if options.direction is not None:
        sign_of(options.direction)
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    result = _reader(source, kind)(options)
    if left_out := ", ".join(f"{what} ({count})" for what, count in result.skipped.items() if count):
        warn_caller(f"{_source_name(source)}: left out {left_out}")
    return result


def _source_name(source: Any) -> str:
    return without_password(os.fspath(source)) if isinstance(source, str | os.PathLike) else type(source).__name__


def _reader(source: Any, kind: str | None) -> Reader:
    if is_optuna(source, "study", "Study"):
        return partial(read_study, source)
    if is_optuna(source, "storages", "BaseStorage"):
        return partial(read_storage, source)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return partial(read_frame, source)
    if isinstance(source, str | os.PathLike) and isinstance(os.fspath(source), str):
        return _reader_by_name(os.fspath(source), kind)
    raise InputError(f"expected {SOURCES}; got {source!r:.80} ({type(source).__name__})")


def _reader_by_name(name: str, kind: str | None) -> Reader:
    if name.startswith(MLFLOW):
        return partial(read_tracking, name.removeprefix(MLFLOW))
    if name.startswith(WANDB):
        return partial(read_project, name.removeprefix(WANDB))
    if URL.match(name) or name.startswith(JOURNAL):
        return partial(read_tracking if kind == "mlflow" else read_storage, name)
    path = Path(name).expanduser()
    if not name.strip() or not path.exists():
        raise InputError(f"{name!r}: there is no such file; expected {NAMED_SOURCES}")
    return _readers(path)[kind or _kind(path)]


def _readers(path: Path) -> dict[str, Reader]:
    """Return the reader of a path for each kind."""
    history = path / RUN_HISTORY if path.is_dir() else path
    address = path.absolute().as_uri() if path.is_dir() else sqlite_address(path)
    return {
        "csv": partial(read_csv, path),
        "jsonl": partial(_read_lines, path),
        "json": partial(_read_json, path),
        "smac": partial(read_history, history),
        "optuna": partial(read_storage, sqlite_address(path)),
        "mlflow": partial(read_tracking, address),
        "wandb": partial(_read_wandb, path),
    }


def _kind(path: Path) -> str:
    if path.is_dir():
        if (path / RUN_HISTORY).is_file():
            return "smac"
        if is_folder(path):
            return "mlflow"
        raise InputError(f"{path}: a folder with neither MLflow's experiments nor a {RUN_HISTORY} of SMAC3 in it")
    with path.open("rb") as file:
        start = file.read(len(SQLITE_MAGIC))
    if not start:
        raise InputError(f"{path}: the file is empty")
    if start == SQLITE_MAGIC:
        return _kind_of_database(path)
    if path.name == RUN_HISTORY:
        return "smac"
    ending = Path(path.name.removesuffix(".gz")).suffix.removeprefix(".").lower()
    if ending == "csv":
        return "wandb" if is_table(next(csv_rows(str(path), read_text(path)), (0, []))[1]) else "csv"
    if ending in ("jsonl", "json"):
        return ending
    raise InputError(
        f"{path}: unknown kind of file: expected {NAMED_SOURCES}; "
        "rename a file that is one of these, or name its kind with kind= (--kind)"
    )


def _kind_of_database(path: Path) -> str:
    try:
        with closing(read_only_connection(path)) as connection:
            tables = table_names(connection)
    except sqlite3.Error as error:
        raise InputError(f"{path}: the SQLite file cannot be read: {error}") from error
    for kind, table in (("optuna", "studies"), ("mlflow", "experiments")):
        if table in tables:
            return kind
    raise InputError(f"{path}: expected a database of Optuna or MLflow, got the tables {name_list(sorted(tables))}")


def _read_lines(path: Path, options: ImportOptions) -> ImportResult:
    where = str(path)
    lines = list(json_objects(where, read_text(path)))
    if is_export([lines[0][1]]):
        return read_export(path, options, [line for _, line in lines])
    if MARK not in lines[0][1]:
        return read_json_lines(path, lines, options)
    options.refuse_columns(where, "the file says what it holds")
    stored = from_lines(where, iter(lines))
    if options.problem is not None:
        stored = [entry for entry in stored if entry.problem == options.problem] or stored
    options.check_task(where, [entry.run.task for entry in stored])
    for entry in stored:
        options.direction_for(where, entry.run.direction)
    wanted = [entry for entry in stored if options.includes(entry.run.task)]
    labels = [(entry.tags, entry.note) for entry in wanted]
    return ImportResult([entry.run for entry in wanted], {}, [entry.problem for entry in wanted], labels)


def _read_json(path: Path, options: ImportOptions) -> ImportResult:
    content = parse_json(str(path), read_text(path))
    read = read_history if is_history(content) else read_export if is_export(content) else read_json_rows
    return read(path, options, content)


def _read_wandb(path: Path, options: ImportOptions) -> ImportResult:
    if path.name.removesuffix(".gz").endswith(".csv"):
        return read_table(path, options)
    if path.name.removesuffix(".gz").endswith(".jsonl"):
        return read_export(path, options, [line for _, line in json_objects(str(path), read_text(path))])
    return read_export(path, options, parse_json(str(path), read_text(path)))
