"""Configurations read column by column, with an error that says what is wrong with which one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recollect.errors import ConfigError, InputTypeError
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.space.columns import Column

Row = dict[str, Any]


class _Missing:
    """Stands for a hyperparameter that a configuration does not mention."""


MISSING = _Missing()


def as_rows(configs: Sequence[Mapping[str, Any]], names: tuple[str, ...]) -> list[Row]:
    """Return the configurations as dicts whose keys are all hyperparameters of the space."""
    if isinstance(configs, Mapping | str) or not isinstance(configs, Sequence | np.ndarray):
        raise InputTypeError(f"expected a sequence of configurations, got {type(configs).__name__}; put one in a list")
    known = set(names)
    rows = []
    for number, config in enumerate(configs):
        if not isinstance(config, Mapping):
            raise InputTypeError(f"configuration {number}: expected a mapping, got {config!r}")
        row = dict(config)
        unknown = [name for name in row if name not in known]
        if unknown:
            raise ConfigError(
                f"configuration {number}: unknown hyperparameter {unknown[0]!r}; the space has {', '.join(names)}"
            )
        rows.append(row)
    return rows


def read_column(column: Column, rows: list[Row], active: BoolArray, condition: str) -> FloatArray:
    """Return the codes (n,) of one hyperparameter, nan where it is inactive."""
    values = [row.get(column.name, MISSING) for row in rows]
    codes = np.full(len(rows), np.nan)
    for number in np.flatnonzero(~active):
        if values[number] is not MISSING and values[number] is not None:
            raise ConfigError(
                f"configuration {number}: {column.name!r} is inactive here and must be left out, "
                f"got {values[number]!r}; its condition is: {condition}"
            )
    wanted = np.flatnonzero(active)
    if column.size == 1:
        # There is nothing to choose, so a constant need not be repeated in every configuration.
        codes[wanted] = column.default
        wanted = np.array([number for number in wanted if values[number] is not MISSING], dtype=np.intp)
    codes[wanted] = column.codes([values[number] for number in wanted])
    refused = wanted[np.isnan(codes[wanted])]
    if refused.size:
        raise ConfigError(_complaint(column, int(refused[0]), values[refused[0]]))
    return codes


def refuse_forbidden(rows: list[Row], violations: BoolArray, texts: tuple[str, ...]) -> None:
    """Raise if a row violates a clause; ``violations`` is (n, number of clauses)."""
    found = np.argwhere(violations)
    if len(found):
        number, clause = found[0]
        raise ConfigError(f"configuration {number}: {rows[number]} is forbidden by the clause: {texts[clause]}")


def _complaint(column: Column, number: int, value: Any) -> str:
    expected = f"configuration {number}: {column.name!r}: expected {column.expected()}"
    if value is MISSING:
        return f"{expected}, but it is missing"
    return f"{expected}, got {value!r} ({type(value).__name__})"
