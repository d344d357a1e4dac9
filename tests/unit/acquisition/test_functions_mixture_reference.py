"""Mixtures, TAF and MoGP, against their literal formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from recollect.acquisition.functions import ExpectedImprovement, MixtureImprovement, TransferImprovement
from recollect.acquisition.maximize import best_candidate
from recollect.surrogate.gp import GP, make_gp

WEIGHTS = [[0.2, 0.5, 0.3], [0.6, 0.0, 0.4], [0.5, 0.5, 0.0], [0.1, 0.2, 0.3, 0.4]]
BOTH = [TransferImprovement(), MixtureImprovement()]


def ei(mean: Any, variance: Any, eta: Any) -> Any:
    s = np.sqrt(variance)
    z = (eta - mean) / s
    return (eta - mean) * norm.cdf(z) + s * norm.pdf(z)


def target_term(toy: Any, Q: Any) -> Any:
    """EI of the target, which counts pending points as noisy observations of its own mean."""
    own = toy.dense[-1]
    more = toy.visited
    A = own.kernel(more, more) + own.noise * np.eye(len(more))
    inside = np.linalg.solve(A, own.kernel(more, Q))
    variance = own.spread**2 * (own.amplitude - np.einsum("qz,zq->q", own.kernel(Q, more), inside))
    return ei(own.mean(Q), variance, own.mean(more).min())


def taf_terms(toy: Any, Q: Any) -> Any:
    """One row per model: w_i max(0, b_i - mu_i(x)), and w_t EI_t(x) last."""
    past = [
        w * np.maximum(gp.mean(toy.visited).min() - gp.mean(Q), 0.0)
        for w, gp in zip(toy.weights[:-1], toy.dense[:-1], strict=True)
    ]
    return np.array([*past, toy.weights[-1] * target_term(toy, Q)])


def mogp_terms(toy: Any, Q: Any) -> Any:
    """One row per model: w_i EI(mu_i, s'_i, b_i), s'_i given exact values on the run's own and the visited points."""
    past = []
    for w, gp in zip(toy.weights[:-1], toy.dense[:-1], strict=True):
        variance = gp.noise_free_variance(np.concatenate([gp.X, toy.visited]), Q)
        past.append(w * ei(gp.mean(Q), variance, gp.mean(toy.visited).min()))
    return np.array([*past, toy.weights[-1] * target_term(toy, Q)])


TERMS = list(zip(BOTH, [taf_terms, mogp_terms], strict=True))


def prepared(acquisition: Any, toy: Any) -> Any:
    return acquisition.prepare(toy.ensemble, np.random.default_rng(0))


@pytest.mark.parametrize("pending", [0, 1, 3])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("acquisition", "terms"), TERMS)
def test_the_value_is_the_literal_sum_over_models(
    toy: Callable[..., Any], acquisition: Any, terms: Any, weights: list[float], pending: int
) -> None:
    twin = toy(weights, pending=pending)
    Q = np.random.default_rng(1).random((120, 2))
    expected = terms(twin, Q).sum(axis=0)
    assert np.count_nonzero(expected > 1e-3) > 5
    np.testing.assert_allclose(np.exp(prepared(acquisition, twin).score(Q)), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(("acquisition", "terms"), TERMS)
def test_shares_are_the_terms_over_their_sum(
    toy: Callable[..., Any], acquisition: Any, terms: Any, weights: list[float]
) -> None:
    twin = toy(weights, pending=1)
    ready = prepared(acquisition, twin)
    for x in np.random.default_rng(1).random((20, 2)):
        parts = terms(twin, x[None])[:, 0]
        active = np.append(np.array(weights[:-1]) > 0, True)
        shares = ready.shares(x)
        assert shares.sum() == pytest.approx(1.0)
        if parts.sum() > 1e-6:
            np.testing.assert_allclose(shares, parts[active] / parts.sum(), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("acquisition", BOTH)
def test_without_active_sources_the_value_is_plain_expected_improvement(
    toy: Callable[..., Any], query: Any, acquisition: Any, pending: int
) -> None:
    for weights in ([0.0, 0.0, 1.0], [1.0]):
        twin = toy(weights, pending=pending)
        plain = prepared(ExpectedImprovement(), twin).score(query)
        np.testing.assert_allclose(prepared(acquisition, twin).score(query), plain, rtol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_taf_with_one_past_run_of_weight_one_chooses_that_runs_minimiser(toy: Callable[..., Any], seed: int) -> None:
    twin = toy([1.0, 0.0], seed=seed)
    Q = np.random.default_rng(seed).random((200, 2))
    assert twin.dense[0].mean(Q).min() < twin.dense[0].mean(twin.visited).min()
    chosen, _ = best_candidate(prepared(TransferImprovement(), twin).score, Q, np.random.default_rng(0))
    assert chosen == twin.dense[0].mean(Q).argmin()


def test_taf_without_any_improvement_draws_uniformly(toy: Callable[..., Any]) -> None:
    twin = toy([0.4, 0.6, 0.0])
    Q = np.random.default_rng(2).random((300, 2))
    worse = [gp.mean(Q) > gp.mean(twin.visited).min() for gp in twin.dense[:-1]]
    Q = Q[np.logical_and(*worse)][:8]
    assert len(Q) == 8
    score = prepared(TransferImprovement(), twin).score
    assert np.all(score(Q) == -np.inf)
    rng = np.random.default_rng(0)
    counts = np.bincount([best_candidate(score, Q, rng)[0] for _ in range(1600)], minlength=8)
    assert chisquare(counts).pvalue > 1e-3
    assert prepared(TransferImprovement(), twin).shares(Q[0]).tolist() == [0.4, 0.6, 0.0]


@pytest.mark.parametrize("weights", [[0.4, 0.6, 0.0], [0.4, 0.3, 0.3]])
@pytest.mark.parametrize(("acquisition", "terms"), TERMS)
def test_no_past_run_promises_improvement_at_a_visited_point(
    toy: Callable[..., Any], acquisition: Any, terms: Any, weights: list[float]
) -> None:
    twin = toy(weights, pending=0)
    # What is pending is just where the past runs promise most.
    Q = np.random.default_rng(3).random((300, 2))
    best = Q[terms(twin, Q)[:-1].sum(axis=0).argsort()[-2:]]
    busy = replace(twin, ensemble=replace(twin.ensemble, pending=best))
    before, after = prepared(acquisition, twin), prepared(acquisition, busy)
    for x in best:
        ahead, now = (np.exp(p.score(x[None]))[0] * p.shares(x)[:-1].sum() for p in (before, after))
        assert ahead > 0.1
        assert now < 1e-4 * ahead
    at_evaluated = np.exp(before.score(twin.ensemble.X)) * [before.shares(x)[:-1].sum() for x in twin.ensemble.X]
    assert np.all(at_evaluated < 1e-4)


@pytest.mark.parametrize("acquisition", BOTH)
def test_the_variance_of_a_target_without_weight_is_not_computed(
    toy: Callable[..., Any], query: Any, acquisition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = prepared(acquisition, toy([0.5, 0.5, 0.0]))
    monkeypatch.setattr(GP, "predict", lambda *_: pytest.fail("a target without weight was asked"))
    assert ready.score(query).shape == (12,)


@pytest.mark.parametrize("acquisition", BOTH)
def test_scores_keep_an_order_where_the_function_itself_is_too_small_for_a_float(
    toy: Callable[..., Any], acquisition: Any
) -> None:
    twin = toy([0.0, 1.0])
    certain = replace(twin.ensemble.target.hyper, noise=1e-10, amplitude=1e-4)
    target = make_gp(twin.ensemble.X, twin.dense[-1].y, shape=twin.ensemble.target.shape, hyper=certain)
    score = acquisition.prepare(replace(twin.ensemble, target=target), np.random.default_rng(0)).score
    Q = np.random.default_rng(0).random((50, 2))
    assert np.sum(np.exp(score(Q)) == 0) > 5
    assert np.isfinite(score(Q)).all()
    assert len(set(score(Q))) == 50
