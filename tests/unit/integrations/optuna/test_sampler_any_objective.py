"""Whatever the past was and whatever an objective asks for, every trial gets values that Optuna accepts."""

from __future__ import annotations

from typing import Any

import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from optuna.trial import TrialState

from recollect.optuna import TransferSampler

NAMES = "abcde"
KINDS: list[BaseDistribution] = [
    FloatDistribution(0.0, 1.0),
    FloatDistribution(0.5, 9.0),
    FloatDistribution(1e-3, 10.0, log=True),
    FloatDistribution(0.0, 2.0, step=0.25),
    FloatDistribution(1.0, 1.0),
    FloatDistribution(1e-20, 1.0, log=True),
    IntDistribution(0, 3),
    IntDistribution(1, 9),
    IntDistribution(1, 64, log=True),
    IntDistribution(0, 8, step=2),
    IntDistribution(0, 2**60),
    CategoricalDistribution(["p", "q", "r"]),
    CategoricalDistribution([True, False]),
    CategoricalDistribution([None, 1, 2.5, "x"]),
    CategoricalDistribution([1, True, 0]),
    CategoricalDistribution([0, 1, 2]),
]
Program = list[tuple[str, BaseDistribution, str | None, int]]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Draw what an objective asks for in order: a name, its distribution, and whether some other name decides."""
    steps: Program = []
    for name in draw(st.permutations(NAMES))[: draw(st.integers(1, 5))]:
        parent = draw(st.sampled_from([None, None, *(step[0] for step in steps)]))
        steps.append((name, draw(st.sampled_from(KINDS)), parent, draw(st.integers(2, 3))))
    return steps


def run(program: Program, trial: optuna.Trial) -> float:
    """Ask; a parameter with a parent is there when the parent's internal value is not a multiple of a number."""
    asked: dict[str, float] = {}
    for name, distribution, parent, number in program:
        if parent is not None and (parent not in asked or int(asked[parent]) % number == 0):
            continue
        value = trial._suggest(name, distribution)
        internal = distribution.to_internal_repr(value)
        assert distribution._contains(internal)
        asked[name] = float(internal)
    if sum(asked.values()) % 7 > 6:
        raise optuna.TrialPruned
    return sum(asked.values()) % 5


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def study_of(program: Program, sampler: Any, trials: int) -> optuna.Study:
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: run(program, trial), n_trials=trials)
    return study


def check(data: Any, method: str, trials: int) -> None:
    past = [
        study_of(data.draw(programs()), RandomSampler(seed=seed), 6) for seed in range(data.draw(st.integers(0, 2)))
    ]
    sampler = TransferSampler(past=past, method=method, seed=0)
    program = data.draw(programs())
    study = study_of(program, sampler, trials)
    assert len(study.trials) == trials
    assert {trial.state for trial in study.trials} <= {TrialState.COMPLETE, TrialState.PRUNED}
    sampler.space(study)  # reads the last trial
    inferred = sampler._view(study)._inferred
    for trial in study.trials if inferred is not None else ():
        if trial.state == TrialState.COMPLETE:
            assert inferred.matches(trial)
            assert inferred.config_of(trial.params) is not None


@pytest.mark.filterwarnings("ignore:past:recollect.RecollectWarning")
@settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_objective_after_any_past_at_random(data: Any) -> None:
    check(data, "random", 8)


@pytest.mark.filterwarnings("ignore:past:recollect.RecollectWarning")
@settings(deadline=None, max_examples=6, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_objective_after_any_past_with_models(data: Any) -> None:
    check(data, "rgpe-taf", 6)
