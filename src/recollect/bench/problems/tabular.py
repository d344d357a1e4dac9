"""Tabular benchmarks: every task is a list of configurations with the error of each; they may come from a CSV file.

Only listed configurations can be evaluated. They are found by the bytes of their encoded rows, hence exactly; a
configuration in the very form in which it is listed is found without encoding it. The message for any other names the
nearest one.

Notation: X (m, d) the encoded rows of a table, y (m,) their errors. Best and worst are the smallest and largest y.

A CSV file (plain or .gz) has the columns task, hyperparameters..., error. Without a search space, one is inferred from
the distinct configurations of the file, column by column:

- integer: every cell is a whole number (``12``, not ``12.0``). float: every cell is a finite number. categorical:
  anything else; the choices are the texts, sorted. A column with a single value is a constant.
- range and log scale: by the rules of `recollect.space.inference`.
- an empty cell: the hyperparameter is inactive. Its condition is inferred if its activity is a function of one
  categorical column (the first such in the file; it must itself be active wherever the hyperparameter is, and in more
  places). Otherwise InputError asks for a space.

Then cells become values of their hyperparameters, choices by their text. Configurations are the same if their encodings
are, whatever their text.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from recollect._files import read_text
from recollect.bench.benchmark import About, Benchmark, Task
from recollect.bench.problems.forest_benchmark import CSV_SETTINGS, ForestBuild, forest_benchmark
from recollect.errors import ConfigError, InputError, SpaceError
from recollect.numerics.arrays import FloatArray, row_keys
from recollect.runs.run import Config
from recollect.space.columns import Choices, SpaceColumn, Steps
from recollect.space.inference import infer_notation, infer_parent
from recollect.space.space import Space, SpaceLike, compile_space
from recollect.storage.formats.csv_columns import INTEGER, csv_rows, finite_number, parse_float

if TYPE_CHECKING:
    from ConfigSpace.hyperparameters import Hyperparameter

Mode = Literal["table", "forest"]
Cells = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ConfigurationTable:
    """Configurations that can be evaluated, their encodings X (m, d), and their positions by row and by form."""

    space: Space
    configs: tuple[Config, ...]
    X: FloatArray
    by_row: Mapping[bytes, int]
    by_form: Mapping[Hashable, int]

    def position(self, config: Mapping[str, Any], task: str) -> int:
        """Return the position of a configuration."""
        try:
            position = self.by_form.get(_form(config), -1)
        except TypeError:  # a value that cannot be hashed; encoding raises the error for it
            position = -1
        return position if position >= 0 else self.positions(self.space.encode([config]), task)[0]

    def positions(self, X: npt.ArrayLike, task: str) -> list[int]:
        """Return the positions of encoded points; InputError for the first that is not listed."""
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != len(self.space.names):
            raise InputError(f"expected encoded points of shape (m, {len(self.space.names)}), got shape {points.shape}")
        positions = [self.by_row.get(key, -1) for key in row_keys(points)]
        if -1 in positions:
            raise InputError(self._not_listed(points[positions.index(-1)], task))
        return positions

    def _not_listed(self, x: FloatArray, task: str) -> str:
        try:
            point = str(self.space.decode(x[None, :])[0])
        except InputError:  # a code that belongs to no configuration
            point = f"the encoded point {x.tolist()}"
        nearest = self.configs[int(distances(self.space, self.X, x).argmin())]
        table = f"task {task!r} is a table of {len(self.configs)} configurations"
        return f"{table}, and {point} is not among them; the nearest is {nearest}"


def configuration_table(space: Space, configs: Sequence[Mapping[str, Any]]) -> ConfigurationTable:
    """Return the table of these configurations, which must differ."""
    if not configs:
        raise InputError("a table needs at least one configuration, got none")
    X = space.encode(configs)
    by_row: dict[bytes, int] = {}
    for number, key in enumerate(row_keys(X)):
        first = by_row.setdefault(key, number)
        if first != number:
            raise InputError(f"configurations {first} and {number} of the table are the same: {configs[number]}")
    X.setflags(write=False)
    own = tuple(dict(config) for config in configs)
    return ConfigurationTable(space, own, X, by_row, {_form(config): number for number, config in enumerate(own)})


def shared_table(
    name: str, space: Space, *, configs: Sequence[Mapping[str, Any]], errors: Mapping[str, npt.ArrayLike], about: About
) -> Benchmark:
    """Return a benchmark whose tasks share ``configs`` (m); ``errors`` holds (m,) values for every task."""
    table = configuration_table(space, configs)
    values = _checked_errors(name, {task: (len(table.configs), y) for task, y in errors.items()})
    return Benchmark(name, space, tuple(values), table.configs, about, lambda task: _task(task, table, values[task]))


def task_tables(
    name: str, space: Space, *, tables: Mapping[str, tuple[Sequence[Mapping[str, Any]], npt.ArrayLike]], about: About
) -> Benchmark:
    """Return a benchmark whose tasks have a table each: the configurations (m) and their errors (m,).

    If all tasks list the same configurations in the same order, they share one table.
    """
    first = next((configs for configs, _ in tables.values()), ())
    if all(configs == first for configs, _ in tables.values()):
        errors = {task: y for task, (_, y) in tables.items()}
        return shared_table(name, space, configs=first, errors=errors, about=about)
    values = _checked_errors(name, {task: (len(configs), y) for task, (configs, y) in tables.items()})

    def create(task: str) -> Task:
        return _task(task, configuration_table(space, tables[task][0]), values[task])

    return Benchmark(name, space, tuple(values), None, about, create)


def encode_rows(space: Space, configs: Sequence[Config], where: Callable[[int], str]) -> FloatArray:
    """Return the encodings (m, d) of configurations; InputError with ``where(number)`` for the first invalid one."""
    try:
        return space.encode(configs)
    except ConfigError:
        for number, config in enumerate(configs):  # once more, one by one, to find it
            try:
                space.encode([config])
            except ConfigError as error:
                raise InputError(f"{where(number)}: {error.reason}") from error
        raise


def distances(space: Space, X: FloatArray, x: FloatArray) -> FloatArray:
    """Return the distances of the rows X (m, d) from x (d,), summed over the columns.

    Numbers differ by the difference of their codes; different choices, and a hyperparameter that is active on one side
    only, by 1.
    """
    both = np.isnan(X) & np.isnan(x)
    apart = np.where(both, 0.0, np.abs(X - x))
    apart = np.where(np.isnan(apart) | (space.categorical & (apart > 0)), 1.0, apart)
    return np.asarray(apart.sum(axis=1))


def _form(config: Mapping[str, Any]) -> Hashable:
    """Return a key for the exact form of a configuration, in which True and 1 differ."""
    return tuple(config.items()), tuple(map(type, config.values()))


def _task(name: str, table: ConfigurationTable, y: FloatArray) -> Task:
    def evaluate(config: Mapping[str, Any]) -> float:
        return float(y[table.position(config, name)])

    def evaluate_many(X: FloatArray) -> FloatArray:
        return y[np.array(table.positions(X, name), dtype=np.intp)]

    return Task(name, evaluate, evaluate_many, float(y.min()), float(y.max()), table.configs)


def _checked_errors(name: str, errors: Mapping[str, tuple[int, npt.ArrayLike]]) -> dict[str, FloatArray]:
    """Return the errors of every task, given with the number of its configurations, as arrays."""
    if not errors:
        raise InputError(f"benchmark {name!r} needs at least one task, got none")
    checked = {}
    for task, (count, y) in errors.items():
        values: FloatArray = np.array(y, dtype=np.float64)
        if values.shape != (count,):
            raise InputError(f"task {task!r}: expected {count} errors, one for every configuration, got {values.shape}")
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise InputError(f"task {task!r}, configuration {bad[0]}: expected a finite error, got {values[bad[0]]}")
        values.setflags(write=False)
        checked[task] = values
    return checked


class MeasuredRow(NamedTuple):
    """A row of the file: the number of its configuration, its error, and its line."""

    config: int
    error: float
    line: int


@dataclass(frozen=True, slots=True, eq=False)
class CsvTable:
    """The file as text: names of the hyperparameters, distinct configurations with their numbers, rows by task."""

    path: Path
    names: Cells
    configs: Mapping[Cells, int]
    rows: Mapping[str, list[MeasuredRow]]

    def where(self, number: int) -> str:
        """Return the file and the first line of a configuration, for messages."""
        line = min(row.line for rows in self.rows.values() for row in rows if row.config == number)
        return f"{self.path}, line {line}"


def from_table(
    path: str | os.PathLike[str],
    *,
    space: SpaceLike | None = None,
    mode: Mode = "table",
    name: str | None = None,
    jobs: int | None = None,
    build: ForestBuild | None = None,
) -> Benchmark:
    """Return the benchmark in a CSV file with the columns task, hyperparameters..., error.

    Examples:
        >>> benchmark = recollect.bench.from_table("svm.csv")
        >>> recollect.bench.from_table("svm.csv", space={"C": (1e-3, 1e3, "log")}, mode="forest")

    Args:
        path: The file, plain or compressed (``.gz``). An empty cell is an inactive hyperparameter.
        space: The search space, in any form that `recollect.compile_space` understands; None: inferred from the file.
        mode: ``"table"`` evaluates only the listed configurations; ``"forest"`` fits a random forest to every task and
            evaluates the whole space.
        name: Name of the benchmark; None: the file's name.
        jobs: Number of processes that build forests; None: one per core; 0: each is built when its task is first used.
        build: How forests are built; None: with settings for files of any size.

    Returns:
        The benchmark.

    Raises:
        InputError: The file is not such a table, or a configuration is not in the space; with line and reason.
    """
    if mode not in ("table", "forest"):
        raise InputError(f"mode must be 'table' or 'forest', got {mode!r}")
    table = read_table(Path(path))
    compiled = _infer_space(table) if space is None else compile_space(space)
    name = name or table.path.name.removesuffix(".gz").removesuffix(".csv")
    source = str(table.path)
    about = About(f"table {table.path.name}", "", "not stated", source, mode, mode == "table", "error as listed")
    if mode == "table":
        return table_benchmark(name, table, compiled, about)
    X = encode_rows(compiled, _parse_configs(table, compiled), table.where)
    data = {task: (X[[row.config for row in rows]], _errors(rows)) for task, rows in table.rows.items()}
    return forest_benchmark(name, compiled, data, about, jobs=jobs, build=build or ForestBuild(CSV_SETTINGS))


def table_benchmark(name: str, table: CsvTable, space: Space, about: About) -> Benchmark:
    """Return the benchmark of a file's rows; InputError with line and reason for one that is not in the space."""
    configs = _parse_configs(table, space)
    X = encode_rows(space, configs, table.where)
    by_key: dict[bytes, int] = {}
    same = [by_key.setdefault(key, number) for number, key in enumerate(row_keys(X))]
    rows = {task: _distinct_rows(table, task, same) for task in table.rows}
    if len({frozenset(row.config for row in own) for own in rows.values()}) == 1:  # one table for all tasks
        rows = {task: sorted(own) for task, own in rows.items()}
    tables = {task: ([configs[row.config] for row in own], _errors(own)) for task, own in rows.items()}
    return task_tables(name, space, tables=tables, about=about)


