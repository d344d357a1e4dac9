"""Past studies of an Optuna study: studies, storages, URLs, memories and runs, read into one form.

Everything is read once, when the sampler is created; SQL databases in a few queries. A study that is tuned now is never
its own past, even if it lives in a storage that was passed: it is recognized by its name and by the start time of one
of its trials.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from os import PathLike
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from recollect._text import name_list
from recollect._warnings import warn_caller
from recollect.errors import InputError, InputTypeError, SpaceError, StorageError
from recollect.runs.renaming import rename_hyperparameters, renamed_config
from recollect.runs.run import Config, Direction, Run
from recollect.space.presence import TrialParams
from recollect.storage.memory import Memory
from recollect.storage.open import Store, missing_reason, open_store, storage_errors, without_password
from recollect.storage.optuna_conversion import direction_of, distributions, finished_trials
from recollect.storage.run_reading import valid_trials
from recollect.storage.sql_read import StoredTrial, read_finished, read_studies
from recollect.storage.studies import NOTES_KEY, VOID_KEY
from recollect.storage.study_spaces import DistributionSets, distribution_sets, stored_distribution_sets, widest

Identity = tuple[str, frozenset[datetime]]

MAX_NAMES_IN_WARNING = 3  # of studies that are left out


@dataclass(frozen=True, slots=True, eq=False)
class PastStudy:
    """One past run, with what its objective asked for."""

    run: Run
    distributions: Mapping[str, BaseDistribution]  # the widest of each parameter
    records: tuple[TrialParams, ...]  # the parameters of each trial that shows when they are present
    identity: Identity  # name of the study and start times of its trials
    listed: bool  # whether the user passed this very study or run, not a storage that contains it


def read_past(past: Any, rename: Mapping[str, str] | None = None) -> tuple[PastStudy, ...]:
    """Read the argument ``past`` of the sampler, and rename parameters; a single entry need not be in a list."""
    if isinstance(past, Run | Study | Memory | BaseStorage | str | PathLike):
        past = [past]
    if not isinstance(past, Iterable):
        raise InputTypeError(f"past: expected studies, storages, storage URLs, memories or runs, got {_typed(past)}")
    studies = [entry for number, source in enumerate(past) for entry in _read(source, number)]
    runs = rename_hyperparameters([entry.run for entry in studies], rename)
    return tuple(_renamed(entry, run, rename or {}) for entry, run in zip(studies, runs, strict=True))


def _renamed(entry: PastStudy, run: Run, names: Mapping[str, str]) -> PastStudy:
    """Return a past study with the renamed run, and all else renamed alike."""
    if run is entry.run:
        return entry
    own = renamed_config(entry.distributions, names, f"study {run.task!r}")
    records = [renamed_config(record.values, names, f"study {run.task!r}") for record in entry.records]
    return replace(entry, run=run, distributions=own, records=_records(records))


def assumed_distributions(past: Sequence[PastStudy]) -> tuple[dict[str, BaseDistribution], tuple[str, ...]]:
    """Return the distribution that past studies suggest for each of their parameters, and the names they differ in.

    It is the one that most of the studies with this parameter share, the newest of those tied. A range is widened to
    the ranges of the others, as far as they have the same scale and step.
    """
    used: dict[str, list[BaseDistribution]] = {}
    for entry in past:
        for name, distribution in entry.distributions.items():
            used.setdefault(name, []).append(distribution)
    assumed = {name: _most_common(own) for name, own in used.items()}
    return assumed, tuple(name for name, own in used.items() if any(entry != own[0] for entry in own))


def _most_common(distributions: Sequence[BaseDistribution]) -> BaseDistribution:
    counts = Counter(distributions)
    newest = {distribution: place for place, distribution in enumerate(distributions)}
    chosen: Any = max(counts, key=lambda distribution: (counts[distribution], newest[distribution]))
    if isinstance(chosen, CategoricalDistribution):
        return chosen
    alike = [entry for entry in distributions if type(entry) is type(chosen)]
    alike = [entry for entry in alike if (entry.log, entry.step) == (chosen.log, chosen.step)]  # type: ignore[attr-defined]
    wide: Any = widest([*alike, chosen])
    return wide if wide.step == chosen.step else chosen  # type: ignore[no-any-return]


def check_directions(past: Sequence[PastStudy], study: str, direction: Direction) -> None:
    """Refuse a study or run that the user listed if its direction is not the one of the tuned study."""
    for entry in past:
        if entry.listed and entry.run.usable and entry.run.direction != direction:
            raise InputError(
                f"past: {entry.run.task!r} has direction {entry.run.direction}, but study {study!r} has {direction}; "
                f"pass recollect.Run(..., direction={direction!r}) if its values are meant that way"
            )


def usable_studies(past: Sequence[PastStudy], *, own: Identity, direction: Direction) -> list[PastStudy]:
    """Return the past studies to learn from: not the study itself, no empty one, none of the other direction."""
    itself = [entry for entry in past if entry.identity[0] == own[0] and entry.identity[1] & own[1]]
    others = [entry for entry in past if entry.run.usable and entry not in itself]
    opposite = [entry for entry in others if not entry.listed and entry.run.direction != direction]
    warn_left_out(opposite, f"their direction is not {direction}")
    return [entry for entry in others if entry not in opposite]


def split_by_shared_parameters(
    past: Sequence[PastStudy], names: Iterable[str]
) -> tuple[list[PastStudy], list[PastStudy]]:
    """Return the past studies that have at least one of these parameters, and the others."""
    wanted = set(names)
    strange = [entry for entry in past if not any(wanted & record.values.keys() for record in entry.records)]
    return [entry for entry in past if entry not in strange], strange


def warn_left_out(left_out: Sequence[PastStudy], reason: str) -> None:
    """Name past studies that are left out, if there are any."""
    if left_out:
        names = name_list((repr(entry.run.task) for entry in left_out), MAX_NAMES_IN_WARNING)
        warn_caller(f"past studies are left out because {reason}: {names}")


def _read(source: Any, number: int) -> Iterator[PastStudy]:
    if isinstance(source, Run):
        yield _from_run(source)
    elif isinstance(source, Study):
        yield _from_study(source)
    elif isinstance(source, Memory):
        yield from _from_store(source.store)
    elif isinstance(source, BaseStorage | str | PathLike):
        if not isinstance(source, BaseStorage) and (reason := missing_reason(os.fspath(source))):
            raise StorageError(f"past: {without_password(os.fspath(source))}: {reason}")  # opening it would create it
        yield from _from_store(open_store(source))
    else:
        raise InputTypeError(
            f"past[{number}]: expected an optuna.Study, an Optuna storage, a storage URL, a recollect.Memory or a "
            f"recollect.Run, got {_typed(source)}"
        )


def _from_store(store: Store) -> Iterator[PastStudy]:
    studies = []
    for study in read_studies(store):
        if len(study.directions) == 1:
            studies.append(study)
        else:
            message = f"past study {study.name!r} is left out: it has {len(study.directions)} objectives"
            warn_caller(message)
    ended = read_finished(store, [study.id for study in studies], keys=(NOTES_KEY, VOID_KEY))
    by_study = stored_distribution_sets(store, [study.id for study in studies])
    for study in studies:
        direction: Direction = "maximize" if study.directions == ("MAXIMIZE",) else "minimize"
        trials = ended[study.id]
        yield PastStudy(
            run=Run(study.name, trials=valid_trials(trials, direction), direction=direction),
            distributions=_widest_of_each(by_study[study.id]),
            records=_records([trial.params for trial in trials if trial.state == TrialState.COMPLETE.name]),
            identity=identity_of(study.name, trials),
            listed=False,
        )


def _from_study(study: Study) -> PastStudy:
    where = f"past: study {study.study_name!r}"
    with storage_errors(where):
        try:
            direction, trials = direction_of(study), study.get_trials(deepcopy=False)
        except KeyError as error:
            raise StorageError(f"{where} does not exist: it was deleted") from error
    pairs = finished_trials(trials, direction)
    shown = [(frozen, trial.config) for frozen, trial in pairs if frozen.state == TrialState.COMPLETE]
    return PastStudy(
        run=Run(study.study_name, trials=[trial for _, trial in pairs], direction=direction),
        distributions=_widest_of_each(distribution_sets(frozen for frozen, _ in shown)),
        records=_records([config for _, config in shown]),
        identity=identity_of(study.study_name, trials),
        listed=True,
    )


def _records(configs: Sequence[Config]) -> tuple[TrialParams, ...]:
    """Return the trials of one study as evidence about the parameters that occur in it."""
    scope = frozenset(name for config in configs for name in config)
    return tuple(TrialParams(config, scope) for config in configs)


def _widest_of_each(sets: DistributionSets) -> dict[str, BaseDistribution]:
    """Return for each parameter what contains all its distributions in a study."""
    wide = {name: widest(own) for name, own in sets.items() if own}
    return {name: distribution for name, distribution in wide.items() if distribution is not None}


def identity_of(name: str, trials: Iterable[FrozenTrial | StoredTrial]) -> Identity:
    """Return what a study is recognized by."""
    return name, frozenset(trial.datetime_start for trial in trials if trial.datetime_start is not None)


def constant_distributions(trials: Iterable[FrozenTrial]) -> dict[str, BaseDistribution]:
    """Return the distributions that are the same in all trials."""
    first: dict[str, BaseDistribution] = {}
    changed: set[str] = set()
    for trial in trials:
        for name, distribution in trial.distributions.items():
            if first.setdefault(name, distribution) != distribution:
                changed.add(name)
    return {name: distribution for name, distribution in first.items() if name not in changed}


def _from_run(run: Run) -> PastStudy:
    try:
        own = {} if run.space is None else distributions(run.space)
    except SpaceError:  # choices that Optuna does not support: an objective cannot ask for them
        own = {}
    records = _records([trial.config for trial in run.succeeded])
    return PastStudy(run, own, records, identity_of(run.task, ()), listed=True)


def _typed(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"
