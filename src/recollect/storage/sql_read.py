"""Read all studies and trials of a storage in a few queries.

SQL databases are read with plain SQL over the driver. It is the same for every database and, for a SQLite file, loads
neither Optuna nor SQLAlchemy: reading 10,000 trials takes a fraction of a second. Other storages are read by Optuna.

One damaged cell spoils nothing else: the study or trial it belongs to is left out and reported (`Damage`). Rows are
converted one by one in ``try`` blocks, which cost nothing where all is sound.

A `StoredTrial` is a trial as it is stored: the fields of Optuna's FrozenTrial under the same names, its state by name,
and parameters that are plain values already.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from recollect._system import no_garbage_collection
from recollect._text import name_list, plural
from recollect._warnings import warn_caller
from recollect.runs.run import State, Trial
from recollect.storage.open import Store
from recollect.storage.study_key import StudyKey, noticing_removal

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial, TrialState

STUDIES_PER_QUERY = MAX_LISTED_TRIALS = 500
"""Databases limit the length of a statement."""

RUNNING = "RUNNING"
UNFINISHED_STATES, FINISHED_STATES = (RUNNING, "WAITING"), ("COMPLETE", "FAIL", "PRUNED")
FINISHED = f"(t.state is null or t.state not in {UNFINISHED_STATES})"  # or damaged
DAMAGE_ERRORS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What reading a damaged cell may raise."""

SECONDS_KEY, ESTIMATE_KEY = "recollect:seconds", "recollect:estimate"  # attributes that are always read
INFINITE_VALUES = {"INF_POS": math.inf, "INF_NEG": -math.inf}
OWNERS = dict.fromkeys(("trials", "study_directions", "study_user_attributes"), "studies") | {
    f"trial_{name}": "trials" for name in ("params", "values", "intermediate_values", "user_attributes")
}
"""The table that each table of Optuna refers to."""

