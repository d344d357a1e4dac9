"""Tables of trials, one row a trial: CSV files, JSON lines, a JSON list of objects, pandas DataFrames.

One column holds the value. Columns named task, state (ok, failed, running) and seconds mean what they say; every other
column is a hyperparameter, inactive where it is empty. A row without a value is a failed trial. ``columns`` gives
columns another role, by name: "task", "value", "state", "seconds", "hyperparameter" or "ignore".

Each task is one run, in the order in which the tasks first appear. Cells of CSV files are text and get their types as
`recollect.history.importers.cells` says, over all rows of the file.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from recollect.errors import InputError
from recollect.history.importers.asked import Asked, Found
from recollect.history.importers.cells import as_value, typed
from recollect.history.importers.texts import as_object, text_of
from recollect.history.run import FAILED, Config, Run, Trial

SPECIAL = ("task", "value", "state", "seconds")
ROLES = (*SPECIAL, "hyperparameter", "ignore")
FAILURE, RUNNING = "failed", "running"
STATES = ("", "ok", FAILURE, RUNNING)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Columns of equal length; None is an empty cell. place: where a row is, in words. text: cells are still text."""

    name: str
    default_task: str
    columns: Mapping[str, Sequence[Any]]
    place: Callable[[int], str]
    text: bool = False

    @property
    def rows(self) -> int:
        """Count the rows."""
        return len(next(iter(self.columns.values()), ()))


def read_csv(path: Path, asked: Asked) -> Found:
    """Read a CSV file, plain or gzipped."""
    return runs_of(csv_table(str(path), text_of(path), stem(path)), asked)


def csv_table(where: str, text: str, default_task: str) -> Table:
    """Return the table in a CSV text; InputError with the line for one that is not a table."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(f"{where}, line {reader.line_num}: expected CSV: {error}") from error
    (first, header), body = rows[0], rows[1:]
    names = [name.strip() for name in header]
    _check_names(f"{where}, line {first}", names)
    for line, row in body:
        if len(row) != len(names):
            raise InputError(f"{where}, line {line}: expected {len(names)} cells as in the header, got {len(row)}")
    lines = [line for line, _ in body]
    columns = {name: [row[number] for _, row in body] for number, name in enumerate(names)}
    return Table(where, default_task, columns, lambda number: f"line {lines[number]}", text=True)


def read_json_rows(path: Path, asked: Asked, content: Any) -> Found:
    """Read the content of a JSON file: a list of flat objects, one a trial."""
    if not isinstance(content, list):
        raise InputError(f"{path}: expected a list of objects, one a trial, or a runhistory of SMAC3")
    places = [f"entry {number}" for number in range(len(content))]
    rows = [as_object(f"{path}, {place}", row) for place, row in zip(places, content, strict=True)]
    return runs_of(_from_objects(path, rows, places), asked)


def read_json_lines(path: Path, lines: Sequence[tuple[str, dict[str, Any]]], asked: Asked) -> Found:
    """Read JSON lines, given with their places: a flat object a trial."""
    places = [place.removeprefix(f"{path}, ") for place, _ in lines]
    return runs_of(_from_objects(path, [row for _, row in lines], places), asked)


def read_frame(frame: Any, asked: Asked) -> Found:
    """Read a pandas DataFrame."""
    name, names = "DataFrame", list(frame.columns)
    for column in names:
        if not isinstance(column, str):
            raise InputError(f"{name}: expected columns named by text, got {column!r}")
    _check_names(name, names)
    # Every kind of missing value that pandas has becomes None.
    empty = frame.isna()
    columns = {
        column: [None if none else cell for cell, none in zip(frame[column].tolist(), empty[column], strict=True)]
        for column in names
    }
    return runs_of(Table(name, "", columns, lambda number: f"row {number}"), asked)


def stem(path: Path) -> str:
    """Return a file's name without what says of which kind it is."""
    return Path(path.name.removesuffix(".gz")).stem


