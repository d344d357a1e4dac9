"""The space in which an Optuna study is tuned: known distributions, inferred conditions, a ConfigurationSpace of both.

Optuna learns what an objective asks for only while it runs. A `Scheme` is what is known at one moment, from the
completed trials of the study itself, from what the user stated, and from past studies where they agree, in this order.
Parameters that cannot be part of it are loose: they are sampled one by one. That are those whose range changes between
trials of the study, those that come and go without a parent that explains it, and those that the space cannot express.

A parameter with steps is an integer in the space, the number of the step, so that every value has one place there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ConfigSpace import ConfigurationSpace, GreaterThanCondition, InCondition, LessThanCondition
from ConfigSpace.hyperparameters import Hyperparameter
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

from recollect.errors import ConfigError, InputError, SpaceError
from recollect.history.optuna_runs import config_of, distributions, space_of_distributions, step_count, step_value
from recollect.history.run import Config
from recollect.integrations.optuna_conditions import ALWAYS, Record, Rule, explain_presence
from recollect.integrations.optuna_past import PastStudy, shared_distributions, stable
from recollect.space.space import Space, SpaceLike, compile_space


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """A space that the user stated; ``binding`` when it has conditions or forbidden clauses and is taken as it is."""

    space: Space
    known: Mapping[str, BaseDistribution]

    @property
    def binding(self) -> bool:
        """Whether nothing is left to infer."""
        return self.space.conditional or bool(self.space.forbidden)


@dataclass(frozen=True, slots=True, eq=False)
class Scheme:
    """What is tuned together. rules: of the parameters that are not always there; loose: names that are left out."""

    known: Mapping[str, BaseDistribution]
    rules: Mapping[str, Rule]
    space: Space
    loose: frozenset[str] = frozenset()
    binding: bool = False

    def config_of(self, params: Mapping[str, Any]) -> Config | None:
        """Return the part of a trial's parameters that is tuned here; None if it is no configuration of the space."""
        config = {name: inward(self.known[name], value) for name, value in params.items() if name in self.known}
        try:
            self.space.encode([config])
        except ConfigError:
            return None
        return config

    def params_of(self, config: Config) -> dict[str, Any]:
        """Return a configuration of the space as parameters."""
        return {name: outward(self.known[name], value) for name, value in config.items()}

    def explains(self, trial: FrozenTrial) -> bool:
        """Whether a completed trial is as this scheme says: the same distributions, the same parameters there."""
        if self.binding:
            return True
        there = {name for name in trial.params if name not in self.loose}
        if any(self.known.get(name) != trial.distributions[name] for name in there):
            return False
        values = config_of(trial)
        return there == {name for name in self.known if name not in self.rules or self.rules[name].holds(values)}

    def same(self, other: Scheme | None) -> bool:
        """Whether two schemes describe the same space."""
        if other is None or self.binding or other.binding:
            return other is self
        return dict(self.known) == dict(other.known) and dict(self.rules) == dict(other.rules)


def state_space(space: SpaceLike | Mapping[str, BaseDistribution] | None) -> Stated | None:
    """Read what the user gave as ``space``."""
    if space is None:
        return None
    if isinstance(space, Mapping) and any(isinstance(entry, BaseDistribution) for entry in space.values()):
        given: dict[str, BaseDistribution] = {}
        for name, entry in space.items():
            if not isinstance(entry, BaseDistribution):
                raise InputError(f"space: {name!r} is {entry!r}, but others are Optuna distributions; use one kind")
            given[name] = entry
        return Stated(space_of_distributions(given), given)
    compiled = compile_space(space)
    return Stated(compiled, distributions(compiled))


def infer_scheme(completed: Sequence[FrozenTrial], past: Sequence[PastStudy], stated: Stated | None) -> Scheme | None:
    """Return the scheme that explains all completed trials; None while there is nothing to tune together."""
    if stated is not None and stated.binding:
        return Scheme(stated.known, {}, stated.space, binding=True)
    asked = {name for trial in completed for name in trial.params}
    assumed = {**shared_distributions(past), **(stated.known if stated else {})}
    table = {name: distribution for name, distribution in assumed.items() if name not in asked}
    table |= stable(completed)
    known = {name: distribution for name, distribution in table.items() if _expressible(name, distribution)}
    own = [Record(config_of(trial)) for trial in completed]
    pooled = own + [record for entry in past for record in entry.records]
    if stated is not None and not completed:  # what was stated and never seen is taken to be there
        unseen = {name: None for name in stated.known if not any(name in record.values for record in pooled)}
        pooled = [*pooled, Record(unseen, frozenset(unseen))]
    parents = {
        name: isinstance(distribution, IntDistribution)
        for name, distribution in known.items()
        if not isinstance(distribution, FloatDistribution)
    }
    rules = explain_presence(known, parents, [pooled, own])
    return make_scheme({name: known[name] for name in rules}, rules, stated=stated, asked=asked)


