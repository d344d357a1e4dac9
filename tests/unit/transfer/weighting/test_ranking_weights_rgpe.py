"""Ranking weights: edges, invariances, bad input."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import InputError, InputTypeError
from recollect.transfer.weighting import ranking
from recollect.transfer.weighting.base import Weights
from recollect.transfer.weighting.ranking_weights import rgpe_weights

N = 8


def weigh(base, loo, y, *, seed=0, **settings) -> Weights:
    return rgpe_weights(base, loo, y, rng=np.random.default_rng(seed), **{"samples": 300} | settings)


def example(k=6, n=N, seed=0):
    """Models of which some are better and some worse than the target."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    base = y + np.linspace(0.2, 2.0, k)[:, None] * rng.normal(size=(k, n))
    return base, y + 0.7 * rng.normal(size=n), y


def assert_same(left: Weights, right: Weights) -> None:
    for name in ("values", "losses", "misranked", "dropped", "keep_probability"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("k", [0, 1, 4])
def test_fewer_than_three_observations_give_uniform_weights_and_drop_nothing(k, n):
    rng = np.random.default_rng(0)
    unknown = np.full(n, np.nan)  # there is no leave-one-out prediction yet
    weights = weigh(rng.normal(size=(k, n)), unknown, np.arange(n), horizon=1)
    np.testing.assert_allclose(weights.values, 1 / (k + 1))
    assert not weights.dropped.any()
    np.testing.assert_array_equal(weights.keep_probability, 1.0)
    assert np.isnan(weights.losses).all()


@pytest.mark.parametrize("n", [3, 4, 30])
@pytest.mark.parametrize("dilution", ["probabilistic", "constant", "none"])
def test_without_past_runs_the_target_has_all_the_weight(n, dilution):
    _, loo, y = example(n=n)
    weights = weigh(np.empty((0, n)), loo, y, dilution=dilution)
    assert weights.values.tolist() == [1.0]
    assert weights.losses.shape == (1,)
    assert weights.active.size == 0


@pytest.mark.parametrize("horizon", [N, N - 1, 1])
def test_at_the_horizon_only_the_target_is_left(horizon):
    base, _, y = example()
    base[0] = y  # even a perfect base model goes
    weights = weigh(base, -y, y, horizon=horizon)
    assert weights.target == 1.0
    assert weights.dropped.all()
    assert not weights.values[:-1].any()


@pytest.mark.parametrize("dilution", ["constant", "none"])
def test_without_fading_a_perfect_base_model_stays_beyond_the_horizon(dilution):
    _, _, y = example()
    weights = weigh(y[None], -y, y, horizon=1, dilution=dilution)
    assert not weights.dropped.any()
    assert weights.values[0] > 0.9


def test_keep_probability_is_the_share_of_resamples_won_times_the_time_left():
    y = np.arange(5.0)
    loo = y - 0.1  # misranked with itself only: the loss is the sum of squared counts, never 0
    base = np.stack([y, -y])  # always 0; never below the squares unless all points are one
    weights = weigh(base, loo, y, horizon=20, samples=500)
    counts = ranking.bootstrap_counts(5, 500, rng=np.random.default_rng(0)).astype(int)
    target = (counts**2).sum(axis=1)
    reverse = 25 - target  # all ordered pairs but those of copies
    np.testing.assert_allclose(weights.keep_probability, [0.75, 0.75 * (reverse < target).mean()])
    assert 0 < weights.keep_probability[1] < 0.75


def test_base_models_are_dropped_as_often_as_their_keep_probability_says():
    base, loo, y = example(k=4)
    drawn = [weigh(base, loo, y, seed=seed, samples=50, horizon=30) for seed in range(1500)]
    keep = np.mean([weights.keep_probability for weights in drawn], axis=0)
    assert keep.max() > 0.2
    dropped = np.mean([weights.dropped for weights in drawn], axis=0)
    np.testing.assert_allclose(dropped, 1 - keep, atol=4 * 0.5 / np.sqrt(1500))


@pytest.mark.parametrize("error", [0.0, 1e-16, -1e-12])
def test_of_constant_observations_the_target_is_certain(error):
    base, _, _ = example()
    y = np.full(N, 0.3)
    weights = weigh(base, y + error, y)
    assert weights.target == 1.0
    assert weights.dropped.all()
    assert weights.losses[-1] == weights.misranked[-1] == 0
    np.testing.assert_array_equal(weights.misranked[:-1], N * (N - 1) / 2)
    assert weigh(base, y + error, y, dilution="none").target > 0.99


def test_a_constant_base_model_misranks_every_ascending_pair():
    _, loo, y = example()
    weights = weigh(np.zeros((1, N)), loo, y)
    assert weights.misranked[0] == N * (N - 1) / 2


def test_a_sole_winner_shares_with_its_copy_and_no_other_weight_changes():
    base, loo, y = example()
    base[0] = y + 1e-3 * np.arange(N)
    alone = weigh(base, loo, y, dilution="none")
    pair = weigh(np.vstack([base, base[:1]]), loo, y, dilution="none")
    counts = ranking.bootstrap_counts(N, 300, rng=np.random.default_rng(0))
    losses = ranking.ResampledLosses.over(base, loo, y, counts).held
    best = losses == losses.min(axis=0)
    ties = best.sum(axis=0)
    assert (ties[best[0]] == 1).any()
    # In a tie of c models, c > 1, the pair has 2/(c+1) instead of 1/c; where the winner is alone, 1/2 each.
    assert pair.values[0] == pair.values[-2] == pytest.approx(np.mean(best[0] / (ties + best[0])), rel=1e-12)
    assert alone.values[0] == pytest.approx(np.mean(best[0] / ties), rel=1e-12)
    expected = (best[1:] / (ties + best[0])).mean(axis=1)
    np.testing.assert_allclose(np.delete(pair.values, [0, 6]), expected, rtol=1e-12)


@pytest.mark.parametrize("copies", [1, 2, 5])
def test_copies_of_a_perfect_model_share_its_weight_equally(copies):
    y = np.arange(6.0)
    weights = weigh(np.vstack([y] * copies), y - 0.1, y, dilution="none")
    np.testing.assert_allclose(weights.values[:-1], 1 / copies, rtol=1e-12)
    assert weights.target == 0.0
    np.testing.assert_array_equal(weights.active, np.arange(copies))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.01, 100), st.floats(-100, 100))
