"""Leave-one-out in closed form against n models, each built without one point."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.numerics.arrays import KernelShape
from recollect.surrogate.gp import GP, make_gp
from recollect.surrogate.kernels import Hyperparameters

FLOOR = float(np.exp(-25.0))


def refits(model: GP) -> tuple[np.ndarray, np.ndarray]:
    means, variances = np.empty(model.n), np.empty(model.n)
    for k in range(model.n):
        kept = np.arange(model.n) != k
        fold = make_gp(model.X[kept], model.y[kept], shape=model.shape, hyper=model.hyper)
        mean, spread = fold.joint(model.X[k : k + 1], include_noise=True)
        means[k], variances[k] = mean[0], spread[0, 0]
    return means, variances


def model_of(X: np.ndarray, y: np.ndarray, noise: float) -> GP:
    d = X.shape[1]
    hyper = Hyperparameters(1.4, np.linspace(0.1, 0.25, d), noise)
    return make_gp(X, y, shape=KernelShape(np.zeros(d, bool), bool(np.isnan(X).any())), hyper=hyper)


@pytest.mark.parametrize("noise", [FLOOR, 1e-4, 0.5])
@pytest.mark.parametrize("n", [2, 3, 4, 12, 40])
@pytest.mark.parametrize("values", ["distinct", "ties", "one different", "far away"])
def test_closed_form_equals_refits_with_their_own_centre_and_scale(n: int, noise: float, values: str) -> None:
    rng = np.random.default_rng(n)
    X = rng.random((n, 4))
    y = {
        "distinct": rng.standard_normal(n),
        "ties": rng.integers(0, 3, n).astype(float),
        "one different": np.r_[1.0, np.zeros(n - 1)],
        "far away": 1e6 + rng.standard_normal(n),
    }[values]
    model = model_of(X, y, noise)
    mean, variance = model.loo()
    expected_mean, expected_variance = refits(model)
    np.testing.assert_allclose(mean, expected_mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(variance, expected_variance, rtol=1e-7)


def test_closed_form_equals_refits_with_inactive_entries() -> None:
    rng = np.random.default_rng(1)
    X = rng.random((15, 3))
    X[:6, 2] = np.nan
    model = model_of(X, rng.standard_normal(15), 1e-3)
    np.testing.assert_allclose(model.loo()[0], refits(model)[0], atol=1e-8)


def test_the_formula_with_the_common_mean_would_be_something_else() -> None:
    rng = np.random.default_rng(2)
    model = model_of(rng.random((8, 4)), rng.standard_normal(8), 1e-4)
    inverse = np.linalg.inv(model.L @ model.L.T)
    common = model.y - (inverse @ (model.y - model.y.mean())) / inverse.diagonal()
    assert np.abs(common - model.loo()[0]).max() > 0.01
