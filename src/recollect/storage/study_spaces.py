"""The search space of a study that another program created, from the distributions that Optuna keeps with its trials.

A study has no space of its own: every trial has the distributions that the objective asked for. A range that changed
from trial to trial is widened to all that was used. A parameter that is missing from some completed trials has a
condition, where one explains it (`recollect.space.presence`); otherwise it is left out, as is one that a space cannot
express.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.errors import ConfigError, SpaceError
from recollect.runs.run import Config, Run, Trial, check_configs
from recollect.space.presence import PresenceRule, TrialParams, infer_conditions
from recollect.space.space import Space, compile_space
from recollect.storage.open import Store
from recollect.storage.optuna_conversion import config_of, space_of_distributions
from recollect.storage.sql_read import DAMAGE_ERRORS, STUDIES_PER_QUERY, StoredTrial
from recollect.storage.studies import TaskStudy, read_spaces

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

DistributionSets: TypeAlias = "dict[str, list[BaseDistribution]]"
"""The different distributions that each parameter of a study had."""


def distribution_sets(trials: Iterable[FrozenTrial]) -> DistributionSets:
    """Return the different distributions of each parameter in these trials."""
    sets: DistributionSets = {}
    for trial in trials:
        for name, distribution in trial.distributions.items():
            own = sets.setdefault(name, [])
            if distribution not in own:
                own.append(distribution)
    return sets


def stored_distribution_sets(store: Store, studies: Sequence[int]) -> dict[int, DistributionSets]:
    """Return the different distributions of each parameter in the completed trials of these studies (ids)."""
    from optuna.distributions import json_to_distribution
    from optuna.trial import TrialState

    if not store.sql:
        return {
            study: distribution_sets(store.optuna.get_all_trials(study, False, (TrialState.COMPLETE,)))
            for study in studies
        }
    sets: dict[int, DistributionSets] = {study: {} for study in studies}
    parsed: dict[str, BaseDistribution | None] = {}
    joined = "from trial_params a join trials t on a.trial_id = t.trial_id where t.state = 'COMPLETE'"
    with store.reading() as fetch:
        for start in range(0, len(studies), STUDIES_PER_QUERY):
            ids = ", ".join(str(int(study)) for study in studies[start : start + STUDIES_PER_QUERY])
            columns = "t.study_id, a.param_name, a.distribution_json"
            for study, name, text in fetch(f"select distinct {columns} {joined} and t.study_id in ({ids})"):
                if text not in parsed:
                    parsed[text] = None
                    with suppress(*DAMAGE_ERRORS):  # of a trial that was left out
                        parsed[text] = json_to_distribution(text)
                distribution = parsed[text]
                own = sets[study].setdefault(name, [])
                if distribution is not None and distribution not in own:
                    own.append(distribution)
    return sets


def widest(distributions: Sequence[BaseDistribution]) -> BaseDistribution | None:
    """Return the narrowest distribution that contains all of these; None if they are of different kinds.

    Its scale is that of the last one, if its range allows that; it has their step if they share it.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    *_, last = distributions
    kind = type(last)
    if len(distributions) == 1 or any(type(entry) is not kind for entry in distributions):
        return last if len(distributions) == 1 else None
    if isinstance(last, CategoricalDistribution):
        choices = [choice for entry in reversed(distributions) for choice in entry.choices]  # type: ignore[attr-defined]
        return CategoricalDistribution(list(dict.fromkeys(choices)))
    ranges: Any = distributions
    low, high = min(entry.low for entry in ranges), max(entry.high for entry in ranges)
    log = ranges[-1].log and low > 0
    steps = {entry.step for entry in ranges}
    step = steps.pop() if len(steps) == 1 and not log else None
    if step is not None and any((entry.low - low) % step for entry in ranges):
        step = None
    if kind is IntDistribution:
        return IntDistribution(low, high, log=log, step=step or 1)
    return FloatDistribution(low, high, log=log, step=step)


