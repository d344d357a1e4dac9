"""All studies and trials of a storage, read in a few queries.

SQL databases are read with plain SQL over the driver, which is the same for every database and, for a SQLite file,
needs neither Optuna nor SQLAlchemy to be loaded: 10,000 trials are there in a fraction of a second. Other storages are
read by Optuna.

A `Record` is a trial as it is stored: the fields of Optuna's FrozenTrial under the same names, its state by name, and
parameters that are plain values already.
"""

from __future__ import annotations

import gc
import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from recollect.history.run import State, Trial
from recollect.history.storage import Store

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, TrialState

AT_ONCE = 500
"""How many studies a query names: databases limit the length of a statement."""

OVER = "t.state in ('COMPLETE', 'FAIL', 'PRUNED')"
INFINITE = {"INF_POS": math.inf, "INF_NEG": -math.inf}
Fetch = Callable[[str], Iterable[Any]]
NOTHING: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class StudyRow:
    """A study as it is stored; its directions are "MINIMIZE" and so on."""

    id: int
    name: str
    directions: tuple[str, ...]
    user_attrs: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class Record:
    """A trial as it is stored."""

    id: int
    number: int
    state: TrialState | str
    datetime_start: datetime | None
    datetime_complete: datetime | None
    values: list[float] | None
    params: dict[str, Any]
    user_attrs: Mapping[str, Any]
    system_attrs: Mapping[str, Any]
    intermediate_values: Mapping[int, float]
    distributions: ClassVar[Mapping[str, Any]] = NOTHING  # not needed: parameters are plain values

    def plain(self) -> Trial | None:
        """Return a trial that completed with one finite value or failed, as nearly all do; None for any other."""
        begin, end = self.datetime_start, self.datetime_complete
        seconds = None if begin is None or end is None else (end - begin).total_seconds()
        if self.state == "FAIL":
            return Trial(self.params, None, State.FAILED, seconds, (f"trial {self.number} failed in Optuna",))
        if self.state == "COMPLETE" and self.values and len(self.values) == 1 and math.isfinite(self.values[0]):
            return Trial(self.params, self.values[0], seconds=seconds)
        return None

    def known(self) -> Any:
        """Return it with its state as Optuna has it."""
        from optuna.trial import TrialState

        return replace(self, state=TrialState[str(self.state)])


def read_studies(store: Store) -> list[StudyRow]:
    """Return all studies, in the order in which they were begun."""
    if not store.sql:
        return [
            StudyRow(study._study_id, study.study_name, tuple(d.name for d in study.directions), study.user_attrs)
            for study in store.optuna.get_all_studies()
        ]
    with store.reading() as fetch:
        directions: dict[int, list[str]] = {}
        for study, direction in fetch("select study_id, direction from study_directions order by objective"):
            directions.setdefault(study, []).append(direction)
        attributes: dict[int, dict[str, Any]] = {}
        for study, key, text in fetch("select a.study_id, a.key, a.value_json from study_user_attributes a"):
            attributes.setdefault(study, {})[key] = json.loads(text)
        return [
            StudyRow(study, name, tuple(directions.get(study, ())), attributes.get(study, {}))
            for study, name in fetch("select study_id, study_name from studies order by study_id")
        ]


def read_finished(store: Store, studies: Sequence[int], *, keys: Collection[str]) -> dict[int, list[Record]]:
    """Return the trials of these studies (their ids) that have ended, in order, with these of their user attributes."""
    found: dict[int, list[Record]] = {study: [] for study in studies}
    if not store.sql:
        for study, records in found.items():
            frozen = store.optuna.get_all_trials(study, deepcopy=False)
            records += [_record(trial) for trial in frozen if trial.state.is_finished()]
        return found
    with store.reading() as fetch, _no_collection():
        for start in range(0, len(studies), AT_ONCE):
            these = ", ".join(str(int(study)) for study in studies[start : start + AT_ONCE])
            for study, record in _read(fetch, f"t.study_id in ({these}) and {OVER}", keys=keys):
                found[study].append(record)
    return found


