"""Past runs from elsewhere, read into `recollect.Run` values.

`read_runs` recognises what it is given:

    an optuna.Study; an Optuna storage, its URL (``sqlite:///...``, ``postgresql://...``), a SQLite file with studies
    a pandas DataFrame; a .csv, .jsonl or .json file, plain or .gz                 `recollect.history.importers.tables`
    a file that `write_runs` wrote                                                 `recollect.history.lines`
    SMAC3's runhistory.json, or the folder it is in                                `recollect.history.importers.smac`
    an MLflow folder (mlruns) or database; ``mlflow:`` and a tracking URI          `recollect.history.importers.mlflow`
"""

from __future__ import annotations

import os
import sqlite3
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from recollect.errors import InputError, RecollectWarning
from recollect.history.importers.asked import Asked, Found
from recollect.history.importers.mlflow import is_folder, read_tracking
from recollect.history.importers.optuna import is_storage, is_study, read_storage, read_study
from recollect.history.importers.smac import RUN_HISTORY, is_history, read_history
from recollect.history.importers.tables import read_csv, read_frame, read_json_lines, read_json_rows
from recollect.history.importers.texts import as_json, objects_of, text_of
from recollect.history.lines import from_lines, is_head
from recollect.history.memory import DEFAULT_PROBLEM, Kept
from recollect.history.run import Direction, Run, sign_of
from recollect.history.storage import URL, Store, shown

KINDS = ("csv", "jsonl", "json", "smac", "optuna", "mlflow")
NAMED = (
    "a .csv, .jsonl or .json file (also .gz), SMAC3's runhistory.json, a .db file of Optuna or MLflow, an MLflow "
    "folder (mlruns), the URL of an Optuna storage (sqlite:///..., postgresql://...), or 'mlflow:' and a tracking URI"
)
UNDERSTOOD = f"an optuna.Study, an Optuna storage, a pandas DataFrame, or the name of one of: {NAMED}"
MLFLOW, JOURNAL = "mlflow:", "journal:"
SQLITE = b"SQLite format 3\0"
Reader = Callable[[Asked], Found]


def read_runs(
    source: Any,
    *,
    task: str | None = None,
    kind: str | None = None,
    value: str | None = None,
    direction: Direction | None = None,
    columns: Mapping[str, str] | None = None,
) -> list[Run]:
    """Return the runs in a source; what is left out (still running, without a value) is counted in a warning.

    task: the one to read where a source names several (tasks of a table, studies, experiments), otherwise the name of
    the run. kind: what a file is when its name does not tell: csv, jsonl, json, smac, optuna or mlflow. value: the
    column or metric with the value. direction: "minimize" unless the source says otherwise. columns: roles of a table's
    columns by name: "task", "value", "state", "seconds", "hyperparameter" or "ignore".
    """
    return _found(source, kind, Asked(task, value, direction, columns or {})).runs


def read_kept(
    source: Any,
    problem: str | None = None,
    *,
    into: Store | None = None,
    kind: str | None = None,
    columns: Mapping[str, str] | None = None,
    **asked: Any,
) -> list[Kept]:
    """Return the runs in a source, as `read_runs` does, each with the problem it is to be kept under.

    Of a memory, runs come from ``problem`` if the memory has it, from all problems if not. They are to be kept under
    ``problem``, or if there is None each under its own. ``into`` is where: a memory is not read into itself.
    """
    found = _found(source, kind, Asked(**asked, columns=columns or {}, problem=problem, into=into))
    own = found.problems or [None] * len(found.runs)
    kept = [
        Kept((its or DEFAULT_PROBLEM) if problem is None else problem, run)
        for run, its in zip(found.runs, own, strict=True)
    ]
    places = Counter((each.problem, each.run.task) for each in kept)
    for (name, task), count in places.items():
        if count > 1:
            raise InputError(
                f"{_called(source)}: {count} runs would become task {task!r} of problem {name!r}; "
                "nothing was imported: import them one at a time, under different problems"
            )
    return kept