def read_table(path: Path, names: Sequence[str] | None = None, error: str = "error") -> CsvTable:
    """Read a file as text; InputError with line and reason if it is not such a table.

    ``names`` are the columns of the hyperparameters (None: all others), ``error`` is the column of the error.
    """
    lines = csv_rows(str(path), read_text(path))
    _, header = next(lines, (1, []))
    names = tuple(name for name in header if name not in ("task", error)) if names is None else tuple(names)
    wrong = [name for name in ("task", *names, error) if header.count(name) != 1]
    if wrong or not names or "" in names:
        reason = f"; {wrong[0]!r} {'comes twice' if header.count(wrong[0]) > 1 else 'is missing'}" if wrong else ""
        expected = f"the columns task, hyperparameters..., {error}"
        raise InputError(f"{path}, line 1: expected {expected}, got {header[:20]}{reason}")
    positions = [header.index(name) for name in names]
    configs: dict[Cells, int] = {}
    rows: dict[str, list[MeasuredRow]] = {}
    for line, cells in lines:
        task = cells[header.index("task")]
        if not task or not task.isprintable():
            raise InputError(f"{path}, line {line}: expected the name of a task on one line, got {task!r}")
        number = configs.setdefault(tuple(cells[position] for position in positions), len(configs))
        value = finite_number(cells[header.index(error)], f"{path}, line {line}", f"a finite number as {error}")
        rows.setdefault(task, []).append(MeasuredRow(number, value, line))
    if not rows:
        raise InputError(f"{path}: expected rows below the header, got none")
    return CsvTable(path, names, configs, rows)


