"""A run and how it came about: all that a report on it needs, read from a memory or taken from a result.

Other programs may have written to a memory: whatever does not have the expected form counts as unknown, and trials that
do not belong to the space are placed as `recollect.space.alignment` places those of past runs.

A memory does not record which past runs a run could learn from, but it records when each trial ended. The past runs are
those that had enough trials when this run started, with the trials they had then. A run that is named on a trial of
this one, but had too few trials then, was added while this one was interrupted: it has the trials it had when the last
trial of this run started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from recollect.analysis.trial_records import RecordState, TrialRecord, run_records, stored_records
from recollect.errors import InputError
from recollect.optimizer.catalog import method as method_named
from recollect.optimizer.method import Method
from recollect.runs.run import Run
from recollect.runs.usability import MIN_TRIALS, why_unusable
from recollect.space.inference import infer_space
from recollect.space.space import Space
from recollect.storage.open import Store, storage_errors
from recollect.storage.run_reading import counted_trials, valid_trials
from recollect.storage.sql_read import FINISHED_STATES, StoredTrial, read_after, read_finished
from recollect.storage.studies import (
    NOTES_KEY,
    SAMPLER_KEY,
    VOID_KEY,
    TaskStudy,
    choose_study,
    stored_influence,
    task_studies,
)
from recollect.storage.study_spaces import read_study_spaces
from recollect.tuning.suggestion_notes import SuggestionNote, read_note

if TYPE_CHECKING:
    from recollect.storage.memory import Memory
    from recollect.tuning.result import Result

Origin: TypeAlias = Literal["without transfer", "with transfer", "unknown"]  # how a run was tuned


@dataclass(frozen=True, slots=True, eq=False)
class PairedRun:
    """A run of the same task in another problem, tuned without past runs."""

    problem: str
    method: str
    run: Run


@dataclass(frozen=True, slots=True, eq=False)
class RunData:
    """A run and how it came about."""

    run: Run
    problem: str | None  # None: a study of another program
    space: Space | None  # None: unknown
    past: tuple[Run, ...]  # the runs it could learn from, with the trials they had then
    notes: tuple[SuggestionNote | None, ...]  # why each trial was suggested, None where nothing was recorded
    settings: Mapping[str, Any]  # method, number of trials, seed and versions, as far as known
    origins: Mapping[str, Origin] = field(default_factory=dict)  # how runs of the problem were tuned, by task
    paired: PairedRun | None = None
    times: tuple[datetime, datetime] | None = None  # when it started and when its last trial ended
    storage: str = ""  # where it was read
    stored: tuple[TrialRecord, ...] = ()  # all trials, also pruned and running ones; empty without a memory
    stored_numbers: tuple[int, ...] = ()  # of the run's trials; empty: they are counted from 0
    space_inferred: bool = False  # whether the space is only what was tried

    @property
    def records(self) -> tuple[TrialRecord, ...]:
        """All trials, in order of their numbers."""
        return self.stored or run_records(self.run, self.notes, self.stored_numbers)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the run's trials."""
        return self.stored_numbers or tuple(range(len(self.run)))

    @property
    def states(self) -> tuple[RecordState, ...]:
        """The states of the run's trials."""
        by_number = {record.number: record.state for record in self.records}
        return tuple(by_number[number] for number in self.numbers)

    @property
    def suggestions(self) -> tuple[tuple[int, SuggestionNote], ...]:
        """The trials of which it is known why they were suggested, running ones included, by number."""
        return tuple((record.number, record.suggestion) for record in self.records if record.suggestion is not None)

    @property
    def source_names(self) -> tuple[str, ...]:
        """All past runs: those that it could learn from, and those that its notes name."""
        noted = (task for _, note in self.suggestions for task in note.sources)
        return tuple(dict.fromkeys((*(run.task for run in self.past), *noted)))

    @property
    def method(self) -> Method | None:
        """The method that tuned it, None if unknown."""
        return method_of(self.settings)

    @property
    def horizon(self) -> int | None:
        """The number of trials that were planned, None if unknown."""
        planned = self.settings.get("trials")
        return planned if isinstance(planned, int) and planned > 0 else None

    @property
    def failed(self) -> int:
        """The number of trials that failed."""
        return len(self.run.failed)

    @property
    def pruned(self) -> int:
        """The number of trials that were stopped early."""
        return len(self.run.pruned)


@dataclass(frozen=True, slots=True, eq=False)
class _StudyHistory:
    """A study and its trials that count."""

    entry: TaskStudy
    records: Sequence[StoredTrial]

    @property
    def started(self) -> datetime | None:
        return min((record.datetime_start for record in self.records if record.datetime_start), default=None)

    @property
    def usable_since(self) -> datetime | None:
        """When others could start to learn from it."""
        ends = sorted(r.datetime_complete for r in self.records if r.state == "COMPLETE" and r.datetime_complete)
        return ends[MIN_TRIALS - 1] if len(ends) >= MIN_TRIALS else None

    def run_until(self, moment: datetime | None) -> Run:
        """Return the run with the trials that had ended by a moment; None for all trials."""
        ended = [r for r in self.records if moment is None or (r.datetime_complete and r.datetime_complete <= moment)]
        assert self.entry.direction is not None
        return Run(self.entry.task, trials=valid_trials(ended, self.entry.direction), direction=self.entry.direction)


