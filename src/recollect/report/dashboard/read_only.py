"""A memory, opened for reading only as far as its storage supports it, and what tells whether anything has changed.

SQLite files are opened with ``mode=ro``, sessions of PostgreSQL and MySQL are set to read-only. Journals have no such
mode; nothing here writes to them. A memory that does not exist is an error.

Each study has a token that changes when a trial starts or ends. Tokens are cheap (one small query for all studies of a
SQL database), so they can be requested every second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from recollect.errors import ReadOnlyStorageError, StorageError
from recollect.storage.memory import Memory
from recollect.storage.open import JOURNAL, SQLITE, file_of, missing_reason, storage_errors, without_password
from recollect.storage.sql_read import FINISHED_STATES, RUNNING
from recollect.storage.studies import TaskStudy, task_studies

READ_ONLY_OPTIONS = {
    "postgresql": ("options", "-c default_transaction_read_only=on"),
    "mysql": ("init_command", "SET SESSION TRANSACTION READ ONLY"),
}


def open_read_only(where: str) -> Memory:
    """Open an existing memory; StorageError if there is none."""
    name, path = without_password(where), file_of(where)
    if reason := missing_reason(where):
        raise StorageError(f"{name}: {reason}")
    if where.startswith(JOURNAL):
        return Memory(where)
    memory = _database(where, name) if path is None else Memory(_sqlite(path.absolute()))
    memory.store.name = name  # without what was added to the address
    return memory


def _sqlite(path: Path) -> str:
    """Return the address that opens a SQLite file read-only; names with special URI characters are left unchanged."""
    plain = path.is_file() and not re.search("[%?#]", str(path))
    return f"{SQLITE}file:{path.as_posix()}?mode=ro&uri=true" if plain else str(path)


def _database(address: str, name: str) -> Memory:
    try:
        return Memory(_read_only_session(address))
    except ReadOnlyStorageError as error:  # Optuna was about to create its tables
        raise StorageError(f"{name}: there is no such memory: the database has no studies") from error


def _read_only_session(address: str) -> str:
    """Return the address of a database with an option for read-only sessions, unless it sets that option itself."""
    option, value = READ_ONLY_OPTIONS.get(re.split(r"[+:]", address)[0], ("", ""))
    if not option or f"{option}=" in address.partition("?")[2]:
        return address
    return f"{address}{'&' if '?' in address else '?'}{option}={quote(value)}"


SHOWN_STATES = (*FINISHED_STATES, RUNNING)
QUERY = (
    "select study_id, state, count(*), max(trial_id), max(datetime_complete) from trials "
    f"where state in {SHOWN_STATES} group by study_id, state order by 1, 2"
)


@dataclass(frozen=True, slots=True)
class StudyState:
    """A study and its change token."""

    entry: TaskStudy
    token: str


def read_study_states(memory: Memory) -> tuple[StudyState, ...]:
    """Return all studies with their change tokens."""
    store = memory.store
    with storage_errors(store.name):
        studies = task_studies(store)
        shown: dict[int, list[tuple[object, ...]]] = {}
        if store.sql:
            with store.reading() as fetch:
                for study, *rest in fetch(QUERY):
                    shown.setdefault(study, []).append(tuple(map(str, rest)))
        else:
            for entry in studies:
                trials = store.optuna.get_all_trials(entry.id, deepcopy=False)
                states = [(trial.number, trial.state.name, str(trial.datetime_complete)) for trial in trials]
                shown[entry.id] = [state for state in states if state[1] in SHOWN_STATES]
    return tuple(StudyState(entry, repr((entry, shown.get(entry.id)))) for entry in studies)


def combined_token(states: Iterable[StudyState]) -> str:
    """Return one token for several studies."""
    digest = sha256()
    for state in states:
        digest.update(state.token.encode("utf-8", "backslashreplace") + b"\0")
    return digest.hexdigest()[:32]
