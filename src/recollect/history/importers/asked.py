"""What a reader is asked for, and what it finds: the two values that every importer takes and gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from recollect.errors import InputError
from recollect.history.run import Direction, Run
from recollect.history.storage import Store


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user said beside the source; None where nothing was said.

    task: the one task to read where a source names several, the name of the run where it does not. value: the column or
    metric that holds the value. columns: the role of columns of a table, by name. problem: the one to read of a memory
    that has it. into: where the runs are to be kept.
    """

    task: str | None = None
    value: str | None = None
    direction: Direction | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    into: Store | None = None

    def way(self, where: str, stored: Direction | None = None) -> Direction:
        """Return the direction, which must not contradict what the source says."""
        if stored is not None and self.direction not in (None, stored):
            raise InputError(f"{where}: direction {self.direction!r} was asked for, but its values are to {stored}")
        return stored or self.direction or "minimize"

    def wants(self, task: str) -> bool:
        """Whether a task that the source names is to be read."""
        return self.task is None or task == self.task

    def check_task(self, where: str, names: Iterable[str], *, called: str = "task") -> None:
        """Refuse a task that the source does not have, listing those that it has."""
        known = list(dict.fromkeys(names))
        if self.task is not None and self.task not in known:
            shown = ", ".join(map(repr, known[:12])) + (f", ... {len(known)} in all" if len(known) > 12 else "")
            raise InputError(f"{where}: there is no {called} {self.task!r}, only {shown or 'none at all'}")

    def refuse_columns(self, where: str, why: str, *, value: bool = False) -> None:
        """Refuse ``columns`` and, unless ``value`` has a meaning here, ``value``, rather than ignore them."""
        if self.columns or (self.value is not None and not value):
            given = "columns" if self.columns else "value"
            raise InputError(f"{where}: the option {given} has no meaning here: {why}")


@dataclass(frozen=True, slots=True)
class Found:
    """The runs of a source, and what was left out of them: how many of what.

    problems: what each run was kept under, where the source is a memory.
    """

    runs: list[Run]
    skipped: Mapping[str, int] = field(default_factory=dict)
    problems: Sequence[str | None] = ()

    def left_out(self) -> str:
        """Say in words what was left out; nothing if all was taken."""
        return ", ".join(f"{count} {what}" for what, count in self.skipped.items() if count)
