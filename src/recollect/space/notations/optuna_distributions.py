"""Optuna's distributions as entries of a space.

A distribution with a step becomes an ordinal of its values (a plain range when there are more than `MAX_STEPS`), which
has the same scale.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from recollect.errors import SpaceError
from recollect.numerics.arrays import native

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

MAX_STEPS = 1000
"""A range with more steps than this is treated as a range without steps; only ranges of Optuna may have more."""


def is_optuna_distribution(entry: Any) -> bool:
    """Whether this is one of Optuna's distributions; Optuna is not imported to find out."""
    home = sys.modules.get("optuna.distributions")
    return home is not None and isinstance(entry, home.BaseDistribution)


def entry_of_optuna(name: str, distribution: BaseDistribution) -> Any:
    """Return what stands for one distribution: a range, a list of choices or an ordinal hyperparameter."""
    from ConfigSpace.hyperparameters import OrdinalHyperparameter
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        choices = [native(choice) for choice in distribution.choices]
        return {"choices": choices, "ordered": False}
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise SpaceError(f"{name!r}: expected an Optuna distribution, got {distribution!r}")
    steps = 1 if distribution.single() else step_count(distribution)
    if 2 <= steps <= MAX_STEPS:
        return OrdinalHyperparameter(name, [step_value(distribution, k) for k in range(steps)])
    high = distribution.low if steps == 1 else distribution.high
    return (distribution.low, high, "log") if distribution.log else (distribution.low, high)


def step_count(distribution: BaseDistribution) -> int:
    """Count the values of a numerical distribution with a step of its own; 0 for one without."""
    from optuna.distributions import FloatDistribution, IntDistribution

    if not isinstance(distribution, FloatDistribution | IntDistribution) or distribution.step is None:
        return 0
    if isinstance(distribution, IntDistribution) and distribution.step == 1:
        return 0
    return round((distribution.high - distribution.low) / distribution.step) + 1


def step_value(distribution: Any, k: int) -> Any:
    """Return the value at step k = 0, 1, ..., computed like in Optuna, so that values agree in every bit."""
    return min(max(k * distribution.step + distribution.low, distribution.low), distribution.high)
