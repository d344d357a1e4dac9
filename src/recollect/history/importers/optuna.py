"""Optuna's studies, alone or all that a storage holds. Those that a memory made keep their problems and tasks."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import InputError
from recollect.history.importers.asked import Asked, Found
from recollect.history.memory import read_entries
from recollect.history.optuna_runs import run_of_study
from recollect.history.reading import StudyRow
from recollect.history.run import Run
from recollect.history.storage import Store, faults, open_store, quiet
from recollect.history.studies import Entry, entries, entry_of

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study

WHY = "a study says what its value and its parameters are"
UNFINISHED = "trials that have not finished or were pruned with nothing to compare with"


def is_study(source: Any) -> bool:
    """Whether this is a study of Optuna, which is not imported to find out."""
    return _is_a(source, "study", "Study")


def is_storage(source: Any) -> bool:
    """Whether this is a storage of Optuna, which is not imported to find out."""
    return _is_a(source, "storages", "BaseStorage")


def read_study(study: Study, asked: Asked) -> Found:
    """Read one study, named ``task`` if that is asked for."""
    where = f"study {study.study_name!r}"
    with faults(where):
        asked.refuse_columns(where, WHY)
        directions = tuple(direction.name for direction in study.directions)
        entry = entry_of(StudyRow(study._study_id, study.study_name, directions, study.user_attrs), where)
        if entry.problem is not None:
            return _read_own(open_store(study._storage), replace(entry, task=asked.task or entry.task), asked)
        run = run_of_study(study, asked.task)
        asked.way(where, run.direction)
        return Found([run], {UNFINISHED: len(study.get_trials(deepcopy=False)) - len(run)}, [None])


def read_storage(where: str | Path | BaseStorage, asked: Asked) -> Found:
    """Read all studies of a storage, or those that are asked for."""
    import optuna

    if isinstance(where, str):
        _check_file(where)
    store = open_store(where)
    asked.refuse_columns(store.name, WHY)
    skipped: Counter[str] = Counter()
    runs: list[Run] = []
    problems: list[str | None] = []
    with faults(store.name), quiet():
        if asked.into is not None and _place(asked.into) == _place(store):
            raise InputError(f"{store.name}: a memory cannot be imported into itself")
        for entry in _wanted(entries(store), asked, store.name):
            if entry.direction is None and asked.task is None:
                skipped["studies with several objectives"] += 1
                continue
            if entry.problem is None:
                found = read_study(optuna.load_study(study_name=entry.name, storage=store.optuna), asked)
            else:
                found = _read_own(store, entry, asked)
            skipped.update(found.skipped)
            if not found.runs[0].trials:
                skipped["studies without a finished trial"] += 1
                continue
            runs += found.runs
            problems += found.problems
    return Found(runs, skipped, problems)


def _wanted(there: Sequence[Entry], asked: Asked, where: str) -> list[Entry]:
    """Return the studies that are asked for: those of the problem, if there is one; by task or, failing that, name."""
    chosen = [entry for entry in there if entry.problem == asked.problem] if asked.problem is not None else []
    chosen = chosen or [*there]
    tasks = [entry.task for entry in chosen]
    if asked.task not in tasks and asked.task in [entry.name for entry in chosen]:
        return [entry for entry in chosen if entry.name == asked.task]
    asked.check_task(where, tasks, called="task" if any(entry.problem is not None for entry in chosen) else "study")
    return [entry for entry in chosen if asked.wants(entry.task)]


def _read_own(store: Store, entry: Entry, asked: Asked) -> Found:
    """Read a study that a memory made, as the memory does."""
    from optuna.trial import TrialState

    (run,) = read_entries(store, [entry])
    asked.way(f"study {entry.name!r}", run.direction)
    unfinished = store.optuna.get_n_trials(entry.id, (TrialState.RUNNING, TrialState.WAITING))
    return Found([run], {UNFINISHED: unfinished}, [entry.problem])


def _place(store: Store) -> object:
    """Return what two stores have in common exactly if they are the same storage, as far as can be told."""
    if store.engine is None:
        return store.address or store.optuna
    url = store.engine.url
    if url.get_backend_name() != "sqlite":
        return url.get_backend_name(), url.host, url.port, url.database
    return Path(url.database).resolve() if url.database not in (None, "", ":memory:") else store.engine


def _check_file(address: str) -> None:
    """Refuse the name of a file that is not there: opening it would make one."""
    kind, _, place = address.partition(":")
    if kind == "journal":
        path = Path(place).expanduser()
    elif kind.startswith("sqlite"):
        path = Path(place.removeprefix("///").partition("?")[0])
    else:
        return
    if not path.is_file():
        raise InputError(f"{address}: there is no such storage")
    if not path.stat().st_size:
        raise InputError(f"{address}: the file is empty")


def _is_a(source: Any, module: str, name: str) -> bool:
    home = sys.modules.get(f"optuna.{module}")
    return home is not None and isinstance(source, getattr(home, name))
