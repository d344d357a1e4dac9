"""Predictions against dense formulas and scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from recollect.numerics.arrays import KernelShape
from recollect.surrogate.fit import FitSettings, fit_gp
from recollect.surrogate.gp import GP, make_gp
from recollect.surrogate.kernels import Hyperparameters, covariance
from recollect.surrogate.prior import PAPER_PRIOR

PLAIN = replace(PAPER_PRIOR, use_priors=False)


def mixed(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4))
    X[:, 1] = rng.integers(0, 3, n)
    X[X[:, 1] == 2, 3] = np.nan
    return X


@pytest.fixture
def model() -> GP:
    X = mixed(25, 0)
    y = 5.0 + 3.0 * np.sin(5 * X[:, 0]) + X[:, 1]
    hyper = Hyperparameters(1.3, [0.3, 0.9, 0.5, 0.4], 1e-2)
    return make_gp(X, y, shape=KernelShape([False, True, False, False], True), hyper=hyper)


def dense(model: GP, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and latent covariance by inverting the matrix."""
    K = covariance(model.X, model.X, shape=model.shape, hyper=model.hyper)
    inverse = np.linalg.inv(K + model.hyper.noise * np.eye(len(K)))
    k = covariance(X, model.X, shape=model.shape, hyper=model.hyper)
    m, s = model.y.mean(), model.y.std()
    spread = covariance(X, X, shape=model.shape, hyper=model.hyper) - k @ inverse @ k.T
    return m + s * k @ inverse @ ((model.y - m) / s), s**2 * spread


@pytest.mark.parametrize("include_noise", [False, True])
def test_mean_variance_and_joint_covariance_agree_with_dense_formulas(model: GP, include_noise: bool) -> None:
    X = mixed(40, 1)
    mean, spread = dense(model, X)
    if include_noise:
        spread += model.y.var() * model.hyper.noise * np.eye(40)
    np.testing.assert_allclose(model.mean(X), mean, rtol=1e-11)
    predicted, variance = model.predict(X, include_noise=include_noise)
    np.testing.assert_allclose(predicted, mean, rtol=1e-11)
    np.testing.assert_allclose(variance, spread.diagonal(), rtol=1e-9)
    joint_mean, joint = model.joint(X, include_noise=include_noise)
    np.testing.assert_allclose(joint_mean, mean, rtol=1e-11)
    np.testing.assert_allclose(joint, spread, rtol=1e-8, atol=1e-11)
    np.testing.assert_array_equal(joint, joint.T)
    assert (joint < 0.0).any(), "negative covariances must survive"


def sklearn_model(X: np.ndarray, y: np.ndarray, hyper: Hyperparameters, **options) -> GaussianProcessRegressor:
    kernel = ConstantKernel(hyper.amplitude, PLAIN.amplitude_bounds) * Matern(
        hyper.lengthscales, PLAIN.lengthscale_bounds, nu=2.5
    ) + WhiteKernel(hyper.noise, PLAIN.noise_bounds)
    return GaussianProcessRegressor(kernel, alpha=0.0, normalize_y=True, **options).fit(X, y)


@pytest.mark.parametrize("noise", [1e-6, 1e-2, 1.0])
def test_likelihood_and_predictions_agree_with_scikit_learn(noise: float) -> None:
    rng = np.random.default_rng(3)
    X, Z = rng.random((30, 3)), rng.random((50, 3))
    y = np.cos(4 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(30)
    hyper = Hyperparameters(0.8, [0.2, 0.7, 1.0], noise)
    ours = make_gp(X, y, shape=KernelShape(np.zeros(3, bool), False), hyper=hyper)
    theirs = sklearn_model(X, y, hyper, optimizer=None)
    assert ours.log_marginal_likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-9)
    assert ours.log_posterior == ours.log_marginal_likelihood
    mean, deviation = theirs.predict(Z, return_std=True)
    got, variance = ours.predict(Z, include_noise=True)
    np.testing.assert_allclose(got, mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.sqrt(variance), deviation, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_fit_is_at_least_as_likely_as_that_of_scikit_learn() -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.random((25, 3))
        y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + (0.3 * rng.standard_normal(25) if seed % 2 else 0.0)
        ours = fit_gp(X, y, settings=FitSettings(prior=PLAIN), rng=rng)
        theirs = sklearn_model(X, y, Hyperparameters.default(3), n_restarts_optimizer=10, random_state=seed)
        best = theirs.log_marginal_likelihood_value_
        assert ours.log_marginal_likelihood >= best - 1e-6 * (1 + abs(best))
        assert theirs.log_marginal_likelihood(ours.hyper.log()) == pytest.approx(ours.log_posterior, rel=1e-6)


def test_the_covariance_between_two_sets_is_a_block_of_the_joint_covariance() -> None:
    rng = np.random.default_rng(5)
    gp = fit_gp(rng.random((12, 3)), rng.normal(size=12), rng=rng)
    A, B = rng.random((4, 3)), rng.random((6, 3))
    _, joint = gp.joint(np.concatenate([A, B]))
    np.testing.assert_allclose(gp.covariance(A, B), joint[:4, 4:], atol=1e-12)
    np.testing.assert_allclose(gp.covariance(A, A), joint[:4, :4], atol=1e-12)
    assert gp.covariance(A, np.empty((0, 3))).shape == (4, 0)
