"""Edges and order of the logarithm of expected improvement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.numerics.normal import log_expected_improvement


def test_without_spread_there_is_no_improvement() -> None:
    mean, std = np.array([-1.0, 0.0, 1.0]), np.zeros(3)
    np.testing.assert_array_equal(log_expected_improvement(mean, std, 0.0), np.full(3, -np.inf))


def test_shapes_broadcast() -> None:
    mean, std, eta = np.zeros((4, 1)), np.ones(3), np.full((2, 1, 1), 0.5)
    value = log_expected_improvement(mean, std, eta)
    assert value.shape == (2, 4, 3)
    assert value[1, 2, 0] == log_expected_improvement(0.0, 1.0, 0.5)
    assert log_expected_improvement(0.0, 1.0, 0.5).shape == ()
    assert log_expected_improvement(np.zeros(0), np.zeros(0), 0.0).shape == (0,)


def test_a_certain_improvement_is_worth_the_gap() -> None:
    np.testing.assert_allclose(log_expected_improvement(-3.0, [1e-3, 1e-300, 5e-324], 0.0), np.log(3.0), rtol=1e-15)


@pytest.mark.parametrize("std", [1e-8, 1.0, 1e5])
def test_candidates_a_thousand_to_a_million_deviations_away_keep_their_order(std: float) -> None:
    mean = std * np.geomspace(1e3, 1e6, 100_000)
    assert (np.diff(log_expected_improvement(mean, std, 0.0)) < 0.0).all()


@pytest.mark.parametrize("seam", [1.0, 30.0])
def test_log_improvement_is_monotone_across_the_seams_of_its_formulas(seam: float) -> None:
    mean = seam + np.linspace(-1e-9, 1e-9, 1001)
    assert (np.diff(log_expected_improvement(mean, 1.0, 0.0)) <= 0.0).all()
    wide = seam + np.linspace(-1e-3, 1e-3, 1001)
    assert (np.diff(log_expected_improvement(wide, 1.0, 0.0)) < 0.0).all()


@settings(deadline=None, max_examples=200)
@given(
    z=st.floats(-1e150, 1e10),
    std=st.floats(1e-100, 1e100),
)
def test_the_logarithm_is_finite_at_any_distance(z: float, std: float) -> None:
    assert np.isfinite(log_expected_improvement(-z * std, std, 0.0))
