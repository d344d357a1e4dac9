"""Weights of the 2018 preprint, from posterior draws and percentiles."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.errors import InputError
from recollect.transfer.weighting.ranking_weights import percentile_weights

N = 8


def draws(k=3, samples=30, n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    base = y + np.linspace(0.1, 3, k)[:, None, None] * rng.normal(size=(k, samples, n))
    return base, y + 0.5 * rng.normal(size=(n, samples, n)), y


@pytest.mark.parametrize("n", [1, 2])
def test_percentile_weights_of_fewer_than_three_observations_are_uniform(n):
    base, folds, y = draws(n=n)
    weights = percentile_weights(base, np.full_like(folds, np.nan), y)
    np.testing.assert_allclose(weights.values, 0.25)
    assert not weights.dropped.any()


def test_percentile_weights_without_past_runs_are_the_target():
    base, folds, y = draws(k=0)
    assert percentile_weights(base, folds, y).values.tolist() == [1.0]


def test_a_base_model_as_bad_as_the_bad_end_of_the_target_is_dropped():
    y = np.arange(5.0)
    always = np.broadcast_to
    perfect, reverse = always(y, (1, 10, 5)), always(-y, (1, 10, 5))
    weights = percentile_weights(np.concatenate([perfect, reverse]), always(y, (5, 10, 5)), y)
    np.testing.assert_array_equal(weights.dropped, [True, True])  # the median of 0 reaches the percentile of 0
    assert weights.target == 1.0
    weights = percentile_weights(np.concatenate([perfect, reverse]), always(-y, (5, 10, 5)), y)
    np.testing.assert_array_equal(weights.dropped, [False, True])
    np.testing.assert_array_equal(weights.values, [1.0, 0.0, 0.0])
    np.testing.assert_array_equal(weights.losses, [0, 20, 20])


@pytest.mark.parametrize(("bad_draws", "dropped"), [(1, True), (2, False)])
def test_the_percentile_is_the_ninety_fifth(bad_draws, dropped):
    y, samples = np.arange(5.0), 21  # of 21 sorted losses, the last but one
    folds = np.broadcast_to(y, (5, samples, 5)).copy()
    folds[:, :bad_draws] *= -1
    weights = percentile_weights(np.broadcast_to(y, (1, samples, 5)), folds, y)
    assert weights.dropped.tolist() == [dropped]
    assert weights.losses[-1] == pytest.approx(20 * bad_draws / samples)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base_draws": np.zeros((3, 30, N + 1))}, "base_draws must have shape"),
        ({"base_draws": np.zeros((3, 0, N)), "fold_draws": np.zeros((N, 0, N))}, "number of draws must be at least 1"),
        ({"fold_draws": np.zeros((N, 29, N))}, r"fold_draws must have shape \(8, 30, 8\), got \(8, 29, 8\)"),
        ({"fold_draws": np.full((N, 30, N), np.nan)}, "fold_draws must be finite"),
        ({"y": np.full(N, np.inf)}, "y must be finite"),
    ],
)
def test_senseless_draws_are_refused(change, message):
    base, folds, y = draws()
    with pytest.raises(InputError, match=message):
        percentile_weights(**{"base_draws": base, "fold_draws": folds, "y": y} | change)
