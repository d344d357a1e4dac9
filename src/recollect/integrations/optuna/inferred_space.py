"""The search space of an Optuna study: distributions, inferred conditions, and a ConfigurationSpace of both.

Optuna learns what an objective asks for only while it runs. An `InferredSpace` is what is known at one moment: from the
completed trials of the study itself, from what the user stated, and from what most past studies had, in this order.
Parameters that cannot be part of it are independent: they are sampled one by one. These are parameters whose range
changes between trials of the study, that come and go without a parent that explains it, or that the space cannot
express. A parameter with steps is an integer in the space, the number of the step, so every value has one place there.

Conditions are inferred from the trials (`recollect.space.presence`). A later trial that contradicts them restarts the
inference.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ConfigSpace import ConfigurationSpace, GreaterThanCondition, InCondition, LessThanCondition
from ConfigSpace.hyperparameters import Hyperparameter
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from recollect.errors import ConfigError, SpaceError
from recollect.integrations.optuna.past_studies import PastStudy, assumed_distributions, constant_distributions
from recollect.runs.run import Config
from recollect.space.notations.optuna_distributions import step_count, step_value
from recollect.space.presence import ALWAYS, PresenceRule, TrialParams, infer_conditions
from recollect.space.space import Space, SpaceLike, compile_space
from recollect.storage.optuna_conversion import config_of, distributions, space_of_distributions

Distributions: TypeAlias = Mapping[str, BaseDistribution]


@dataclass(frozen=True, slots=True, eq=False)
class StatedSpace:
    """A space that the user stated; ``fixed`` if it has conditions or forbidden clauses, and so is used as it is."""

    space: Space
    distributions: Distributions

    @property
    def fixed(self) -> bool:
        """Whether nothing is left to infer."""
        return self.space.conditional or bool(self.space.forbidden)


@dataclass(frozen=True, slots=True, eq=False)
class InferredSpace:
    """The parameters that are tuned together."""

    distributions: Distributions
    rules: Mapping[str, PresenceRule]  # when the parameters that are not in every trial are present
    space: Space
    independent: frozenset[str] = frozenset()  # names of parameters that are sampled independently
    fixed: bool = False  # whether the user stated the space as it is

    def config_of(self, params: Mapping[str, Any]) -> Config | None:
        """Return the configuration of a trial's parameters; None if it does not belong to the space."""
        own = self.distributions
        config = {name: to_space(own[name], value) for name, value in params.items() if name in own}
        try:
            self.space.encode([config])
        except ConfigError:
            return None
        return config

    def params_of(self, config: Config) -> dict[str, Any]:
        """Return a configuration of the space as Optuna parameters."""
        return {name: from_space(self.distributions[name], value) for name, value in config.items()}

    def matches(self, trial: FrozenTrial) -> bool:
        """Return whether a completed trial has the distributions and the parameters that this space implies."""
        if self.fixed:
            return True
        present = {name for name in trial.params if name not in self.independent}
        if any(self.distributions.get(name) != trial.distributions[name] for name in present):
            return False
        rules, values = self.rules, config_of(trial)
        return present == {name for name in self.distributions if name not in rules or rules[name].holds(values)}

    def is_same_as(self, other: InferredSpace | None) -> bool:
        """Return whether two inferred spaces are the same."""
        if other is None or self.fixed or other.fixed:
            return other is self
        return dict(self.distributions) == dict(other.distributions) and dict(self.rules) == dict(other.rules)


def parse_stated_space(space: SpaceLike | Distributions | None) -> StatedSpace | None:
    """Return the argument ``space`` of the sampler in one form."""
    if space is None:
        return None
    compiled = compile_space(space)
    stated = distributions(compiled)
    if isinstance(space, Mapping):  # a step of Optuna's is more than the list of its values
        stated |= {name: entry for name, entry in space.items() if isinstance(entry, BaseDistribution)}
    return StatedSpace(compiled, stated)


def infer_study_space(
    completed: Sequence[FrozenTrial], past: Sequence[PastStudy], stated: StatedSpace | None
) -> InferredSpace | None:
    """Return the space that explains all completed trials; None while there is nothing to tune together."""
    if stated is not None and stated.fixed:
        return InferredSpace(stated.distributions, {}, stated.space, fixed=True)
    requested = {name for trial in completed for name in trial.params}
    assumed = {**assumed_distributions(past)[0], **(stated.distributions if stated else {})}
    table = {name: distribution for name, distribution in assumed.items() if name not in requested}
    table |= constant_distributions(completed)
    usable = {name: distribution for name, distribution in table.items() if _expressible(name, distribution)}
    own = [TrialParams(config_of(trial)) for trial in completed]
    pooled = own + [record for entry in past for record in entry.records]
    if stated is not None and not completed:  # stated parameters that were never seen are assumed to be present
        unseen = {name: None for name in stated.distributions if not any(name in record.values for record in pooled)}
        pooled = [*pooled, TrialParams(unseen, frozenset(unseen))]
    deciding = {name: entry for name, entry in usable.items() if not isinstance(entry, FloatDistribution)}
    parents = {name: isinstance(entry, IntDistribution) for name, entry in deciding.items()}
    rules = infer_conditions(usable, parents, [pooled, own])
    return build_space({name: usable[name] for name in rules}, rules, stated, requested)


