"""Designs drawn without past runs, and how they are brought to a finite set."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, ForbiddenEqualsClause
from scipy.stats import chisquare

from recollect.optimizer.catalog import method
from recollect.optimizer.design import draw_design, nearest_candidates
from recollect.optimizer.method import Design, Method
from recollect.optimizer.suggestion import Untried, suggest_at_random
from recollect.space.space import Space, compile_space

FLAT = compile_space({"a": (0.0, 1.0), "b": (0.0, 1.0)})


def conditional() -> Space:
    space = ConfigurationSpace()
    kernel, gamma = Categorical("kernel", ["linear", "rbf"]), Float("gamma", (0.0, 1.0))
    space.add(kernel, gamma)
    space.add(EqualsCondition(gamma, kernel, "rbf"))
    return compile_space(space)


def literal_snap(candidates: list[list[float]], points: list[list[float]]) -> list[int]:
    taken: list[int] = []
    for point in points:
        free = [g for g in range(len(candidates)) if g not in taken]
        taken.append(min(free, key=lambda g: sum((u - v) ** 2 for u, v in zip(candidates[g], point, strict=True))))
    return taken


def test_each_point_becomes_the_nearest_candidate_not_yet_taken() -> None:
    rng = np.random.default_rng(0)
    candidates, points = rng.random((15, 2)), 0.3 * rng.random((12, 2))
    expected = candidates[literal_snap(candidates.tolist(), points.tolist())]
    np.testing.assert_array_equal(nearest_candidates(candidates, points, FLAT), expected)


def test_more_points_than_candidates_give_every_candidate_once() -> None:
    candidates = np.random.default_rng(0).random((5, 2))
    got = nearest_candidates(candidates, np.random.default_rng(1).random((9, 2)), FLAT)
    assert sorted(got.tolist()) == sorted(candidates.tolist())


def test_an_inactive_entry_is_near_to_inactive_ones_only() -> None:
    space = conditional()
    candidates = space.encode([{"kernel": "rbf", "gamma": 0.0}, {"kernel": "linear"}, {"kernel": "rbf", "gamma": 1.0}])
    points = space.encode([{"kernel": "linear"}, {"kernel": "rbf", "gamma": 0.9}, {"kernel": "rbf", "gamma": 0.8}])
    np.testing.assert_array_equal(nearest_candidates(candidates, points, space), candidates[[1, 2, 0]])


def test_choices_differ_by_one_whatever_their_codes() -> None:
    space = compile_space({"k": ["p", "q", "r", "s"], "x": (0.0, 1.0)})
    position = space.names.index("x")
    candidates = space.encode([{"k": "q", "x": 0.0}, {"k": "s", "x": 0.9}])
    (point,) = space.encode([{"k": "p", "x": 0.8}])
    assert nearest_candidates(candidates, point[None], space)[0, position] == candidates[1, position]


def test_a_latin_hypercube_has_one_point_in_every_stratum() -> None:
    X = draw_design(method("gp+paper"), FLAT, None, size=10, rng=np.random.default_rng(0))
    for column in X.T:
        assert sorted(np.floor(10 * column)) == list(range(10))


def test_a_sobol_design_starts_at_the_default_and_fills_halves_and_quarters_evenly() -> None:
    X = draw_design(method("gp"), FLAT, None, size=9, rng=np.random.default_rng(0))
    assert X[0].tolist() == FLAT.default.tolist()
    for column in X[1:].T:
        assert sorted((8 * column).astype(int)) == list(range(8))


def test_a_sobol_design_leaves_out_a_forbidden_default() -> None:
    space = ConfigurationSpace({"kind": ["a", "b"], "x": (0.0, 1.0)})
    space.add(ForbiddenEqualsClause(space["kind"], "b"))
    compiled = compile_space(space)
    illegal = replace(compiled, default=compiled.encode([{"kind": "a", "x": 0.5}])[0] + [1.0, 0.0])
    X = draw_design(method("gp"), illegal, None, size=4, rng=np.random.default_rng(0))
    assert len(X) == 4
    assert compiled.legal(X).all()


def test_a_random_design_is_drawn_independently() -> None:
    loose = Method("loose", "", "", Design("random", 10))
    X = draw_design(loose, FLAT, None, size=10, rng=np.random.default_rng(0))
    assert X.shape == (10, 2)
    assert sorted(np.floor(10 * X[:, 0])) != list(range(10))


def test_random_search_draws_uniformly_among_what_is_left() -> None:
    left = np.random.default_rng(0).random((6, 2))
    choice = Untried(FLAT, frozenset(), left, np.empty((0, 2)))
    rng = np.random.default_rng(1)
    drawn = [suggest_at_random(choice, "", rng).x.tolist() for _ in range(1200)]
    assert chisquare([drawn.count(x) for x in left.tolist()]).pvalue > 1e-3


def test_points_that_coincide_are_drawn_once() -> None:
    space = compile_space({"k": ["p", "q"], "c": 3})
    X = draw_design(method("gp+paper"), space, None, size=10, rng=np.random.default_rng(0))
    assert len(X) == 2


def test_a_design_on_candidates_consists_of_candidates() -> None:
    candidates = np.random.default_rng(4).random((30, 2))
    X = draw_design(method("gp"), FLAT, candidates, size=10, rng=np.random.default_rng(0))
    assert len({tuple(x) for x in X}) == 10
    assert {tuple(x) for x in X} <= {tuple(x) for x in candidates}
