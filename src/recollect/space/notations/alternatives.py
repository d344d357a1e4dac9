"""A list of dicts: GridSearchCV's way to say which hyperparameters belong together.

    [{"kernel": ["rbf"], "C": (0.1, 10.0), "gamma": (0.01, 1.0)}, {"kernel": ["linear"], "C": (0.1, 100.0)}]

Each dict is one alternative. One hyperparameter, the selector, tells them apart: every alternative has it, with choices
of its own. What an alternative lacks is inactive with its choices of the selector. Where alternatives have different
choices or ranges of a hyperparameter, the space has all of them, and clauses forbid what an alternative does not have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from recollect._text import name_list
from recollect.errors import SpaceError
from recollect.space.notations.entries import hyperparameters_of, in_order, space_from_dict

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

Alternative = dict[str, Any]  # hyperparameters of ConfigSpace by name


def space_from_alternatives(dicts: Sequence[Mapping[str, Any]]) -> ConfigurationSpace:
    """Return the ConfigurationSpace of several alternatives.

    Raises:
        SpaceError: No hyperparameter tells the alternatives apart, or one is of different kinds in them.
    """
    from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, InCondition

    if len(dicts) == 1:
        return space_from_dict(dicts[0])
    alternatives = [hyperparameters_of(mapping) for mapping in dicts]
    selector_name = _selector(alternatives)
    groups = [_values(alternative[selector_name]) for alternative in alternatives]
    selector = CategoricalHyperparameter(selector_name, [value for group in groups for value in group])
    space = ConfigurationSpace()
    space.add(selector)
    for name in dict.fromkeys(name for alternative in alternatives for name in alternative if name != selector_name):
        having = [place for place, alternative in enumerate(alternatives) if name in alternative]
        variants = [alternatives[place][name] for place in having]
        merged = _merged(name, variants)
        space.add(merged)
        if len(having) < len(alternatives):
            space.add(InCondition(merged, selector, [value for place in having for value in groups[place]]))
        for place, variant in zip(having, variants, strict=True):
            space.add(*_forbidden(merged, variant, selector, groups[place]))
    return space


def _selector(alternatives: Sequence[Alternative]) -> str:
    """Return the first hyperparameter that every alternative has, with choices of its own."""
    for name in alternatives[0]:
        if all(name in alternative for alternative in alternatives):
            groups = [_values(alternative[name]) for alternative in alternatives]
            distinct = {value for group in groups for value in group}
            if all(groups) and len(distinct) == sum(map(len, groups)):
                return name
    raise SpaceError(
        f"a list of {len(alternatives)} dicts needs a hyperparameter that tells them apart: one that all have, with "
        'choices of its own in each, such as "kernel": ["rbf"] and "kernel": ["linear", "poly"]; the first dict has '
        f"{name_list(map(repr, alternatives[0]))}"
    )


def _values(hyperparameter: Any) -> list[Any]:
    """Return the choices of a hyperparameter; empty for a range."""
    from ConfigSpace.hyperparameters import CategoricalHyperparameter, Constant, OrdinalHyperparameter

    if isinstance(hyperparameter, CategoricalHyperparameter):
        return list(hyperparameter.choices)
    if isinstance(hyperparameter, OrdinalHyperparameter):
        return list(hyperparameter.sequence)
    return [hyperparameter.value] if isinstance(hyperparameter, Constant) else []


def _merged(name: str, variants: Sequence[Any]) -> Any:
    """Return a hyperparameter with all values of the variants, and the default of the first."""
    from ConfigSpace.hyperparameters import CategoricalHyperparameter, OrdinalHyperparameter

    first, choices = variants[0], [_values(variant) for variant in variants]
    if all(variant == first for variant in variants[1:]):
        return first
    if all(choices):
        union = list(dict.fromkeys(value for group in choices for value in group))
        numbers = sorted(union) if all(type(value) in (int, float) for value in union) else union
        if in_order(numbers):
            return OrdinalHyperparameter(name, numbers, default_value=choices[0][0])
        return CategoricalHyperparameter(name, union, default_value=choices[0][0])
    if any(choices) or any(type(variant) is not type(first) or variant.log != first.log for variant in variants):
        raise SpaceError(f"{name!r}: expected choices in all dicts of the list, or ranges on the same scale in all")
    low, high = min(variant.lower for variant in variants), max(variant.upper for variant in variants)
    return type(first)(name, low, high, default_value=first.default_value, log=first.log)


def _forbidden(merged: Any, variant: Any, selector: Any, group: list[Any]) -> list[Any]:
    """Return the clauses that forbid the values that an alternative does not have."""
    from ConfigSpace import (
        ForbiddenAndConjunction,
        ForbiddenGreaterThanClause,
        ForbiddenInClause,
        ForbiddenLessThanClause,
    )

    own = _values(variant)
    if own:
        others = [value for value in _values(merged) if value not in own]
        clauses: list[Any] = [ForbiddenInClause(merged, others)] if others else []
    else:
        clauses = [ForbiddenLessThanClause(merged, variant.lower)] if variant.lower > merged.lower else []
        clauses += [ForbiddenGreaterThanClause(merged, variant.upper)] if variant.upper < merged.upper else []
    return [ForbiddenAndConjunction(ForbiddenInClause(selector, group), clause) for clause in clauses]
