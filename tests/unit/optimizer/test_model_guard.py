"""The negative-transfer guard against SciPy's rank statistic, and how often it acts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau, norm

import recollect
from recollect.optimizer.model import FALSE_POSITIVE_RATE, JOINT_STANDARD_ERRORS, apply_guard, not_above_chance
from recollect.transfer.weighting.base import Weights
from recollect.transfer.weighting.ranking_weights import rgpe_weights


def weights_of(values: list[float], misranked: list[float]) -> Weights:
    unknown = np.full(len(values), np.nan)
    k = len(values) - 1
    return Weights(np.array(values), unknown, np.array(misranked), np.zeros(k, dtype=bool), np.full(k, 0.8))


@pytest.mark.parametrize("n", [5, 8, 25])
@pytest.mark.parametrize("ties", [0, 3])
def test_past_runs_are_judged_by_kendalls_statistic(n: int, ties: int) -> None:
    seen = set()
    for seed in range(60):
        rng = np.random.default_rng([seed, n, ties])
        y = rng.permutation(np.maximum(np.arange(n), ties).astype(float))
        F = (
            rng.normal(size=(6, n))
            + rng.choice([0.0, 0.0, 1.0]) * np.array([[0.1], [0.1], [0.1], [0.1], [0.3], [9.0]]) * y
        )
        weights = rgpe_weights(F, y, y, rng=rng)
        p = np.array([kendalltau(f, y, method="asymptotic", alternative="greater").pvalue for f in F])
        together = norm.sf(norm.isf(p).sum() / np.sqrt(6)) < norm.sf(JOINT_STANDARD_ERRORS)
        enough = n * (n - 1) - (ties + 1) * ties >= 20
        expected = (p > FALSE_POSITIVE_RATE / 6) & (not together) & enough
        assert not_above_chance(weights, y).tolist() == expected.tolist()
        seen.add((bool(together), bool(expected.any())))
    assert (True, False) in seen
    assert ((False, True) in seen) == (n > 5 or ties == 0)


def test_runs_of_noise_pass_together_or_singly_as_often_as_stated() -> None:
    rng = np.random.default_rng(3)
    dropped = []
    for _ in range(400):
        y = rng.permutation(20.0 * np.arange(20))
        ranks = [
            sum(2.0 for i in range(20) for j in range(i) if (f[i] < f[j]) != (y[i] < y[j]))
            for f in rng.normal(size=(9, 20))
        ]
        dropped.append(not_above_chance(weights_of([0.1] * 10, [*ranks, 0.0]), y))
    whole = np.mean([not row.any() for row in dropped])
    single = np.mean([not row.all() for row in dropped if row.any()])
    assert whole == pytest.approx(norm.sf(JOINT_STANDARD_ERRORS), abs=0.05)
    assert single <= FALSE_POSITIVE_RATE


@pytest.mark.parametrize(
    ("name", "share"),
    [("rgpe-taf", 0.4), ("rgpe-mogp", 0.4), ("rgpe-mean", 0.0), ("rgpe-taf+none", 0.0), ("rgpe-taf+paper", 0.0)],
)
def test_for_mixtures_all_sources_are_dropped_with_the_probability_that_the_target_ranks_best(
    name: str, share: float
) -> None:
    y = np.arange(6.0)
    given = weights_of([0.5, 0.1, 0.4], [2.0, 4.0, 3.0])
    drawn = [apply_guard(recollect.method(name), given, y, rng=np.random.default_rng(seed))[0] for seed in range(1000)]
    assert np.mean([weights.target == 1.0 for weights in drawn]) == pytest.approx(share, abs=0.05)
    for weights in drawn:
        assert weights.values.tolist() in ([0.5, 0.1, 0.4], [0.0, 0.0, 1.0])
        np.testing.assert_allclose(weights.keep_probability, 0.8 * (1.0 - share))
