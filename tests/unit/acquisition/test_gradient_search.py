"""Gradient search over mixed, conditional spaces: it never ends below its starts, and never leaves the space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.space_strategies import seeds, sources

from recollect.acquisition.functions import SmoothScore, smooth_improvement
from recollect.acquisition.gradient_search import GradientSearch, maximize_by_gradient
from recollect.acquisition.maximize import LocalSearch, maximize_score
from recollect.numerics.normal import log_expected_improvement
from recollect.space.sampling import sobol, uniform
from recollect.space.space import Space, compile_space
from recollect.surrogate.gp import GP, make_gp
from recollect.surrogate.kernels import Hyperparameters

FLAT = compile_space({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)})
MIXED = compile_space({"a": (0.0, 1.0), "n": (1, 500), "m": (1, 4), "kind": list("pqrs")})
FEW = GradientSearch(screen=40)


def model(space: Space, n: int = 12, seed: int = 0) -> GP:
    rng = np.random.default_rng(seed)
    X = uniform(space, n, rng)
    y = rng.standard_normal(n)
    hyper = Hyperparameters(1.0, rng.uniform(0.2, 1.0, len(space.names)), 1e-6)
    return make_gp(X, y, shape=space.kernel_shape, hyper=hyper)


def improvement(gp: GP) -> tuple[Any, SmoothScore]:
    eta = float(gp.y.min())

    def score(X: Any) -> Any:
        mean, variance = gp.predict(X)
        return log_expected_improvement(mean, np.sqrt(variance), eta)

    smooth = smooth_improvement(gp, eta, score)
    assert smooth is not None
    return score, smooth


def search(space: Space, gp: GP, *, seed: int = 0, options: GradientSearch = FEW) -> Any:
    _, smooth = improvement(gp)
    rng = np.random.default_rng(seed)
    return maximize_by_gradient(space, smooth, gp.X, means=gp.mean(gp.X), settings=options, rng=rng)


@pytest.mark.parametrize("space", [FLAT, MIXED], ids=["floats", "mixed"])
def test_gradients_of_the_improvement_agree_with_finite_differences(space: Space) -> None:
    gp = model(space)
    score, smooth = improvement(gp)
    X = np.clip(uniform(space, 20, np.random.default_rng(9)), 1e-3, None)
    values, gradients = smooth.evaluate(X)
    np.testing.assert_allclose(values, score(X), rtol=1e-7)
    for j in np.flatnonzero(~space.categorical):
        move = 1e-6 * np.eye(len(space.names))[j]
        slopes = (score(X + move) - score(X - move)) / 2e-6
        np.testing.assert_allclose(gradients[:, j], slopes, rtol=2e-4, atol=1e-4 * np.abs(slopes).max())
    assert not gradients[:, space.categorical].any()


@pytest.mark.parametrize("top", [[0.3, 0.7, 0.5], [0.0, 1.0, 0.02], [0.999, 0.001, 0.4]])
def test_the_maximum_of_a_smooth_function_is_found_to_many_digits(top: list[float]) -> None:
    def value(X: Any) -> Any:
        return -np.sum((X - top) ** 2, axis=1)

    smooth = SmoothScore(value, lambda X: (value(X), -2.0 * (X - top)), np.full(3, 0.3))
    empty = np.empty((0, 3))
    found, values = maximize_by_gradient(
        FLAT, smooth, empty, means=np.empty(0), settings=FEW, rng=np.random.default_rng(0)
    )
    assert np.max(np.abs(found[0] - top)) < 1e-4
    assert values[0] == pytest.approx(value(found[:1])[0])


@settings(max_examples=25, deadline=None)
@given(sources(), seeds)
def test_all_points_are_legal_and_no_end_is_below_the_starts(source: Any, seed: int) -> None:
    space = compile_space(source)
    gp = model(space, n=6, seed=seed)
    score, _ = improvement(gp)
    found, values = search(space, gp, seed=seed)
    assert space.legal(found).all()
    assert found.tobytes() == space.canonical(found).tobytes()
    assert (np.isnan(found) == ~space.activity(found)).all()
    np.testing.assert_allclose(values, score(found), rtol=1e-6, atol=1e-9)
    assert (np.diff(values) <= 0).all()
    screened = sobol(space, FEW.screen, np.random.default_rng(seed))
    assert values[0] >= score(screened).max() - 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("space", [FLAT, MIXED], ids=["floats", "mixed"])
def test_it_ends_at_least_as_high_as_the_search_without_gradients(space: Space, seed: int) -> None:
    gp = model(space, n=15, seed=seed)
    score, _ = improvement(gp)
    _, values = search(space, gp, options=GradientSearch())
    rng = np.random.default_rng(0)
    _, others = maximize_score(space, score, gp.X, means=gp.mean(gp.X), settings=LocalSearch(), rng=rng)
    assert values[0] >= others[0] - 0.01


def test_a_score_that_is_nowhere_finite_leaves_the_screened_points() -> None:
    def score(X: Any) -> Any:
        return np.full(len(X), np.nan)

    smooth = SmoothScore(score, lambda X: (score(X), np.zeros(X.shape)), np.ones(3))
    found, values = maximize_by_gradient(
        FLAT, smooth, np.full((1, 3), 0.5),
        means=np.zeros(1), settings=FEW, rng=np.random.default_rng(0),
    )  # fmt: skip
    assert len(found) >= FEW.screen
    assert np.isneginf(values).all()


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_the_same_generator_gives_the_same_points(seed: int) -> None:
    gp = model(MIXED, seed=seed)
    first, second = (search(MIXED, gp, seed=seed)[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()
