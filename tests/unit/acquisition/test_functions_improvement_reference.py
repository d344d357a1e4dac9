"""Expected improvement of the ensemble, plain and noisy, against dense formulas and literal simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from recollect.acquisition.functions import (
    ClosedFormNoisyImprovement,
    ExpectedImprovement,
    NoisyImprovement,
    conditioned,
)

WEIGHTS = [[0.2, 0.5, 0.3], [0.6, 0.0, 0.4], [0.5, 0.5, 0.0], [1.0]]


def ei(mean: Any, variance: Any, eta: Any) -> Any:
    s = np.sqrt(variance)
    z = (eta - mean) / s
    return (eta - mean) * norm.cdf(z) + s * norm.pdf(z)


def given(toy: Any, Z: Any, Q: Any) -> Any:
    """Covariance of the ensemble's values at Q given its values at Z, from the joint Gaussian of both."""
    if len(Z) == 0:
        return toy.cov(Q, Q)
    both = np.concatenate([Z, Q])
    joint = toy.cov(both, both)
    z = len(Z)
    return joint[z:, z:] - joint[z:, :z] @ np.linalg.solve(joint[:z, :z], joint[:z, z:])


def values(acquisition: Any, toy: Any, Q: Any, seed: int = 0) -> Any:
    return np.exp(acquisition.prepare(toy.ensemble, np.random.default_rng(seed)).score(Q))


# Alone, the target is told of pending points like of observations, with noise: see the target's rule below.
@pytest.mark.parametrize(("weights", "pending"), [(w, p) for w in WEIGHTS for p in (0, 1, 4) if len(w) > 1 or p == 0])
def test_weighted_variance_rule_is_ei_of_the_weighted_sum_of_processes(
    toy: Callable[..., Any], query: Any, weights: list[float], pending: int
) -> None:
    twin = toy(weights, pending=pending)
    variance = np.diag(given(twin, twin.ensemble.pending, query))
    expected = ei(twin.mean(query), variance, twin.mean(twin.visited).min())
    np.testing.assert_allclose(values(ExpectedImprovement("weighted"), twin, query), expected, rtol=1e-6)


@pytest.mark.parametrize("pending", [0, 1, 4])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_target_variance_rule_takes_the_targets_variance_whatever_its_weight(
    toy: Callable[..., Any], query: Any, weights: list[float], pending: int
) -> None:
    twin = toy(weights, pending=pending)
    own = twin.dense[-1]
    more = np.concatenate([own.X, twin.ensemble.pending])
    A = own.kernel(more, more) + own.noise * np.eye(len(more))
    inside = np.linalg.solve(A, own.kernel(more, query))
    variance = own.spread**2 * (own.amplitude - np.einsum("qz,zq->q", own.kernel(query, more), inside))
    expected = ei(twin.mean(query), variance, twin.mean(twin.visited).min())
    np.testing.assert_allclose(values(ExpectedImprovement("target"), twin, query), expected, rtol=1e-6)


def test_the_two_variance_rules_differ_and_agree_without_active_sources(toy: Callable[..., Any], query: Any) -> None:
    shared, alone = toy([0.5, 0.5]), toy([0.0, 1.0], pending=2)
    rules = [ExpectedImprovement("weighted"), ExpectedImprovement("target")]
    one, other = (values(rule, shared, query) for rule in rules)
    assert np.max(np.abs(one / other - 1)) > 0.1
    one, other = (values(rule, alone, query) for rule in rules)
    assert np.array_equal(one, other)


def test_the_incumbent_is_the_lowest_mean_not_the_lowest_observation(toy: Callable[..., Any], query: Any) -> None:
    twin = toy([1.0])
    lowest_mean, lowest_seen = twin.mean(twin.ensemble.X).min(), twin.dense[0].y.min()
    assert abs(lowest_mean - lowest_seen) > 1e-2
    variance = np.diag(twin.cov(query, query))
    got = values(ExpectedImprovement(), twin, query)
    np.testing.assert_allclose(got, ei(twin.mean(query), variance, lowest_mean), rtol=1e-6)