def test_weights_do_not_change_under_affine_maps_of_each_task(seed, scale, shift):
    base, loo, y = example(seed=seed)
    scales = np.random.default_rng(seed).uniform(0.1, 10, size=(len(base), 1))
    moved = weigh(scales * base - 3.0, scale * loo + shift, scale * y + shift)
    assert_same(weigh(base, loo, y), moved)


def test_weights_are_equal_for_raw_and_standardised_targets():
    base, loo, y = example()
    assert_same(weigh(base, loo, y), weigh(base, (loo - y.mean()) / y.std(), (y - y.mean()) / y.std()))


def test_the_unit_of_the_leave_one_out_predictions_matters():
    base, loo, y = example()
    assert weigh(base, loo + 1.0, y).losses[-1] != weigh(base, loo, y).losses[-1]


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    base, loo, y = example()
    assert_same(weigh(base, loo, y, seed=3), weigh(base, loo, y, seed=3))
    assert (weigh(base, loo, y, seed=3).losses != weigh(base, loo, y, seed=4).losses).any()


def test_arguments_stay_as_they_were():
    arrays = example()
    for array in arrays:
        array.setflags(write=False)
    before = [array.copy() for array in arrays]
    weigh(*arrays)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(0, 5), st.integers(3, 9), st.sampled_from(["probabilistic", "none"]))
def test_weights_are_shares_of_one_and_the_dropped_have_none(seed, k, n, dilution):
    rng = np.random.default_rng(seed)
    base, loo, y = (rng.integers(0, 4, size=shape) for shape in ((k, n), n, n))
    weights = weigh(base, loo, y, samples=40, dilution=dilution)
    assert weights.values.sum() == pytest.approx(1.0, abs=1e-12)
    assert (weights.values >= 0).all()
    assert not weights.values[:-1][weights.dropped].any()
    if weights.dropped.all():
        assert weights.target == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": np.zeros(N)}, r"base must have shape \(any, 8\), got \(8,\)"),
        ({"base": np.zeros((2, N + 1))}, r"base must have shape \(any, 8\), got \(2, 9\)"),
        ({"loo": np.zeros(N - 1)}, r"loo must have shape \(8,\), got \(7,\)"),
        ({"y": np.zeros((N, 1))}, r"y must have shape \(any,\), got \(8, 1\)"),
        ({"base": np.full((2, N), np.nan)}, "base must be finite, got 16 nan"),
        ({"loo": np.full(N, np.inf)}, "loo must be finite, got 8 nan"),
        ({"y": np.r_[np.zeros(N - 1), np.nan]}, "y must be finite, got 1 nan"),
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"dilution": "ld"}, "dilution must be one of .* got 'ld'"),
    ],
)
def test_senseless_arguments_are_refused(change, message):
    base, loo, y = example()
    arguments = {"base": base, "loo": loo, "y": y, "rng": np.random.default_rng(0)} | change
    with pytest.raises(InputError, match=message):
        rgpe_weights(**arguments)


@pytest.mark.parametrize("change", [{"rng": 0}, {"samples": 2.5}, {"horizon": "50"}, {"y": ["a"] * N}, {"base": None}])
def test_arguments_of_the_wrong_type_are_refused(change):
    base, loo, y = example()
    arguments = {"base": base, "loo": loo, "y": y, "rng": np.random.default_rng(0)} | change
    with pytest.raises((InputTypeError, InputError), match=next(iter(change))):
        rgpe_weights(**arguments)


def test_an_answer_cannot_be_changed():
    base, loo, y = example()
    weights = weigh(base, loo, y)
    with pytest.raises(FrozenInstanceError):
        weights.values = np.ones(7)
    for array in (weights.values, weights.losses, weights.misranked, weights.dropped, weights.keep_probability):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_an_answer_keeps_copies_of_its_own():
    values = np.array([0.25, 0.75])
    weights = Weights(values, np.zeros(2), np.zeros(2), np.zeros(1, dtype=bool), np.ones(1))
    values[:] = 0.5
    assert weights.values.tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("values", "dropped", "message"),
    [
        ([0.5, 0.6], [False], "sum to 1"),
        ([np.nan, 1.0], [False], "sum to 1"),
        ([0.5, 0.5], [True], "dropped base model must have the value 0"),
        ([0.5, 0.5], [False, False], r"dropped must have shape \(1,\), got \(2,\)"),
        ([[0.5, 0.5]], [False], r"values must have shape \(2,\)"),
    ],
)
def test_weights_that_do_not_fit_together_are_refused(values, dropped, message):
    with pytest.raises(InputError, match=message):
        Weights(np.array(values), np.zeros(2), np.zeros(2), np.array(dropped), np.ones(1))
