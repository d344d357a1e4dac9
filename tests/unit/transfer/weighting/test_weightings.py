"""Weightings use what their formulas need: leave-one-out refits, joint draws, misranked pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from recollect.surrogate.gp import make_gp
from recollect.transfer.weighting.ranking_weights import (
    PercentileWeighting,
    RankingWeighting,
    TwoStageWeighting,
    rgpe_weights,
    tst_weights,
)

K = [0.25, 0.25, 0.25, 0.25]


def without(target: Any, k: int) -> Any:
    """The target's model that never saw observation k, hyperparameters kept."""
    kept = np.arange(target.n) != k
    return make_gp(target.X[kept], target.y[kept], shape=target.shape, hyper=target.hyper)


def weigh(weighting: Any, ensemble: Any, *, horizon: int = 30, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return weighting.prepare(ensemble.sources, rng).weigh(ensemble.target, ensemble.F, horizon=horizon, rng=rng)


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("dilution", ["probabilistic", "constant", "none"])
def test_ranking_weights_compare_refits_without_the_observation(toy: Callable[..., Any], n: int, dilution: Any) -> None:
    ensemble = toy(K, n=n).ensemble
    target = ensemble.target
    loo = np.array([without(target, k).mean(target.X[[k]])[0] for k in range(n)])
    assert np.max(np.abs(loo - target.mean(target.X))) > 0.1
    rng = np.random.default_rng(0)
    options = {"samples": 200, "horizon": 30, "dilution": dilution}
    expected = rgpe_weights(ensemble.F, loo, target.y, rng=rng, **options)  # type: ignore[arg-type]
    got = weigh(RankingWeighting(200, dilution), ensemble)
    np.testing.assert_array_equal(got.values, expected.values)
    np.testing.assert_array_equal(got.misranked, expected.misranked)
    np.testing.assert_array_equal(got.keep_probability, expected.keep_probability)


@pytest.mark.parametrize("dilution", ["probabilistic", "none"])
def test_two_stage_weights_compare_means_with_observations(toy: Callable[..., Any], dilution: Any) -> None:
    ensemble = toy(K, n=8).ensemble
    rng = np.random.default_rng(0)
    expected = tst_weights(ensemble.F, ensemble.target.y, rho=0.8, horizon=30, dilution=dilution, rng=rng)
    np.testing.assert_array_equal(weigh(TwoStageWeighting(0.8, dilution), ensemble).values, expected.values)


def literal_percentile_weights(twin: Any, draws: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Spec 2.3 by loops: joint draws of every past run at X, and of every leave-one-out model at all of X."""
    X, y, n = twin.ensemble.X, twin.dense[-1].y, twin.ensemble.target.n
    lower = y[:, None] < y

    def sample(mean: Any, C: Any) -> Any:
        return mean + rng.standard_normal((draws, n)) @ np.linalg.cholesky(C + 1e-9 * np.eye(n)).T

    losses = []
    for gp in twin.dense[:-1]:
        f = sample(gp.mean(X), gp.cov(X, X))
        losses.append([((row[:, None] < row) ^ lower).sum() for row in f])
    total = np.zeros(draws, dtype=int)
    for k in range(n):
        f = sample(*without(twin.ensemble.target, k).joint(X))
        total += [((row[k] < row) ^ lower[k]).sum() for row in f]
    table = np.array([*losses, total])
    dropped = np.median(table[:-1], axis=1) >= np.percentile(table[-1], 95)
    table[:-1][dropped] = 10**6
    best = table == table.min(axis=0)
    return (best / best.sum(axis=0)).mean(axis=1), dropped


@pytest.mark.parametrize("seed", [1, 9, 11])
def test_percentile_weights_agree_with_draws_written_out(toy: Callable[..., Any], seed: int) -> None:
    twin, draws = toy(K, n=7, seed=seed), 4000
    expected, dropped = literal_percentile_weights(twin, draws, np.random.default_rng(1))
    for own in range(3):
        got = weigh(PercentileWeighting(4096), twin.ensemble, seed=own)
        np.testing.assert_array_equal(got.dropped, dropped)
        assert np.all(np.abs(got.values - expected) < 5 * np.sqrt(0.25 / draws))


def test_percentile_weights_are_uniform_before_the_third_observation(toy: Callable[..., Any]) -> None:
    assert weigh(PercentileWeighting(), toy(K, n=2).ensemble).values.tolist() == K


@pytest.mark.parametrize("weighting", [RankingWeighting(), TwoStageWeighting(0.9, "probabilistic")])
def test_at_the_horizon_nothing_is_left_of_the_past(toy: Callable[..., Any], weighting: Any) -> None:
    ensemble = toy(K, n=8).ensemble
    assert weigh(weighting, ensemble, horizon=8).values.tolist() == [0.0, 0.0, 0.0, 1.0]
    kept = [weigh(weighting, ensemble, horizon=10**6, seed=seed).values[-1] < 1 for seed in range(5)]
    assert any(kept)
