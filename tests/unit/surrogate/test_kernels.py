"""The product kernel: values, structure, and the fast form for prediction."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recollect.errors import InputError
from recollect.numerics.arrays import KernelShape
from recollect.surrogate.kernels import (
    Hyperparameters,
    activity_patterns,
    covariance,
    cross_covariance,
)

CATEGORICAL = np.array([False, True, False, True, False])


def points(n: int, seed: int, *, holes: bool = True) -> np.ndarray:
    """Mixed rows in which column 2 is active only where column 1 is 0."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 5))
    X[:, CATEGORICAL] = rng.integers(0, 3, (n, 2))
    if holes:
        X[X[:, 1] != 0, 2] = np.nan
    return X


def literal(A: np.ndarray, B: np.ndarray, shape: KernelShape, hyper: Hyperparameters) -> np.ndarray:
    """Spec 1.3 word by word, one pair at a time."""
    A, B = np.where(np.isnan(A), -1.0, A), np.where(np.isnan(B), -1.0, B)
    K = np.zeros((len(A), len(B)))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            if shape.conditional and any((a[c] <= -1) != (b[c] <= -1) for c in range(len(a))):
                continue
            r2 = h = 0.0
            for c, scale in enumerate(hyper.lengthscales):
                if shape.categorical[c]:
                    h += (a[c] != b[c]) / (2 * scale**2)
                else:
                    r2 += (a[c] - b[c]) ** 2 / scale**2
            r = math.sqrt(r2)
            matern = (1 + math.sqrt(5) * r + 5 * r2 / 3) * math.exp(-math.sqrt(5) * r)
            K[i, j] = hyper.amplitude * matern * math.exp(-h)
    return K


HYPER = Hyperparameters(1.7, np.array([0.4, 0.8, 0.2, 1.1, 0.9]), 1e-3)


@pytest.mark.parametrize("conditional", [True, False])
@pytest.mark.parametrize("categorical", [CATEGORICAL, np.zeros(5, bool), np.ones(5, bool)])
@pytest.mark.parametrize("function", [covariance, cross_covariance])
def test_kernel_agrees_with_the_formula_pair_by_pair(function, categorical: np.ndarray, conditional: bool) -> None:
    shape = KernelShape(categorical, conditional)
    A, B = points(23, 0), points(17, 1)
    np.testing.assert_allclose(
        function(A, B, shape=shape, hyper=HYPER), literal(A, B, shape, HYPER), rtol=1e-10, atol=1e-13
    )


def test_kernel_agrees_with_the_formula_over_several_blocks_of_memory() -> None:
    shape = KernelShape(CATEGORICAL, True)
    A, B = points(200, 0), points(61, 1)
    expected = literal(A, B, shape, HYPER)
    np.testing.assert_allclose(covariance(A, B, shape=shape, hyper=HYPER), expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(cross_covariance(A, B, shape=shape, hyper=HYPER), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("function", [covariance, cross_covariance])
def test_rows_of_different_activity_are_unrelated_and_rows_of_the_same_are_not(function) -> None:
    X = points(30, 2)
    pattern = np.isnan(X[:, 2])
    K = function(X, X, shape=KernelShape(CATEGORICAL, True), hyper=HYPER)
    assert (K[np.ix_(pattern, ~pattern)] == 0.0).all()
    assert (K[np.ix_(pattern, pattern)] > 0.0).all()
    assert (K[np.ix_(~pattern, ~pattern)] > 0.0).all()
    assert (function(X, X, shape=KernelShape(CATEGORICAL, False), hyper=HYPER) > 0.0).all()


def test_the_marker_minus_one_means_the_same_as_nan() -> None:
    X = points(20, 3)
    marked = np.where(np.isnan(X), -1.0, X)
    for conditional in (True, False):
        shape = KernelShape(CATEGORICAL, conditional)
        np.testing.assert_array_equal(
            covariance(X, X, shape=shape, hyper=HYPER), covariance(marked, marked, shape=shape, hyper=HYPER)
        )


def test_the_training_matrix_is_symmetric_with_the_amplitude_on_its_diagonal() -> None:
    K = covariance(points(40, 4), points(40, 4), shape=KernelShape(CATEGORICAL, True), hyper=HYPER)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), np.full(40, HYPER.amplitude))