@pytest.mark.parametrize("rule", ["weighted", "target"])
def test_a_pending_point_may_be_the_incumbent(toy: Callable[..., Any], query: Any, rule: Any) -> None:
    free = toy([0.5, 0.5])
    Q = np.random.default_rng(17).random((400, 2))
    best = Q[[free.mean(Q).argmin()]]
    busy = replace(free, ensemble=replace(free.ensemble, pending=best))
    assert busy.mean(best)[0] < free.mean(free.visited).min() - 0.05
    if rule == "weighted":
        variance = np.diag(given(busy, best, query))
    else:
        variance = busy.ensemble.target_given_pending().predict(query)[1]
    expected = ei(busy.mean(query), variance, busy.mean(best)[0])
    np.testing.assert_allclose(values(ExpectedImprovement(rule), busy, query), expected, rtol=1e-6)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_conditioned_variance_is_that_of_the_joint_gaussian(
    toy: Callable[..., Any], query: Any, weights: list[float]
) -> None:
    twin = toy(weights)
    Z = np.random.default_rng(5).random((4, 2))
    got = conditioned(twin.ensemble, Z)(query)[1]
    np.testing.assert_allclose(got, np.diag(given(twin, Z, query)), rtol=1e-6)
    assert np.all(conditioned(twin.ensemble, Z)(Z)[1] < 1e-6 * twin.ensemble.predict(Z)[1])


def promising(toy: Any) -> Any:
    """Points where the ensemble's mean is low: elsewhere improvements are too rare to be simulated."""
    Q = np.random.default_rng(17).random((400, 2))
    return Q[np.argsort(toy.mean(Q))[:60:5]]


