"""What tells whether anything has changed: a mark of each study, which is another one when a trial has ended.

Marks are cheap, one small query for all studies of a SQL database, so that they can be asked for every second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from recollect.history.memory import Memory
from recollect.history.storage import Store, faults
from recollect.history.studies import Entry, entries

ENDED = "state in ('COMPLETE', 'FAIL', 'PRUNED')"
QUERY = (
    "select study_id, state, count(*), max(trial_id), max(datetime_complete) from trials "
    f"where {ENDED} group by study_id, state order by 1, 2"
)


@dataclass(frozen=True, slots=True)
class Marked:
    """A study, and its mark."""

    entry: Entry
    mark: str


def read_marks(memory: Memory) -> tuple[Marked, ...]:
    """Return all studies with their marks."""
    store = memory.store
    with faults(store.name):
        found = entries(store)
        ended = _from_tables(store) if store.sql else _from_optuna(store, found)
    return tuple(Marked(entry, repr((entry, ended.get(entry.id)))) for entry in found)


def joint_mark(marked: Iterable[Marked]) -> str:
    """Return one mark for several studies."""
    digest = sha256()
    for one in marked:
        digest.update(one.mark.encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()[:32]


def _from_tables(store: Store) -> dict[int, list[tuple[object, ...]]]:
    found: dict[int, list[tuple[object, ...]]] = {}
    with store.reading() as fetch:
        for study, *rest in fetch(QUERY):
            found.setdefault(study, []).append(tuple(map(str, rest)))
    return found


def _from_optuna(store: Store, studies: Iterable[Entry]) -> dict[int, list[tuple[object, ...]]]:
    return {
        study.id: [
            (trial.number, trial.state.name, str(trial.datetime_complete))
            for trial in store.optuna.get_all_trials(study.id, deepcopy=False)
            if trial.state.is_finished()
        ]
        for study in studies
    }
