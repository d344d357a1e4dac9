"""Ranking losses and weights against a literal reading of the equations, in plain Python loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.bootstrap_losses import bootstrap_losses

from recollect.transfer.weighting import ranking
from recollect.transfer.weighting.ranking_weights import percentile_weights, rgpe_weights

SIZES = [(1, 3), (4, 5), (7, 12), (3, 21)]


def literal_loss(left, right, y, drawn) -> int:
    """Sum over all ordered pairs of drawn positions; ``left`` and ``right`` are what stands at both ends of a pair."""
    loss = 0
    for a in drawn:
        for b in drawn:
            loss += (left[a] < right[b]) != (y[a] < y[b])
    return loss


def indices(counts) -> list[list[int]]:
    """Resamples as lists of drawn positions."""
    return [[a for a, copies in enumerate(row) for _ in range(copies)] for row in counts]


def literal_weights(losses: list[list[int]], kept: list[int]) -> list[float]:
    """``losses[i][s]``; equation 5 with one share per sample."""
    weights = [0.0] * len(losses)
    samples = len(losses[0])
    for s in range(samples):
        least = min(losses[i][s] for i in kept)
        winners = [i for i in kept if losses[i][s] == least]
        for i in winners:
            weights[i] += 1 / len(winners) / samples
    return weights


def tied(rng, *shape) -> np.ndarray:
    """Few distinct values, so that ties are frequent."""
    return rng.integers(0, max(2, shape[-1] // 2), size=shape).astype(float)


@pytest.fixture(params=["ties", "distinct"])
def values(request):
    return tied if request.param == "ties" else lambda rng, *shape: rng.normal(size=shape)


@pytest.mark.parametrize(("k", "n"), SIZES)
@pytest.mark.parametrize("packed_limit", [200, 0], ids=["packed", "one product per model"])
def test_bootstrap_losses_equal_the_triple_loop(k, n, values, packed_limit, monkeypatch):
    monkeypatch.setattr(ranking, "PACKED_LIMIT", packed_limit)
    rng = np.random.default_rng(10 * k + n)
    for _ in range(3):
        base, loo, y = values(rng, k, n), values(rng, n), values(rng, n)
        counts = ranking.bootstrap_counts(n, 6, rng=rng)
        pairs = np.concatenate([ranking.misranked_pairs(base, y), ranking.misranked_pairs_target(loo, y)[None]])
        expected = [
            [literal_loss(f, f, y, drawn) for f in base] + [literal_loss(loo, y, y, drawn)] for drawn in indices(counts)
        ]
        np.testing.assert_array_equal(bootstrap_losses(pairs, counts), expected)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), n=st.integers(2, 7))
def test_any_order_with_ties_has_the_literal_loss(data, n):
    row = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    f, loo, y = (np.array(data.draw(row), dtype=float) for _ in range(3))
    drawn = data.draw(st.lists(st.integers(0, n - 1), min_size=n, max_size=n))
    counts = np.bincount(drawn, minlength=n).astype(np.uint16)[None]
    pairs = np.stack([ranking.misranked_pairs(f, y), ranking.misranked_pairs_target(loo, y)])
    expected = [[literal_loss(f, f, y, drawn), literal_loss(loo, y, y, drawn)]]
    np.testing.assert_array_equal(bootstrap_losses(pairs, counts), expected)


@pytest.mark.parametrize(("k", "n"), SIZES)
def test_weights_of_the_same_resamples_equal_the_literal_ones(k, n, values):
    rng = np.random.default_rng(n)
    base, loo, y = values(rng, k, n), values(rng, n), values(rng, n)
    samples, horizon = 25, 2 * n
    weights = rgpe_weights(base, loo, y, samples=samples, horizon=horizon, rng=np.random.default_rng(5))

    replay = np.random.default_rng(5)
    resamples = indices(ranking.bootstrap_counts(n, samples, rng=replay))
    losses = [[literal_loss(f, f, y, drawn) for drawn in resamples] for f in base]
    target = [literal_loss(loo, y, y, drawn) for drawn in resamples]
    kept = []
    for i, uniform in enumerate(replay.random(k)):
        fraction = sum(own < other for own, other in zip(losses[i], target, strict=True)) / samples
        keep = (1 - n / horizon) * fraction
        assert weights.keep_probability[i] == pytest.approx(keep, abs=1e-15)
        if uniform >= 1 - keep:
            kept.append(i)
    np.testing.assert_array_equal(~weights.dropped, [i in kept for i in range(k)])
    np.testing.assert_allclose(weights.values, literal_weights([*losses, target], [*kept, k]), rtol=1e-12)
    np.testing.assert_allclose(weights.losses, np.mean([*losses, target], axis=1), rtol=1e-12)
    everything = range(n)
    expected = [literal_loss(f, f, y, everything) for f in base] + [literal_loss(loo, y, y, everything)]
    np.testing.assert_array_equal(weights.misranked, expected)


@pytest.mark.parametrize("n", [180, 200, 201, 220])
def test_losses_are_exact_integers_at_two_hundred_observations(n):
    rng = np.random.default_rng(n)
    base, loo, y = rng.normal(size=(3, n)), rng.normal(size=n), rng.normal(size=n)
    pairs = np.concatenate([ranking.misranked_pairs(base, y), ranking.misranked_pairs_target(loo, y)[None]])
    counts = ranking.bootstrap_counts(n, 40, rng=rng)
    losses = bootstrap_losses(pairs, counts)
    whole = counts.astype(np.int64)
    np.testing.assert_array_equal(losses, np.einsum("sa,mab,sb->sm", whole, pairs.astype(np.int64), whole))
    reverse = bootstrap_losses(ranking.misranked_pairs(-np.arange(n)[None], np.arange(n)), np.ones_like(counts))
    assert reverse.dtype == np.float32
    assert (reverse == n * (n - 1)).all()  # as large as a full-sample loss can be


def test_losses_above_the_exact_range_of_float32_are_float64():
    n = ranking.FLOAT32_EXACT + 1
    pairs = ranking.misranked_pairs(-np.arange(n)[None], np.arange(n))
    losses = bootstrap_losses(pairs, np.ones((1, n), dtype=np.uint16))
    assert losses.dtype == np.float64
    assert losses.item() == n * (n - 1)


def test_percentile_weights_equal_the_literal_ones():
    rng = np.random.default_rng(3)
    k, samples, n = 5, 40, 8
    y = tied(rng, n)
    noise = np.array([0.1, 0.6, 1.0, 3.0, 30.0])[:, None, None]
    base, folds = y + noise * rng.normal(size=(k, samples, n)), y + 1.2 * rng.normal(size=(n, samples, n))
    base[2] = np.round(base[2])
    weights = percentile_weights(base, folds, y)

    losses = [[literal_loss(draw, draw, y, range(n)) for draw in own] for own in base]
    target = [
        sum((folds[a, s, a] < folds[a, s, b]) != (y[a] < y[b]) for a in range(n) for b in range(n))
        for s in range(samples)
    ]
    order = sorted(target)
    position = 0.95 * (samples - 1)  # linear interpolation between the two neighbours
    low = int(position)
    limit = order[low] + (position - low) * (order[low + 1] - order[low])
    medians = [sum(sorted(own)[samples // 2 - 1 : samples // 2 + 1]) / 2 for own in losses]
    dropped = [median >= limit for median in medians]
    assert any(dropped)
    assert not all(dropped)
    np.testing.assert_array_equal(weights.dropped, dropped)
    kept = [i for i in range(k) if not dropped[i]]
    np.testing.assert_allclose(weights.values, literal_weights([*losses, target], [*kept, k]), rtol=1e-12)
    np.testing.assert_allclose(weights.losses, np.mean([*losses, target], axis=1), rtol=1e-12)
    loo = [folds[a, :, a].mean() for a in range(n)]
    expected = [literal_loss(f, f, y, range(n)) for f in base.mean(axis=1)] + [literal_loss(loo, y, y, range(n))]
    np.testing.assert_array_equal(weights.misranked, expected)