def read_after(store: Store, study: int, settled: int) -> list[Record]:
    """Return the trials of a study with ids above ``settled``, whatever their state, with all attributes."""
    if not store.sql:
        frozen = store.optuna.get_all_trials(study, deepcopy=False)
        return [_record(trial) for trial in frozen if trial._trial_id > settled]
    with store.reading() as fetch:
        these = f"t.study_id = {int(study)} and t.trial_id > {int(settled)}"
        found = _read(fetch, these, keys=None)
        attributes: defaultdict[int, dict[str, Any]] = defaultdict(dict)
        columns = "a.trial_id, a.key, a.value_json"
        for trial, key, text in _join(fetch, columns, "trial_system_attributes", these):
            attributes[trial][key] = json.loads(text)
        return [replace(record, system_attrs=attributes[record.id]) for _, record in found]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Do not look for garbage while a hundred thousand objects are made that are none: a tenth of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _record(frozen: FrozenTrial) -> Record:
    from recollect.history.optuna_runs import config_of

    return Record(
        frozen._trial_id,
        frozen.number,
        frozen.state.name,
        frozen.datetime_start,
        frozen.datetime_complete,
        frozen.values,
        config_of(frozen),
        frozen.user_attrs,
        frozen.system_attrs,
        frozen.intermediate_values,
    )


def _read(fetch: Fetch, these: str, *, keys: Collection[str] | None) -> list[tuple[int, Record]]:
    """Return the trials ``t`` for which a condition holds, each with its study; keys None: with all user attributes."""
    columns = "t.trial_id, t.study_id, t.number, t.state, t.datetime_start, t.datetime_complete"
    trials = list(fetch(f"select {columns} from trials t where {these} order by 1"))
    reader = cache(_reader)
    params: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    columns = "a.trial_id, a.param_name, a.param_value, a.distribution_json"
    for trial, name, code, text in _join(fetch, columns, "trial_params", f"{these} order by a.param_id"):
        params[trial][name] = reader(text)(code)
    values: defaultdict[int, list[float]] = defaultdict(list)
    columns = "a.trial_id, a.value, a.value_type"
    for trial, value, kind in _join(fetch, columns, "trial_values", f"{these} order by a.objective"):
        values[trial].append(INFINITE.get(kind, value))
    attributes: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    columns = "a.trial_id, a.key, a.value_json"
    for trial, key, text in _join(fetch, columns, "trial_user_attributes", these):
        if keys is None or key in keys:
            attributes[trial][key] = json.loads(text)
    intermediate: defaultdict[int, dict[int, float]] = defaultdict(dict)
    columns = "a.trial_id, a.step, a.intermediate_value, a.intermediate_value_type"
    for trial, step, value, kind in _join(fetch, columns, "trial_intermediate_values", these):
        intermediate[trial][step] = INFINITE.get(kind, math.nan if kind == "NAN" else value)
    found = []
    for trial, study, number, state, begin, end in trials:
        noted, reported = attributes.get(trial, NOTHING), intermediate.get(trial, NOTHING)
        first, last, settings = _time(begin), _time(end), params[trial]
        record = Record(trial, number, state, first, last, values.get(trial), settings, noted, NOTHING, reported)
        found.append((study, record))
    return found


def _join(fetch: Fetch, columns: str, table: str, these: str) -> Iterable[Any]:
    """Return rows that belong to trials, some perhaps to trials that have come after these were read."""
    return fetch(f"select {columns} from {table} a join trials t on a.trial_id = t.trial_id where {these}")


def _reader(distribution: str) -> Callable[[float], Any]:
    """Return what turns a stored number into a value, for a distribution as Optuna writes it."""
    kind = json.loads(distribution)
    if kind["name"] == "CategoricalDistribution":
        choices = kind["attributes"]["choices"]
        return lambda code: choices[int(code)]
    return int if kind["name"].startswith("Int") else float


def _time(stored: Any) -> datetime | None:
    return datetime.fromisoformat(stored) if isinstance(stored, str) else stored