MAX_PLACES_IN_WARNING = 5
Fetch = Callable[[str], Iterable[Any]]
EMPTY: Mapping[Any, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a memory that cannot be read and is left out.

    Attributes:
        place: The study, trial or table.
        reason: What is wrong with it.
        remedy: What to do.
    """

    place: str
    reason: str
    remedy: str = "restore a backup, or copy what is sound: recollect memory import NEW_MEMORY THIS_MEMORY"


def report_damage(store: Store, damage: Sequence[Damage], into: list[Damage] | None) -> None:
    """Add damage to a list or, without one, warn of what this store has not reported before."""
    if into is not None:
        into += damage
    elif new := [entry for entry in damage if entry not in store.reported]:
        store.reported.update(new)
        places = name_list((f"{entry.place} ({entry.reason})" for entry in new), MAX_PLACES_IN_WARNING)
        message = f"{store.name}: damaged and left out: {places}; `recollect memory check` lists all damage"
        warn_caller(message)


@dataclass(frozen=True, slots=True)
class StoredStudy:
    """A study as it is stored; its directions are "MINIMIZE" or "MAXIMIZE"."""

    id: int
    name: str
    directions: tuple[str, ...]
    user_attrs: Mapping[str, Any]


def duration(trial: StoredTrial | FrozenTrial) -> float | None:
    """Return the seconds that a trial took: as measured, or by its times, which lack a time zone; None if unknown.

    Optuna demands both times: where they are the same, nobody measured.
    """
    measured, start, end = trial.user_attrs.get(SECONDS_KEY), trial.datetime_start, trial.datetime_complete
    if isinstance(measured, int | float):
        seconds = float(measured)
    elif start is None or end is None or start == end:
        return None
    else:
        seconds = (end - start).total_seconds()
    return seconds if 0.0 <= seconds < math.inf else None


@dataclass(slots=True, eq=False)
class StoredTrial:
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
    distributions: ClassVar[Mapping[str, Any]] = EMPTY  # not needed, since parameters are plain values

    def as_trial(self) -> Trial | None:
        """Return a trial that completed with one finite value or failed, as nearly all do; None for others."""
        seconds = duration(self)
        if self.state == "FAIL":
            notes = (f"trial {self.number} failed in Optuna",)
            return Trial(self.params, None, State.FAILED, seconds, notes, number=self.number)
        if self.state == "COMPLETE" and self.values and len(self.values) == 1 and math.isfinite(self.values[0]):
            return Trial(self.params, self.values[0], seconds=seconds, number=self.number)
        return None

    def with_optuna_state(self) -> Any:
        """Return the trial with its state as a TrialState of Optuna."""
        from optuna.trial import TrialState

        return replace(self, state=TrialState[str(self.state)])


def read_studies(store: Store, *, only: int | None = None, damage: list[Damage] | None = None) -> list[StoredStudy]:
    """Return all studies, oldest first, or the one with the id ``only``; damaged ones are reported."""
    if not store.sql and only is None:
        return [
            StoredStudy(study._study_id, study.study_name, tuple(d.name for d in study.directions), study.user_attrs)
            for study in store.optuna.get_all_studies()
        ]
    if not store.sql:
        assert only is not None
        names = tuple(direction.name for direction in store.optuna.get_study_directions(only))
        title, described = store.optuna.get_study_name_from_id(only), store.optuna.get_study_user_attrs(only)
        return [StoredStudy(only, title, names, described)]
    where = "" if only is None else f"where study_id = {int(only)}"
    directions: defaultdict[int, list[str]] = defaultdict(list)
    attributes: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    broken: dict[int, str] = {}
    with store.reading() as fetch:
        # First of all: one that another process creates meanwhile would otherwise seem to lack its direction.
        studies = list(fetch(f"select study_id, study_name from studies {where} order by study_id"))
        for study, direction in fetch(f"select study_id, direction from study_directions {where} order by objective"):
            directions[study].append(direction)
            if direction not in ("MINIMIZE", "MAXIMIZE"):
                broken[study] = f"direction {direction!r}"
        decode = cache(json.loads)  # thousands of studies have the same search space
        for study, key, text in fetch(f"select study_id, key, value_json from study_user_attributes {where}"):
            try:
                attributes[study][key] = decode(text)
            except DAMAGE_ERRORS as error:
                broken[study] = f"attribute {key!r}: {_brief(error)}"
    for study, name in studies:
        if not isinstance(name, str) or not directions[study]:
            broken.setdefault(study, "no direction" if isinstance(name, str) else f"name {name!r:.80}")
    named = [Damage(f"study {name!r:.80}", broken[study]) for study, name in studies if study in broken]
    report_damage(store, named, damage)
    return [
        StoredStudy(study, name, tuple(directions[study]), attributes[study])
        for study, name in studies
        if study not in broken
    ]


def read_finished(
    store: Store, studies: Sequence[int], *, keys: Collection[str], damage: list[Damage] | None = None,
    in_order: bool = True,
) -> dict[int, list[StoredTrial]]:  # fmt: skip
    """Return the finished trials of these studies (ids) in order, with the user attributes named by ``keys``.

    The studies have one objective each. Damaged trials are reported. If hyperparameters need not be in the order in
    which they were stored (``in_order``), databases answer faster.
    """
    trials: dict[int, list[StoredTrial]] = {study: [] for study in studies}
    if not store.sql:
        for study, records in trials.items():
            frozen = store.optuna.get_all_trials(study, deepcopy=False)
            records += [_record(trial) for trial in frozen if trial.state.is_finished()]
        return trials
    broken: list[Damage] = []
    with store.reading() as fetch, no_garbage_collection():
        for start in range(0, len(studies), STUDIES_PER_QUERY):
            ids = ", ".join(str(int(study)) for study in studies[start : start + STUDIES_PER_QUERY])
            condition = f"t.study_id in ({ids}) and {FINISHED}"
            for study, record in _read(fetch, condition, keys=keys, damage=broken, in_order=in_order):
                trials[study].append(record)
    report_damage(store, broken, damage)
    return trials


def read_after(
    store: Store, study: StudyKey, trial_id: int, *, also: Sequence[int] = (), damage: list[Damage] | None = None
) -> list[StoredTrial]:
    """Return the trials of a study with ids above ``trial_id`` or in ``also``, in any state, with all attributes.

    Reading takes time for these trials only, however many the study has. TaskRemovedError if the study was removed.
    """
    if not store.sql:
        with noticing_removal(store.name):
            frozen = store.optuna.get_all_trials(study.id, deepcopy=False)  # by id
        places = [bisect_left(frozen, own, key=lambda trial: trial._trial_id) for own in (*also, trial_id + 1)]
        return [_record(trial) for trial in (*(frozen[place] for place in places[:-1]), *frozen[places[-1] :])]
    broken: list[Damage] = []
    with store.reading() as fetch:
        with noticing_removal(store.name):
            new = study.trials_after(fetch, trial_id)
        condition = _condition(study, new, trial_id, also)
        trials = _read(fetch, condition, keys=None, system=True, damage=broken) if condition else []
    report_damage(store, broken, damage)
    return [record for _, record in trials]


def _condition(study: StudyKey, new: Sequence[int], trial_id: int, also: Sequence[int]) -> str:
    """Return the condition for trials above an id or among others, as a list if it is short: no database scans then."""
    listed = [*map(int, also), *new]
    if len(listed) > MAX_LISTED_TRIALS:
        last = min((trial_id, *(own - 1 for own in also)))
        return f"t.study_id = {int(study.id)} and t.trial_id > {int(last)}"
    return f"t.trial_id in ({', '.join(map(str, listed))})" if listed else ""


def count_trials(store: Store, studies: Collection[int], *, states: Collection[str] = ()) -> dict[int, int]:
    """Return how many trials each of these studies (ids) has, in these states or in any, where there are some."""
    if not store.sql:
        trials = {study: store.optuna.get_all_trials(study, deepcopy=False) for study in studies}
        return {study: sum(not states or trial.state.name in states for trial in own) for study, own in trials.items()}
    listed = ", ".join(map(repr, states))
    condition = f"where state in ({listed})" if states else ""
    wanted = set(studies)
    with store.reading() as fetch:
        counts = fetch(f"select study_id, count(*) from trials {condition} group by study_id")
        return {study: count for study, count in counts if study in wanted}


def check_tables(store: Store, damage: list[Damage]) -> None:
    """Add rows that belong to nothing and, for a SQLite file, what its own check finds."""
    if not store.sql:
        return
    with store.reading() as fetch:
        for table, owner in OWNERS.items():
            key = "study_id" if owner == "studies" else "trial_id"
            lost = f"select count(*) from {table} a left join {owner} o on a.{key} = o.{key} where o.{key} is null"
            for (count,) in fetch(lost):
                if count:
                    damage.append(Damage(f"table {table}", f"{plural(count, 'row')} without an entry in {owner}"))
        if store.sqlite:
            remedy = "restore a backup, or recover what is readable: sqlite3 OLD_FILE .recover | sqlite3 NEW_FILE"
            damage += [Damage("the file", text, remedy) for (text,) in fetch("pragma quick_check(20)") if text != "ok"]


def _record(frozen: FrozenTrial) -> StoredTrial:
    from recollect.storage.optuna_conversion import config_of

    return StoredTrial(
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


def _read(
    fetch: Fetch, condition: str, *, keys: Collection[str] | None, damage: list[Damage], system: bool = False,
    in_order: bool = True,
) -> list[tuple[int, StoredTrial]]:  # fmt: skip
    """Return the sound trials ``t`` that meet a condition, each with its study; add the others to ``damage``.

    Keys None: with all user attributes; ``system``: with system attributes as well.
    """
    columns = "t.trial_id, t.study_id, t.number, t.state, t.datetime_start, t.datetime_complete"
    trials = list(fetch(f"select {columns} from trials t where {condition} order by 1"))
    decoder = cache(_decoder)
    broken: dict[int, str] = {}
    params: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    columns = "a.trial_id, a.param_name, a.param_value, a.distribution_json"
    order = "order by a.param_id" if in_order else ""
    for trial, name, code, text in _join(fetch, columns, "trial_params", f"{condition} {order}"):
        try:
            params[trial][name] = decoder(text, name)(code)
        except DAMAGE_ERRORS as error:
            broken[trial] = f"parameter {name!r:.80}: {_brief(error)}"
    values: defaultdict[int, list[float]] = defaultdict(list)
    columns = "a.trial_id, a.value, a.value_type"
    for trial, value, kind in _join(fetch, columns, "trial_values", f"{condition} order by a.objective"):
        values[trial].append(INFINITE_VALUES.get(kind, value))
    intermediate = _reports(fetch, condition, broken)
    user = _attributes(fetch, "trial_user_attributes", condition, keys, broken)
    internal = _attributes(fetch, "trial_system_attributes", condition, None, broken) if system else EMPTY
    sound = []
    for trial, study, number, state, begin, end in trials:
        try:
            record = StoredTrial(
                trial, number, state, _time(begin), _time(end), values.get(trial), params[trial],
                user.get(trial, EMPTY), internal.get(trial, EMPTY), intermediate.get(trial, EMPTY),
            )  # fmt: skip
            if (reason := broken.get(trial) or _defect(record)) is None:
                sound.append((study, record))
                continue
        except DAMAGE_ERRORS as error:
            reason = _brief(error)
        ((name,),) = fetch(f"select study_name from studies where study_id = {int(study)}")
        damage.append(Damage(f"trial {number!r:.80} of study {name!r:.80}", reason))
    return sound


def _reports(fetch: Fetch, condition: str, broken: dict[int, str]) -> Mapping[int, Mapping[int, float]]:
    """Return the intermediate values of trials by step; say in ``broken`` which cannot be read."""
    reports: defaultdict[int, dict[int, float]] = defaultdict(dict)
    columns = "a.trial_id, a.step, a.intermediate_value, a.intermediate_value_type"
    for trial, step, value, kind in _join(fetch, columns, "trial_intermediate_values", condition):
        number = reports[trial][step] = INFINITE_VALUES.get(kind, math.nan if kind == "NAN" else value)
        if not isinstance(number, float) or not isinstance(step, int):
            broken[trial] = f"report {value!r:.80} at step {step!r:.80}"
    return reports


def _attributes(
    fetch: Fetch, table: str, condition: str, keys: Collection[str] | None, broken: dict[int, str]
) -> Mapping[int, Mapping[str, Any]]:
    """Return the attributes of trials with these keys, or all; say in ``broken`` which cannot be read."""
    attributes: defaultdict[int, dict[str, Any]] = defaultdict(dict)
    if keys is not None:  # why a trial was suggested can be long, and is rarely asked for
        wanted = "', '".join((*keys, SECONDS_KEY, ESTIMATE_KEY))
        condition = f"{condition} and a.key in ('{wanted}')"
    for trial, key, text in _join(fetch, "a.trial_id, a.key, a.value_json", table, condition):
        try:
            attributes[trial][key] = json.loads(text)
        except DAMAGE_ERRORS as error:
            broken[trial] = f"attribute {key!r:.80}: {_brief(error)}"
    return attributes


def _defect(record: StoredTrial) -> str | None:
    """Return what is wrong with a trial of a study with one objective."""
    state, values = record.state, record.values
    if state == "COMPLETE" and (values is None or len(values) != 1):
        return f"{len(values or ())} values instead of one"
    if values is not None and not isinstance(values[0], float):
        return f"value {values[0]!r:.80}"
    if not isinstance(record.number, int) or record.number < 0:
        return "its number"
    return None if state in FINISHED_STATES or state in UNFINISHED_STATES else f"state {state!r:.80}"


def _brief(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:120]


def _join(fetch: Fetch, columns: str, table: str, condition: str) -> Iterable[Any]:
    """Return rows that belong to trials, perhaps also to trials that were added after these were read."""
    return fetch(f"select {columns} from {table} a join trials t on a.trial_id = t.trial_id where {condition}")


def _decoder(distribution: str, name: str = "") -> Callable[[float], Any]:
    """Return the function that turns a stored number into a value, for a distribution in Optuna's JSON."""
    kind = json.loads(distribution)
    if not isinstance(name, str):
        raise TypeError("the name is not text")
    if kind["name"] == "CategoricalDistribution":
        choices: dict[float, Any] = dict(enumerate(kind["attributes"]["choices"]))
        return choices.__getitem__  # 1.0 finds 1
    return int if kind["name"].startswith("Int") else _finite


def _finite(code: float) -> float:
    if not math.isfinite(code):
        raise ValueError(f"{code} is not finite")
    return code


def _time(stored: Any) -> datetime | None:
    time = datetime.fromisoformat(stored) if isinstance(stored, str) else stored
    if time is not None and time.tzinfo is not None:
        raise ValueError(f"time {stored!r:.80}")
    return time
