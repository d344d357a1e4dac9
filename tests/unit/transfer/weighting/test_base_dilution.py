"""Dropping base models."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.errors import InputError
from recollect.transfer.weighting.base import draw_dropped, keep_probability

FRACTION = np.array([0.0, 0.25, 1.0])


@pytest.mark.parametrize(
    ("kind", "n", "expected"),
    [
        ("probabilistic", 0, [0.0, 0.25, 1.0]),
        ("probabilistic", 10, [0.0, 0.2, 0.8]),
        ("probabilistic", 49, [0.0, 0.005, 0.02]),
        ("probabilistic", 50, [0.0, 0.0, 0.0]),
        ("probabilistic", 60, [0.0, 0.0, 0.0]),
        ("constant", 10, [0.0, 0.25, 1.0]),
        ("constant", 60, [0.0, 0.25, 1.0]),
        ("none", 60, [1.0, 1.0, 1.0]),
    ],
)
def test_keep_probability_follows_the_formula(kind, n, expected):
    np.testing.assert_allclose(keep_probability(FRACTION, n, horizon=50, kind=kind), expected, rtol=1e-12, atol=0)


def test_only_the_probabilistic_kind_needs_a_horizon():
    for kind in ("constant", "none"):
        assert keep_probability(FRACTION, 3, horizon=None, kind=kind).shape == (3,)
    with pytest.raises(InputError, match="horizon"):
        keep_probability(FRACTION, 3, horizon=None, kind="probabilistic")


def test_the_answer_is_not_the_argument():
    assert keep_probability(FRACTION, 3, horizon=5, kind="constant") is not FRACTION


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="'probabilistic', 'constant', 'none', got 'ld'"):
        keep_probability(FRACTION, 3, horizon=5, kind="ld")


def test_models_are_dropped_as_often_as_their_probability_says():
    keep = np.array([0.0, 0.1, 0.5, 0.9, 1.0])
    rng = np.random.default_rng(0)
    frequency = np.mean([draw_dropped(keep, rng) for _ in range(20_000)], axis=0)
    assert frequency[0] == 1.0
    assert frequency[-1] == 0.0
    np.testing.assert_allclose(frequency, 1 - keep, atol=4 * 0.5 / np.sqrt(20_000))


def test_one_uniform_number_per_model_in_order_decides():
    keep = np.linspace(0.05, 0.95, 8)
    dropped = draw_dropped(keep, np.random.default_rng(4))
    uniform = [np.random.default_rng(4)]
    np.testing.assert_array_equal(dropped, [uniform[0].random() < 1 - p for p in keep])