def runs_of(table: Table, asked: Asked) -> Found:
    """Return the runs in a table."""
    if not table.rows:
        raise InputError(f"{table.name}: expected at least one row, got none")
    roles, hyperparameters = _roles(table, asked)
    tasks = _tasks(table, roles.get("task"), asked)
    direction = asked.way(table.name)
    configs = _configs(table, hyperparameters)
    found: dict[str, list[Trial]] = {}
    running = 0
    for number, task in enumerate(tasks):
        if "task" in roles and not asked.wants(task):
            continue
        trial = _trial(table, roles, number, configs[number])
        running += trial is None
        if trial is not None:
            found.setdefault(task, []).append(trial)
    runs = [Run(task, trials=trials, direction=direction) for task, trials in found.items()]
    return Found(runs, {"rows that are still running": running})


def _from_objects(path: Path, rows: Sequence[Mapping[str, Any]], places: Sequence[str]) -> Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    _check_names(str(path), names)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return Table(str(path), stem(path), columns, lambda number: places[number])


def _plain(table: Table, name: str) -> list[Any]:
    """Return the cells of a hyperparameter as Python's own values, nan as None; InputError for what is none."""
    cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in table.columns[name]]
    for number, cell in enumerate(cells):
        if cell is not None and type(cell) not in (str, int, float, bool):
            raise InputError(
                f"{table.name}, {table.place(number)}, column {name!r}: expected a text, a number or a truth value, "
                f"got {str(cell)[:60]!r} ({type(cell).__name__})"
            )
    return [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]


def _check_names(where: str, names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        if not name.strip():
            raise InputError(
                f"{where}: column {number + 1} has no name (pandas writes its index so unless told to_csv(index=False))"
            )
        if name in names[:number]:
            raise InputError(f"{where}: the column {name!r} comes twice")


def _roles(table: Table, asked: Asked) -> tuple[dict[str, str], list[str]]:
    """Return the column of each special role that is filled, and the columns of hyperparameters."""
    given = {**asked.columns, **({} if asked.value is None else {asked.value: "value"})}
    for name, role in given.items():
        if name not in table.columns:
            raise InputError(f"{table.name}: there is no column {name!r}, only {', '.join(table.columns)}")
        if role not in ROLES:
            raise InputError(f"columns: the role of {name!r} must be one of {', '.join(ROLES)}, got {role!r}")
        if role in SPECIAL and list(given.values()).count(role) > 1:
            raise InputError(f"columns: the role {role!r} is given to more than one column")
    special = {role: role for role in SPECIAL if role in table.columns and role not in given}
    special |= {role: name for name, role in given.items() if role in SPECIAL}
    if "value" not in special:
        raise InputError(
            f"{table.name}: there is no column 'value', only {', '.join(table.columns)}: "
            "the option value names the one to use"
        )
    taken = {*special.values(), *(name for name, role in given.items() if role == "ignore")}
    hyperparameters = [name for name in table.columns if name not in taken]
    if not hyperparameters:
        raise InputError(f"{table.name}: expected columns of hyperparameters, got only {', '.join(table.columns)}")
    return special, hyperparameters


def _tasks(table: Table, column: str | None, asked: Asked) -> list[str]:
    if column is None:
        return [table.default_task if asked.task is None else asked.task] * table.rows
    tasks = ["" if cell is None else str(cell) for cell in table.columns[column]]
    if "" in tasks:
        raise InputError(f"{table.name}, {table.place(tasks.index(''))}, column {column!r}: the task is missing")
    asked.check_task(table.name, tasks)
    return tasks


def _configs(table: Table, names: Sequence[str]) -> list[Config]:
    columns = [(name, typed(table.columns[name]) if table.text else _plain(table, name)) for name in names]
    return [{name: column[n] for name, column in columns if column[n] is not None} for n in range(table.rows)]


def _trial(table: Table, roles: Mapping[str, str], number: int, config: Config) -> Trial | None:
    """Return the trial of a row; None for one that is still running."""

    def cell(role: str) -> tuple[Any, str]:
        name = roles.get(role)
        where = f"{table.name}, {table.place(number)}, column {name!r}"
        return (None if name is None else table.columns[name][number]), where

    state, where = cell("state")
    word = "" if state is None else str(state).strip().lower()
    if word not in STATES:
        raise InputError(f"{where}: expected ok, failed or running, got {state!r}")
    if word == RUNNING:
        return None
    value = as_value(*cell("value"))
    trial = Trial.of(config, FAILED if word == FAILURE else value)
    notes = trial.notes
    if value is not None and word == FAILURE:
        notes = (f"failed, with the value {value!r}",)
    return replace(trial, seconds=as_value(*cell("seconds")), notes=notes)
