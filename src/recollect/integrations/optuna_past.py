"""What a user gives as the past of an Optuna study: studies, storages, URLs, memories and runs, read into one form.

Everything is read once, when the sampler is made; SQL databases in a few queries. A study that is tuned now is never
its own past, although it may live in a storage that was given: a study is known again by its name and by the moment at
which one of its trials began.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

from optuna.distributions import BaseDistribution, json_to_distribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from recollect.errors import InputError, InputTypeError, RecollectWarning, SpaceError, StorageError
from recollect.history.memory import Memory, counted
from recollect.history.optuna_runs import direction_of, distributions, finished
from recollect.history.reading import Record as StoredTrial
from recollect.history.reading import StudyRow, read_finished, read_studies
from recollect.history.run import Config, Direction, Run
from recollect.history.storage import Store, open_store
from recollect.history.studies import NOTES_KEY, VOID_KEY
from recollect.integrations.optuna_conditions import Record

Identity = tuple[str, frozenset[datetime]]

SHOWN = 3
"""How many of the studies that are left out a warning names."""


@dataclass(frozen=True, slots=True, eq=False)
class PastStudy:
    """One past run, with what an objective asked for in it.

    known: the distributions, of those parameters that always had the same; records: the parameters of each trial that
    shows when they are there; identity: its name, and when its trials began; listed: the user named this very study or
    run.
    """

    run: Run
    known: Mapping[str, BaseDistribution]
    records: tuple[Record, ...]
    identity: Identity
    listed: bool


def read_past(past: Any) -> tuple[PastStudy, ...]:
    """Read all that was given; a single thing need not be in a list."""
    if isinstance(past, Run | Study | Memory | BaseStorage | str | PathLike):
        past = [past]
    if not isinstance(past, Iterable):
        raise InputTypeError(f"past: expected studies, storages, storage URLs, memories or runs, got {_typed(past)}")
    return tuple(entry for number, given in enumerate(past) for entry in _read(given, number))


def shared_distributions(past: Sequence[PastStudy]) -> dict[str, BaseDistribution]:
    """Return the distributions of the parameters on which all past studies that have them agree."""
    agreed: dict[str, BaseDistribution | None] = {}
    for entry in past:
        names = dict.fromkeys(name for record in entry.records for name in record.values)
        for name in names if entry.known else ():  # a run without a space of its own has no say
            own = entry.known.get(name)
            agreed[name] = own if name not in agreed or agreed[name] == own else None
    return {name: distribution for name, distribution in agreed.items() if distribution is not None}


def refuse_opposite(past: Sequence[PastStudy], study: str, direction: Direction) -> None:
    """Refuse what the user named himself if it is of another direction than the study that is tuned."""
    for entry in past:
        if entry.listed and entry.run.succeeded and entry.run.direction != direction:
            raise InputError(
                f"past: {entry.run.task!r} is to {entry.run.direction}, but study {study!r} is to {direction}; "
                f"give it as recollect.Run(..., direction={direction!r}) if its values are meant so"
            )


def eligible(past: Sequence[PastStudy], *, own: Identity, direction: Direction) -> list[PastStudy]:
    """Return what may teach a study: not itself, nothing empty, and nothing found in a storage in another direction."""
    name, begun = own
    others = [
        entry for entry in past if entry.run.succeeded and not (entry.identity[0] == name and entry.identity[1] & begun)
    ]
    opposite = [entry for entry in others if not entry.listed and entry.run.direction != direction]
    _tell(opposite, f"they are not to {direction}")
    return [entry for entry in others if entry not in opposite]


def sharing(past: Sequence[PastStudy], names: Iterable[str]) -> list[PastStudy]:
    """Return those that have at least one of these parameters."""
    wanted = set(names)
    strange = [entry for entry in past if not any(wanted & record.values.keys() for record in entry.records)]
    _tell(strange, f"they have none of the parameters {', '.join(sorted(wanted))}")
    return [entry for entry in past if entry not in strange]


def _tell(left_out: Sequence[PastStudy], reason: str) -> None:
    if left_out:
        shown = ", ".join(repr(entry.run.task) for entry in left_out[:SHOWN])
        more = f" and {len(left_out) - SHOWN} more" if len(left_out) > SHOWN else ""
        _warn(f"past studies are left out since {reason}: {shown}{more}")


def _read(given: Any, number: int) -> Iterator[PastStudy]:
    if isinstance(given, Run):
        yield _from_run(given)
    elif isinstance(given, Study):
        yield _from_study(given)
    elif isinstance(given, Memory):
        yield from _from_store(given.store)
    elif isinstance(given, BaseStorage | str | PathLike):
        if not isinstance(given, BaseStorage):
            _refuse_missing(str(given))
        yield from _from_store(open_store(given))
    else:
        raise InputTypeError(
            f"past[{number}]: expected an optuna.Study, an Optuna storage, a storage URL, a recollect.Memory or a "
            f"recollect.Run, got {_typed(given)}"
        )


def _from_store(store: Store) -> Iterator[PastStudy]:
    studies = []
    for study in read_studies(store):
        if len(study.directions) == 1:
            studies.append(study)
        else:
            _warn(f"past study {study.name!r} is left out: it has {len(study.directions)} objectives")
    ended = read_finished(store, [study.id for study in studies], keys=(NOTES_KEY, VOID_KEY))
    known = _known(store, studies)
    for study in studies:
        direction: Direction = "maximize" if study.directions == ("MAXIMIZE",) else "minimize"
        trials = ended[study.id]
        yield PastStudy(
            run=Run(study.name, trials=counted(trials, direction), direction=direction),
            known=known[study.id],
            records=_records([trial.params for trial in trials if trial.state == TrialState.COMPLETE.name]),
            identity=identity_of(study.name, trials),
            listed=False,
        )


def _known(store: Store, studies: Sequence[StudyRow]) -> dict[int, dict[str, BaseDistribution]]:
    """Return for each study the distributions of the parameters that always had the same."""
    if not store.sql:
        whole = (TrialState.COMPLETE,)
        return {study.id: stable(store.optuna.get_all_trials(study.id, False, whole)) for study in studies}
    texts: dict[int, dict[str, list[str]]] = {study.id: {} for study in studies}
    columns = "t.study_id, a.param_name, a.distribution_json"
    with store.reading() as fetch:
        joined = "from trial_params a join trials t on a.trial_id = t.trial_id where t.state = 'COMPLETE'"
        for study, name, text in fetch(f"select distinct {columns} {joined}"):
            texts.get(study, {}).setdefault(name, []).append(text)
    made = {text: json_to_distribution(text) for names in texts.values() for (text, *_) in names.values()}
    return {
        study: {name: made[found[0]] for name, found in names.items() if len(found) == 1}
        for study, names in texts.items()
    }


def _from_study(study: Study) -> PastStudy:
    direction, trials = direction_of(study), study.get_trials(deepcopy=False)
    pairs = finished(trials, direction)
    shown = [(frozen, trial.config) for frozen, trial in pairs if frozen.state == TrialState.COMPLETE]
    return PastStudy(
        run=Run(study.study_name, trials=[trial for _, trial in pairs], direction=direction),
        known=stable(frozen for frozen, _ in shown),
        records=_records([config for _, config in shown]),
        identity=identity_of(study.study_name, trials),
        listed=True,
    )


def _records(configs: Sequence[Config]) -> tuple[Record, ...]:
    """Return the evidence of one study, which can tell about the parameters that it has at all."""
    scope = frozenset(name for config in configs for name in config)
    return tuple(Record(config, scope) for config in configs)


def identity_of(name: str, trials: Iterable[FrozenTrial | StoredTrial]) -> Identity:
    """Return what a study is known by."""
    return name, frozenset(trial.datetime_start for trial in trials if trial.datetime_start is not None)


def stable(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return the distributions of the parameters that have the same in all trials in which they are."""
    found: dict[str, BaseDistribution] = {}
    changed: set[str] = set()
    for trial in trials:
        for name, distribution in trial.distributions.items():
            if found.setdefault(name, distribution) != distribution:
                changed.add(name)
    return {name: distribution for name, distribution in found.items() if name not in changed}


def _from_run(run: Run) -> PastStudy:
    known: dict[str, BaseDistribution] = {}
    if run.space is not None:
        try:
            known = distributions(run.space)
        except SpaceError:  # choices that Optuna cannot have: an objective cannot ask for them
            known = {}
    records = _records([trial.config for trial in run.succeeded])
    return PastStudy(run, known, records, identity_of(run.task, ()), listed=True)


def _refuse_missing(address: str) -> None:
    """Refuse a file that does not exist, which opening would make."""
    name = address.removeprefix("sqlite:///").removeprefix("journal:")
    if (name != address or "://" not in address) and not Path(name).expanduser().exists():
        raise StorageError(f"past: there is no file {name}")


def _warn(message: str) -> None:
    warnings.warn(message, RecollectWarning, stacklevel=2)


def _typed(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"
