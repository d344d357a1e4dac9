"""Worst-case slowdown."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from recollect.errors import InputError, InputTypeError
from recollect.transfer.weighting.base import keep_probability, slowdown_factor


def probability_all_dropped(n, *, horizon, past):
    """The least one: every base model ranks better than the target in every resample; otherwise more are dropped."""
    return np.prod(1 - keep_probability(np.ones(past), n, horizon=horizon, kind="probabilistic"))


@pytest.mark.parametrize(("past", "published"), [(34, 25.2), (37, 26.6), (49, 31.6)])
def test_the_factor_is_the_published_one(past, published):
    assert round(slowdown_factor(50, past), 1) == published


@pytest.mark.parametrize(("horizon", "past"), [(1, 0), (1, 9), (7, 1), (13, 5), (50, 49)])
def test_the_factor_equals_exact_arithmetic(horizon, past):
    share = sum(Fraction(h, horizon) ** past for h in range(1, horizon + 1)) / horizon
    assert slowdown_factor(horizon, past) == pytest.approx(float(1 / share), rel=1e-12)


def test_the_factor_grows_from_one_to_the_horizon():
    factors = [slowdown_factor(50, past) for past in (0, 1, 10, 100, 10_000)]
    assert factors[0] == 1.0
    assert factors == sorted(set(factors))
    assert factors[-1] == pytest.approx(50.0)
    assert slowdown_factor(50, 10**400) == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("n", "past", "expected"), [(0, 3, 0.0), (0, 0, 1.0), (25, 2, 0.25), (50, 7, 1.0), (80, 7, 1.0), (10, 1, 0.2)]
)
def test_all_are_dropped_with_at_least_this_probability(n, past, expected):
    assert probability_all_dropped(n, horizon=50, past=past) == pytest.approx(expected)


def test_the_factor_is_the_reciprocal_of_the_average_probability():
    average = sum(probability_all_dropped(h, horizon=20, past=6) for h in range(1, 21)) / 20
    assert slowdown_factor(20, 6) == pytest.approx(1 / average)


@pytest.mark.parametrize(("horizon", "past", "word"), [(0, 1, "horizon"), (2**63, 1, "horizon"), (5, -1, "past")])
def test_senseless_numbers_are_refused(horizon, past, word):
    with pytest.raises(InputError, match=word):
        slowdown_factor(horizon, past)


def test_a_fractional_horizon_is_refused():
    with pytest.raises(InputTypeError, match=r"horizon must be an integer, got 2\.5"):
        slowdown_factor(2.5, 1)