def literal_noisy_ei(toy: Any, Q: Any, draws: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Spec 3.12 step by step: draw each model on its own data and the visited points, refit, average (tier 2).

    Returns the average over draws and its standard error.
    """
    V, m = toy.visited, len(toy.visited)
    at_visited, at_query, variance = np.zeros((draws, m)), np.zeros((draws, len(Q))), np.zeros(len(Q))
    for weight, gp in zip(toy.weights, toy.dense, strict=True):
        if weight == 0:
            continue
        Z = V if np.array_equal(V[: len(gp.X)], gp.X) else np.concatenate([gp.X, V])
        chol = np.linalg.cholesky(gp.cov(Z, Z) + 1e-10 * np.eye(len(Z)))
        sampled = gp.mean(Z) + rng.standard_normal((draws, len(Z))) @ chol.T
        K = gp.kernel(Z, Z) + np.exp(-25.0) * np.eye(len(Z))
        inside = np.linalg.solve(K, gp.kernel(Z, Q))
        at_visited += weight * sampled[:, -m:]
        at_query += weight * (gp.centre + (sampled - gp.centre) @ inside)
        spread = gp.amplitude - np.einsum("qz,zq->q", gp.kernel(Q, Z), inside)
        variance += weight**2 * gp.spread**2 * spread
    each = ei(at_query, variance, at_visited.min(axis=1)[:, None])
    return each.mean(axis=0), each.std(axis=0) / np.sqrt(draws)


@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("weights", [[0.2, 0.5, 0.3], [0.6, 0.0, 0.4], [0.5, 0.5, 0.0]])
def test_noisy_ei_agrees_with_drawing_and_refitting_every_model(
    toy: Callable[..., Any], weights: list[float], pending: int
) -> None:
    twin = toy(weights, pending=pending)
    query = promising(twin)
    expected, error = literal_noisy_ei(twin, query, 20_000, np.random.default_rng(3))
    got = values(NoisyImprovement(draws=4096), twin, query)
    tolerance = 5 * error * np.sqrt(1 + 20_000 / 4096)
    assert np.all(np.abs(got - expected) < tolerance)
    plain = ei(twin.mean(query), np.diag(given(twin, twin.ensemble.pending, query)), twin.mean(twin.visited).min())
    assert np.any(np.abs(got - plain) > 4 * tolerance), "the incumbent's uncertainty must matter here"


def test_noisy_ei_is_exact_for_its_draws(toy: Callable[..., Any], query: Any) -> None:
    """With the same standard normals, the average over draws is written out draw by draw."""
    from recollect.numerics.quasirandom import sobol_normals

    twin, draws = toy([0.3, 0.3, 0.4]), 30
    V = twin.visited
    C = twin.cov(V, V)
    L = np.linalg.cholesky(C + 1e-10 * np.diag(C).max() * np.eye(len(V)))
    normals = sobol_normals(draws, len(V), np.random.default_rng(8))
    total = np.zeros(len(query))
    for u in normals:
        F = twin.mean(V) + L @ u
        mean = twin.mean(query) + twin.cov(query, V) @ np.linalg.solve(C, F - twin.mean(V))
        total += ei(mean, np.diag(given(twin, V, query)), F.min())
    np.testing.assert_allclose(values(NoisyImprovement(), twin, query, seed=8), total / draws, rtol=1e-5)


@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("acquisition", [NoisyImprovement(), ClosedFormNoisyImprovement()])
def test_noisy_ei_is_plain_ei_without_active_sources(
    toy: Callable[..., Any], query: Any, acquisition: Any, pending: int
) -> None:
    twin = toy([0.0, 0.0, 1.0], pending=pending)
    assert np.array_equal(values(acquisition, twin, query), values(ExpectedImprovement(), twin, query))


@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("weights", [[0.2, 0.5, 0.3], [0.6, 0.0, 0.4], [0.5, 0.5, 0.0]])
def test_closed_form_noisy_ei_agrees_with_bivariate_simulation(
    toy: Callable[..., Any], weights: list[float], pending: int
) -> None:
    twin, draws = toy(weights, pending=pending), 200_000
    query = promising(twin)
    best = twin.visited[twin.mean(twin.visited).argmin()]
    normals = np.random.default_rng(4).standard_normal((draws, 2))
    got = values(ClosedFormNoisyImprovement(), twin, query)
    for x, value in zip(query, got, strict=True):
        pair = np.stack([best, x])
        C = given(twin, twin.ensemble.pending, pair)
        f = twin.mean(pair) + normals @ np.linalg.cholesky(C + 1e-12 * np.eye(2)).T
        improvement = np.maximum(f[:, 0] - f[:, 1], 0.0)
        assert abs(value - improvement.mean()) < 5 * improvement.std() / np.sqrt(draws)


@pytest.mark.parametrize("pending", [0, 3])
def test_closed_form_noisy_ei_is_the_written_out_formula(toy: Callable[..., Any], query: Any, pending: int) -> None:
    twin = toy([0.2, 0.5, 0.3], pending=pending)
    means = twin.mean(twin.visited)
    points = np.concatenate([twin.visited[[means.argmin()]], query])
    C = given(twin, twin.ensemble.pending, points)
    variance = C[0, 0] + np.diag(C)[1:] - 2 * C[0, 1:]
    expected = ei(twin.mean(query), variance, means.min())
    np.testing.assert_allclose(values(ClosedFormNoisyImprovement(), twin, query), expected, rtol=1e-6)


def test_closed_form_noisy_ei_promises_nothing_at_the_incumbent_itself(toy: Callable[..., Any]) -> None:
    twin = toy([0.5, 0.5])
    best = twin.visited[[twin.mean(twin.visited).argmin()]]
    assert values(ClosedFormNoisyImprovement(), twin, best)[0] < 1e-6


@pytest.mark.parametrize("acquisition", [ExpectedImprovement("weighted"), NoisyImprovement()])
def test_a_pending_point_and_its_surroundings_lose_their_value(toy: Callable[..., Any], acquisition: Any) -> None:
    busy, free = toy([0.5, 0.5], pending=1), toy([0.5, 0.5])
    at = busy.ensemble.pending
    assert values(acquisition, busy, at)[0] < 1e-3 * values(acquisition, free, at)[0]
    assert values(acquisition, busy, at + 0.01)[0] < 0.3 * values(acquisition, free, at + 0.01)[0]


@pytest.mark.parametrize(
    "acquisition",
    [ExpectedImprovement("weighted"), ExpectedImprovement("target"), NoisyImprovement(), ClosedFormNoisyImprovement()],
)
def test_acquisitions_that_are_no_sums_share_by_weight(toy: Callable[..., Any], query: Any, acquisition: Any) -> None:
    prepared = acquisition.prepare(toy([0.2, 0.0, 0.5, 0.3]).ensemble, np.random.default_rng(0))
    assert prepared.shares(query[0]).tolist() == [0.2, 0.5, 0.3]
