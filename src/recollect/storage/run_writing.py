"""Write runs into a memory: checked first, then stored in batches, each run whole or not at all.

Every run becomes one study with ordinary trials of Optuna (`storage.studies`). All runs are checked before the first is
stored. A batch is one transaction of a SQL database, so an interrupted import leaves whole runs only, and can be
continued with ``skip_existing``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from recollect._text import is_unicode, name_list, plural
from recollect._warnings import warn_caller
from recollect.errors import InputError, SpaceError
from recollect.numerics.arrays import native
from recollect.runs.run import Run, State, Trial
from recollect.space.inference import PLAIN_TYPES, InferredRange, infer_values, values_by_name
from recollect.space.serialization import to_json
from recollect.storage.open import Store
from recollect.storage.optuna_conversion import distributions, frozen_trial, params_of
from recollect.storage.run_reading import StoredRun, read_task_runs
from recollect.storage.sql_read import ESTIMATE_KEY, StoredStudy, read_studies
from recollect.storage.sql_write import NewStudy
from recollect.storage.studies import (
    DEFAULT_PROBLEM,
    INCOMPLETE_KEY,
    NOTE_KEY,
    NOTES_KEY,
    PROBLEM_KEY,
    TAGS_KEY,
    check_parameter_names,
    get_or_create_study,
    study_attributes,
    study_name,
)
from recollect.storage.transitions import create_studies, delete_studies, write_trials

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

MAX_EXACT_INTEGER = 2**53  # Optuna keeps the integers of a range as floats
TRIALS_PER_BATCH = 5_000  # stored in one transaction: a second or two of work
Report = Callable[[int, int], None]
"""Called with the number of runs stored so far, and of all."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedRun:
    """A run that can be stored, under this name, with its parameters in these distributions."""

    name: str
    stored: StoredRun
    known: dict[str, BaseDistribution]
    attributes: dict[str, Any]

    def study(self) -> NewStudy:
        """Return the study to be created; all its trials end now, since it is unknown when they ran."""
        run, now = self.stored.run, datetime.now()
        trials = [_frozen(trial, self.known, now) for trial in run.trials]
        return NewStudy(self.name, run.direction, self.attributes, trials)


def store_runs(
    store: Store, runs: Sequence[StoredRun], *, skip_existing: bool = False, report: Report | None = None
) -> list[StoredRun]:
    """Store runs and return those that were stored; InputError, and nothing is stored, if one cannot be.

    Runs whose tasks exist are refused or, with ``skip_existing``, left out with a warning.
    """
    from optuna.exceptions import DuplicatedStudyError

    left, stored = check_runs(store, runs), list[StoredRun]()
    for _ in range(2):  # again if another process stores some of the same runs at this moment
        left = _without_existing(store, left, skip_existing=skip_existing, imported=len(stored))
        total = len(stored) + len(left)
        try:
            for batch in _create_in_batches(store, left):
                stored += [entry.stored for entry in batch]
                left = left[len(batch) :]
                if report is not None:
                    report(len(stored), total)
        except DuplicatedStudyError:
            continue
        return stored
    raise InputError(f"{store.name}: another process is storing the same runs")


def check_runs(store: Store, runs: Sequence[StoredRun]) -> list[CheckedRun]:
    """Check that all runs can be stored as they are; InputError or ConfigError names what cannot."""
    spaces: dict[int, tuple[str, dict[str, BaseDistribution]]] = {}  # by id: many runs share one
    checked = []
    for stored in runs:
        run, problem = stored.run, DEFAULT_PROBLEM if stored.problem is None else stored.problem
        name = study_name(problem, run.task)
        _check_names(run)
        if run.space is None:
            text, known = None, _inferred(run)
        else:
            if id(run.space) not in spaces:
                spaces[id(run.space)] = _space_text(run), distributions(run.space)
            text, known = spaces[id(run.space)]
        check_parameter_names(store, known)
        for trial in run.trials:
            params_of(trial.config, known)
        attributes = study_attributes(problem, run.task, run.direction, space=text, tags=stored.tags, note=stored.note)
        checked.append(CheckedRun(name, stored, known, attributes))
    return checked


def fill_task(store: Store, checked: CheckedRun) -> None:
    """Add the trials of a run to the study of its task, which exists and has none yet."""
    run, problem = checked.stored.run, checked.attributes[PROBLEM_KEY]
    study = get_or_create_study(store, problem, run.task, space=run.space, direction=run.direction)
    if read_task_runs(store, [study])[0].trials:
        raise InputError(
            f"{store.name}: task {run.task!r} of problem {problem!r} has trials already: "
            "give the run another task, or remove the old one first"
        )
    write_trials(store, study.key, checked.study().trials)
    for key in (TAGS_KEY, NOTE_KEY):
        if key in checked.attributes:
            store.optuna.set_study_user_attr(study.id, key, checked.attributes[key])


