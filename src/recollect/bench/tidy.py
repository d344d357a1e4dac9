"""Tidy tables as text, and the search space that can be read off one.

What is not given is inferred, one column at a time, from the distinct configurations of the file, by these rules:

- integer: every cell is a whole number (``12``, not ``12.0``). float: every cell is a finite number. categorical:
  anything else; the choices are the texts, sorted. One single value makes a constant.
- range: from the smallest to the largest value.
- log scale: all values are positive, the largest is at least 10 times the smallest, and the median lies nearer to the
  middle of the range on a log scale than on a linear one.
- an empty cell: the hyperparameter is inactive. Its condition is inferred where activity is a function of one
  categorical column (the first such in the file; it must itself be active wherever the hyperparameter is, and in more
  places). Otherwise InputError asks for a space.
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from recollect.errors import InputError, SpaceError
from recollect.space.space import Space, compile_space

if TYPE_CHECKING:
    from ConfigSpace.hyperparameters import Hyperparameter

Cells = tuple[str, ...]
Result = tuple[int, float, int]  # number of the configuration, error, line
WHOLE = re.compile(r"[+-]?\d+\Z", re.ASCII)
LOG_RATIO = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Tidy:
    """A table as text: names of the hyperparameters, distinct configurations with their numbers, results by task."""

    path: Path
    names: Cells
    configs: Mapping[Cells, int]
    results: Mapping[str, list[Result]]


def read_tidy(path: Path) -> Tidy:
    """Read a tidy table as text; InputError with line and reason for one that is not."""
    lines = _lines(path)
    _, header = next(lines, (1, []))
    names = _checked_header(path, header)
    task_at, error_at = header.index("task"), header.index("error")
    columns = [position for position in range(len(header)) if position not in (task_at, error_at)]
    configs: dict[Cells, int] = {}
    results: dict[str, list[Result]] = {}
    for line, row in lines:
        if len(row) != len(header):
            raise InputError(f"{path}, line {line}: expected {len(header)} cells, got {len(row)}")
        if not row[task_at]:
            raise InputError(f"{path}, line {line}: the cell of the task is empty")
        if not row[task_at].isprintable():
            raise InputError(f"{path}, line {line}: expected a task's name on one line, got {row[task_at]!r}")
        number = configs.setdefault(tuple(row[position] for position in columns), len(configs))
        results.setdefault(row[task_at], []).append((number, _error(path, line, row[error_at]), line))
    if not results:
        raise InputError(f"{path}: expected rows below the header, got none")
    return Tidy(path, names, configs, results)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        with _opened(path) as file:
            reader = csv.reader(file, strict=True)
            yield from ((reader.line_num, row) for row in reader if row)
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file") from error
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        raise InputError(f"{path}: expected a whole CSV file{', gzipped' * (path.suffix == '.gz')}: {error}") from error


def _opened(path: Path) -> IO[str]:
    # A byte order mark, which spreadsheets write, is no part of the first name.
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _checked_header(path: Path, header: list[str]) -> Cells:
    names = tuple(name for name in header if name not in ("task", "error"))
    repeated = sorted({name for name in header if header.count(name) > 1})
    if "task" not in header or "error" not in header or not names or repeated or "" in names:
        told = f"; {repeated[0]!r} comes twice" if repeated else ""
        raise InputError(f"{path}, line 1: expected the columns task, hyperparameters..., error, got {header}{told}")
    return names


def _error(path: Path, line: int, text: str) -> float:
    return finite(text, f"{path}, line {line}", "a finite number as error")


def as_float(text: str) -> float | None:
    """Return the number that a cell holds, or None."""
    try:
        return float(text)
    except ValueError:
        return None


def finite(text: str, where: str, expected: str) -> float:
    """Return the finite number that a text holds, or say where something else was expected."""
    value = as_float(text)
    if value is None or not math.isfinite(value):
        raise InputError(f"{where}: expected {expected}, got {text!r}")
    return value


def infer_space(tidy: Tidy) -> Space:
    """Return the space that the rules at the head of this module find."""
    from ConfigSpace import ConfigurationSpace, EqualsCondition, InCondition

    columns = dict(zip(tidy.names, zip(*tidy.configs, strict=True), strict=True))
    found = {name: _hyperparameter(name, cells, tidy.path) for name, cells in columns.items()}
    space = ConfigurationSpace()
    space.add(*found.values())
    for name, cells in columns.items():
        if "" in cells:
            parent, values = _condition(name, columns, tidy.path)
            child, above = found[name], found[parent]
            one = len(values) == 1
            space.add(EqualsCondition(child, above, values[0]) if one else InCondition(child, above, values))
    return compile_space(space)


def _hyperparameter(name: str, cells: Cells, path: Path) -> Hyperparameter[Any, Any]:
    from ConfigSpace.hyperparameters import CategoricalHyperparameter

    filled = [cell for cell in cells if cell]
    if not filled:
        raise InputError(f"{path}: column {name!r} is empty; leave it out")
    if _categorical(filled):
        choices = sorted(set(filled))
        spec: Any = choices[0] if len(choices) == 1 else CategoricalHyperparameter(name, choices)
    else:
        whole = all(WHOLE.match(cell) for cell in filled)
        values = [int(cell) if whole else float(cell) for cell in filled]
        if not all(map(math.isfinite, values)):
            raise InputError(f"{path}: column {name!r}: expected finite numbers (an empty cell is an inactive one)")
        low, high = min(values), max(values)
        spec = low if low == high else ((low, high, "log") if _on_log_scale(values) else (low, high))
    try:
        return compile_space({name: spec}).source[name]
    except SpaceError as error:
        raise InputError(f"{path}: column {name!r}: {error}; give a space") from error


def _categorical(filled: Sequence[str]) -> bool:
    return any(as_float(cell) is None for cell in filled)


def _on_log_scale(values: Sequence[float]) -> bool:
    low, high, median = min(values), max(values), float(np.median(values))
    if low <= 0 or high < LOG_RATIO * low:
        return False
    place, log_place = (median - low) / (high - low), math.log(median / low) / math.log(high / low)
    return abs(log_place - 0.5) < abs(place - 0.5)


def _condition(name: str, columns: Mapping[str, Cells], path: Path) -> tuple[str, list[str]]:
    """Return the categorical column that decides whether another is active, and the values with which it is."""
    active = [bool(cell) for cell in columns[name]]
    for parent, cells in columns.items():
        if parent == name or not _categorical([cell for cell in cells if cell]):
            continue
        values = {cell for cell, on in zip(cells, active, strict=True) if on}
        others = {cell for cell, on in zip(cells, active, strict=True) if not on}
        # Where the parent is inactive the child must be, which a condition says by itself; more must be said.
        if "" not in values and not values & others and others - {""}:
            return parent, sorted(values)
    raise InputError(
        f"{path}: column {name!r} has empty cells, but no categorical column says where it is active; give a space"
    )
