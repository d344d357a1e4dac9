"""Everything that is stored about one trial of a task, in whatever state it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recollect.errors import InputError
from recollect.runs.run import Config
from recollect.storage.open import Store, storage_errors
from recollect.storage.sql_read import duration, read_after
from recollect.storage.studies import NOTES_KEY, PLACE_KEY, VOID_KEY, choose_study, stored_influence, task_studies

STATES = {"COMPLETE": "ok", "FAIL": "failed", "PRUNED": "pruned", "RUNNING": "running", "WAITING": "waiting"}


@dataclass(frozen=True, slots=True)
class TrialDetails:
    """One trial.

    Attributes:
        problem: The problem; None for a study of another program.
        task: The task.
        number: The trial's number in the memory, from 0.
        state: "ok", "failed", "pruned", "running", "waiting", or "void" for a trial that does not count.
        config: The configuration.
        value: The value; None unless the state is "ok".
        seconds: How long it took, if known.
        started: When it started, in the local time of the machine that ran it, if known.
        notes: Why it failed or does not count, or what was remarkable.
        suggestion: Why it was suggested: "reason", and the weights that were used ("target", "past"), if known.
        place: Of a program: "host", and what is kept there: "output", "errors", "folder".
    """

    problem: str | None
    task: str
    number: int
    state: str
    config: Config
    value: float | None
    seconds: float | None
    started: datetime | None
    notes: tuple[str, ...]
    suggestion: Mapping[str, Any]
    place: Mapping[str, str]


def read_trial(store: Store, task: str, number: int, problem: str | None = None) -> TrialDetails:
    """Return one trial of a task.

    Raises:
        InputError: There is no such task or trial, or several problems have the task.
    """
    with storage_errors(store.name):
        study = choose_study(task_studies(store), task, problem, where=store.name)
        records = read_after(store, study.key, -1)
    record = next((record for record in records if record.number == number), None)
    if record is None:
        numbers = f"0 to {max(record.number for record in records)}" if records else "none"
        raise InputError(f"{store.name}: task {task!r} has no trial {number}; its trials are: {numbers}")
    void, notes = record.user_attrs.get(VOID_KEY), record.user_attrs.get(NOTES_KEY)
    remarks = [] if void is None else [f"does not count: {void}"]
    return TrialDetails(
        problem=study.problem,
        task=study.task,
        number=number,
        state="void" if void is not None else STATES.get(str(record.state), str(record.state)),
        config=dict(record.params),
        value=record.values[0] if record.values and record.state == "COMPLETE" else None,
        seconds=duration(record),
        started=record.datetime_start,
        notes=(*remarks, *(map(str, notes) if isinstance(notes, list) else ())),
        suggestion=_mapping(stored_influence(record)),
        place=_files(_mapping(record.user_attrs.get(PLACE_KEY)), number),
    )


def _mapping(content: object) -> Mapping[str, Any]:
    return content if isinstance(content, Mapping) else {}


def _files(place: Mapping[str, Any], number: int) -> dict[str, str]:
    files = {"host": place.get("host")}
    if "logs" in place:
        files |= {name: f"{place['logs']}/{number}.{kind}" for name, kind in (("output", "out"), ("errors", "err"))}
    if "folder" in place:
        files["folder"] = f"{place['folder']}/{number}"
    return {name: str(value) for name, value in files.items() if value is not None}
