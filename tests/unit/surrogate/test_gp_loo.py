"""Edges of the leave-one-out predictions."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.numerics.arrays import KernelShape
from recollect.surrogate.gp import GP, make_gp
from recollect.surrogate.kernels import Hyperparameters


def model_of(y: np.ndarray, noise: float = 0.2) -> GP:
    X = np.random.default_rng(0).random((len(y), 2))
    return make_gp(X, y, shape=KernelShape(np.zeros(2, bool), False), hyper=Hyperparameters(1.5, [0.3, 0.3], noise))


@pytest.mark.parametrize("value", [0.1, -7.7e300, 1.0 / 3.0])
@pytest.mark.parametrize("n", [1, 2, 3, 11])
def test_equal_targets_are_predicted_exactly(value: float, n: int) -> None:
    mean, variance = model_of(np.full(n, value)).loo()
    np.testing.assert_array_equal(mean, np.full(n, value))
    assert (variance > 0).all()


def test_a_single_target_predicts_itself_with_the_variance_of_the_prior() -> None:
    mean, variance = model_of(np.array([3.0])).loo()
    assert mean[0] == 3.0
    assert variance[0] == pytest.approx(1.5 + 0.2)


def test_of_two_targets_each_is_predicted_by_the_other() -> None:
    mean, _ = model_of(np.array([1.0, 4.0])).loo()
    np.testing.assert_allclose(mean, [4.0, 1.0], rtol=1e-12)


@pytest.mark.parametrize("magnitude", [1e-200, 1e-12, 1e200, 1e307])
def test_predictions_scale_with_the_targets(magnitude: float) -> None:
    y = np.random.default_rng(1).uniform(-1, 1, 9)
    base, _ = model_of(y).loo()
    mean, variance = model_of(magnitude * y).loo()
    np.testing.assert_allclose(mean / magnitude, base, rtol=1e-9)
    assert np.isfinite(variance).all()
    assert (variance > 0).all()


def test_order_of_the_points_does_not_matter() -> None:
    rng = np.random.default_rng(2)
    y, X, order = rng.standard_normal(12), rng.random((12, 2)), rng.permutation(12)
    shape, hyper = KernelShape(np.zeros(2, bool), False), Hyperparameters(1.0, [0.3, 0.5], 1e-2)
    mean, variance = make_gp(X, y, shape=shape, hyper=hyper).loo()
    moved_mean, moved_variance = make_gp(X[order], y[order], shape=shape, hyper=hyper).loo()
    np.testing.assert_allclose(moved_mean, mean[order], atol=1e-10)
    np.testing.assert_allclose(moved_variance, variance[order], rtol=1e-9)