def make_scheme(
    known: Mapping[str, BaseDistribution],
    rules: Mapping[str, Rule | None],
    *,
    stated: Stated | None,
    asked: Iterable[str],
) -> Scheme | None:
    """Return the scheme of distributions and rules; what can never be there, or whose parent is missing, is loose."""
    kept: dict[str, Rule | None] = {}
    for name, rule in rules.items():  # parents come first
        if rule is None:
            kept[name] = None
        elif rule.parent in kept:
            within = _within(rule, known[rule.parent])
            if within is not None:
                kept[name] = within if within.parent else kept[rule.parent]
    if not kept:
        return None
    known = {name: known[name] for name in kept}
    conditions = {name: rule for name, rule in kept.items() if rule is not None}
    return Scheme(known, conditions, _compile(known, conditions, stated), frozenset(asked) - known.keys())


def narrow_scheme(scheme: Scheme | None, search_space: Mapping[str, BaseDistribution]) -> Scheme | None:
    """Return the scheme of just these parameters, with the rules that are left among them.

    A space that the user stated is not taken apart.
    """
    if scheme is not None and scheme.binding:
        return scheme
    known = {name: entry for name, entry in search_space.items() if _expressible(name, entry)}
    rules = {} if scheme is None else scheme.rules
    roots: dict[str, Rule | None] = {name: None for name in known if name not in rules}
    return make_scheme(known, roots | {name: rules[name] for name in rules if name in known}, stated=None, asked=())


def inward(distribution: BaseDistribution, value: Any) -> Any:
    """Return a parameter's value as the scheme's space has it: with steps, the number of the nearest one from 0 on."""
    if not step_count(distribution) or isinstance(value, bool | str | None):
        return value
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    assert distribution.step is not None
    return round((value - distribution.low) / distribution.step)


def outward(distribution: BaseDistribution, value: Any) -> Any:
    """Return a value of the scheme's space as Optuna has it."""
    return step_value(distribution, value) if step_count(distribution) else value


def _expressible(name: str, distribution: BaseDistribution) -> bool:
    """Whether a parameter can be tuned: it has more than one value, and the space can tell them apart."""
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


def _within(rule: Rule, parent: BaseDistribution) -> Rule | None:
    """Return the rule in terms of the values that the parent can have.

    None if none of them lets the child be there, `ALWAYS` if all do, so that it is there whenever its parent is.
    """
    if isinstance(parent, CategoricalDistribution):
        values = tuple(choice for choice in parent.choices if rule.values is not None and choice in rule.values)
        return Rule(rule.parent, values) if values else None
    assert isinstance(parent, IntDistribution)
    if rule.values is not None:
        values = tuple(int(value) for value in rule.values if parent._contains(value))
        return Rule(rule.parent, values) if values else None
    if rule.low > parent.high or rule.high < parent.low:
        return None
    if rule.low <= parent.low and rule.high >= parent.high:
        return ALWAYS
    if math.isfinite(rule.low):  # the first step that is not below
        return Rule(rule.parent, low=parent.high - (parent.high - math.ceil(rule.low)) // parent.step * parent.step)
    return Rule(rule.parent, high=parent.low + (math.floor(rule.high) - parent.low) // parent.step * parent.step)


def _compile(known: Mapping[str, BaseDistribution], rules: Mapping[str, Rule], stated: Stated | None) -> Space:
    """Return the space; a hyperparameter that was stated so is used as it was stated."""
    source = ConfigurationSpace()
    for name, distribution in known.items():
        if stated is not None and stated.known.get(name) == distribution and not step_count(distribution):
            source.add(stated.space.source[name])
        else:
            source.add(_hyperparameter(name, distribution))
    for name, rule in rules.items():
        source.add(_condition(source[name], source[rule.parent], rule, known[rule.parent]))
    return compile_space(source)


def _condition(child: Any, parent: Any, rule: Rule, distribution: BaseDistribution) -> Any:
    if rule.values is not None:
        return InCondition(child, parent, [inward(distribution, value) for value in rule.values])
    if math.isfinite(rule.low):
        return GreaterThanCondition(child, parent, inward(distribution, rule.low) - 1)
    return LessThanCondition(child, parent, inward(distribution, rule.high) + 1)
