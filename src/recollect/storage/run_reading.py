"""Read the runs of a memory's studies: the trials that count, with their search spaces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.runs.run import Direction, Run, Trial
from recollect.runs.trial_columns import TrialColumns
from recollect.space.config_columns import ConfigColumns
from recollect.storage.open import Store
from recollect.storage.optuna_conversion import finished_trials
from recollect.storage.run_index import MIN_INDEXED, RunIndex, study_marks
from recollect.storage.sql_read import (
    SECONDS_KEY,
    STUDIES_PER_QUERY,
    Damage,
    StoredTrial,
    duration,
    read_finished,
    report_damage,
)
from recollect.storage.studies import NOTES_KEY, VOID_KEY, TaskStudy, with_notes
from recollect.storage.study_spaces import holds_all, read_study_spaces

KEYS = (NOTES_KEY, VOID_KEY)
"""The attributes of trials that matter for runs."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run in a memory.

    Attributes:
        problem: The problem it belongs to; None for a study that recollect did not create.
        run: The run itself.
        tags: Words to select runs by.
        note: A remark on the run.
    """

    problem: str | None
    run: Run
    tags: tuple[str, ...] = ()
    note: str = ""


def valid_trials(records: Sequence[StoredTrial], direction: Direction) -> list[Trial]:
    """Return the trials of a study that count, given those that have finished."""
    return [trial for _, trial in counted_trials(records, direction)]


def counted_trials(records: Sequence[StoredTrial], direction: Direction) -> list[tuple[StoredTrial, Trial]]:
    """Return the trials of a study that count, each as it is stored and as part of a run."""
    valid = [record for record in records if VOID_KEY not in record.user_attrs]
    trials = [record.as_trial() for record in valid]
    pairs: Iterable[tuple[Any, Any]] = zip(valid, trials, strict=True)
    if None in trials:  # pruned, or without a finite value
        pairs = finished_trials([record.with_optuna_state() for record in valid], direction)
    return [(record, with_notes(trial, record)) for record, trial in pairs]


def read_past_runs(store: Store, studies: Sequence[TaskStudy]) -> list[Run]:
    """Return the runs of these studies without their search spaces; of many, most come from the index."""
    marks = study_marks(store, studies) if len(studies) >= MIN_INDEXED and store.address is not None else {}
    index = RunIndex()
    known = index.get(marks)
    missing = [study for study in studies if study.id not in known]
    for start in range(0, len(missing), STUDIES_PER_QUERY):
        some, damage = missing[start : start + STUDIES_PER_QUERY], list[Damage]()
        records = read_finished(store, [study.id for study in some], keys=KEYS, damage=damage, in_order=False)
        report_damage(store, damage, None)
        for study in some:
            assert study.direction is not None
            known[study.id] = _columns(records[study.id], study.direction)
        if not damage:  # which is reported whenever it is read
            index.put({marks[study.id]: known[study.id] for study in some if study.id in marks})
    runs = []
    for study in studies:
        assert study.direction is not None
        runs.append(Run.from_columns(study.task, known[study.id], direction=study.direction))
    return runs


def _columns(records: Sequence[StoredTrial], direction: Direction) -> TrialColumns:
    """Return the trials of a study that count, by column; trials that all succeeded are not created one by one."""
    values = [_plain_value(record) for record in records]
    if None in values:
        return TrialColumns.of(valid_trials(records, direction))
    return TrialColumns(
        ConfigColumns.of([record.params for record in records]), values,
        [duration(record) for record in records], [record.number for record in records], {},
    )  # fmt: skip


def _plain_value(record: StoredTrial) -> float | None:
    """Return the finite value of a trial that succeeded and about which there is no more to say; None for others."""
    if record.state != "COMPLETE" or not record.values or len(record.values) != 1:
        return None
    remarkable = record.user_attrs and record.user_attrs.keys() - {SECONDS_KEY}
    return record.values[0] if math.isfinite(record.values[0]) and not remarkable else None


def read_task_runs(store: Store, studies: Sequence[TaskStudy]) -> list[Run]:
    """Return the runs of these studies, with their search spaces."""
    records = read_finished(store, [study.id for study in studies], keys=KEYS)
    compiled = read_study_spaces(store, studies, records)
    runs = []
    for study in studies:
        assert study.direction is not None
        trials, space = valid_trials(records[study.id], study.direction), compiled.get(study.id)
        if study.problem is None and space is not None and not holds_all(space, trials):
            space = None
        runs.append(Run(study.task, trials=trials, space=space, direction=study.direction))
    return runs
