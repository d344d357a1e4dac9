"""Configurations by hyperparameter instead of one by one: many thousands are read, checked and encoded faster that way.

Notation: n configurations; a column has n cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from recollect.space.space import MISSING, as_rows


@dataclass(frozen=True, slots=True, eq=False)
class ConfigColumns:
    """Configurations as columns, which must not be changed.

    Attributes:
        count: The number n of configurations.
        cells: The n values of each hyperparameter, `MISSING` where a configuration does not have it.
    """

    count: int
    cells: Mapping[str, list[Any]]

    @classmethod
    def of(cls, configs: Sequence[Mapping[str, Any]]) -> ConfigColumns:
        """Return the columns of configurations; InputTypeError if they are not a sequence of mappings."""
        rows = as_rows(configs)
        if len(set(map(len, rows))) == 1:
            with suppress(KeyError):  # nearly always all have the same hyperparameters
                return cls(len(rows), {name: [row[name] for row in rows] for name in rows[0]})
        names = dict.fromkeys(name for row in rows for name in row)
        return cls(len(rows), {name: [row.get(name, MISSING) for row in rows] for name in names})

    def column(self, name: str) -> list[Any]:
        """Return the values of a hyperparameter, which no configuration need have."""
        return self.cells[name] if name in self.cells else [MISSING] * self.count

    def at(self, places: Sequence[int]) -> ConfigColumns:
        """Return some of the configurations."""
        cells = {name: [column[place] for place in places] for name, column in self.cells.items()}
        return ConfigColumns(len(places), cells)

    def configs(self) -> list[dict[str, Any]]:
        """Return the configurations one by one, each with its hyperparameters in the order of the columns."""
        if not self.cells:
            return [{} for _ in range(self.count)]
        names = list(self.cells)
        rows = [dict(zip(names, row, strict=True)) for row in zip(*self.cells.values(), strict=True)]
        for name, column in self.cells.items():
            for row, value in zip(rows, column, strict=True):
                if value is MISSING:
                    del row[name]
        return rows
