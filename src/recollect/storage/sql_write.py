"""Write to Optuna's tables in a SQL database: insert studies and trials, and change them, each in one transaction.

Optuna's own calls take one transaction per trial, parameter and attribute, and a memory of 200 runs has 10,000 trials.
Optuna's own models describe the tables, so a changed column is an error and not a guess. `storage.sql_read` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, TrialState
    from sqlalchemy.engine import Connection, Engine

    from recollect.storage.study_key import StudyKey

START, COMPLETE = "datetime_start", "datetime_complete"
STUDIES_PER_STATEMENT = 500


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes to set on a trial: user attributes, which people see, and system attributes."""

    user: Mapping[str, Any]
    system: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewStudy:
    """A study to be inserted whole: its name, direction, user attributes and trials."""

    name: str
    direction: str
    attributes: Mapping[str, Any]
    trials: Sequence[FrozenTrial]


def insert_studies(engine: Engine, studies: Sequence[NewStudy]) -> None:
    """Insert studies with all their trials in one transaction; IntegrityError if there is one of the same name."""
    from optuna.storages._rdb import models
    from optuna.study import StudyDirection
    from sqlalchemy import insert

    with engine.begin() as connection:
        names = [{"study_name": study.name} for study in studies]
        ids = _insert_rows(connection, models.StudyModel.__table__, names)
        owned = list(zip(ids, studies, strict=True))
        directions = [
            {"study_id": key, "direction": StudyDirection[study.direction.upper()], "objective": 0}
            for key, study in owned
        ]
        connection.execute(insert(models.StudyDirectionModel.__table__), directions)
        attributes = [
            {"study_id": key, "key": name, "value_json": json.dumps(content)}
            for key, study in owned
            for name, content in study.attributes.items()
        ]
        if attributes:
            connection.execute(insert(models.StudyUserAttributeModel.__table__), attributes)
        trials = [(key, number, trial) for key, study in owned for number, trial in enumerate(study.trials)]
        _insert_trials(connection, trials)


def insert_trials(engine: Engine, study: StudyKey, trials: Iterable[FrozenTrial]) -> list[tuple[int, int]]:
    """Insert trials in one transaction; returns the (id, number) of each. KeyError if the study was removed."""
    from optuna.storages._rdb import models
    from sqlalchemy import select, update

    studies, table = models.StudyModel.__table__, models.TrialModel.__table__
    with engine.begin() as connection:
        # Writing the study as it is locks it in every database, so that numbers are assigned one after another.
        own = (studies.c.study_id == study.id, study.condition())
        if connection.execute(update(studies).where(*own).values(study_name=studies.c.study_name)).rowcount != 1:
            raise KeyError(f"study {study.id} was removed")
        numbers = select(table.c.number).where(table.c.study_id == study.id).order_by(table.c.trial_id.desc()).limit(1)
        last = connection.execute(numbers).scalar_one_or_none()
        first = 0 if last is None else last + 1
        numbered = [(study.id, number, trial) for number, trial in enumerate(trials, start=first)]
        ids = _insert_trials(connection, numbered)
        return [(key, number) for key, (_, number, _) in zip(ids, numbered, strict=True)]


def _insert_trials(connection: Connection, trials: Sequence[tuple[int, int, FrozenTrial]]) -> list[int]:
    """Insert trials, each with its study and number, and all that belongs to them; return their ids."""
    from optuna.storages._rdb import models
    from sqlalchemy import insert

    if not trials:
        return []
    times = StoredTimes()
    fields = [
        {"study_id": study, "number": number, "state": trial.state} | times.stored(trial)
        for study, number, trial in trials
    ]
    ids = _insert_rows(connection, models.TrialModel.__table__, fields)
    rows: dict[Any, list[dict[str, Any]]] = {}
    texts: dict[int, str] = {}
    for key, (_, _, trial) in zip(ids, trials, strict=True):
        for model, details in _details(models, trial, texts):
            rows.setdefault(model, []).append({"trial_id": key, **details})
    for model, values in rows.items():
        connection.execute(insert(model.__table__), values)
    return ids


