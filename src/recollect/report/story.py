"""The story of a run: all that a report on it needs, read from a memory or taken from a result.

What is in a memory was written by others, perhaps by other programs: whatever is not of the expected form counts as not
known, and trials that do not belong to the space are placed as `recollect.space.align` places those of past runs.

A memory does not say which past runs a run could learn from, but when each trial ended. Past runs are those that had
enough trials when this run began, with the trials that they had then; and those that are named on its trials, as one is
that came while the run was interrupted, with the trials that it had when the last trial of this run began.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from recollect.errors import InputError, SpaceError
from recollect.history.memory import LEAST, counted
from recollect.history.reading import Record, StudyRow, read_finished, read_studies
from recollect.history.run import Config, Run
from recollect.history.storage import Store, faults
from recollect.history.studies import INFLUENCE_KEY, NOTES_KEY, SETTINGS_KEY, VOID_KEY, Entry, entry_of
from recollect.optimizer.catalog import method as method_named
from recollect.optimizer.method import Method
from recollect.space.serial import from_json
from recollect.space.space import Space, compile_space

if TYPE_CHECKING:
    from recollect.history.memory import Memory
    from recollect.tuning.result import Result

Origin: TypeAlias = Literal["alone", "taught", "unknown"]
"""How a run was made: without past runs, with them, or nobody knows."""

PLAIN = {str, int, float, bool, type(None)}


@dataclass(frozen=True, slots=True)
class Note:
    """Why a trial was suggested: a few words, and the weights that were used; target None if there were none."""

    reason: str
    target: float | None = None
    past: Mapping[str, float] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """A run of the same task in another problem, made without past runs."""

    problem: str
    method: str
    run: Run


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """A run and how it came about.

    space: what was searched, None if nothing is known of it; past: the runs it could learn from, as they were then;
    notes: one for each trial of the run, None where nothing was noted; settings: method, trials, seed and versions, as
    far as they are known; origins: of past runs, by task; times: when it began and when its last trial ended.
    """

    run: Run
    problem: str | None
    space: Space | None
    past: tuple[Run, ...]
    notes: tuple[Note | None, ...]
    settings: Mapping[str, Any]
    origins: Mapping[str, Origin] = field(default_factory=dict)
    paired: Paired | None = None
    times: tuple[datetime, datetime] | None = None
    source: str = ""

    @property
    def method(self) -> Method | None:
        """The method that made it, None if it is not known."""
        return method_of(self.settings)

    @property
    def horizon(self) -> int | None:
        """How many trials were planned, None if it is not known."""
        planned = self.settings.get("trials")
        return planned if isinstance(planned, int) and planned > 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Study:
    """A study, its entry, and its trials that count."""

    entry: Entry
    row: StudyRow
    records: Sequence[Record]

    @property
    def begun(self) -> datetime | None:
        return min((record.datetime_start for record in self.records if record.datetime_start), default=None)

    @property
    def ready(self) -> datetime | None:
        """When others could begin to learn from it."""
        ends = sorted(r.datetime_complete for r in self.records if r.state == "COMPLETE" and r.datetime_complete)
        return ends[LEAST - 1] if len(ends) >= LEAST else None

    def until(self, moment: datetime | None) -> Run:
        """Return the run of the trials that had ended at a moment, or all."""
        ended = [r for r in self.records if moment is None or (r.datetime_complete and r.datetime_complete <= moment)]
        assert self.entry.direction is not None
        return Run(self.entry.task, trials=counted(ended, self.entry.direction), direction=self.entry.direction)


def read_story(memory: Memory, problem: str | None, task: str) -> Story:
    """Read the story of a task; problem None: whichever has it. InputError if there is none, or more than one."""
    store = memory.store
    with faults(store.name):
        entries = [(entry_of(row, store.name), row) for row in read_studies(store)]
        own = _chosen([pair for pair in entries if pair[0].direction is not None], problem, task, where=store.name)
        entry = own[0]
        study = _read(store, [own], keys=(NOTES_KEY, VOID_KEY, INFLUENCE_KEY))[0]
        others = _read(store, _beside(entry, entries), keys=(NOTES_KEY, VOID_KEY))
        paired = _paired(store, entry, entries)
    run = study.until(None)
    notes = _notes(study.records, len(run))
    space = searched(run) if entry.space is None else from_json(entry.space)
    past = _past(study, others, notes, space)
    ends = [record.datetime_complete for record in study.records if record.datetime_complete]
    return Story(
        run, entry.problem, space, past, notes, settings_of(study.row),
        origins=_origins([study, *others]),
        paired=paired,
        times=(study.begun, max(ends)) if study.begun and ends else None,
        source=store.name,
    )  # fmt: skip


def story_of(result: Result) -> Story:
    """Return the story of a result, without a memory."""
    notes = tuple(map(note_of, result.influences))
    return Story(result.run, result.problem, searched(result.run), result.past, notes, result.settings)


def searched(run: Run) -> Space | None:
    """Return the space of a run, or the smallest plain one that holds all it tried; None if it tried nothing."""
    if run.space is not None:
        return run.space
    values: dict[str, list[Any]] = {}
    for config in run.configs:
        for name, value in config.items():
            values.setdefault(name, []).append(value)
    forms = {name: _form(name, given) for name, given in values.items() if {type(value) for value in given} <= PLAIN}
    return compile_space(forms) if forms else None


def note_of(noted: object) -> Note | None:
    """Read what was noted on a trial; None for anything else."""
    if not isinstance(noted, Mapping):
        return None
    reason, past, dropped = str(noted.get("reason", "")), noted.get("past"), noted.get("dropped")
    target = _weight(noted.get("target"))
    if target is None or not isinstance(past, Mapping):
        return Note(reason)
    weights = {str(task): weight for task, given in past.items() if (weight := _weight(given)) is not None}
    return Note(reason, target, weights, frozenset(map(str, dropped if isinstance(dropped, list) else ())))


def settings_of(study: StudyRow) -> Mapping[str, Any]:
    """Return how a study was tuned, nothing if it is not known."""
    stored = study.user_attrs.get(SETTINGS_KEY)
    return stored if isinstance(stored, Mapping) else {}


def method_of(settings: Mapping[str, Any]) -> Method | None:
    """Return the method of these settings, None if it is not known."""
    name = settings.get("method")
    try:
        return method_named(name) if isinstance(name, str) else None
    except InputError:  # of another version, or made by hand
        return None


def _weight(given: object) -> float | None:
    known = isinstance(given, int | float) and math.isfinite(given)
    return min(max(float(given), 0.0), 1.0) if known else None  # type: ignore[arg-type]


def _chosen(
    entries: Sequence[tuple[Entry, StudyRow]], problem: str | None, task: str, *, where: str
) -> tuple[Entry, StudyRow]:
    there = [pair for pair in entries if problem is None or pair[0].problem == problem]
    found = [pair for pair in there if pair[0].task == task]
    here = where if problem is None else f"{where}, problem {problem!r}"
    if not found:
        names = ", ".join(repr(entry.task) for entry, _ in there[:8]) + (", ..." if len(there) > 8 else "")
        raise InputError(f"{here}: there is no task {task!r}, only {names or 'nothing at all'}")
    if len(found) > 1:
        names = ", ".join(repr(entry.problem) for entry, _ in found if entry.problem is not None)
        raise InputError(f"{here}: there are several tasks {task!r}, say of which problem: {names}")
    return found[0]


def _beside(own: Entry, entries: Sequence[tuple[Entry, StudyRow]]) -> list[tuple[Entry, StudyRow]]:
    """Return the other studies of the same problem and direction; studies of other programs have no problem."""
    kind = (own.problem, own.direction)
    return [pair for pair in entries if own.problem and (pair[0].problem, pair[0].direction) == kind and pair[0] != own]


def _read(store: Store, pairs: Sequence[tuple[Entry, StudyRow]], *, keys: Sequence[str]) -> list[_Study]:
    found = read_finished(store, [entry.id for entry, _ in pairs], keys=keys)
    return [
        _Study(entry, row, [record for record in found[entry.id] if VOID_KEY not in record.user_attrs])
        for entry, row in pairs
    ]


def _notes(records: Sequence[Record], count: int) -> tuple[Note | None, ...]:
    """Return the note on each of so many trials."""
    if len(records) != count:  # some were pruned, by another program, which notes nothing
        return (None,) * count
    return tuple(note_of(record.user_attrs.get(INFLUENCE_KEY)) for record in records)


def _past(own: _Study, others: Sequence[_Study], notes: Sequence[Note | None], space: Space | None) -> tuple[Run, ...]:
    """Return the runs that this one could learn from: see the head of the module."""
    named = {task for note in notes if note is not None for task in (*note.past, *note.dropped)}
    last = max((record.datetime_start for record in own.records if record.datetime_start), default=None)
    known = set() if space is None else set(space.names)
    found = []
    for other in others:
        run = other.until(own.begun)
        if len(run.succeeded) < LEAST and other.entry.task in named:
            run = other.until(last)
        if len(run.succeeded) >= LEAST and any(known & config.keys() for config in run.configs):
            found.append(run)
    return tuple(found)


def _origins(studies: Sequence[_Study]) -> dict[str, Origin]:
    """Say of the runs of a problem, by task, how each was made."""
    ready = sorted(moment for study in studies if (moment := study.ready) is not None)
    origins: dict[str, Origin] = {}
    for study in studies:
        method, begun = method_of(settings_of(study.row)), study.begun
        if method is None or begun is None:
            origins[study.entry.task] = "unknown"
        else:  # nothing can be learned from a run before it has begun, hence not from itself
            origins[study.entry.task] = "taught" if method.transfers and ready and ready[0] <= begun else "alone"
    return origins


def _paired(store: Store, own: Entry, entries: Sequence[tuple[Entry, StudyRow]]) -> Paired | None:
    """Return the longest run of the same task in another problem by a method that does not look at past runs."""
    twins = []
    for entry, row in entries:
        same = (entry.task, entry.direction, entry.space) == (own.task, own.direction, own.space)
        method = method_of(settings_of(row))
        if same and entry.space and entry.problem not in (own.problem, None) and method and not method.transfers:
            twins.append((entry, row))
    found = [study for study in _read(store, twins, keys=(NOTES_KEY, VOID_KEY)) if study.until(None).best is not None]
    if not found:
        return None
    study = max(found, key=lambda twin: len(twin.records))
    return Paired(str(study.entry.problem), str(settings_of(study.row)["method"]), study.until(None))


def _form(name: str, values: Sequence[Any]) -> Any:
    """Return what describes a hyperparameter with these values in the dict of a space."""
    kinds = {type(value) for value in values}
    form: Any = list(dict.fromkeys(values))
    if len(form) == 1:
        return form[0]
    if kinds <= {int, float}:
        number = int if kinds == {int} else float
        ends: Config = {name: (number(min(values)), number(max(values)))}
        try:
            compile_space(ends)
        except SpaceError:  # so small that ConfigSpace rounds them to nothing
            return form
        return ends[name]
    return form