def delete_partial(store: Store, names: Iterable[str]) -> set[str]:
    """Return which of these studies exist, after deleting those of which an interrupted process left a part."""
    if store.missing:
        return set()
    existing = {study.name: study for study in read_studies(store)}
    found = [existing[name] for name in names if name in existing]
    partial = {study.id for study in found if _is_partial(store, study)}
    delete_studies(store, sorted(partial))
    return {study.name for study in found if study.id not in partial}


def _without_existing(
    store: Store, checked: Sequence[CheckedRun], *, skip_existing: bool, imported: int
) -> list[CheckedRun]:
    """Return the runs whose tasks do not exist; ``imported``: how many have been stored before."""
    existing = delete_partial(store, [entry.name for entry in checked])
    there = [entry.stored for entry in checked if entry.name in existing]
    if there and not skip_existing:
        done = f"{plural(imported, 'run')} imported before it" if imported else "nothing was imported"
        raise InputError(
            f"{store.name}: problem {there[0].problem!r} has the task {there[0].run.task!r} already; "
            f"{done}: remove it first, import under another name, or pass skip_existing=True (--skip-existing)"
        )
    if there:
        tasks = name_list(repr(stored.run.task) for stored in there)
        message = f"{store.name}: skipped {plural(len(there), 'run')} whose tasks exist: {tasks}"
        warn_caller(message)
    return [entry for entry in checked if entry.name not in existing]


def _is_partial(store: Store, study: StoredStudy) -> bool:
    """Whether a process was interrupted while it created this study, in a storage without transactions."""
    if study.user_attrs:
        return bool(study.user_attrs.get(INCOMPLETE_KEY))
    return not store.optuna.get_all_trials(study.id, deepcopy=False)


def _create_in_batches(store: Store, runs: Sequence[CheckedRun]) -> Iterator[Sequence[CheckedRun]]:
    """Store runs, and yield each batch when it is stored; without transactions, each run is a batch."""
    start = trials = 0
    for end, entry in enumerate(runs, start=1):
        trials += len(entry.stored.run)
        if trials >= TRIALS_PER_BATCH or end == len(runs) or store.engine is None:
            batch = runs[start:end]
            create_studies(store, [checked.study() for checked in batch])
            start, trials = end, 0
            yield batch


def _space_text(run: Run) -> str:
    assert run.space is not None
    try:
        return to_json(run.space)
    except SpaceError as error:
        raise SpaceError(f"run {run.task!r}: {error}") from error


def _check_names(run: Run) -> None:
    for name in dict.fromkeys(name for config in run.configs for name in config):
        if not is_unicode(name):
            raise InputError(f"run {run.task!r}: expected names of hyperparameters in valid Unicode, got {name!r}")


def _inferred(run: Run) -> dict[str, BaseDistribution]:
    """Return ranges that contain all values of a run without a space, as Optuna's distributions."""
    tried = [{name: native(value) for name, value in config.items()} for config in run.configs]
    return {name: _distribution_of(name, values, run.task) for name, values in values_by_name(tried).items()}


def _distribution_of(name: str, values: Sequence[Any], task: str) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    for value in values:
        number = isinstance(value, int | float)
        if type(value) not in PLAIN_TYPES or (number and not abs(value) <= sys.float_info.max):
            expected = "text, numbers in the range of floats, booleans or None"
            raise InputError(f"run {task!r}, {name!r}: expected {expected}, got {value!r:.80}")
    for one, other in pairwise(sorted((value for value in values if isinstance(value, int)), key=int)):
        if one == other and type(one) is not type(other):
            raise InputError(f"run {task!r}, {name!r}: expected numbers or booleans, got both {one!r} and {other!r}")
    inferred = infer_values(values, log_scales=False)
    if not isinstance(inferred, InferredRange):
        return CategoricalDistribution(inferred)
    if isinstance(inferred.low, int):
        if max(map(abs, values)) > MAX_EXACT_INTEGER:
            return CategoricalDistribution(sorted(set(values)))
        return IntDistribution(inferred.low, int(inferred.high))
    return FloatDistribution(inferred.low, inferred.high)


def _frozen(trial: Trial, known: dict[str, BaseDistribution], end: datetime) -> FrozenTrial:
    """Return a finished trial as Optuna stores it; its times only tell how long it took."""
    from optuna.trial import TrialState

    notes: dict[str, Any] = {NOTES_KEY: list(trial.notes)} if trial.notes else {}
    return frozen_trial(
        trial.config,
        known,
        {State.OK: TrialState.COMPLETE, State.FAILED: TrialState.FAIL, State.PRUNED: TrialState.PRUNED}[trial.state],
        value=trial.value,
        datetime_start=end - timedelta(seconds=trial.seconds or 0.0),
        datetime_complete=end,
        user_attrs=notes | ({} if trial.estimate is None else {ESTIMATE_KEY: trial.estimate}),
    )
