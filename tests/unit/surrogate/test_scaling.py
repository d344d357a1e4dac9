"""Target transforms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import rankdata

from recollect.errors import InputError
from recollect.surrogate.scaling import copula, normalize, restore, square, standardize, transform


def exact_standardization(y: np.ndarray) -> np.ndarray:
    """With rational numbers, which do not round."""
    values = [Fraction(float(v)) for v in y]
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / len(values)
    return np.array(
        [float(v - mean) * abs(float((v - mean) ** 2 / variance)) ** 0.5 / abs(float(v - mean) or 1.0) for v in values]
    )


@pytest.mark.parametrize("magnitude", [1e-300, 1e-12, 1.0, 1e12, 1e154, 1e300])
def test_standardize_is_exact_at_any_magnitude(magnitude: float) -> None:
    unit = np.random.default_rng(0).standard_normal(20)
    z, mean, std = standardize(magnitude * unit)
    np.testing.assert_allclose(z, (unit - unit.mean()) / unit.std(), rtol=1e-12, atol=1e-14)
    assert mean == pytest.approx(magnitude * unit.mean(), rel=1e-12)
    assert std == pytest.approx(magnitude * unit.std(), rel=1e-12)


@pytest.mark.parametrize("offset", [1.0, 0.37, -123.0])
def test_standardize_keeps_all_digits_of_values_that_differ_by_1e_12(offset: float) -> None:
    y = offset + 1e-12 * np.random.default_rng(1).random(15)
    np.testing.assert_allclose(standardize(y)[0], exact_standardization(y), rtol=1e-12)


def test_standardize_does_not_overflow_at_the_largest_numbers() -> None:
    y = np.array([1.7e308, -1.7e308, 1e308, 0.0])
    z, mean, std = standardize(y)
    np.testing.assert_allclose(z, standardize(y / 1e308)[0], rtol=1e-13)
    np.testing.assert_allclose(normalize(y, mean, std), z, rtol=1e-12)
    np.testing.assert_allclose(restore(z, mean, std), y, rtol=1e-12, atol=1e295)
    assert np.isfinite(restore(np.array([5.0, -5.0]), mean, std)).all()


@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-310, 7.3])
@pytest.mark.parametrize("n", [1, 3, 10])
def test_equal_values_have_standard_deviation_one_exactly(value: float, n: int) -> None:
    z, mean, std = standardize(np.full(n, value))
    assert (mean, std) == (value, 1.0)
    np.testing.assert_array_equal(z, np.zeros(n))


def test_a_spread_too_small_to_represent_is_not_rounded_to_zero() -> None:
    assert standardize([0.0, 5e-324])[2] > 0.0


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(-1e308, 1e308), min_size=2, max_size=30))
def test_standardized_values_are_centred_scaled_and_in_the_same_order(values: list[float]) -> None:
    y = np.array(values)
    z, _, _ = standardize(y)
    assert np.isfinite(z).all()
    order = np.argsort(y, kind="stable")
    assert (np.diff(z[order]) >= 0.0).all()
    if y.max() > y.min():
        assert z.mean() == pytest.approx(0.0, abs=1e-10)
        assert z.std() == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("magnitude", [1e-3, 1.0, 1e300])
def test_restore_undoes_normalize(magnitude: float) -> None:
    y = magnitude * np.array([1.0, 2.0, -4.0])
    np.testing.assert_allclose(restore(normalize(y, magnitude, 3 * magnitude), magnitude, 3 * magnitude), y, rtol=1e-14)


@pytest.mark.parametrize("std", [5e-324, 1e-200, 1.0, 1e200, 1.7e308])
def test_squares_stay_finite_and_positive(std: float) -> None:
    assert 0.0 < square(std) < np.inf
    assert square(3.0) == 9.0


@pytest.mark.parametrize(("n", "delta", "largest"), [(2, 0.1425, 1.069), (10, 0.0523, 1.623), (50, 0.0268, 1.930)])
def test_copula_has_the_published_extremes(n: int, delta: float, largest: float) -> None:
    z = copula(np.random.default_rng(0).permutation(n))
    assert z.max() == pytest.approx(largest, abs=6e-4)
    assert z.min() == pytest.approx(-largest, abs=6e-4)
    assert z.max() == pytest.approx(-ndtri(delta), abs=6e-4)


def test_copula_of_three_values_is_symmetric_with_the_median_at_zero() -> None:
    z = copula([10.0, -1.0, 3.0])
    np.testing.assert_allclose(z, [z[0], -z[0], 0.0], atol=1e-15)
    assert z[0] > 1.0


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=25))
def test_copula_uses_average_ranks(values: list[int]) -> None:
    n = len(values)
    delta = 1 / (4 * n**0.25 * np.sqrt(np.pi * np.log(n)))
    quantile = (rankdata(values, method="average") - 1) / (n - 1)
    np.testing.assert_allclose(copula(values), ndtri(np.clip(quantile, delta, 1 - delta)), rtol=1e-13, atol=1e-15)


def test_copula_of_equal_values_is_zero() -> None:
    np.testing.assert_array_equal(copula(np.full(7, 3.3)), np.zeros(7))


def test_copula_needs_two_values() -> None:
    with pytest.raises(InputError, match="n >= 2"):
        copula([1.0])


def test_transform_names_its_kinds() -> None:
    y = np.array([3.0, 1.0, 2.0])
    np.testing.assert_array_equal(transform(y, "meanvar"), standardize(y)[0])
    np.testing.assert_array_equal(transform(y, "copula"), copula(y))
    np.testing.assert_array_equal(transform(y, "unscaled"), y)
    assert transform(y, "unscaled") is not y
    with pytest.raises(InputError, match=r"one of meanvar, copula, unscaled, tail; got 'rank'"):
        transform(y, "rank")  # type: ignore[arg-type]


@pytest.mark.parametrize("function", [standardize, copula, lambda y: transform(y, "unscaled")])
@pytest.mark.parametrize(
    ("y", "message"), [([1.0, np.nan, 2.0], "nan at position 1"), ([1.0, -np.inf], "-inf"), ([[1.0, 2.0]], r"\(1, 2\)")]
)
def test_targets_must_be_a_vector_of_finite_numbers(function, y: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        function(y)


def test_standardize_needs_a_value() -> None:
    with pytest.raises(InputError, match="n >= 1"):
        standardize([])
