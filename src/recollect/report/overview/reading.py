"""What a memory holds, read at once: the runs of each problem with their dates, and what is noted on trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.history.memory import Memory, counted
from recollect.history.reading import Record, read_finished
from recollect.history.run import Run
from recollect.history.storage import faults
from recollect.history.studies import INFLUENCE_KEY, NOTES_KEY, VOID_KEY, Entry, entries
from recollect.report.story import Note, note_of
from recollect.space.serial import from_json
from recollect.space.space import Space


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A task and what is known of it.

    space: what it was tuned in, None if that is not known; the run has none, since a trial of somebody else may lie
    outside. first, last: when its first trial began and its last one ended. notes: on trials whose suggestion past
    tasks had a share in, each with the weights that were used.
    """

    problem: str | None
    run: Run
    space: Space | None
    first: datetime | None
    last: datetime | None
    notes: tuple[Note, ...]

    @property
    def task(self) -> str:
        """The name of the task."""
        return self.run.task

    @property
    def failed(self) -> int:
        """How many of its trials failed."""
        return len(self.run) - len(self.run.succeeded)


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """All tasks that a memory holds, as begun; several: how many studies were left out for their several objectives."""

    tasks: tuple[Told, ...]
    several: int

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems, as begun."""
        return tuple(dict.fromkeys(told.problem for told in self.tasks if told.problem is not None))

    def of(self, problem: str | None) -> tuple[Told, ...]:
        """Return the tasks of a problem; None: the studies that recollect did not make."""
        return tuple(told for told in self.tasks if told.problem == problem)


def read_holdings(memory: Memory, problem: str | None = None, *, spaces: bool = True) -> Holdings:
    """Read all that a memory holds, or what it holds of one problem; with the search spaces of tasks, or without."""
    store = memory.store
    with faults(store.name):
        chosen = [entry for entry in entries(store) if problem is None or entry.problem == problem]
        usable = [entry for entry in chosen if entry.direction is not None]
        records = read_finished(store, [entry.id for entry in usable], keys=(NOTES_KEY, VOID_KEY, INFLUENCE_KEY))
    texts = {entry.space for entry in usable if entry.space is not None} if spaces else ()
    known: dict[str | None, Space] = {text: from_json(text) for text in texts}
    tasks = [_told(entry, records[entry.id], known.get(entry.space)) for entry in usable]
    return Holdings(tuple(tasks), len(chosen) - len(usable))


def _told(entry: Entry, records: Sequence[Record], space: Space | None) -> Told:
    assert entry.direction is not None
    live = [record for record in records if VOID_KEY not in record.user_attrs]
    run = Run(entry.task, trials=counted(live, entry.direction), direction=entry.direction)
    begun = [record.datetime_start for record in live if record.datetime_start is not None]
    ended = [record.datetime_complete for record in live if record.datetime_complete is not None]
    notes = [note_of(record.user_attrs.get(INFLUENCE_KEY)) for record in live]
    weighed = tuple(note for note in notes if note is not None and note.target is not None)
    return Told(entry.problem, run, space, min(begun, default=None), max(ended, default=None), weighed)
