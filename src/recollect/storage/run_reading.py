"""Read the runs of a memory's studies: the trials that count, with their search spaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from recollect.runs.run import Direction, Run, Trial
from recollect.storage.open import Store
from recollect.storage.optuna_conversion import finished_trials
from recollect.storage.sql_read import StoredTrial, read_finished
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


def read_task_runs(store: Store, studies: Sequence[TaskStudy], *, spaces: bool = True) -> list[Run]:
    """Return the runs of these studies, with their search spaces unless ``spaces`` is False."""
    records = read_finished(store, [study.id for study in studies], keys=(NOTES_KEY, VOID_KEY))
    compiled = read_study_spaces(store, studies, records) if spaces else {}
    runs = []
    for study in studies:
        assert study.direction is not None
        trials, space = valid_trials(records[study.id], study.direction), compiled.get(study.id)
        if study.problem is None and space is not None and not holds_all(space, trials):
            space = None
        runs.append(Run(study.task, trials=trials, space=space, direction=study.direction))
    return runs