def _insert_rows(connection: Connection, table: Any, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Insert rows and return their primary keys, in order; one by one where a database cannot return many."""
    from sqlalchemy import insert

    (key,) = table.primary_key.columns
    if len(rows) > 1 and connection.dialect.insert_executemany_returning_sort_by_parameter_order:
        statement = insert(table).returning(key, sort_by_parameter_order=True)
        return list(connection.execute(statement, rows).scalars())
    keys = [connection.execute(insert(table), row).inserted_primary_key for row in rows]
    return [own[0] for own in keys if own is not None]


def rename_studies(engine: Engine, names: Mapping[int, str], attributes: Mapping[int, Mapping[str, Any]]) -> None:
    """Give studies (ids) other names and set some of their user attributes, in one transaction."""
    from optuna.storages._rdb import models
    from sqlalchemy import update

    table, described = models.StudyModel.__table__, models.StudyUserAttributeModel.__table__
    with engine.begin() as connection:
        for study, name in names.items():
            connection.execute(update(table).where(table.c.study_id == study).values(study_name=name))
            for key, content in attributes[study].items():
                place = (described.c.study_id == study, described.c.key == key)
                connection.execute(update(described).where(*place).values(value_json=json.dumps(content)))


def delete_studies(engine: Engine, studies: Sequence[int]) -> None:
    """Delete studies (ids) and all that belongs to them, in one transaction."""
    from optuna.storages._rdb import models
    from sqlalchemy import delete, select

    trials, owner = models.TrialModel.__table__, models.StudyModel.__table__
    tables = models.BaseModel.metadata.sorted_tables
    with engine.begin() as connection:
        for start in range(0, len(studies), STUDIES_PER_STATEMENT):
            some = studies[start : start + STUDIES_PER_STATEMENT]
            own = select(trials.c.trial_id).where(trials.c.study_id.in_(some))
            for table in (entry for entry in tables if "trial_id" in entry.c and entry is not trials):
                connection.execute(delete(table).where(table.c.trial_id.in_(own)))
            for table in (entry for entry in tables if "study_id" in entry.c and entry is not owner):
                connection.execute(delete(table).where(table.c.study_id.in_(some)))
            connection.execute(delete(owner).where(owner.c.study_id.in_(some)))


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change of a trial from one state to another, with its value and attributes."""

    trial: int
    before: TrialState
    after: TrialState
    value: float | None = None
    attributes: Attributes = Attributes({}, {})


def update_states(engine: Engine, study: StudyKey, changes: Sequence[StateChange]) -> list[bool]:
    """Change the states of trials in one transaction; return which of them were in the state before.

    They are given by ascending ids, so that two processes cannot wait for each other. Of several processes that try to
    change a trial, exactly one succeeds. KeyError if the study was removed.
    """
    from optuna.storages._rdb import models
    from sqlalchemy import select

    times, studies = StoredTimes(), models.StudyModel.__table__
    with engine.begin() as connection:
        moved = [_update_state(connection, study, change, times) for change in changes]
        own = select(studies.c.study_id).where(studies.c.study_id == study.id, study.condition())
        if not all(moved) and connection.execute(own).first() is None:
            raise KeyError(f"study {study.id} was removed")
        return moved


def _update_state(connection: Connection, study: StudyKey, change: StateChange, times: StoredTimes) -> bool:
    from optuna.storages._rdb import models
    from sqlalchemy import insert, update

    table, trial = models.TrialModel.__table__, change.trial
    name = COMPLETE if change.after.is_finished() else START
    fields = {"state": change.after, name: times.convert(name, datetime.now())}
    own = (table.c.trial_id == trial, table.c.study_id == study.id, table.c.state == change.before, study.condition())
    if connection.execute(update(table).where(*own).values(**fields)).rowcount != 1:
        return False
    if change.value is not None:
        stored, kind = models.TrialValueModel.value_to_stored_repr(change.value)
        row = {"trial_id": trial, "objective": 0, "value": stored, "value_type": kind}
        connection.execute(insert(models.TrialValueModel.__table__), row)
    _attach(connection, trial, models.TrialUserAttributeModel.__table__, change.attributes.user)
    _attach(connection, trial, models.TrialSystemAttributeModel.__table__, change.attributes.system)
    return True


def update_attribute(engine: Engine, study: StudyKey, trial: int, key: str, content: Any) -> None:
    """Change a system attribute of a trial if the study is still there."""
    from optuna.storages._rdb import models
    from sqlalchemy import update

    table = models.TrialSystemAttributeModel.__table__
    own = (table.c.trial_id == trial, table.c.key == key, study.condition())
    with engine.begin() as connection:
        connection.execute(update(table).where(*own).values(value_json=json.dumps(content)))


def _attach(connection: Connection, trial: int, table: Any, attributes: Mapping[str, Any]) -> None:
    from sqlalchemy import insert, update

    for key, content in attributes.items():
        text = json.dumps(content)
        there = update(table).where(table.c.trial_id == trial, table.c.key == key).values(value_json=text)
        if connection.execute(there).rowcount == 0:
            connection.execute(insert(table), {"trial_id": trial, "key": key, "value_json": text})


class StoredTimes:
    """Turns times of trials into what their columns store, and back: Optuna's model knows if they are local or UTC."""

    def __init__(self) -> None:
        """Look up the columns."""
        from optuna.storages._rdb import models
        from sqlalchemy import inspect

        mapper, columns = inspect(models.TrialModel), models.TrialModel.__table__.c
        self._row = models.TrialModel()
        self._keys = {name: mapper.get_property_by_column(columns[name]).key for name in (START, COMPLETE)}

    def convert(self, name: str, time: datetime | None) -> datetime | None:
        """Return what the column ``name`` stores for a local time."""
        setattr(self._row, name, time)
        stored: datetime | None = getattr(self._row, self._keys[name])
        return stored

    def local(self, name: str, stored: datetime) -> datetime:
        """Return the local time of what the column ``name`` stores."""
        setattr(self._row, self._keys[name], stored)
        time: datetime = getattr(self._row, name)
        return time

    def stored(self, trial: FrozenTrial) -> dict[str, datetime | None]:
        """Return what the columns of both times store for a trial."""
        return {name: self.convert(name, getattr(trial, name)) for name in (START, COMPLETE)}


def _details(models: Any, trial: FrozenTrial, texts: dict[int, str]) -> Iterable[tuple[Any, dict[str, Any]]]:
    """Yield the model and the fields of each further row that belongs to a trial.

    ``texts`` has the JSON of distributions by their ids; trials of one run share them.
    """
    from optuna.distributions import distribution_to_json

    for name, value in trial.params.items():
        distribution = trial.distributions[name]
        if id(distribution) not in texts:
            texts[id(distribution)] = distribution_to_json(distribution)
        yield (
            models.TrialParamModel,
            {
                "param_name": name,
                "param_value": distribution.to_internal_repr(value),
                "distribution_json": texts[id(distribution)],
            },
        )
    for objective, number in enumerate(trial.values or ()):
        stored, kind = models.TrialValueModel.value_to_stored_repr(number)
        yield models.TrialValueModel, {"objective": objective, "value": stored, "value_type": kind}
    for step, number in trial.intermediate_values.items():
        stored, kind = models.TrialIntermediateValueModel.intermediate_value_to_stored_repr(number)
        report = {"step": step, "intermediate_value": stored, "intermediate_value_type": kind}
        yield models.TrialIntermediateValueModel, report
    for model, attributes in (
        (models.TrialUserAttributeModel, trial.user_attrs),
        (models.TrialSystemAttributeModel, trial.system_attrs),
    ):
        for key, content in attributes.items():
            yield model, {"key": key, "value_json": json.dumps(content)}