def space_of_study(sets: Mapping[str, Sequence[BaseDistribution]], configs: Sequence[Config]) -> Space | None:
    """Return the space of a study; None if nothing of it can be expressed.

    Args:
        sets: The different distributions of each parameter.
        configs: The parameters of its completed trials, which show when each of them is present.
    """
    usable = {}
    for name, distributions in sets.items():
        distribution = widest(distributions) if distributions else None
        if distribution is not None:
            with suppress(SpaceError, TypeError):  # bounds that a space cannot hold; choices that cannot be hashed
                usable[name] = space_of_distributions({name: distribution}).source[name]
    numeric = {name: _is_integer(entry) for name, entry in usable.items() if _may_decide(entry)}
    rules = infer_conditions(usable, numeric, [[TrialParams(config) for config in configs]])
    return _compile(usable, rules)


def holds_all(space: Space, trials: Sequence[Trial]) -> bool:
    """Return whether a run with these trials can have this space."""
    try:
        check_configs(space, trials)
    except ConfigError:
        return False
    return True


def run_and_space(run: Run, trials: Sequence[FrozenTrial]) -> Run:
    """Return the run of a study with the space that its trials show."""
    from optuna.trial import TrialState

    completed = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    space = space_of_study(distribution_sets(completed), [config_of(trial) for trial in completed])
    if space is None or not holds_all(space, run.trials):
        return run
    return Run(run.task, trials=run.trials, space=space, direction=run.direction)


def read_study_spaces(
    store: Store, studies: Sequence[TaskStudy], records: Mapping[int, Sequence[StoredTrial]]
) -> dict[int, Space]:
    """Return the known spaces of studies by id: those stored with them, or what their finished trials show."""
    stored = read_spaces(store, studies)
    spaces = {study.id: stored[study.space] for study in studies if study.space in stored}
    foreign = [study.id for study in studies if study.problem is None]
    sets = stored_distribution_sets(store, foreign) if foreign else {}
    known: dict[str, Space | None] = {}
    for study, own in sets.items():
        configs = [trial.params for trial in records[study] if trial.state == "COMPLETE"]
        plain = all(len(config) == len(own) for config in configs)
        key = str(sorted(own.items())) if plain else f"study {study}"  # many studies have the same space
        if key not in known:
            known[key] = space_of_study(own, configs)
        if (space := known[key]) is not None:
            spaces[study] = space
    return spaces


def _may_decide(hyperparameter: Any) -> bool:
    from ConfigSpace.hyperparameters import UniformFloatHyperparameter

    return not isinstance(hyperparameter, UniformFloatHyperparameter)


def _is_integer(hyperparameter: Any) -> bool:
    """Return whether the values are integers, so that a threshold among them can decide."""
    from ConfigSpace.hyperparameters import OrdinalHyperparameter, UniformIntegerHyperparameter

    ordinal = isinstance(hyperparameter, OrdinalHyperparameter)
    return isinstance(hyperparameter, UniformIntegerHyperparameter) or (
        ordinal and all(isinstance(value, int) for value in hyperparameter.sequence)
    )


def _compile(hyperparameters: Mapping[str, Any], rules: Mapping[str, PresenceRule | None]) -> Space | None:
    from ConfigSpace import ConfigurationSpace

    source = ConfigurationSpace()
    for name, rule in rules.items():  # parents come first
        if rule is None or rule.parent in source:
            source.add(hyperparameters[name])
            if rule is not None:
                source.add(_condition(hyperparameters[name], hyperparameters[rule.parent], rule))
    return compile_space(source) if len(source) else None


def _condition(child: Any, parent: Any, rule: PresenceRule) -> Any:
    from ConfigSpace import GreaterThanCondition, InCondition, LessThanCondition
    from ConfigSpace.hyperparameters import UniformIntegerHyperparameter

    if rule.values is not None:
        return InCondition(child, parent, list(rule.values))
    if not isinstance(parent, UniformIntegerHyperparameter):  # an ordinal
        return InCondition(child, parent, [value for value in parent.sequence if rule.low <= value <= rule.high])
    if rule.low > parent.lower:
        return GreaterThanCondition(child, parent, int(rule.low) - 1)
    return LessThanCondition(child, parent, int(rule.high) + 1)
