"""Optuna's trials, studies and distributions as recollect's trials, runs and spaces, and back.

A configuration is stored in Optuna as parameters, each with its distribution:

    float                           FloatDistribution           integer     IntDistribution
    categorical, ordinal, constant  CategoricalDistribution

Reading converts every value to the type of its distribution: an int stays an int, a float a float, and a choice is the
choice itself. `recollect.space.notations.optuna_distributions` says what a distribution is in a space.

A pruned trial has no final value. It is estimated by rank: if its last report was worse than 80 % of
what completed trials had reported at the same step, its value is worse than 80 % of theirs (`CompletedReports`). Where
no completed trial reported at that step, there is no estimate.
"""

from __future__ import annotations

import bisect
import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.errors import ConfigError, InputError, InputTypeError, SpaceError
from recollect.numerics.arrays import native
from recollect.runs.run import Config, Direction, Run, State, Trial, sign_of
from recollect.space.columns import EDGE_DECIMALS, EDGE_RELATIVE, Choices, Interval, SpaceColumn, Steps
from recollect.space.notations.optuna_distributions import step_value
from recollect.space.space import Space, compile_space
from recollect.storage.sql_read import ESTIMATE_KEY, duration

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial, TrialState

STEP_RELATIVE = 1e-8
"""How far from a multiple of its step, in steps, Optuna lets a float be."""


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """Return Optuna's distribution of every hyperparameter, in the order of the space's columns."""
    return {column.name: _distribution(column) for column in space.columns}


def space_of_distributions(mapping: Mapping[str, BaseDistribution]) -> Space:
    """Return the unconditional space of Optuna's distributions; SpaceError where one cannot be represented."""
    return compile_space(dict(mapping))


def params_of(config: Mapping[str, Any], known: Mapping[str, BaseDistribution]) -> Config:
    """Return the active part of a configuration as parameters that Optuna accepts for these distributions."""
    from optuna.distributions import CategoricalDistribution

    params = {}
    for name, value in config.items():
        if name not in known:
            raise ConfigError(f"expected one of the parameters {', '.join(known)}, got {name!r}")
        entry = known[name]
        if value is not None or (isinstance(entry, CategoricalDistribution) and None in entry.choices):
            params[name] = fit_value(name, entry, value)
    return params


def frozen_trial(
    config: Mapping[str, Any],
    known: Mapping[str, BaseDistribution],
    state: TrialState,
    *,
    number: int = -1,
    **fields: Any,
) -> FrozenTrial:
    """Return a configuration as a trial; without a number, a storage can add it; fields: others of FrozenTrial."""
    from optuna.trial import FrozenTrial

    params = params_of(config, known)
    empty: dict[str, Any] = dict.fromkeys(("value", "datetime_start", "datetime_complete")) | {
        name: {} for name in ("user_attrs", "system_attrs", "intermediate_values")
    }
    used = {name: known[name] for name in params}
    return FrozenTrial(
        number=number, trial_id=number, state=state, params=params, distributions=used, **(empty | fields)
    )


def fit_value(name: str, distribution: BaseDistribution, value: Any) -> Any:
    """Return a value in the type of its distribution; ConfigError if the distribution does not contain it.

    Numpy scalars become Python's own; a number that misses a bound or a step only by rounding is moved there.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    value = native(value)
    if isinstance(distribution, CategoricalDistribution):
        for choice in distribution.choices:
            if _same(choice, value):
                return native(choice)
    else:
        near = nearest(distribution, value)
        slack = 0.0
        if near is not None and isinstance(distribution, FloatDistribution):
            step = 0.0 if distribution.step is None else distribution.step
            slack = max(min(EDGE_DECIMALS, EDGE_RELATIVE * abs(near)), STEP_RELATIVE * step)
        if near is not None and abs(near - value) <= slack:
            return near
    raise ConfigError(f"{name!r}: expected a value of {distribution}, got {value!r} ({type(value).__name__})")


def nearest(distribution: BaseDistribution, value: Any) -> Any:
    """Return the number closest to ``value`` that a numerical distribution allows; None for what is not a number."""
    from optuna.distributions import FloatDistribution, IntDistribution

    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        return None
    inside = min(max(value, distribution.low), distribution.high)
    if isinstance(distribution, IntDistribution):
        steps = (2 * (round(inside) - distribution.low) + distribution.step) // (2 * distribution.step)
        return min(distribution.low + steps * distribution.step, distribution.high)
    if distribution.step is None:
        return float(inside)
    return step_value(distribution, round((inside - distribution.low) / distribution.step))


def trial_of(frozen: FrozenTrial, *, completed: CompletedReports | None = None) -> Trial | None:
    """Return an Optuna trial as recollect's; None for one that has not finished.

    ``completed``: the trials that had completed when a pruned trial was stopped, from which its value is estimated.
    """
    from optuna.trial import TrialState

    config, seconds = config_of(frozen), duration(frozen)
    if frozen.state == TrialState.COMPLETE:
        value, note = _value(frozen)
        if value is None:
            return Trial(config, None, State.FAILED, seconds, (note,))
        return Trial(config, value, seconds=seconds)
    if frozen.state == TrialState.FAIL:
        return Trial(config, None, State.FAILED, seconds, (f"trial {frozen.number} failed in Optuna",))
    if frozen.state != TrialState.PRUNED:
        return None
    estimate = frozen.user_attrs.get(ESTIMATE_KEY)
    if not isinstance(estimate, float) and completed is not None:
        estimate = completed.estimate(frozen)
    return Trial(config, None, State.PRUNED, seconds, _last_report(frozen), estimate)


def _last_report(frozen: FrozenTrial) -> tuple[str, ...]:
    """Return the note on a pruned trial: where it was stopped."""
    if not frozen.intermediate_values:
        return ("pruned before its first report",)
    step = max(frozen.intermediate_values)
    return (f"pruned at step {step}, which reported {frozen.intermediate_values[step]:.6g}",)


class CompletedReports:
    """The reports of completed trials at each step and their final values, each sorted, better first."""

    def __init__(self, direction: Direction) -> None:
        """Start without trials."""
        self._sign = sign_of(direction)
        self._at: dict[int, tuple[list[float], list[float]]] = {}

    def add(self, frozen: FrozenTrial, value: float) -> None:
        """Add a completed trial."""
        for step, report in frozen.intermediate_values.items():
            if math.isfinite(report):
                reports, values = self._at.setdefault(step, ([], []))
                bisect.insort(reports, self._sign * report)
                bisect.insort(values, self._sign * value)

    def estimate(self, frozen: FrozenTrial) -> float | None:
        """Return the final value with the same rank as the trial's last report; None without a comparison."""
        reported = [step for step, report in frozen.intermediate_values.items() if math.isfinite(report)]
        if not reported or max(reported) not in self._at:
            return None
        step = max(reported)
        reports, values = self._at[step]
        better = bisect.bisect_left(reports, self._sign * frozen.intermediate_values[step])
        place = better / len(reports) * (len(values) - 1)  # among the values, counted from 0
        below, above = values[math.floor(place)], values[math.ceil(place)]
        return self._sign * (below + (place - math.floor(place)) * (above - below))


