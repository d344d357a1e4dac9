"""Optuna's studies: a single one, or all of a storage. Studies that a memory created keep their problems and tasks."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import InputError, InputTypeError, StorageError
from recollect.storage.importers import ImportOptions, ImportResult
from recollect.storage.open import Store, missing_reason, open_store, storage_errors, without_password
from recollect.storage.optuna_conversion import run_of_study
from recollect.storage.optuna_log import quiet_optuna
from recollect.storage.run_reading import read_task_runs
from recollect.storage.sql_read import DAMAGE_ERRORS, UNFINISHED_STATES, StoredStudy, count_trials
from recollect.storage.studies import TaskStudy, as_task_study, task_studies
from recollect.storage.study_spaces import run_and_space

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study

NO_COLUMNS = "a study defines its value and its parameters"
UNFINISHED = "trials that have not finished"


def is_optuna(source: Any, module: str, name: str) -> bool:
    """Whether this is an instance of one of Optuna's classes; Optuna is not imported to find out."""
    home = sys.modules.get(f"optuna.{module}")
    return home is not None and isinstance(source, getattr(home, name))


def read_study(study: Study, options: ImportOptions) -> ImportResult:
    """Read one study, named as the option ``task`` says."""
    where = f"study {study.study_name!r}"
    with storage_errors(where):
        options.refuse_columns(where, NO_COLUMNS)
        directions = tuple(direction.name for direction in study.directions)
        own = as_task_study(StoredStudy(study._study_id, study.study_name, directions, study.user_attrs), where)
        if own.problem is not None:
            return _read_own(open_store(study._storage), [replace(own, task=options.task or own.task)], options)[0]
        trials = study.get_trials(deepcopy=False)
        run = run_and_space(run_of_study(study, options.task), trials)
        options.direction_for(where, run.direction)
        return ImportResult([run], {UNFINISHED: len(trials) - len(run)}, [None], [((), "")])


def read_storage(where: str | Path | BaseStorage, options: ImportOptions) -> ImportResult:
    """Read all studies of a storage, or those that the options name."""
    import optuna

    if isinstance(where, str) and (reason := missing_reason(where)):  # opening it would create it
        raise InputError(f"{without_password(where)}: {reason}")
    store = open_store(where)
    options.refuse_columns(store.name, NO_COLUMNS)
    skipped: Counter[str] = Counter()
    results: list[ImportResult] = []
    with storage_errors(store.name), quiet_optuna():
        if options.into is not None and not options.into.missing and _identity(options.into) == _identity(store):
            raise InputError(f"{store.name}: a memory cannot be imported into itself")
        selected = _selected(task_studies(store), options, store.name)
        own = [study for study in selected if study.problem is not None]
        known = dict(zip(own, _read_own(store, own, options), strict=True))
        for study in selected:
            if study.direction is None and options.task is None:
                skipped["studies with several objectives"] += 1
                continue
            try:
                if study in known:
                    result = known[study]
                else:
                    result = read_study(optuna.load_study(study_name=study.name, storage=store.optuna), options)
            except (InputError, InputTypeError):
                raise
            except (StorageError, *DAMAGE_ERRORS):  # Optuna cannot leave out a damaged trial
                (result,) = _read_own(store, [study], options)
            skipped.update(result.skipped)
            if not result.runs[0].trials:
                skipped["studies without a finished trial"] += 1
                continue
            results.append(result)
    return ImportResult(
        [run for result in results for run in result.runs],
        skipped,
        [problem for result in results for problem in result.problems],
        [labels for result in results for labels in result.labels],
    )


def _selected(studies: Sequence[TaskStudy], options: ImportOptions, where: str) -> list[TaskStudy]:
    """Return the studies to read: of the problem, if there are any; the one with this task or, failing that, name."""
    if options.problem is not None:
        studies = [study for study in studies if study.problem == options.problem] or studies
    tasks = [study.task for study in studies]
    if options.task not in tasks and options.task in [study.name for study in studies]:
        return [study for study in studies if study.name == options.task]
    options.check_task(where, tasks, noun="task" if any(study.problem is not None for study in studies) else "study")
    return [study for study in studies if options.includes(study.task)]


def _read_own(store: Store, studies: Sequence[TaskStudy], options: ImportOptions) -> list[ImportResult]:
    """Read studies that a memory created, as the memory does."""
    unfinished = count_trials(store, [study.id for study in studies], states=UNFINISHED_STATES)
    results = []
    for study, run in zip(studies, read_task_runs(store, studies), strict=True):
        options.direction_for(f"study {study.name!r}", run.direction)
        labels = [(study.tags, study.note)]
        results.append(ImportResult([run], {UNFINISHED: unfinished.get(study.id, 0)}, [study.problem], labels))
    return results


def _identity(store: Store) -> object:
    """Return a value that is equal for two stores if they are the same storage, as far as can be told."""
    if store.engine is None:
        return store.address or store.optuna
    url = store.engine.url
    if url.get_backend_name() != "sqlite":
        return url.get_backend_name(), url.host, url.port, url.database
    return Path(url.database).resolve() if url.database not in (None, "", ":memory:") else store.engine