def _infer_space(table: CsvTable) -> Space:
    from ConfigSpace import ConfigurationSpace, EqualsCondition, InCondition

    columns = dict(zip(table.names, zip(*table.configs, strict=True), strict=True))
    hyperparameters = {name: _infer_hyperparameter(name, cells, table.path) for name, cells in columns.items()}
    categoricals = {name: cells for name, cells in columns.items() if not _numerical(cells)}
    space = ConfigurationSpace()
    space.add(*hyperparameters.values())
    for name, cells in columns.items():
        if "" not in cells:
            continue
        others = {parent: values for parent, values in categoricals.items() if parent != name}
        condition = infer_parent([bool(cell) for cell in cells], others, missing="")
        if condition is None:
            reason = "has empty cells, but no categorical column says where it is active"
            raise InputError(f"{table.path}: column {name!r} {reason}; pass a space")
        child, parent, choices = hyperparameters[name], hyperparameters[condition[0]], condition[1]
        one = len(choices) == 1
        space.add(EqualsCondition(child, parent, choices[0]) if one else InCondition(child, parent, choices))
    return compile_space(space)


def _infer_hyperparameter(name: str, cells: Cells, path: Path) -> Hyperparameter[Any, Any]:
    texts = [cell for cell in cells if cell]
    if not texts:
        raise InputError(f"{path}: column {name!r} is empty; leave it out")
    values: list[Any] = sorted(set(texts))
    if _numerical(cells):
        number = int if all(INTEGER.match(text) for text in texts) else float
        values = [number(text) for text in texts]
        if not all(map(math.isfinite, values)):
            raise InputError(f"{path}: column {name!r}: expected finite numbers (an empty cell is an inactive one)")
    try:
        return compile_space({name: infer_notation(values, log_scales=True)}).source[name]
    except SpaceError as error:
        raise InputError(f"{path}: column {name!r}: {error}; pass a space") from error