def build_space(
    table: Distributions, rules: Mapping[str, PresenceRule | None], stated: StatedSpace | None, requested: Iterable[str]
) -> InferredSpace | None:
    """Return the space of distributions and rules; one that is never present or lacks its parent is left out."""
    usable: dict[str, PresenceRule | None] = {}
    for name, rule in rules.items():  # parents come first
        if rule is None:
            usable[name] = None
        elif rule.parent in usable and (within := _within(rule, table[rule.parent])) is not None:
            usable[name] = within if within.parent else usable[rule.parent]
    if not usable:
        return None
    included = {name: table[name] for name in usable}
    conditions = {name: rule for name, rule in usable.items() if rule is not None}
    independent = frozenset(requested) - included.keys()
    return InferredSpace(included, conditions, _compile(included, conditions, stated), independent)


def restrict_space(inferred: InferredSpace | None, search_space: Distributions) -> InferredSpace | None:
    """Return the space of these parameters only, with the rules that remain; a fixed space is not changed."""
    if inferred is not None and inferred.fixed:
        return inferred
    usable = {name: entry for name, entry in search_space.items() if _expressible(name, entry)}
    rules = {} if inferred is None else inferred.rules
    roots: dict[str, PresenceRule | None] = {name: None for name in usable if name not in rules}
    remaining = {name: rules[name] for name in rules if name in usable}
    return build_space(usable, roots | remaining, None, ())


def to_space(distribution: BaseDistribution, value: Any) -> Any:
    """Return a parameter's value as the space represents it; with steps, the number of the nearest step from 0."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if not step_count(distribution) or not number:
        return value
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    assert distribution.step is not None
    return round((value - distribution.low) / distribution.step)


def from_space(distribution: BaseDistribution, value: Any) -> Any:
    """Return a value of the space as Optuna represents it."""
    return step_value(distribution, value) if step_count(distribution) else value


def _expressible(name: str, distribution: BaseDistribution) -> bool:
    """Return whether a parameter can be tuned: it has several values, and the space can tell them apart."""
    if distribution.single():
        return False
    try:
        _hyperparameter(name, distribution)
    except SpaceError:
        return False
    return True


def _hyperparameter(name: str, distribution: BaseDistribution) -> Hyperparameter[Any, Any]:
    count = step_count(distribution)
    space = compile_space({name: (0, count - 1)}) if count else space_of_distributions({name: distribution})
    return space.source[name]


def _within(rule: PresenceRule, parent: BaseDistribution) -> PresenceRule | None:
    """Return the rule for the values that the parent can have.

    None if the child is present for none of them, `ALWAYS` if for all: then it is present whenever its parent is.
    """
    if isinstance(parent, CategoricalDistribution):
        values = tuple(choice for choice in parent.choices if rule.values is not None and choice in rule.values)
        return PresenceRule(rule.parent, values) if values else None
    assert isinstance(parent, IntDistribution)
    if rule.values is not None:
        values = tuple(int(value) for value in rule.values if parent._contains(value))
        return PresenceRule(rule.parent, values) if values else None
    if rule.low > parent.high or rule.high < parent.low:
        return None
    if rule.low <= parent.low and rule.high >= parent.high:
        return ALWAYS
    step = parent.step
    if math.isfinite(rule.low):  # the first step that is not below
        return PresenceRule(rule.parent, low=parent.high - (parent.high - math.ceil(rule.low)) // step * step)
    return PresenceRule(rule.parent, high=parent.low + (math.floor(rule.high) - parent.low) // step * step)


def _compile(table: Distributions, rules: Mapping[str, PresenceRule], stated: StatedSpace | None) -> Space:
    """Return the compiled space; hyperparameters that the user stated are used as they were stated."""
    source = ConfigurationSpace()
    for name, distribution in table.items():
        if stated is not None and stated.distributions.get(name) == distribution and not step_count(distribution):
            source.add(stated.space.source[name])
        else:
            source.add(_hyperparameter(name, distribution))
    for name, rule in rules.items():
        source.add(_condition(source[name], source[rule.parent], rule, table[rule.parent]))
    return compile_space(source)


def _condition(child: Any, parent: Any, rule: PresenceRule, distribution: BaseDistribution) -> Any:
    if rule.values is not None:
        return InCondition(child, parent, [to_space(distribution, value) for value in rule.values])
    if math.isfinite(rule.low):
        return GreaterThanCondition(child, parent, to_space(distribution, rule.low) - 1)
    return LessThanCondition(child, parent, to_space(distribution, rule.high) + 1)
