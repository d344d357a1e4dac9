"""Every trial of a task as a report shows it: finished, failed, pruned or running, and why it was suggested.

A `Run` has the trials that count, with their values; a `TrialRecord` also has when and where a trial ran, what it
reported on the way, and what was noted about it. Numbers are those of the storage, from 0: the ones that ``recollect
tune``, ``recollect memory show`` and Optuna print. Void trials, which never counted, have no record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from recollect.runs.run import Config, Run, State, Trial
from recollect.storage.sql_read import StoredTrial, duration
from recollect.storage.studies import PLACE_KEY, VOID_KEY, stored_influence
from recollect.tuning.heartbeat import HEARTBEAT_KEY
from recollect.tuning.suggestion_notes import SuggestionNote, read_note

RecordState: TypeAlias = Literal["finished", "failed", "pruned", "running"]
STATES: tuple[RecordState, ...] = ("finished", "failed", "pruned", "running")
STATE_OF: Mapping[str, RecordState] = {
    "COMPLETE": "finished", "FAIL": "failed", "PRUNED": "pruned", "RUNNING": "running",
}  # fmt: skip
STATE_OF_TRIAL: Mapping[State, RecordState] = {State.OK: "finished", State.FAILED: "failed", State.PRUNED: "pruned"}


@dataclass(frozen=True, slots=True, eq=False)
class TrialRecord:
    """A trial and all that is known about it; None where something is unknown.

    ``value`` of a pruned trial is the last one that it reported. ``reports``: steps and intermediate values.
    """

    number: int
    state: RecordState
    config: Config
    value: float | None = None
    seconds: float | None = None
    started: datetime | None = None
    ended: datetime | None = None
    worker: str | None = None
    remarks: tuple[str, ...] = ()
    log: str | None = None
    reports: tuple[tuple[int, float], ...] = ()
    suggestion: SuggestionNote | None = None


def stored_records(stored: Sequence[StoredTrial], counted: Mapping[int, Trial]) -> tuple[TrialRecord, ...]:
    """Return the records of stored trials, in order of their numbers; counted: the trials that count, by number."""
    records = []
    for trial in sorted(stored, key=lambda trial: trial.number):
        state = STATE_OF.get(str(trial.state))
        if state is not None and VOID_KEY not in trial.user_attrs:
            records.append(_stored_record(trial, state, counted.get(trial.number)))
    return tuple(records)


def _stored_record(trial: StoredTrial, state: RecordState, counted: Trial | None) -> TrialRecord:
    reports = tuple(sorted((step, value) for step, value in trial.intermediate_values.items() if math.isfinite(value)))
    value = None if counted is None or state == "pruned" else counted.value
    if state == "finished" and value is None:
        state = "failed"  # its value is not finite
    if state == "pruned" and reports:
        value = reports[-1][1]
    return TrialRecord(
        trial.number, state, dict(trial.params if counted is None else counted.config), value, duration(trial),
        trial.datetime_start, trial.datetime_complete, _worker(trial), () if counted is None else counted.notes,
        _log(trial), reports, read_note(stored_influence(trial)),
    )  # fmt: skip


def _worker(trial: StoredTrial) -> str | None:
    """Return the name of the worker that ran a trial: the process that sent its heartbeats, and its host if known."""
    beat, place = trial.system_attrs.get(HEARTBEAT_KEY), trial.user_attrs.get(PLACE_KEY)
    if not isinstance(beat, Mapping) or "pid" not in beat:
        return None
    host = f" on {place['host']}" if isinstance(place, Mapping) and "host" in place else ""
    return f"process {beat['pid']}{host}"


def _log(trial: StoredTrial) -> str | None:
    """Return the file with the output of a program, if it was kept."""
    place = trial.user_attrs.get(PLACE_KEY)
    folder = place.get("logs") if isinstance(place, Mapping) else None
    return f"{folder}/{trial.number}.out" if isinstance(folder, str) else None


def run_records(
    run: Run, notes: Sequence[SuggestionNote | None], numbers: Sequence[int] = ()
) -> tuple[TrialRecord, ...]:
    """Return the records of a run of which nothing else is known; without numbers, they are counted from 0."""
    places: Sequence[int] = numbers or range(len(run))
    return tuple(
        TrialRecord(
            number, STATE_OF_TRIAL[trial.state], dict(trial.config), trial.value, trial.seconds,
            remarks=trial.notes, suggestion=note,
        )
        for number, trial, note in zip(places, run.trials, notes, strict=True)
    )  # fmt: skip


def state_counts(records: Sequence[TrialRecord]) -> dict[RecordState, int]:
    """Return how many trials are in each state."""
    counts: dict[RecordState, int] = dict.fromkeys(STATES, 0)
    for record in records:
        counts[record.state] += 1
    return counts


def hyperparameter_names(records: Sequence[TrialRecord], first: Sequence[str] = ()) -> list[str]:
    """Return the names of all hyperparameters that were tried, those of a space first."""
    tried: dict[str, Any] = dict.fromkeys(name for record in records for name in record.config)
    return [*(name for name in first if name in tried), *(name for name in tried if name not in set(first))]
