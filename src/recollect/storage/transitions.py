"""Add studies and trials and change states: in one transaction in SQL databases, step by step in other storages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect.storage import sql_write
from recollect.storage.open import Store
from recollect.storage.optuna_log import quiet_optuna
from recollect.storage.sql_write import Attributes, NewStudy, StateChange
from recollect.storage.studies import INCOMPLETE_KEY
from recollect.storage.study_key import StudyKey, noticing_removal

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, TrialState


def create_studies(store: Store, studies: Sequence[NewStudy]) -> None:
    """Create studies with all their trials; DuplicatedStudyError if there is one of the same name.

    All or none in a SQL database. In other storages a study is marked as incomplete until all of it is written.
    """
    from optuna.exceptions import DuplicatedStudyError

    if store.engine is None:
        for study in studies:
            _create_step_by_step(store, study)
        return
    from sqlalchemy.exc import IntegrityError

    try:
        sql_write.insert_studies(store.engine, studies)
    except IntegrityError as error:
        raise DuplicatedStudyError(f"{store.name}: another process has stored one of these runs") from error


def _create_step_by_step(store: Store, study: NewStudy) -> None:
    from optuna.study import StudyDirection

    with quiet_optuna():
        key = store.optuna.create_new_study([StudyDirection[study.direction.upper()]], study.name)
    store.optuna.set_study_user_attr(key, INCOMPLETE_KEY, True)
    for trial in study.trials:
        store.optuna.create_new_trial(key, trial)
    for name, content in (*study.attributes.items(), (INCOMPLETE_KEY, False)):
        store.optuna.set_study_user_attr(key, name, content)


def delete_studies(store: Store, studies: Sequence[int]) -> None:
    """Delete studies (ids) permanently."""
    if not studies:
        return
    if store.engine is not None:
        sql_write.delete_studies(store.engine, studies)
    else:
        for study in studies:
            store.optuna.delete_study(study)


def write_trials(store: Store, study: StudyKey, trials: Sequence[FrozenTrial]) -> list[tuple[int, int]]:
    """Add trials to a study, all or none if the storage supports it; returns the (id, number) of each.

    TaskRemovedError if the study was removed.
    """
    with noticing_removal(store.name):
        if store.engine is not None:
            return sql_write.insert_trials(store.engine, study, trials)
        ids = [store.optuna.create_new_trial(study.id, trial) for trial in trials]
        return [(trial, store.optuna.get_trial_number_from_id(trial)) for trial in ids]


def move_trials(store: Store, study: StudyKey, changes: Sequence[StateChange]) -> list[bool]:
    """Change the states of trials, given by ascending ids; return which of them were in the state before.

    Of several processes that try to change a trial, exactly one succeeds. TaskRemovedError if the study was removed.
    """
    with noticing_removal(store.name):
        if store.engine is not None:
            return sql_write.update_states(store.engine, study, changes)
        store.optuna.get_study_name_from_id(study.id)  # a journal keeps the trials of a removed study
        return [_move_step_by_step(store, change) for change in changes]


def move_trial(
    store: Store,
    study: StudyKey,
    trial: int,
    states: tuple[TrialState, TrialState],
    *,
    user: Mapping[str, Any] | None = None,
    system: Mapping[str, Any] | None = None,
) -> bool:
    """Change the state of a trial, with some attributes; False if it was not in the first state."""
    return move_trials(store, study, [StateChange(trial, *states, None, Attributes(user or {}, system or {}))])[0]


def change_attribute(store: Store, study: StudyKey, trial: int, key: str, content: Any) -> None:
    """Change a system attribute of a trial that has it; of a removed study, no other trial with the same id."""
    if store.engine is not None:
        sql_write.update_attribute(store.engine, study, trial, key, content)
    else:
        store.optuna.set_trial_system_attr(trial, key, content)


def _move_step_by_step(store: Store, change: StateChange) -> bool:
    """Do so in single steps: the change of state decides which process was first."""
    from optuna import exceptions

    # Older versions of Optuna raise a plain RuntimeError, from which this one is derived.
    already_finished = getattr(exceptions, "UpdateFinishedTrialError", RuntimeError)
    trial, after, values = change.trial, change.after, None if change.value is None else [change.value]
    try:
        if store.optuna.get_trial(trial).state != change.before:
            return False
        if after.is_finished():
            _annotate(store, trial, change.attributes)
            return store.optuna.set_trial_state_values(trial, after, values)
        moved = store.optuna.set_trial_state_values(trial, after)
        if moved:
            _annotate(store, trial, change.attributes)
        return moved
    except already_finished:
        return False


def _annotate(store: Store, trial: int, attributes: Attributes) -> None:
    for key, content in attributes.user.items():
        store.optuna.set_trial_user_attr(trial, key, content)
    for key, content in attributes.system.items():
        store.optuna.set_trial_system_attr(trial, key, content)
