"""Where methods with a box search: inside it, in its own encoding, and outside only when nothing is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from recollect import Optimizer, Run
from recollect.optimizer.search_region import TOO_FAR

Config = dict[str, Any]
BOXED = pytest.mark.parametrize("method", ["random-box", "gp-box", "gp-box+slack"])
SQUARE = {"a": (0.0, 10.0), "b": (1e-3, 1e3, "log"), "c": (1, 20)}


def past(*optima: Config) -> list[Run]:
    """Past runs, each with its best configuration and two worse ones far away."""
    corners = [{"a": 0.0, "b": 1e-3, "c": 1}, {"a": 10.0, "b": 1e3, "c": 20}]
    return [Run(f"task {i}", [corners[0], best, corners[1]], [3.0, 1.0, 2.0]) for i, best in enumerate(optima)]


PAST = past({"a": 2.0, "b": 0.1, "c": 5}, {"a": 4.0, "b": 10.0, "c": 5}, {"a": 3.0, "b": 1.0, "c": 5})


def drive(optimizer: Optimizer, trials: int) -> list[Config]:
    asked = []
    for _ in range(trials):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], abs(asked[-1]["a"] - 2.5) + abs(np.log10(asked[-1]["b"])))
    return asked


@BOXED
def test_suggestions_lie_in_the_box_and_reach_into_all_of_it(method: str) -> None:
    asked = drive(Optimizer(SQUARE, PAST, method, horizon=30), 30)
    assert all(2.0 <= c["a"] <= 4.0 and 0.1 <= c["b"] <= 10.0 for c in asked)
    assert {c["c"] for c in asked} == {5}
    if method == "random-box":
        assert min(c["a"] for c in asked) < 2.3
        assert max(c["a"] for c in asked) > 3.7
        assert 0.25 < np.mean([c["b"] < 1.0 for c in asked]) < 0.75  # on the log scale


@BOXED
def test_without_past_runs_or_with_a_single_one_the_whole_space_is_searched(method: str) -> None:
    for runs in ([], PAST[:1]):
        asked = drive(Optimizer(SQUARE, runs, method, horizon=15), 15)
        assert max(c["a"] for c in asked) > 5.0
        assert len({c["c"] for c in asked}) > 5


def test_the_model_sees_the_box_as_the_unit_cube() -> None:
    optimizer = Optimizer(SQUARE, PAST, "gp-box", horizon=30)
    drive(optimizer, 12)
    assert optimizer._model is not None
    X = optimizer._model.target.X
    where = optimizer._space.names.index("a")
    expected = [(config["a"] - 2.0) / 2.0 for config in optimizer.run.configs[:11]]
    np.testing.assert_allclose(X[:, where], expected, atol=1e-9)


def test_own_configurations_outside_the_box_are_kept_and_used_if_they_are_not_far() -> None:
    optimizer = Optimizer(SQUARE, PAST, "gp-box", horizon=30)
    near, far = {"a": 5.0, "b": 1.0, "c": 5}, {"a": 10.0, "b": 1.0, "c": 5}
    for config in (near, far, near):
        optimizer.tell(config, 0.5)
    drive(optimizer, 12)
    assert len(optimizer.run) == 15
    assert optimizer.run.configs[1] == far
    assert [trial.notes for trial in optimizer.run.trials[:3]] == [(), (TOO_FAR,), ()]
    assert optimizer._model is not None
    assert len(optimizer._model.y) == 13  # without the far one and the last, which no suggestion followed


def test_a_resumed_run_continues_as_if_it_had_never_stopped() -> None:
    whole = Optimizer(SQUARE, PAST, "random-box", horizon=12)
    asked = drive(whole, 12)
    part = Optimizer(SQUARE, PAST, "random-box", horizon=12)
    drive(part, 5)
    assert drive(Optimizer(SQUARE, PAST, "random-box", horizon=12, run=part.run), 7) == asked[5:]


@BOXED
def test_candidates_inside_the_box_come_first_and_the_others_after_them(method: str) -> None:
    grid = [{"a": float(a), "b": b, "c": 5} for a in range(11) for b in (0.01, 1.0, 100.0)]
    optimizer = Optimizer(SQUARE, PAST, method, horizon=33, candidates=grid)
    asked = drive(optimizer, 33)
    inside = [2.0 <= c["a"] <= 4.0 and c["b"] == 1.0 for c in asked]
    assert inside == [True] * 3 + [False] * 30


@BOXED
def test_conditions_are_kept_and_what_no_optimum_used_stays_free(method: str) -> None:
    space = ConfigurationSpace()
    kernel, degree = Categorical("kernel", ["rbf", "poly"]), Integer("degree", (2, 9))
    gamma = Float("gamma", (0.0, 1.0))
    space.add(kernel, degree, gamma, Float("C", (0.0, 1.0)))
    space.add(EqualsCondition(degree, kernel, "poly"), EqualsCondition(gamma, kernel, "rbf"))
    runs = [
        Run(str(i), [{"kernel": "rbf", "gamma": g, "C": c}, {"kernel": "poly", "degree": 2, "C": 0.9}], [1.0, 2.0])
        for i, (g, c) in enumerate([(0.2, 0.5), (0.4, 0.6), (0.3, 0.7)])
    ]
    optimizer = Optimizer(space, runs, method, horizon=60)
    asked = []
    for _ in range(25):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], asked[-1]["C"])
    assert all(0.5 <= c["C"] <= 0.7 for c in asked)
    assert all(0.2 <= c["gamma"] <= 0.4 for c in asked if c["kernel"] == "rbf")
    degrees = {c["degree"] for c in asked if c["kernel"] == "poly"}
    assert len(degrees) >= 3 or method != "random-box"
    assert degrees
