"""What every method of the catalog promises, whatever the past runs and the objective are like.

The fits are variant with fewer restarts and the searches with fewer points than by default: the promises hold all the
same, and the tests stay quick.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from recollect import FAILED, ExhaustedError, InputError, Method, Optimizer, RecollectWarning, Run, method, methods
from recollect.acquisition.maximize import LocalSearch
from recollect.neural.ablr import ABLR
from recollect.neural.copula_prior import CopulaPrior, Training
from recollect.optimizer.method import TargetModel
from recollect.transfer.sources import SourceFit

Config = dict[str, Any]
ABLATIONS = (
    "rgpe-nei+95+s100", "rgpe-taf+copula", "rgpe-mogp+none", "tstr-taf+wd+rho0.1", "smfo+copula", "gp-box+slack",
    "ablr+copula",
)  # fmt: skip
EVERY = pytest.mark.parametrize("name", [*methods(), *ABLATIONS])
FLAT = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
GRID = [{"a": a / 7, "b": b / 4} for a, b in itertools.product(range(8), range(5))]
RNG = np.random.default_rng(3)


def quick(name: str) -> Method:
    few = TargetModel(restarts=1, warm_restarts=0)
    search = LocalSearch(screen=100, starts=4, rounds=4)
    variant = replace(method(name), target=few, sources=SourceFit(restarts=1), search=search)
    if name.startswith("ablr"):
        return replace(variant, joint=ABLR(hidden=(4,), cold_evaluations=20, warm_evaluations=5))
    return replace(variant, joint=CopulaPrior(Training(hidden=(4,), steps=30))) if name == "gcp-prior" else variant


def bowl(config: Config, shift: float = 0.0) -> float:
    return float((config["a"] - 0.3 - shift) ** 2 + 0.5 * (config["b"] - 0.6 + shift) ** 2)


def past_run(task: str, size: int, value: Callable[[Config], Any]) -> Run:
    configs = [GRID[i] for i in RNG.permutation(40)[:size]]
    return Run(task, configs, [value(config) for config in configs])


FIVE = [past_run(f"task {k}", 12, lambda c, k=k: 10**k * bowl(c, 0.1 * k)) for k in range(5)]
FIFTY = [past_run(f"task {k}", 7, lambda c, k=k: (1 + k) * bowl(c, 0.004 * k)) for k in range(50)]
LONG = past_run("long", 30, lambda c: bowl(c, 0.05))
ODD = [
    past_run("two", 2, bowl),
    past_run("three", 3, bowl),
    LONG,
    Run("copy", LONG.configs, LONG.values),
    past_run("constant", 10, lambda _: 4.5),
    past_run("tied", 10, lambda c: round(c["a"])),
    past_run("some failed", 10, lambda c: FAILED if c["a"] > 0.7 else bowl(c)),
]


def drive(optimizer: Optimizer, value: Callable[[Config], Any], trials: int) -> list[Config]:
    asked = []
    for _ in range(trials):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], value(asked[-1]))
    return asked


def distinct(configs: list[Config]) -> int:
    return len({tuple(sorted(config.items())) for config in configs})


@EVERY
def test_the_same_seed_gives_the_same_suggestions(name: str) -> None:
    def play(seed: int, candidates: Any, trials: int) -> list[Config]:
        optimizer = Optimizer(FLAT, FIVE[:3], quick(name), seed=seed, horizon=20, candidates=candidates)
        return drive(optimizer, bowl, trials)

    for candidates, trials in ((GRID, 8), (None, 5)):
        assert play(1, candidates, trials) == play(1, candidates, trials)


@EVERY
def test_candidates_are_used_up_without_repetition_even_when_some_fail(name: str) -> None:
    few = GRID[::3]
    optimizer = Optimizer(FLAT, FIVE[:2], quick(name), horizon=12, candidates=few)
    asked = drive(optimizer, lambda c: FAILED if c["a"] > 0.8 else bowl(c), len(few))
    assert distinct(asked) == len(few)
    with pytest.raises(ExhaustedError):
        optimizer.ask()
    assert optimizer.explain().failed == sum(c["a"] > 0.8 for c in few) > 0


@EVERY
@pytest.mark.parametrize("count", [0, 1, 50])
def test_any_number_of_past_runs_is_accepted(name: str, count: int) -> None:
    optimizer = Optimizer(FLAT, FIFTY[:count], quick(name), horizon=15, candidates=GRID)
    trials = {0: 13, 1: 7, 50: 4}[count]
    assert distinct(drive(optimizer, bowl, trials)) == trials
    explanation = optimizer.explain()
    assert len(explanation.past) == count
    assert explanation.notes == ()


@EVERY
@pytest.mark.parametrize("value", [lambda _: 0.25, lambda c: round(2 * c["a"]), lambda c: 1e6 + 1e-6 * bowl(c)])
def test_odd_past_runs_and_odd_objectives_are_accepted(name: str, value: Callable[[Config], Any]) -> None:
    counts_once = method(name).prior is not None  # a copy says no more about how tasks vary
    with pytest.warns(RecollectWarning, match="'copy'") if counts_once else nullcontext():
        optimizer = Optimizer(FLAT, ODD, quick(name), horizon=15, candidates=GRID)
    assert distinct(drive(optimizer, value, 8)) == 8
    explanation = optimizer.explain()
    assert explanation.notes == ()
    assert [entry.observations for entry in explanation.past[:4]] == [2, 3, 30, 0 if counts_once else 30]


@EVERY
def test_a_run_that_starts_with_failures_continues(name: str) -> None:
    optimizer = Optimizer(FLAT, FIVE[:2], quick(name), horizon=20, candidates=GRID)
    calls = itertools.count()
    asked = drive(optimizer, lambda c: FAILED if next(calls) < 4 else bowl(c), 9)
    assert distinct(asked) == 9
    assert optimizer.best is not None


def conditional() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "poly", "rbf"])
    gamma, degree = Float("gamma", (1e-3, 1e3), log=True), Integer("degree", (2, 5))
    space.add(kernel, Float("C", (1e-3, 1e3), log=True), gamma, degree)
    space.add(EqualsCondition(gamma, kernel, "rbf"), EqualsCondition(degree, kernel, "poly"))
    return space


def conditional_value(config: Config) -> float:
    value = abs(math.log10(config["C"]) - 1)
    if config["kernel"] == "rbf":
        return value + abs(math.log10(config["gamma"]) + 1)
    return value + 2 + (config["degree"] if config["kernel"] == "poly" else 0)


@EVERY
def test_conditional_spaces_keep_their_structure_up_to_the_horizon(name: str) -> None:
    space = conditional()
    space.seed(1)
    runs = []
    for task in "pqr":
        configs = [dict(config) for config in space.sample_configuration(8)]
        runs.append(Run(task, configs, [conditional_value(config) for config in configs]))
    if name == "kl":
        with pytest.raises(InputError, match="floats and integers without conditions; 'kernel' is categorical"):
            Optimizer(space, runs, quick(name))
        return
    optimizer = Optimizer(space, runs, quick(name), horizon=20)
    configs = drive(optimizer, conditional_value, 20)
    assert distinct(configs) == 20
    assert all(("gamma" in c) == (c["kernel"] == "rbf") and ("degree" in c) == (c["kernel"] == "poly") for c in configs)


@EVERY
@pytest.mark.parametrize("candidates", [GRID, None])
def test_four_suggestions_at_once_are_different_and_new(name: str, candidates: Any) -> None:
    optimizer = Optimizer(FLAT, FIVE[:3], quick(name), horizon=20, candidates=candidates)
    first = optimizer.ask(4)
    assert distinct(first) == 4
    for config in first:
        optimizer.tell(config, bowl(config))
    second = optimizer.ask(4)
    assert distinct(first + second) == 8
    assert len(optimizer.pending) == 4


@EVERY
def test_maximizing_mirrors_minimizing(name: str) -> None:
    mirrored = [Run(r.task, r.configs, [-v for v in r.values if v is not None], direction="maximize") for r in FIVE[:2]]
    down = Optimizer(FLAT, FIVE[:2], quick(name), horizon=15, candidates=GRID)
    up = Optimizer(FLAT, mirrored, quick(name), horizon=15, candidates=GRID, direction="maximize")
    assert drive(down, bowl, 6) == drive(up, lambda c: -bowl(c), 6)
