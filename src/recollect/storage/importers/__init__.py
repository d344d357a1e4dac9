"""Past runs from elsewhere, one file for each kind of source, and what every importer takes and returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from recollect._text import name_list
from recollect.errors import InputError
from recollect.runs.run import Direction, Run
from recollect.storage.open import Store


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the user specified beside the source; None where nothing was specified."""

    task: str | None = None  # the only one to read where a source names several; the name of the run where it has none
    value: str | None = None  # the column or metric with the value of a trial
    direction: Direction | None = None  # for a source that does not store it
    columns: Mapping[str, str] = field(default_factory=dict)  # roles of the columns of a table, by name
    problem: str | None = None  # the only one to read of a memory that has it
    into: Store | None = None  # the storage that the runs go to

    def direction_for(self, where: str, stored: Direction | None = None) -> Direction:
        """Return the direction; InputError if it contradicts the one that the source stores."""
        if stored is not None and self.direction not in (None, stored):
            raise InputError(f"{where}: its direction is {stored!r}, but the option direction is {self.direction!r}")
        return stored or self.direction or "minimize"

    def includes(self, task: str) -> bool:
        """Whether a task that the source names is to be read."""
        return self.task is None or task == self.task

    def check_task(self, where: str, names: Iterable[str], *, noun: str = "task") -> None:
        """Raise InputError, with the existing names, for a task that the source does not have."""
        existing = dict.fromkeys(names)
        if self.task is not None and self.task not in existing:
            raise InputError(f"{where}: there is no {noun} {self.task!r}, only {name_list(map(repr, existing), 12)}")

    def refuse_columns(self, where: str, reason: str, *, value: bool = False) -> None:
        """Raise InputError for ``columns`` and, unless ``value`` has a meaning here, for ``value``."""
        if self.columns or (self.value is not None and not value):
            option = "columns" if self.columns else "value"
            raise InputError(f"{where}: {option} has no meaning here: {reason}")


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The runs of a source."""

    runs: list[Run]
    skipped: Mapping[str, int] = field(default_factory=dict)  # what was left out: how many of what
    problems: Sequence[str | None] = ()  # of each run, where the source stores them
    labels: Sequence[tuple[tuple[str, ...], str]] = ()  # tags and note of each run, where the source stores them
