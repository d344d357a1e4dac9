"""The trials of a run by column: of thousands of past runs, few trials are looked at one by one.

Notation: n trials; a column has n cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.space.config_columns import ConfigColumns

if TYPE_CHECKING:
    from recollect.runs.run import Trial

Remarks: TypeAlias = tuple[str, tuple[str, ...], float | None]
"""The value of the state, the notes and the estimate of a trial."""

UNREMARKABLE: Remarks = ("ok", (), None)


@dataclass(frozen=True, slots=True, eq=False)
class TrialColumns:
    """Trials as columns, which must not be changed.

    Attributes:
        configs: The configurations.
        values: The values, None where a trial has none.
        seconds: How long each trial took, None where that is unknown.
        numbers: The numbers of the trials in a memory, None where they have none.
        remarks: By place, what there is to say about a trial beyond that it succeeded; few have an entry.
    """

    configs: ConfigColumns
    values: Sequence[float | None]
    seconds: Sequence[float | None]
    numbers: Sequence[int | None]
    remarks: Mapping[int, Remarks]

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> TrialColumns:
        """Return the columns of trials."""
        return cls(
            ConfigColumns.of([trial.config for trial in trials]),
            [trial.value for trial in trials],
            [trial.seconds for trial in trials],
            [trial.number for trial in trials],
            {
                place: (trial.state.value, trial.notes, trial.estimate)
                for place, trial in enumerate(trials)
                if not trial.ok or trial.notes
            },
        )

    def __len__(self) -> int:
        """Return the number of trials."""
        return len(self.values)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Return the fields of each trial in the order of `Trial`, its state by its value."""
        columns = zip(self.configs.configs(), self.values, self.seconds, self.numbers, strict=True)
        for place, (config, value, seconds, number) in enumerate(columns):
            state, notes, estimate = self.remarks.get(place, UNREMARKABLE)
            yield config, value, state, seconds, notes, estimate, number

    def learned_values(self) -> list[float | None]:
        """Return what models learn from each trial: its value, or the estimate of a pruned one."""
        learned = list(self.values)
        for place, (_, _, estimate) in self.remarks.items():
            if estimate is not None:
                learned[place] = estimate
        return learned

    def usable_configs(self) -> ConfigColumns:
        """Return the configurations of the trials that models learn from."""
        if not self.remarks:
            return self.configs
        usable = [place for place, value in enumerate(self.learned_values()) if value is not None]
        return self.configs if len(usable) == len(self) else self.configs.at(usable)