def read_run_data(memory: Memory, problem: str | None, task: str) -> RunData:
    """Read a task of a memory; with problem None, of whichever problem has it. InputError if not exactly one has."""
    store = memory.store
    with storage_errors(store.name):
        entries = [entry for entry in task_studies(store) if entry.direction is not None]
        entry = choose_study(entries, task, problem, where=store.name)
        everything = read_after(store, entry.key, -1)
        settings, sources = _sampler(store, entry) if entry.problem is None else (entry.settings, None)
        kind = (entry.problem, entry.direction)
        same = [other for other in entries if (other.problem, other.direction) == kind]
        if sources is not None:  # studies of other programs have no problem
            same = [other for other in same if other.task in sources]
        others = _read(store, [other for other in same if other != entry], keys=(NOTES_KEY, VOID_KEY))
        paired = _paired_run(store, entry, entries)
        counting = [record for record in everything if VOID_KEY not in record.user_attrs]
        study = _StudyHistory(entry, [record for record in counting if record.state in FINISHED_STATES])
        space = read_study_spaces(store, [entry], {entry.id: study.records}).get(entry.id)
    assert entry.direction is not None
    pairs = counted_trials(study.records, entry.direction)
    run = Run(entry.task, trials=[trial for _, trial in pairs], direction=entry.direction)
    stored = stored_records(counting, {record.number: trial for record, trial in pairs})
    notes = tuple(read_note(stored_influence(record)) for record, _ in pairs)
    inferred = space is None
    space = space_of(run) if space is None else space
    ends = [record.datetime_complete for record in study.records if record.datetime_complete]
    return RunData(
        run, entry.problem, space, _past_runs(study, others, notes, space), notes, settings,
        origins=_origins([study, *others]), paired=paired,
        times=(study.started, max(ends)) if study.started and ends else None, storage=store.name,
        stored=stored, stored_numbers=tuple(record.number for record, _ in pairs), space_inferred=inferred,
    )  # fmt: skip


def run_data_of(result: Result) -> RunData:
    """Return the data of a result, without a memory."""
    notes = tuple(map(read_note, result.influences))
    inferred = result.run.space is None
    return RunData(
        result.run, result.problem, space_of(result.run), result.past, notes, result.settings, space_inferred=inferred
    )


def space_of(run: Run) -> Space | None:
    """Return the space of a run, or the smallest plain one that holds all it tried; None if it tried nothing."""
    if run.space is not None:
        return run.space
    return infer_space(run.configs, log_scales=False, list_tiny_ranges=True)


def method_of(settings: Mapping[str, Any]) -> Method | None:
    """Return the method of these settings, None if unknown."""
    name = settings.get("method")
    try:
        return method_named(name) if isinstance(name, str) else None
    except InputError:  # of another version, or written by hand
        return None


def _read(store: Store, entries: Sequence[TaskStudy], *, keys: Sequence[str]) -> list[_StudyHistory]:
    records = read_finished(store, [entry.id for entry in entries], keys=keys)
    return [
        _StudyHistory(entry, [record for record in records[entry.id] if VOID_KEY not in record.user_attrs])
        for entry in entries
    ]


def _sampler(store: Store, entry: TaskStudy) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the settings of a study that `TransferSampler` tuned, and its past studies; nothing for any other."""
    noted = store.optuna.get_study_system_attrs(entry.id).get(SAMPLER_KEY)
    if not isinstance(noted, Mapping):
        return {}, frozenset()
    past = noted.get("past")
    return {"method": noted.get("method")}, frozenset(map(str, past if isinstance(past, list) else ()))


def _past_runs(
    own: _StudyHistory, others: Sequence[_StudyHistory], notes: Sequence[SuggestionNote | None], space: Space | None
) -> tuple[Run, ...]:
    """Return the runs that this one could learn from (see the module docstring)."""
    noted = {task for note in notes if note is not None for task in note.sources}
    last = max((record.datetime_start for record in own.records if record.datetime_start), default=None)
    names = set() if space is None else set(space.names)
    usable = []
    for other in others:
        run = other.run_until(own.started)
        if len(run.usable) < MIN_TRIALS and other.entry.task in noted:
            run = other.run_until(last)
        if why_unusable(run, names) is None:
            usable.append(run)
    return tuple(usable)


def _origins(studies: Sequence[_StudyHistory]) -> dict[str, Origin]:
    """Return how each run of a problem was tuned, by task."""
    first = min((moment for study in studies if (moment := study.usable_since) is not None), default=None)
    origins: dict[str, Origin] = {}
    for study in studies:
        method, started = method_of(study.entry.settings), study.started
        if method is None or started is None:
            origins[study.entry.task] = "unknown"
        else:  # nothing can be learned from a run before it has started, hence not from itself
            learned = method.transfers and first is not None and first <= started
            origins[study.entry.task] = "with transfer" if learned else "without transfer"
    return origins


def _paired_run(store: Store, own: TaskStudy, entries: Sequence[TaskStudy]) -> PairedRun | None:
    """Return the longest run of the same task in another problem by a method that ignores past runs."""
    twins = []
    for entry in entries:
        same = (entry.task, entry.direction, entry.space) == (own.task, own.direction, own.space)
        method = method_of(entry.settings)
        if same and entry.space and entry.problem not in (own.problem, None) and method and not method.transfers:
            twins.append(entry)
    studies = [(study, study.run_until(None)) for study in _read(store, twins, keys=(NOTES_KEY, VOID_KEY))]
    studies = [pair for pair in studies if pair[1].best is not None]
    if not studies:
        return None
    study, run = max(studies, key=lambda pair: len(pair[0].records))
    return PairedRun(str(study.entry.problem), str(study.entry.settings["method"]), run)
