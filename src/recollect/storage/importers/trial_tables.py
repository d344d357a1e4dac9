"""Tables of trials, one row per trial: CSV files, JSON lines, a JSON list of objects, pandas DataFrames.

One column holds the value. Columns named task, state (ok, failed, pruned, running) and seconds have these roles; every
other column is a hyperparameter, inactive where it is empty. A row without a value is a failed trial. The option
``columns`` assigns other roles by name: "task", "value", "state", "seconds", "hyperparameter" or "ignore".

Each task is one run, in the order in which the tasks first appear. Cells of CSV files are text and get their types
by the rules of `storage.formats.csv_columns`, over all rows of the file.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recollect._files import read_text
from recollect.errors import InputError
from recollect.numerics.arrays import native
from recollect.runs.run import Config, Run, State, Trial
from recollect.storage.formats.csv_columns import csv_rows, optional_number, typed_column
from recollect.storage.formats.json_lines import require_object
from recollect.storage.importers import ImportOptions, ImportResult

SPECIAL_ROLES = ("task", "value", "state", "seconds")
ROLES = (*SPECIAL_ROLES, "hyperparameter", "ignore")
RUNNING = "running"
STATES = ("", RUNNING, *(state.value for state in State))


@dataclass(frozen=True, slots=True, eq=False)
class TrialTable:
    """Columns of equal length; None is an empty cell."""

    name: str  # of the source, as messages show it
    default_task: str  # of the run if no column holds it
    columns: Mapping[str, Sequence[Any]]
    place: Callable[[int], str]  # where a row is, in words
    text: bool = False  # whether cells are still text

    @property
    def rows(self) -> int:
        """Count the rows."""
        return len(next(iter(self.columns.values()), ()))


def read_csv(path: Path, options: ImportOptions) -> ImportResult:
    """Read a CSV file, plain or gzipped."""
    return runs_of(csv_table(str(path), read_text(path), stem(path)), options)


def csv_table(where: str, text: str, default_task: str) -> TrialTable:
    """Return the table in a CSV text; InputError with the line for one that is not a table."""
    (first, header), *body = csv_rows(where, text)
    names = [name.strip() for name in header]
    _check_names(f"{where}, line {first}", names)
    lines = [line for line, _ in body]
    columns = {name: [row[number] for _, row in body] for number, name in enumerate(names)}
    return TrialTable(where, default_task, columns, lambda number: f"line {lines[number]}", text=True)


def read_json_rows(path: Path, options: ImportOptions, content: Any) -> ImportResult:
    """Read the content of a JSON file: a list of flat objects, one per trial."""
    if not isinstance(content, list):
        raise InputError(f"{path}: expected a list of objects, one per trial, or a runhistory of SMAC3")
    places = [f"entry {number}" for number in range(len(content))]
    rows = [require_object(f"{path}, {place}", row) for place, row in zip(places, content, strict=True)]
    return runs_of(_from_objects(path, rows, places), options)


def read_json_lines(path: Path, lines: Sequence[tuple[str, dict[str, Any]]], options: ImportOptions) -> ImportResult:
    """Read JSON lines, given with their places: one flat object per trial."""
    places = [place.removeprefix(f"{path}, ") for place, _ in lines]
    return runs_of(_from_objects(path, [row for _, row in lines], places), options)


def read_frame(frame: Any, options: ImportOptions) -> ImportResult:
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
    return runs_of(TrialTable(name, "", columns, lambda number: f"row {number}"), options)


def stem(path: Path) -> str:
    """Return the name of a file without its extensions."""
    return Path(path.name.removesuffix(".gz")).stem


def runs_of(table: TrialTable, options: ImportOptions) -> ImportResult:
    """Return the runs in a table."""
    if not table.rows:
        raise InputError(f"{table.name}: expected at least one row, got none")
    roles, hyperparameters = _roles(table, options)
    tasks = _tasks(table, roles.get("task"), options)
    direction = options.direction_for(table.name)
    configs = _configs(table, hyperparameters)
    trials_by_task: dict[str, list[Trial]] = {}
    running = 0
    for number, task in enumerate(tasks):
        if "task" in roles and not options.includes(task):
            continue
        trial = _trial(table, roles, number, configs[number])
        running += trial is None
        if trial is not None:
            trials_by_task.setdefault(task, []).append(trial)
    runs = [Run(task, trials=trials, direction=direction) for task, trials in trials_by_task.items()]
    return ImportResult(runs, {"rows that are still running": running})


def _from_objects(path: Path, rows: Sequence[Mapping[str, Any]], places: Sequence[str]) -> TrialTable:
    names = list(dict.fromkeys(name for row in rows for name in row))
    _check_names(str(path), names)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return TrialTable(str(path), stem(path), columns, lambda number: places[number])


def _plain(table: TrialTable, name: str) -> list[Any]:
    """Return the cells of a hyperparameter as plain Python values, nan as None; InputError for other types."""
    cells = [native(cell) for cell in table.columns[name]]
    for number, cell in enumerate(cells):
        if cell is not None and type(cell) not in (str, int, float, bool):
            raise InputError(
                f"{table.name}, {table.place(number)}, column {name!r}: expected text, a number or a boolean, "
                f"got {str(cell)[:60]!r} ({type(cell).__name__})"
            )
    return [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]


def _check_names(where: str, names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        if not name.strip():
            raise InputError(
                f"{where}: column {number + 1} has no name (pandas writes its index like this; use to_csv(index=False))"
            )
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{where}: the column {name!r} occurs twice")


def _roles(table: TrialTable, options: ImportOptions) -> tuple[dict[str, str], list[str]]:
    """Return the column of each special role that is filled, and the columns of hyperparameters."""
    roles = {**options.columns, **({} if options.value is None else {options.value: "value"})}
    for name, role in roles.items():
        if name not in table.columns:
            raise InputError(f"{table.name}: there is no column {name!r}, only {', '.join(table.columns)}")
        if role not in ROLES:
            raise InputError(f"columns: the role of {name!r} must be one of {', '.join(ROLES)}, got {role!r}")
        if role in SPECIAL_ROLES and list(roles.values()).count(role) > 1:
            raise InputError(f"columns: the role {role!r} is given to more than one column")
    special = {role: role for role in SPECIAL_ROLES if role in table.columns and role not in roles}
    special |= {role: name for name, role in roles.items() if role in SPECIAL_ROLES}
    if "value" not in special:
        raise InputError(
            f"{table.name}: there is no column 'value', only {', '.join(table.columns)}: "
            "name the one to use with value= (--value)"
        )
    taken = {*special.values(), *(name for name, role in roles.items() if role == "ignore")}
    hyperparameters = [name for name in table.columns if name not in taken]
    if not hyperparameters:
        raise InputError(f"{table.name}: expected columns of hyperparameters, got only {', '.join(table.columns)}")
    return special, hyperparameters


def _tasks(table: TrialTable, column: str | None, options: ImportOptions) -> list[str]:
    if column is None:
        return [table.default_task if options.task is None else options.task] * table.rows
    tasks = ["" if cell is None else str(cell) for cell in table.columns[column]]
    if "" in tasks:
        raise InputError(f"{table.name}, {table.place(tasks.index(''))}, column {column!r}: the task is missing")
    options.check_task(table.name, tasks)
    return tasks


def _configs(table: TrialTable, names: Sequence[str]) -> list[Config]:
    columns = [(name, typed_column(table.columns[name]) if table.text else _plain(table, name)) for name in names]
    return [{name: column[n] for name, column in columns if column[n] is not None} for n in range(table.rows)]


def _trial(table: TrialTable, roles: Mapping[str, str], number: int, config: Config) -> Trial | None:
    """Return the trial of a row; None for one that is still running."""

    def cell(role: str) -> tuple[Any, str]:
        name = roles.get(role)
        where = f"{table.name}, {table.place(number)}, column {name!r}"
        return (None if name is None else table.columns[name][number]), where

    state, where = cell("state")
    word = "" if state is None else str(state).strip().lower()
    if word not in STATES:
        raise InputError(f"{where}: expected ok, failed, pruned or running, got {state!r}")
    if word == RUNNING:
        return None
    value = optional_number(*cell("value"))
    if word in ("", State.OK.value):
        trial = Trial.of(config, value)
    else:
        notes = () if value is None else (f"{word}, with the value {value!r}",)
        trial = Trial(config, None, State(word), notes=notes)
    content, where = cell("seconds")
    seconds = optional_number(content, where)
    try:
        return replace(trial, seconds=seconds)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
