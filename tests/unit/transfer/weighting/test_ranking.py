"""Misranked pairs and their bootstrap."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from tests.helpers.bootstrap_losses import bootstrap_losses

from recollect.transfer.weighting import ranking


@pytest.mark.parametrize(("gap", "loss"), [(1e-9, 6), (0.0, 0), (-1e-9, 0)])
def test_a_target_just_below_its_observations_is_misranked_with_itself(gap, loss):
    y = np.arange(6.0)
    pairs = ranking.misranked_pairs_target(y - gap, y)
    assert pairs.sum() == loss
    np.testing.assert_array_equal(np.diag(pairs), np.full(6, gap > 0))
    counts = ranking.bootstrap_counts(6, 20, rng=np.random.default_rng(0))
    squares = (counts.astype(float) ** 2).sum(axis=1)  # copies of a point are paired with each other
    np.testing.assert_array_equal(bootstrap_losses(pairs[None], counts)[:, 0], squares * (gap > 0))


def test_a_base_model_is_never_misranked_with_itself():
    rng = np.random.default_rng(0)
    pairs = ranking.misranked_pairs(rng.normal(size=(4, 9)), rng.normal(size=9))
    assert pairs.any()
    assert not np.diagonal(pairs, axis1=1, axis2=2).any()


def test_tied_observations_count_one_of_the_two_ordered_pairs():
    np.testing.assert_array_equal(
        ranking.misranked_pairs(np.array([[1.0, 2.0]]), np.zeros(2))[0], [[False, True], [False, False]]
    )


def test_a_constant_base_model_misranks_the_pairs_in_ascending_order():
    y = np.array([3.0, 1.0, 1.0, 2.0])
    expected = sum(a < b for a in y for b in y)
    assert ranking.misranked_counts(np.zeros((1, 4)), y, y)[0] == expected == 5


@pytest.mark.parametrize("n", [1, 3, 50, 300])
def test_counts_are_those_of_resamples_of_the_same_size(n):
    counts = ranking.bootstrap_counts(n, 7, rng=np.random.default_rng(0))
    assert counts.shape == (7, n)
    assert (counts.sum(axis=1) == n).all()


def test_counts_follow_the_multinomial_distribution():
    n, samples = 5, 40_000
    counts = ranking.bootstrap_counts(n, samples, rng=np.random.default_rng(0)).astype(float)
    error = 5 / np.sqrt(samples)
    np.testing.assert_allclose(counts.mean(axis=0), 1.0, atol=error * np.sqrt(0.8))
    expected = np.eye(n) - 1 / n  # covariance of Multinomial(n, 1/n)
    np.testing.assert_allclose(np.cov(counts.T), expected, atol=2 * error)


def test_misranked_fraction_counts_each_pair_once():
    y = np.arange(4.0)
    base = np.stack([y, -y, [1.0, 0.0, 2.0, 3.0], np.zeros(4)])
    np.testing.assert_allclose(ranking.misranked_fraction(base, y), [0, 1, 1 / 6, 1])


@pytest.mark.parametrize("n", [6, 230])
@pytest.mark.parametrize(("pairs", "phi", "loss"), [(1, 1, 1), (5000, 5000, 5000), (1 << 20, 1 << 14, 1 << 14)])
def test_the_size_of_chunks_changes_nothing(n, pairs, phi, loss, monkeypatch):
    rng = np.random.default_rng(1)
    y = rng.normal(size=n)
    base, loo = y + rng.normal(size=(9, n)), y + rng.normal(size=n)
    dropped = np.array([False, True] * 4 + [False])
    small = np.round(base[:, :3]), np.round(loo[:3]), np.round(y[:3])  # most resamples are tied

    def outcome():
        found = []
        for arrays in ((base, loo, y), small):
            counts = ranking.bootstrap_counts(arrays[-1].size, 700, rng=np.random.default_rng(2))
            losses = ranking.ResampledLosses.over(*arrays, counts)
            found += [counts, *losses.compare(), losses.shares(dropped), ranking.misranked_counts(*arrays)]
            found += [ranking.misranked_fraction(arrays[0], arrays[-1])]
            found += [ranking.draw_losses(arrays[0].reshape(3, 3, -1), arrays[-1])]
            found += [np.array(losses.held is None)]
        return found

    once = outcome()
    monkeypatch.setattr(ranking, "PAIR_BYTES", pairs)
    monkeypatch.setattr(ranking, "PHI_BYTES", phi)
    monkeypatch.setattr(ranking, "LOSS_BYTES", loss)
    chunked = outcome()
    assert not once[-1]
    assert chunked[-1]
    for left, right in zip(once[:7] + once[8:-1], chunked[:7] + chunked[8:-1], strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    ("k", "n", "samples", "megabytes"),
    [(5, 50, 100_000, 64), (50, 12, 100_000, 128), (3000, 12, 20_000, 128), (2, 200, 2000, 64), (2000, 100, 64, 64)],
    ids=["many resamples", "losses held", "losses computed twice", "many observations", "many models"],
)
def test_memory_stays_bounded(k, n, samples, megabytes):
    rng = np.random.default_rng(0)
    base, loo, y = rng.normal(size=(k, n)), rng.normal(size=n), rng.normal(size=n)
    tracemalloc.start()
    losses = ranking.ResampledLosses.over(base, loo, y, ranking.bootstrap_counts(n, samples, rng=rng))
    losses.compare()
    losses.shares(rng.random(k) < 0.3)
    ranking.misranked_counts(base, loo, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < megabytes << 20
