"""The fitting objective: its value by dense formulas, its gradient by finite differences, its priors by SciPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import lognorm, multivariate_normal

from recollect.errors import InputError
from recollect.numerics.arrays import KernelShape
from recollect.surrogate.fit import NegativeLogPosterior, RowPairs
from recollect.surrogate.kernels import Hyperparameters, covariance
from recollect.surrogate.prior import PAPER_PRIOR, TARGET_PRIOR

PLAIN = replace(PAPER_PRIOR, use_priors=False)
MIXED = np.array([False, True, False, True])


def data(n: int, kind: str) -> tuple[np.ndarray, np.ndarray, KernelShape]:
    rng = np.random.default_rng(n)
    X = rng.random((n, 4))
    categorical = np.zeros(4, bool)
    if kind != "numerical":
        categorical = np.ones(4, bool) if kind == "categorical" else MIXED
        X[:, categorical] = rng.integers(0, 4, (n, categorical.sum()))
    if kind == "conditional":
        X[X[:, 1] == 1, 2] = np.nan
        X[X[:, 1] == 2, 3] = np.nan
    z = rng.standard_normal(n)
    return X, (z - z.mean()) / z.std(), KernelShape(categorical, kind == "conditional")


def random_theta(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate((rng.uniform(-2, 1, 1), rng.uniform(-2, 0.08, 4), rng.uniform(-8, 0, 1)))


KINDS = ["numerical", "categorical", "mixed", "conditional"]


@pytest.mark.parametrize(
    "prior", [PAPER_PRIOR, PLAIN, replace(PAPER_PRIOR, horseshoe_scale=0.5, amplitude_log_std=2.0)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_agrees_with_finite_differences(kind: str, prior) -> None:
    X, z, shape = data(25, kind)
    objective = NegativeLogPosterior([RowPairs(X, shape)], [z], prior=prior)
    assert objective.free.all()
    for seed in range(5):
        theta = random_theta(seed)
        _, gradients = objective(theta[None])
        step = 1e-5 * np.eye(6)
        numeric = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-5
        np.testing.assert_allclose(gradients[0], numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_value_is_minus_the_normal_density_and_the_priors(kind: str) -> None:
    X, z, shape = data(20, kind)
    for seed in range(3):
        theta = random_theta(seed)
        hyper = Hyperparameters.from_log(theta)
        A = covariance(X, X, shape=shape, hyper=hyper) + hyper.noise * np.eye(20)
        likelihood = multivariate_normal(np.zeros(20), A).logpdf(z)
        (value,), _ = NegativeLogPosterior([RowPairs(X, shape)], [z], prior=PLAIN)(theta[None])
        assert value == pytest.approx(-likelihood, rel=1e-9)
        horseshoe = np.log(np.log(1 + 3 * 0.1**2 / hyper.noise**2) + 1e-10)
        (value,), _ = NegativeLogPosterior([RowPairs(X, shape)], [z], prior=PAPER_PRIOR)(theta[None])
        assert value == pytest.approx(-likelihood - lognorm(1.0).logpdf(hyper.amplitude) - horseshoe, rel=1e-9)


def test_evaluating_elsewhere_in_between_changes_nothing() -> None:
    X, z, shape = data(30, "conditional")
    objective = NegativeLogPosterior([RowPairs(X, shape)], [z], prior=PAPER_PRIOR)
    value, gradient = objective(random_theta(0)[None])
    objective(np.array([random_theta(1), random_theta(2)]))
    again, same = objective(random_theta(0)[None])
    np.testing.assert_array_equal(again, value)
    np.testing.assert_array_equal(same, gradient)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 30, 120])
def test_many_settings_at_once_are_those_settings_one_by_one(kind: str, n: int) -> None:
    X, z, shape = data(n, kind)
    objective = NegativeLogPosterior([RowPairs(X, shape)], [z], prior=TARGET_PRIOR)
    moving = np.concatenate(([True], objective.free, [True]))
    thetas = np.array([random_theta(seed)[moving] for seed in range(13)])
    values, gradients = objective(thetas)
    for theta, value, gradient in zip(thetas, values, gradients, strict=True):
        (alone,), (slopes,) = objective(theta[None])
        assert value == pytest.approx(alone, rel=1e-12)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["numerical", "categorical", "mixed"])
@pytest.mark.parametrize("n", [3, 40, 170])
def test_several_sets_of_data_at_once_are_bit_for_bit_those_sets_alone(kind: str, n: int) -> None:
    X, z, shape = data(n, kind)
    others = [X[::-1], 0.5 * X if kind == "numerical" else X, X]
    sets, targets = [RowPairs(inputs, shape) for inputs in others], [z, -z, z[::-1]]
    numbers = np.repeat([0, 1, 2], [11, 0, 13])
    thetas = np.array([random_theta(seed)[np.concatenate(([True], sets[0].free, [True]))] for seed in range(24)])
    values, gradients = NegativeLogPosterior(sets, targets, prior=TARGET_PRIOR)(thetas, numbers)
    for number in (0, 2):
        alone = NegativeLogPosterior([sets[number]], [targets[number]], prior=TARGET_PRIOR)
        value, gradient = alone(thetas[numbers == number])
        np.testing.assert_array_equal(values[numbers == number], value)
        np.testing.assert_array_equal(gradients[numbers == number], gradient)


def test_sets_of_data_that_differ_in_shape_are_refused() -> None:
    X, z, shape = data(12, "numerical")
    for other in (X[:-1], X * [1.0, 1.0, 1.0, 0.0]):
        with pytest.raises(InputError, match="same pairs"):
            NegativeLogPosterior([RowPairs(X, shape), RowPairs(other, shape)], [z, z], prior=PLAIN)


def test_a_matrix_that_cannot_be_factorised_gives_infinity_and_no_slope_and_spoils_no_other() -> None:
    X = np.repeat(np.random.default_rng(0).random((5, 2)), 4, axis=0)
    objective = NegativeLogPosterior([RowPairs(X, KernelShape(np.zeros(2, bool), False))], [np.ones(20)], prior=PLAIN)
    good, bad = np.array([0.0, 0.0, 0.0, -2.0]), np.array([0.0, 0.0, 0.0, -60.0])
    alone, slopes = objective(good[None])
    values, gradients = objective(np.array([bad, good, bad]))
    np.testing.assert_allclose(values, [np.inf, alone[0], np.inf], rtol=1e-12)
    np.testing.assert_allclose(gradients, [np.zeros(4), slopes[0], np.zeros(4)], rtol=1e-12)


def test_only_columns_that_vary_within_an_activity_pattern_are_free() -> None:
    X = np.array([[0.1, 0.5, 1.0, np.nan], [0.2, 0.5, 1.0, np.nan], [0.2, 0.5, 2.0, 0.3]])
    shape = KernelShape(np.array([False, False, True, False]), True)
    objective = NegativeLogPosterior([RowPairs(X, shape)], [np.array([1.0, -1.0, 0.0])], prior=PLAIN)
    assert objective.free.tolist() == [True, False, False, False]
    value, gradient = objective(np.array([[0.0, -1.0, -3.0]]))
    assert np.isfinite(value).all()
    assert gradient.shape == (1, 3)


@pytest.mark.parametrize("log_noise", [-25.0, -10.0, -2.0, 2.0, -800.0])
def test_prior_slopes_agree_with_finite_differences(log_noise: float) -> None:
    amplitudes, noises = np.full(3, -0.7), np.full(3, log_noise)
    value, by_amplitude, by_noise = PAPER_PRIOR.log_density(amplitudes, noises)
    assert np.isfinite(value).all()
    if log_noise < -100:
        return
    h = 1e-5 * np.array([-1.0, 0.0, 1.0])
    low, _, high = PAPER_PRIOR.log_density(amplitudes + h, noises)[0]
    assert by_amplitude[1] == pytest.approx((high - low) / 2e-5, rel=1e-7)
    low, _, high = PAPER_PRIOR.log_density(amplitudes, noises + h)[0]
    assert by_noise[1] == pytest.approx((high - low) / 2e-5, rel=1e-6)
    np.testing.assert_array_equal(PLAIN.log_density(amplitudes, noises), np.zeros((3, 3)))