def test_distances_by_products_stay_exact_with_the_shortest_length_scales() -> None:
    X = np.random.default_rng(5).random((40, 5))
    near = X + 1e-5
    short = Hyperparameters(1.0, np.full(5, 1.2e-3), 1e-8)
    shape = KernelShape(np.zeros(5, bool), False)
    np.testing.assert_allclose(
        cross_covariance(near, X, shape=shape, hyper=short), covariance(near, X, shape=shape, hyper=short), atol=1e-8
    )


@pytest.mark.parametrize("function", [covariance, cross_covariance])
@pytest.mark.parametrize(("m", "n"), [(0, 3), (3, 0), (1, 1)])
def test_empty_sides_give_empty_matrices(function, m: int, n: int) -> None:
    K = function(points(m, 0), points(n, 1), shape=KernelShape(CATEGORICAL, True), hyper=HYPER)
    assert K.shape == (m, n)


@pytest.mark.parametrize("d", [1, 8, 9, 64, 65, 200])
def test_activity_patterns_tell_all_sets_of_inactive_columns_apart(d: int) -> None:
    X = np.zeros((d + 2, d))
    X[np.arange(d), np.arange(d)] = np.nan
    X[d + 1] = X[0]
    patterns = activity_patterns(X)
    assert len(np.unique(patterns, axis=0)) == d + 1
    np.testing.assert_array_equal(patterns[d + 1], patterns[0])


def test_many_columns_keep_the_block_structure() -> None:
    X = np.zeros((3, 130))
    X[1, 129] = X[2, 0] = np.nan
    hyper = Hyperparameters(1.0, np.ones(130), 1e-6)
    np.testing.assert_array_equal(
        covariance(X, X, shape=KernelShape(np.zeros(130, bool), True), hyper=hyper), np.eye(3)
    )


def test_logarithms_go_there_and_back() -> None:
    np.testing.assert_allclose(HYPER.log(), np.log([1.7, 0.4, 0.8, 0.2, 1.1, 0.9, 1e-3]))
    back = Hyperparameters.from_log(HYPER.log())
    assert (back.amplitude, back.noise) == pytest.approx((1.7, 1e-3), rel=1e-15)
    np.testing.assert_allclose(back.lengthscales, HYPER.lengthscales, rtol=1e-15)
    default = Hyperparameters.default(3)
    assert (default.amplitude, default.noise, default.lengthscales.tolist()) == (2.0, 1e-8, [1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("amplitude", "lengthscales", "noise", "name"),
    [
        (0.0, [1.0], 1.0, "amplitude"),
        (1.0, [-1.0], 1.0, "lengthscales"),
        (1.0, [1.0], np.nan, "noise"),
        (1.0, [[1.0]], 1.0, "length"),
    ],
)
def test_hyperparameters_must_be_positive_and_finite(amplitude, lengthscales, noise, name: str) -> None:
    with pytest.raises(InputError, match=name):
        Hyperparameters(amplitude, lengthscales, noise)


def test_values_are_protected_from_later_changes() -> None:
    mask, scales = np.array([True, False]), np.ones(2)
    shape, hyper = KernelShape(mask, False), Hyperparameters(1.0, scales, 1.0)
    mask[:] = False
    scales[:] = 5.0
    assert shape.categorical.tolist() == [True, False]
    assert hyper.lengthscales.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        shape.categorical[0] = False
    with pytest.raises(InputError, match="mask"):
        KernelShape(np.zeros((2, 2), bool), False)
