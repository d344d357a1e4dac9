"""Write to Optuna's tables in a SQL database: insert trials, and change their states, in one transaction.

Optuna's own calls take one transaction per trial, parameter and attribute, and a memory of 200 runs has 10,000 trials.
Optuna's own models describe the tables, so a changed column is an error and not a guess. `storage.sql_read` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, TrialState
    from sqlalchemy.engine import Connection, Engine


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes to set on a trial: user attributes, which people see, and system attributes."""

    user: Mapping[str, Any]
    system: Mapping[str, Any]


def insert_trials(engine: Engine, study: int, trials: Iterable[FrozenTrial]) -> list[tuple[int, int]]:
    """Insert trials in one transaction; returns the (id, number) of each."""
    from optuna.storages._rdb import models
    from sqlalchemy import func, insert, select, update

    studies, table = models.StudyModel.__table__, models.TrialModel.__table__
    rows: dict[Any, list[dict[str, Any]]] = {}
    written = []
    with engine.begin() as connection:
        # Writing the study as it is locks it in every database, so that numbers are assigned one after another.
        connection.execute(update(studies).where(studies.c.study_id == study).values(study_name=studies.c.study_name))
        before = connection.execute(select(func.count()).select_from(table).where(table.c.study_id == study))
        new = insert(table)
        for number, trial in enumerate(trials, start=before.scalar_one()):
            fields = {"study_id": study, "number": number, "state": trial.state} | _times(models, trial)
            key = connection.execute(new, fields).inserted_primary_key
            assert key is not None
            written.append((key[0], number))
            for model, details in _details(models, trial):
                rows.setdefault(model, []).append({"trial_id": key[0], **details})
        for model, values in rows.items():
            connection.execute(insert(model.__table__), values)
    return written


def update_trial_state(
    engine: Engine,
    trial: int,
    states: tuple[TrialState, TrialState],
    *,
    value: float | None,
    attributes: Attributes,
) -> bool:
    """Change the state of a trial, with its value and attributes, in one transaction.

    Returns False if it was not in the first state: of several processes that try, exactly one succeeds.
    """
    from optuna.storages._rdb import models
    from sqlalchemy import insert, update

    before, after = states
    table = models.TrialModel.__table__
    now = models.TrialModel()
    if after.is_finished():
        now.datetime_complete = datetime.now()
    else:
        now.datetime_start = datetime.now()
    fields = {"state": after} | {name: time for name, time in _times(models, now).items() if time is not None}
    with engine.begin() as connection:
        claim = update(table).where(table.c.trial_id == trial, table.c.state == before).values(**fields)
        if connection.execute(claim).rowcount != 1:
            return False
        if value is not None:
            stored, kind = models.TrialValueModel.value_to_stored_repr(value)
            row = {"trial_id": trial, "objective": 0, "value": stored, "value_type": kind}
            connection.execute(insert(models.TrialValueModel.__table__), row)
        _attach(connection, trial, models.TrialUserAttributeModel.__table__, attributes.user)
        _attach(connection, trial, models.TrialSystemAttributeModel.__table__, attributes.system)
        return True


def _attach(connection: Connection, trial: int, table: Any, attributes: Mapping[str, Any]) -> None:
    from sqlalchemy import insert, update

    for key, content in attributes.items():
        text = json.dumps(content)
        there = update(table).where(table.c.trial_id == trial, table.c.key == key).values(value_json=text)
        if connection.execute(there).rowcount == 0:
            connection.execute(insert(table), {"trial_id": trial, "key": key, "value_json": text})


def _times(models: Any, trial: Any) -> dict[str, datetime | None]:
    """Return a trial's times as its columns store them: Optuna's model knows whether they are local or UTC."""
    from sqlalchemy import inspect

    row = models.TrialModel(datetime_start=trial.datetime_start, datetime_complete=trial.datetime_complete)
    mapper = inspect(models.TrialModel)
    columns = models.TrialModel.__table__.c
    names = ("datetime_start", "datetime_complete")
    return {name: getattr(row, mapper.get_property_by_column(columns[name]).key) for name in names}


def _details(models: Any, trial: FrozenTrial) -> Iterable[tuple[Any, dict[str, Any]]]:
    """Yield the model and the fields of each further row that belongs to a trial."""
    from optuna.distributions import distribution_to_json

    for name, value in trial.params.items():
        distribution = trial.distributions[name]
        yield (
            models.TrialParamModel,
            {
                "param_name": name,
                "param_value": distribution.to_internal_repr(value),
                "distribution_json": distribution_to_json(distribution),
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
