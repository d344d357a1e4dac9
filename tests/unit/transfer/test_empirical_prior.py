"""Expectation-maximization: it never lowers its objective, and finds the moments that data were drawn from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal, spearmanr

from recollect.numerics.arrays import KernelShape
from recollect.surrogate.kernels import Hyperparameters, covariance
from recollect.transfer.empirical_prior import (
    MAX_INDUCING,
    EMEstimate,
    EmpiricalPrior,
    Observed,
    expectation_maximization,
    inducing_points,
)
from recollect.transfer.past_functions import PastFunctions
from recollect.transfer.sources import SourceData, Sources

SHAPE = KernelShape(np.array([False, False]), conditional=False)
HYPER = Hyperparameters(1.0, np.array([0.4, 0.6]), 1.0)
GRID = np.random.default_rng(0).random((12, 2))
K = covariance(GRID, GRID, shape=SHAPE, hyper=HYPER) + 1e-6 * np.eye(12)


def runs(count: int, seed: int = 1) -> tuple[list[Observed], np.ndarray, np.ndarray]:
    """Observations of tasks at some of the inducing points, with the mean and covariance they were drawn from."""
    rng = np.random.default_rng(seed)
    mean, half = np.sin(5 * GRID[:, 0]), np.linalg.cholesky(0.3 * K)
    observed = []
    for _ in range(count):
        chosen = rng.permutation(12)[:8]
        W = np.eye(12)[chosen]
        z = W @ (mean + half @ rng.normal(size=12)) + 0.1 * rng.normal(size=8)
        observed.append(Observed(W, z, np.zeros(8)))
    return observed, mean, half @ half.T


def objective(observed: list[Observed], estimate: EMEstimate) -> float:
    """The log likelihood, and the log density of Sigma that is worth one task of which nothing was observed."""
    total = -0.5 * (np.linalg.slogdet(estimate.covariance)[1] + np.trace(np.linalg.solve(estimate.covariance, K)))
    for W, z, residual in observed:
        S = W @ estimate.covariance @ W.T + np.diag(residual + estimate.noise)
        total += multivariate_normal(W @ estimate.mean, S).logpdf(z)
    return float(total)


def test_no_step_lowers_the_objective() -> None:
    observed, _, _ = runs(10)
    values = [objective(observed, expectation_maximization(observed, K, steps)) for steps in range(1, 12)]
    assert np.diff(values).min() > -1e-8
    assert values[-1] > values[0] + 1.0


def test_many_tasks_give_the_moments_they_were_drawn_from() -> None:
    observed, mean, spread = runs(600)
    estimate = expectation_maximization(observed, K, 60)
    np.testing.assert_allclose(estimate.mean, mean, atol=0.1)
    np.testing.assert_allclose(estimate.covariance, spread, atol=0.08)
    assert estimate.noise == pytest.approx(0.01, abs=0.01)


def test_without_observations_of_a_point_its_neighbours_speak_for_it() -> None:
    observed, mean, _ = runs(40)
    blind = [Observed(W[W[:, 0] == 0], z[W[:, 0] == 0], r[W[:, 0] == 0]) for W, z, r in observed]
    estimate = expectation_maximization(blind, K)
    assert abs(estimate.mean[0] - mean[0]) < 0.5
    assert estimate.covariance[0, 0] > 0.5 * K[0, 0] * 0.3


def test_the_order_of_past_runs_does_not_matter() -> None:
    observed, _, _ = runs(6)
    there, back = (expectation_maximization(order, K) for order in (observed, observed[::-1]))
    np.testing.assert_allclose(there.covariance, back.covariance, atol=1e-10)
    np.testing.assert_allclose(there.tasks, back.tasks[::-1], atol=1e-10)


def past(count: int, trials: int) -> PastFunctions:
    rng = np.random.default_rng(3)
    data = []
    for i in range(count):
        X = rng.random((trials, 2))
        data.append(SourceData(f"task {i}", X, np.square(X - 0.3 - 0.02 * i).sum(axis=1)))
    theta = np.repeat(Hyperparameters(1.0, HYPER.lengthscales, 1e-4).log()[None], count, axis=0)
    return PastFunctions(Sources(data, shape=SHAPE, theta=theta), rng.random((64, 2)))


def test_the_prior_of_smooth_tasks_predicts_another_one() -> None:
    prior = EmpiricalPrior(past(8, 30), shape=SHAPE, hyper=HYPER)
    rows = np.random.default_rng(9).random((50, 2))
    truth = np.square(rows - 0.37).sum(axis=1)
    mean, features = prior.moments(rows)
    assert spearmanr(mean, truth).statistic > 0.95
    assert np.square(features).sum(axis=0).mean() < 0.3


def test_inducing_points_are_a_bounded_sample_of_past_configurations() -> None:
    few, many = inducing_points(past(3, 10)), inducing_points(past(20, 30))
    assert len(few) == 30
    assert len(many) == MAX_INDUCING
    rows = {tuple(row) for i in range(20) for row in past(20, 30).sources.data(i).X}
    assert {tuple(row) for row in many} <= rows
