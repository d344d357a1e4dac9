"""Read the runs of a memory's studies: the trials that count, with their search spaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.runs.run import Direction, Run, Trial
from recollect.storage.open import Store
from recollect.storage.optuna_conversion import finished_trials
from recollect.storage.run_index import MIN_INDEXED, RunIndex, study_marks
from recollect.storage.sql_read import STUDIES_PER_QUERY, Damage, StoredTrial, read_finished, report_damage
from recollect.storage.studies import NOTES_KEY, VOID_KEY, TaskStudy, with_notes
from recollect.storage.study_spaces import holds_all, read_study_spaces


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
    runs: dict[int, Run] = {}
    missing = [study for study in studies if study.id not in known]
    for start in range(0, len(missing), STUDIES_PER_QUERY):
        some, damage = missing[start : start + STUDIES_PER_QUERY], list[Damage]()
        records = read_finished(store, [study.id for study in some], keys=(NOTES_KEY, VOID_KEY), damage=damage)
        report_damage(store, damage, None)
        for study in some:
            assert study.direction is not None
            known[study.id] = valid_trials(records[study.id], study.direction)
        if not damage:  # which is reported whenever it is read
            index.put({marks[study.id]: known[study.id] for study in some if study.id in marks})
    for study in studies:
        assert study.direction is not None
        runs[study.id] = Run(study.task, trials=known.pop(study.id), direction=study.direction)
    return [runs[study.id] for study in studies]


def read_task_runs(store: Store, studies: Sequence[TaskStudy]) -> list[Run]:
    """Return the runs of these studies, with their search spaces."""
    records = read_finished(store, [study.id for study in studies], keys=(NOTES_KEY, VOID_KEY))
    compiled = read_study_spaces(store, studies, records)
    runs = []
    for study in studies:
        assert study.direction is not None
        trials, space = valid_trials(records[study.id], study.direction), compiled.get(study.id)
        if study.problem is None and space is not None and not holds_all(space, trials):
            space = None
        runs.append(Run(study.task, trials=trials, space=space, direction=study.direction))
    return runs
