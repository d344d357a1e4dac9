"""Local search over mixed, conditional spaces: it finds the top and never leaves the space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenAndConjunction,
    ForbiddenEqualsClause,
    Integer,
)

from recollect.acquisition.maximize import LocalSearch, maximize_score
from recollect.space.sampling import uniform
from recollect.space.space import Space, compile_space

SETTINGS = LocalSearch()
FLAT = compile_space({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)})
CHOICES = compile_space({name: list("pqrst") for name in "uvwxyz"})


def conditional() -> Space:
    space = ConfigurationSpace()
    kernel, size = Categorical("kernel", ["linear", "poly", "rbf"]), Integer("size", (1, 9))
    gamma, degree = Float("gamma", (1e-3, 1e3), log=True), Integer("degree", (2, 5))
    space.add(kernel, size, Float("C", (1e-3, 1e3), log=True), gamma, degree)
    space.add(EqualsCondition(gamma, kernel, "rbf"), EqualsCondition(degree, kernel, "poly"))
    space.add(ForbiddenAndConjunction(ForbiddenEqualsClause(kernel, "rbf"), ForbiddenEqualsClause(size, 5)))
    return compile_space(space)


def search(space: Space, score: Any, *, anchors: Any = None, seed: int = 0, settings: LocalSearch = SETTINGS) -> Any:
    anchors = np.empty((0, len(space.names))) if anchors is None else anchors
    rng = np.random.default_rng(seed)
    return maximize_score(space, score, anchors, means=np.arange(float(len(anchors))), settings=settings, rng=rng)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("top", [[0.3, 0.7, 0.5], [0.0, 1.0, 0.02], [0.999, 0.001, 0.4]])
def test_the_maximum_of_a_smooth_function_is_found(top: list[float], seed: int) -> None:
    X, values = search(FLAT, lambda X: -np.sum((X - top) ** 2, axis=1), seed=seed)
    assert np.max(np.abs(X[0] - top)) < 1e-2
    assert values[0] == pytest.approx(-np.sum((X[0] - top) ** 2))


def test_the_higher_of_two_hills_is_climbed_from_an_evaluated_point_no_draw_comes_near() -> None:
    top = np.array([0.123, 0.456, 0.789])

    def hills(X: Any) -> Any:
        return np.exp(-np.sum((X - 0.5) ** 2, axis=1)) + 5 * np.exp(-np.sum((X - top) ** 2, axis=1) / 2e-5)

    few = LocalSearch(screen=20)
    without, _ = search(FLAT, hills, settings=few)
    found, _ = search(FLAT, hills, anchors=np.vstack([np.full(3, 0.9), top + 0.004]), settings=few)
    assert np.max(np.abs(without[0] - top)) > 0.1
    assert np.max(np.abs(found[0] - top)) < 5e-3


def test_the_best_come_first_and_values_belong_to_their_points() -> None:
    space = conditional()

    def score(X: Any) -> Any:
        return np.nan_to_num(X, nan=0.3) @ np.array([3.0, 1.0, -2.0, 0.5, 1.5])

    X, values = search(space, score, anchors=uniform(space, 6, np.random.default_rng(1)))
    assert np.all(np.diff(values) <= 0)
    np.testing.assert_array_equal(values, score(X))


@pytest.mark.parametrize("seed", range(3))
def test_the_space_is_never_left_and_its_conditions_are_respected(seed: int) -> None:
    space, seen = conditional(), []
    gamma = space.names.index("gamma")

    def score(X: Any) -> Any:
        seen.append(X.copy())
        return np.where(np.isnan(X[:, gamma]), -1.0, -np.abs(X[:, gamma] - 1.0))

    X, _ = search(space, score, anchors=uniform(space, 8, np.random.default_rng(seed)), seed=seed)
    everything = np.concatenate([X, *seen])
    assert np.array_equal(space.canonical(everything), everything, equal_nan=True)
    assert space.legal(everything).all()
    settled = space.encode(space.decode(X[:50]))
    np.testing.assert_allclose(settled, X[:50], atol=1e-9)
    best = space.decode(X[:1])[0]
    assert best["kernel"] == "rbf"
    assert best["gamma"] > 900
    assert best["size"] != 5


def test_a_hill_that_only_another_choice_leads_to_is_found_from_an_anchor() -> None:
    space = conditional()
    degree, kernel = space.names.index("degree"), space.names.index("kernel")
    poly = {"kernel": "poly", "size": 3, "C": 1.0, "degree": 4}
    (goal,) = space.encode([poly])

    def score(X: Any) -> Any:
        return np.where(X[:, kernel] == goal[kernel], 1.0 - np.abs(np.nan_to_num(X[:, degree] - goal[degree])), 0.0)

    anchor = space.encode([{"kernel": "linear", "size": 3, "C": 1.0}])
    X, values = search(space, score, anchors=anchor, settings=LocalSearch(screen=0))
    assert space.decode(X[:1])[0]["degree"] == 4
    assert values[0] == 1.0


def test_a_space_of_choices_alone_is_searched() -> None:
    goal = np.array([4.0, 0.0, 3.0, 1.0, 2.0, 4.0])
    few = LocalSearch(screen=30)
    X, values = search(CHOICES, lambda X: (goal == X).sum(axis=1).astype(float), settings=few)
    assert values[0] == 6.0
    assert np.array_equal(X[0], goal)


def test_when_all_tie_the_first_point_is_a_random_one_and_none_that_was_evaluated() -> None:
    anchors = np.array([[0.5, 0.5, 0.5]])
    firsts = [search(FLAT, lambda X: np.zeros(len(X)), anchors=anchors, seed=seed)[0][0] for seed in range(200)]
    assert len({x.tobytes() for x in firsts}) == 200
    assert not any(np.array_equal(x, anchors[0]) for x in firsts)
    assert np.abs(np.mean(firsts, axis=0) - 0.5).max() < 5 / np.sqrt(12 * 200)


@pytest.mark.parametrize("nothing", [np.nan, -np.inf])
def test_scores_without_meaning_are_the_worst(nothing: float) -> None:
    X, values = search(FLAT, lambda X: np.where(X[:, 0] > 0.4, nothing, X[:, 0]))
    assert 0.39 < X[0, 0] <= 0.4
    assert not np.isnan(values).any()
    X, values = search(FLAT, lambda X: np.full(len(X), nothing))
    assert np.all(values == -np.inf)
    assert np.all((X >= 0) & (X <= 1))


def test_the_draws_are_in_the_answer_so_that_points_already_tried_can_be_skipped() -> None:
    X, _ = search(FLAT, lambda X: -X.sum(axis=1), settings=LocalSearch(screen=70))
    assert len({x.tobytes() for x in X}) >= 70


def test_the_same_generator_gives_the_same_answer() -> None:
    runs = [search(conditional(), lambda X: np.nansum(X, axis=1), seed=seed)[0] for seed in (1, 1, 2)]
    assert np.array_equal(runs[0], runs[1], equal_nan=True)
    assert not np.array_equal(runs[0], runs[2], equal_nan=True)


def test_on_a_plateau_the_searches_give_up_after_as_many_halvings_as_there_is_patience() -> None:
    calls = []

    def score(X: Any) -> Any:
        calls.append(len(X))
        return np.zeros(len(X))

    search(FLAT, score, settings=LocalSearch(patience=3, rounds=15))
    assert len(calls) == 1 + 3


def test_many_searches_are_scored_in_one_call() -> None:
    calls = []

    def score(X: Any) -> Any:
        calls.append(len(X))
        return -np.sum((X - 0.3) ** 2, axis=1)

    search(FLAT, score, anchors=uniform(FLAT, 20, np.random.default_rng(0)))
    assert len(calls) <= 1 + SETTINGS.rounds