def run_of_study(study: Study, task: str | None = None) -> Run:
    """Return the finished trials of a study as a run named ``task``, or as the study is named."""
    direction = direction_of(study)
    return Run(
        study.study_name if task is None else task,
        trials=[trial for _, trial in finished_trials(study.get_trials(deepcopy=False), direction)],
        direction=direction,
    )


def finished_trials(
    trials: Sequence[FrozenTrial], direction: Direction, *, completed: CompletedReports | None = None
) -> list[tuple[FrozenTrial, Trial]]:
    """Return the finished trials that count, in the given order, each as Optuna's and as recollect's.

    ``completed`` has the trials that had completed before; these are added to it.
    """
    from optuna.trial import TrialState

    pairs: dict[int, tuple[FrozenTrial, Trial]] = {}
    completed = CompletedReports(direction) if completed is None else completed
    ends = [(frozen.datetime_complete or datetime.max, frozen.state == TrialState.PRUNED) for frozen in trials]
    for position in sorted(range(len(trials)), key=ends.__getitem__):
        frozen = trials[position]
        trial = trial_of(frozen, completed=completed)
        if trial is None:
            continue
        pairs[position] = (frozen, trial)
        if trial.value is not None and frozen.state == TrialState.COMPLETE:
            completed.add(frozen, trial.value)
    return [pairs[position] for position in sorted(pairs)]


def direction_of(study: Study) -> Direction:
    """Return the direction of a study; InputError for one with several objectives."""
    from optuna.study import Study, StudyDirection

    if not isinstance(study, Study):
        raise InputTypeError(f"expected an optuna.Study, got {study!r} ({type(study).__name__})")
    if len(study.directions) != 1:
        raise InputError(
            f"study {study.study_name!r} has {len(study.directions)} objectives, but only one can be optimized here"
        )
    return "maximize" if study.directions[0] == StudyDirection.MAXIMIZE else "minimize"


def config_of(frozen: FrozenTrial) -> Config:
    """Return the parameters of a trial, each in the type of its distribution."""
    return {name: _external(frozen.distributions.get(name), value) for name, value in frozen.params.items()}


def _distribution(column: SpaceColumn) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(column, Interval):
        return FloatDistribution(column.lower, column.upper, log=column.log)
    if isinstance(column, Steps) and column.choices is None:
        return IntDistribution(column.lower, column.lower + column.size - 1, log=column.log)
    assert isinstance(column, Choices | Steps)
    choices = [native(choice) for choice in column.choices or ()]
    for choice in choices:
        if choice is not None and type(choice) not in (str, int, float, bool):
            raise SpaceError(
                f"hyperparameter {column.name!r}: Optuna stores only str, int, float, bool and None as choices, "
                f"got {choice!r} ({type(choice).__name__})"
            )
    return CategoricalDistribution(choices)


def _same(choice: Any, value: Any) -> bool:
    """Return whether a value is this choice; True equals 1 in Optuna as in Python."""
    both_nan = isinstance(choice, float) and isinstance(value, float) and math.isnan(choice) and math.isnan(value)
    return both_nan or bool(choice == value)


def _external(distribution: BaseDistribution | None, value: Any) -> Any:
    if distribution is not None:
        with suppress(TypeError, ValueError):  # a value outside its own distribution stays as it was stored
            value = distribution.to_external_repr(distribution.to_internal_repr(value))
    return native(value)


def _value(frozen: FrozenTrial) -> tuple[float | None, str]:
    """Return the value of a completed trial, or None and the reason."""
    values = frozen.values
    if not values:
        return None, "completed without a value"
    if len(values) != 1:
        raise InputError(f"trial {frozen.number} has {len(values)} values, but only one can be optimized here")
    try:
        number = float(values[0])
    except (TypeError, ValueError):
        return None, f"the value {values[0]!r} is not a number"
    return (number, "") if math.isfinite(number) else (None, f"the objective returned {number}")
