"""Random configuration spaces, as Hypothesis strategies."""

from __future__ import annotations

import itertools
from typing import Any

import ConfigSpace as CS
import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

seeds = st.integers(0, 2**32 - 1)

FLOAT_RANGES = [(0.0, 1.0), (-5.0, 5.0), (0.1, 0.9), (2.0, 60.0), (-0.003, 97.125)]
LOG_RANGES = [(2.0**-10, 2.0**10), (1e-4, 1e-1), (1.0, 1e5), (1e-8, 1.0), (0.5, 0.75)]
INTEGER_RANGES = [(0, 1), (1, 15), (-3, 4), (2, 200)]
LOG_INTEGER_RANGES = [(1, 5), (16, 512), (1, 100)]
CHOICES = [["x", "y"], ["p", "q", "r"], [1, 2, 3], [True, False], [None, "a", 2.5], ["only"]]


CLAUSES = [[], [False], [True], [False, True], [False, False]]


@st.composite
def hyperparameters(draw: st.DrawFn, name: str, *, finite: bool) -> Any:
    def one_of(options: list[Any], few: int | None = None) -> Any:
        return draw(st.sampled_from(options[:few] if finite else options))

    choices = one_of(CHOICES)
    weights = one_of([None, list(range(1, len(choices) + 1))])
    makers = {
        "integer": lambda: CS.UniformIntegerHyperparameter(name, *one_of(INTEGER_RANGES, 3)),
        "log integer": lambda: CS.UniformIntegerHyperparameter(name, *one_of(LOG_INTEGER_RANGES, 1), log=True),
        "choices": lambda: CS.CategoricalHyperparameter(name, choices, weights=weights),
        "ordinal": lambda: CS.OrdinalHyperparameter(name, one_of([["s", "m", "l"], [10, 3, 7, 5]])),
        "constant": lambda: CS.Constant(name, one_of(["c", 3, 0.5])),
        "float": lambda: CS.UniformFloatHyperparameter(name, *one_of(FLOAT_RANGES)),
        "log float": lambda: CS.UniformFloatHyperparameter(name, *one_of(LOG_RANGES), log=True),
    }
    return makers[one_of(list(makers), 5)]()


def some_values(draw: st.DrawFn, hyperparameter: Any, count: int) -> list[Any]:
    """Draw distinct legal values of a hyperparameter."""
    if isinstance(hyperparameter, CS.CategoricalHyperparameter):
        pool = list(hyperparameter.choices)
    elif isinstance(hyperparameter, CS.OrdinalHyperparameter):
        pool = list(hyperparameter.sequence)
    elif isinstance(hyperparameter, CS.UniformIntegerHyperparameter):
        pool = list(range(hyperparameter.lower, hyperparameter.upper + 1))
    elif isinstance(hyperparameter, CS.Constant):
        pool = [hyperparameter.value]
    else:
        pool = [float(f"{hyperparameter.to_value(np.float64(u)):.4g}") for u in (0.25, 0.5, 0.9)]
    return [pool[i] for i in draw(st.lists(st.integers(0, len(pool) - 1), min_size=1, max_size=count, unique=True))]


def leaf(draw: st.DrawFn, child: Any, parent: Any) -> Any:
    if isinstance(parent, CS.UniformFloatHyperparameter):
        kinds = [CS.LessThanCondition, CS.GreaterThanCondition]
    elif isinstance(parent, CS.CategoricalHyperparameter | CS.Constant):
        kinds = [CS.EqualsCondition, CS.NotEqualsCondition, CS.InCondition]
    else:
        kinds = [CS.EqualsCondition, CS.NotEqualsCondition, CS.InCondition]
        kinds += [CS.LessThanCondition, CS.GreaterThanCondition]
    kind = draw(st.sampled_from(kinds))
    values = some_values(draw, parent, 2 if kind is CS.InCondition else 1)
    return kind(child, parent, values if kind is CS.InCondition else values[0])


def condition(draw: st.DrawFn, child: Any, earlier: list[Any]) -> Any:
    parents = draw(st.lists(st.sampled_from(earlier), min_size=1, max_size=3, unique_by=lambda parent: parent.name))
    leaves = [leaf(draw, child, parent) for parent in parents]
    if len(leaves) == 1:
        return leaves[0]
    outer, inner = draw(st.permutations([CS.AndConjunction, CS.OrConjunction]))
    return outer(*leaves) if len(leaves) == 2 else outer(leaves[0], inner(*leaves[1:]))


def clause(draw: st.DrawFn, hyperparameter: Any) -> Any:
    if isinstance(hyperparameter, CS.UniformFloatHyperparameter):
        # The default lies well inside what is left, so that random draws can meet it.
        ends = [float(f"{hyperparameter.to_value(np.float64(u)):.4g}") for u in (0.1, 0.9)]
        low, high = (
            CS.ForbiddenLessThanClause(hyperparameter, ends[0]),
            CS.ForbiddenGreaterThanClause(hyperparameter, ends[1]),
        )
        return draw(st.sampled_from([low, high]))
    values = some_values(draw, hyperparameter, 2)
    if len(values) == 1:
        return CS.ForbiddenEqualsClause(hyperparameter, values[0])
    return CS.ForbiddenInClause(hyperparameter, values)


def forbidden(draw: st.DrawFn, everything: list[Any], *, relation: bool) -> Any:
    kinds = CS.UniformFloatHyperparameter | CS.UniformIntegerHyperparameter
    numeric = [hp for hp in everything if isinstance(hp, kinds)]
    if relation and len(numeric) > 1:
        relations = [CS.ForbiddenLessThanRelation, CS.ForbiddenGreaterThanRelation, CS.ForbiddenEqualsRelation]
        return draw(st.sampled_from(relations))(numeric[0], numeric[1])
    chosen = draw(st.lists(st.sampled_from(everything), min_size=1, max_size=2, unique_by=lambda hp: hp.name))
    parts = [clause(draw, hp) for hp in chosen]
    return parts[0] if len(parts) == 1 else CS.ForbiddenAndConjunction(*parts)


def built(parts: list[Any]) -> Any:
    source = CS.ConfigurationSpace()
    source.add(*parts)
    return source


@st.composite
def sources(draw: st.DrawFn, *, finite: bool = False) -> Any:
    """A random ConfigurationSpace with conditions and forbidden clauses, as far as ConfigSpace accepts them."""
    names = draw(st.permutations("abcdef"))[: draw(st.integers(1, 4 if finite else 6))]
    parts: list[Any] = [draw(hyperparameters(name, finite=finite)) for name in names]
    everything = list(parts)
    extras = [condition(draw, child, everything[:i]) for i, child in enumerate(everything) if i and draw(st.booleans())]
    # Not two relations: a < b and a > b together leave nothing that a random draw could meet.
    extras += [forbidden(draw, everything, relation=relation) for relation in draw(st.sampled_from(CLAUSES))]
    for extra in extras:
        try:
            built([*parts, extra])
        except (ValueError, KeyError):  # the default configuration would be forbidden or incomplete
            continue
        parts.append(extra)
    source = built(parts)
    # ConfigSpace takes "a and b" and "a or b" on two children for the same condition; its judgement is then void.
    junctions = [part for part in source.conditions if isinstance(part, CS.AndConjunction | CS.OrConjunction)]
    pairs = itertools.permutations(junctions, 2)
    assume(all(type(a) is type(b) or not a.equivalent_condition_on_parent(b) for a, b in pairs))
    return source