def _numerical(cells: Cells) -> bool:
    return all(parse_float(cell) is not None for cell in cells if cell)


def _errors(rows: Sequence[MeasuredRow]) -> FloatArray:
    return np.array([row.error for row in rows])


def _distinct_rows(table: CsvTable, task: str, same: Sequence[int]) -> list[MeasuredRow]:
    """Return a task's rows without repetitions; InputError if a configuration has two different errors."""
    distinct: dict[int, MeasuredRow] = {}
    for row in table.rows[task]:
        number = same[row.config]
        first = distinct.setdefault(number, row._replace(config=number))
        if first.error != row.error:
            raise InputError(
                f"{table.path}, line {row.line}: task {task!r} has this configuration in line {first.line} already, "
                f"with the error {first.error}, not {row.error}; keep one (the mean, for example), or use mode='forest'"
            )
    return list(distinct.values())


def _parse_configs(table: CsvTable, space: Space) -> list[Config]:
    """Return the distinct configurations with values as the space has them."""
    columns = dict(zip(space.names, space.columns, strict=True))
    unknown = [name for name in table.names if name not in columns]
    if unknown:
        names = ", ".join(space.names)
        raise InputError(f"{table.path}: column {unknown[0]!r} is not in the space, which has {names}")
    parsers = [_parser(columns[name]) for name in table.names]
    return [
        {name: parse(cell) for name, parse, cell in zip(table.names, parsers, cells, strict=True) if cell}
        for cells in table.configs
    ]


def _parser(column: SpaceColumn) -> Callable[[str], Any]:
    """Return the function that turns a cell into a value; invalid cells stay text, which the space refuses."""
    if isinstance(column, Choices | Steps) and column.choices is not None:
        texts = {str(choice).lower(): choice for choice in column.choices if isinstance(choice, bool)}
        texts |= {str(choice): choice for choice in column.choices}
        numeric = [
            choice for choice in column.choices if isinstance(choice, int | float) and not isinstance(choice, bool)
        ]
        numbers: dict[float | None, Any] = {float(choice): choice for choice in numeric}
        return lambda cell: texts.get(cell, numbers.get(parse_float(cell), cell))
    if isinstance(column, Steps):
        return lambda cell: int(cell) if INTEGER.match(cell) else cell
    return lambda cell: cell if (value := parse_float(cell)) is None else value