def _found(source: Any, kind: str | None, asked: Asked) -> Found:
    if asked.direction is not None:
        sign_of(asked.direction)
    if kind is not None and kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    found = _reader(source, kind)(asked)
    if left_out := found.left_out():
        warnings.warn(f"{_called(source)}: left out {left_out}", RecollectWarning, stacklevel=3)
    return found


def _called(source: Any) -> str:
    return shown(os.fspath(source)) if isinstance(source, str | os.PathLike) else type(source).__name__


def _reader(source: Any, kind: str | None) -> Reader:
    if is_study(source):
        return partial(read_study, source)
    if is_storage(source):
        return partial(read_storage, source)
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return partial(read_frame, source)
    if isinstance(source, str | os.PathLike) and isinstance(os.fspath(source), str):
        return _named(os.fspath(source), kind)
    raise InputError(f"expected {UNDERSTOOD}; got {source!r:.80} ({type(source).__name__})")


def _named(name: str, kind: str | None) -> Reader:
    if name.startswith(MLFLOW):
        return partial(read_tracking, name.removeprefix(MLFLOW))
    if URL.match(name) or name.startswith(JOURNAL):
        return partial(read_tracking if kind == "mlflow" else read_storage, name)
    path = Path(name).expanduser()
    if not name.strip() or not path.exists():
        raise InputError(f"{name!r}: there is no such file; expected {NAMED}")
    return _kinds(path)[kind or _kind(path)]


def _kinds(path: Path) -> dict[str, Reader]:
    """Return what reads a path, by kind."""
    history = path / RUN_HISTORY if path.is_dir() else path
    address = path.absolute().as_uri() if path.is_dir() else f"sqlite:///{path.absolute()}"
    return {
        "csv": partial(read_csv, path),
        "jsonl": partial(_read_lines, path),
        "json": partial(_read_json, path),
        "smac": partial(read_history, history),
        "optuna": partial(read_storage, f"sqlite:///{path.absolute()}"),
        "mlflow": partial(read_tracking, address),
    }


def _kind(path: Path) -> str:
    if path.is_dir():
        return _kind_of_folder(path)
    with path.open("rb") as file:
        start = file.read(len(SQLITE))
    if not start:
        raise InputError(f"{path}: the file is empty")
    if start == SQLITE:
        return _kind_of_database(path)
    if path.name == RUN_HISTORY:
        return "smac"
    ending = Path(path.name.removesuffix(".gz")).suffix.removeprefix(".").lower()
    if ending in ("csv", "jsonl", "json"):
        return ending
    raise InputError(
        f"{path}: not recognised: expected {NAMED}; "
        "rename a file that is one of these, or in Python say with kind= which"
    )


def _kind_of_folder(path: Path) -> str:
    if (path / RUN_HISTORY).is_file():
        return "smac"
    if is_folder(path):
        return "mlflow"
    raise InputError(f"{path}: a folder with neither MLflow's experiments nor a {RUN_HISTORY} of SMAC3 in it")


def _kind_of_database(path: Path) -> str:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
    except sqlite3.Error as error:
        raise InputError(f"{path}: the SQLite file cannot be read: {error}") from error
    for kind, own in (("optuna", "studies"), ("mlflow", "experiments")):
        if own in tables:
            return kind
    listed = ", ".join(sorted(tables)[:8]) or "none"
    raise InputError(f"{path}: expected a database of Optuna or MLflow, its tables are: {listed}")


def _read_lines(path: Path, asked: Asked) -> Found:
    where = str(path)
    lines = list(objects_of(where, text_of(path)))
    if not is_head(lines[0][1]):
        return read_json_lines(path, lines, asked)
    asked.refuse_columns(where, "the file says what it holds")
    runs = from_lines(where, iter(lines))
    asked.check_task(where, [run.task for run in runs])
    for run in runs:
        asked.way(where, run.direction)
    return Found([run for run in runs if asked.wants(run.task)])


def _read_json(path: Path, asked: Asked) -> Found:
    content = as_json(str(path), text_of(path))
    read = read_history if is_history(content) else read_json_rows
    return read(path, asked, content)
