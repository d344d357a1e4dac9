"""A Gaussian process as a value: prediction, conditioning, and its edges."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import InputError, NumericalError
from recollect.numerics.arrays import KernelShape
from recollect.surrogate.gp import GP, make_gp
from recollect.surrogate.kernels import Hyperparameters

FLOOR = float(np.exp(-25.0))


def numerical(d: int) -> KernelShape:
    return KernelShape(np.zeros(d, bool), False)


def example(n: int = 20, *, noise: float = 1e-3, seed: int = 0, d: int = 3) -> GP:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    y = 10.0 + 4.0 * np.sin(5 * X[:, 0]) + rng.standard_normal(n) * 0.1
    return make_gp(X, y, shape=numerical(d), hyper=Hyperparameters(1.2, np.full(d, 0.5), noise))


@pytest.mark.parametrize("noise", [FLOOR, 1e-3, 2.0])
def test_noise_adds_exactly_its_share_to_every_variance(noise: float) -> None:
    model = example(noise=noise)
    X = np.vstack((model.X, np.random.default_rng(1).random((30, 3))))
    _, latent = model.predict(X)
    _, observed = model.predict(X, include_noise=True)
    np.testing.assert_allclose(observed - latent, model.s**2 * noise, rtol=1e-12, atol=model.s**2 * 1e-15)
    _, joint = model.joint(X)
    _, noisy = model.joint(X, include_noise=True)
    np.testing.assert_allclose(noisy - joint, model.s**2 * noise * np.eye(50), rtol=1e-9, atol=model.s**2 * 1e-15)


def test_the_normalised_variance_has_its_floor() -> None:
    model = example(noise=FLOOR)
    mean, variance = model.predict(model.X)
    assert (variance >= model.s**2 * 1e-10 * (1 - 1e-12)).all()
    assert (variance < model.s**2 * 1.01e-10).any()
    np.testing.assert_allclose(mean, model.y, rtol=1e-6)


def test_far_from_data_the_prior_comes_back() -> None:
    model = example()
    mean, variance = model.predict(np.full((1, 3), 1e6))
    assert mean[0] == model.m == pytest.approx(model.y.mean())
    assert variance[0] == pytest.approx(model.y.var() * 1.2, rel=1e-12)


def test_means_alone_equal_the_means_of_predictions() -> None:
    model, X = example(), np.random.default_rng(2).random((2500, 3))
    np.testing.assert_array_equal(model.mean(X), model.predict(X)[0])


def test_a_prediction_does_not_depend_on_its_company() -> None:
    model, X = example(), np.random.default_rng(2).random((700, 3))
    mean, variance = model.predict(X)
    for i in (0, 350, 699):
        one_mean, one_variance = model.predict(X[i : i + 1])
        assert one_mean[0] == pytest.approx(mean[i], rel=1e-12)
        assert one_variance[0] == pytest.approx(variance[i], rel=1e-9)


def test_predicting_nothing_gives_nothing() -> None:
    mean, variance = example().predict(np.zeros((0, 3)))
    assert (mean.shape, variance.shape) == ((0,), (0,))
    assert example().joint(np.zeros((0, 3)))[1].shape == (0, 0)


@settings(deadline=None, max_examples=25)
@given(n=st.integers(1, 15), k=st.integers(1, 6), seed=st.integers(0, 1000))
def test_conditioning_equals_building_from_all_data_in_the_same_units(n: int, k: int, seed: int) -> None:
    model = example(n, seed=seed)
    rng = np.random.default_rng(seed + 1)
    X_new, y_new, Z = rng.random((k, 3)), 10.0 + rng.standard_normal(k), rng.random((12, 3))
    grown = model.condition(X_new, y_new)
    whole = make_gp(np.vstack((model.X, X_new)), np.append(model.y, y_new), shape=model.shape, hyper=model.hyper)
    np.testing.assert_allclose(grown.L, whole.L, atol=1e-10)
    assert (grown.n, grown.m, grown.s) == (n + k, model.m, model.s)
    z = (whole.y - model.m) / model.s
    np.testing.assert_allclose(whole.L @ whole.L.T @ grown.alpha, z, atol=1e-9)
    np.testing.assert_allclose(grown.predict(Z)[1] / model.s**2, whole.predict(Z)[1] / whole.s**2, atol=1e-9)


def test_conditioning_on_its_own_mean_keeps_the_mean_and_lowers_the_variance() -> None:
    model = example()
    X_new, Z = np.random.default_rng(3).random((4, 3)), np.random.default_rng(4).random((20, 3))
    grown = model.condition(X_new, model.mean(X_new))
    np.testing.assert_allclose(grown.mean(Z), model.mean(Z), rtol=1e-9)
    assert (grown.predict(Z)[1] <= model.predict(Z)[1] * (1 + 1e-9)).all()
    assert (grown.predict(X_new)[1] < 0.2 * model.predict(X_new)[1]).any()


def test_conditioning_leaves_the_model_as_it_was_and_on_nothing_returns_it() -> None:
    model = example()
    before = model.L.copy(), model.alpha.copy()
    model.condition(np.zeros((2, 3)), np.zeros(2))
    np.testing.assert_array_equal(model.L, before[0])
    np.testing.assert_array_equal(model.alpha, before[1])
    assert model.n == 20
    assert model.condition(np.zeros((0, 3)), []) is model


def test_conditioning_on_a_repeated_point_at_the_noise_floor_works() -> None:
    model = example(noise=FLOOR)
    grown = model.condition(model.X[[0, 0, 1]], model.y[[0, 0, 1]])
    np.testing.assert_allclose(grown.mean(model.X), model.y, rtol=1e-5)


def test_repeated_rows_without_noise_to_speak_of_need_jitter_and_say_so() -> None:
    X = np.repeat(np.random.default_rng(0).random((10, 2)), 3, axis=0)
    y = np.repeat(np.random.default_rng(1).standard_normal(10), 3)
    model = make_gp(X, y, shape=numerical(2), hyper=Hyperparameters(1.0, [0.3, 0.3], 1e-20))
    assert 1e-12 <= model.jitter <= 1e-9
    np.testing.assert_allclose(model.mean(X), y, atol=1e-4)
    assert model.condition(X[:1], y[:1]).jitter >= model.jitter
    assert example().jitter == 0.0


def test_repeated_rows_at_the_noise_floor_can_be_used() -> None:
    X = np.repeat(np.random.default_rng(0).random((10, 2)), 3, axis=0)
    y = np.repeat(np.random.default_rng(1).standard_normal(10), 3)
    model = make_gp(X, y, shape=numerical(2), hyper=Hyperparameters(1.0, [0.3, 0.3], FLOOR))
    assert model.jitter <= 1e-11
    np.testing.assert_allclose(model.mean(X), y, atol=1e-5)


@pytest.mark.parametrize("magnitude", [1e-300, 1e-12, 1.0, 1e12, 1e300, 2e307])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_targets_of_any_magnitude_give_the_same_model(magnitude: float, offset: float) -> None:
    rng = np.random.default_rng(5)
    X, unit, Z = rng.random((12, 2)), rng.uniform(-1, 1, 12), rng.random((9, 2))
    unit = 0.5 * (unit + offset)
    hyper = Hyperparameters(1.0, [0.4, 0.4], 1e-4)
    base = make_gp(X, unit, shape=numerical(2), hyper=hyper)
    model = make_gp(X, magnitude * unit, shape=numerical(2), hyper=hyper)
    np.testing.assert_allclose(model.mean(Z) / magnitude, base.mean(Z), rtol=1e-9)
    mean, variance = model.predict(Z)
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert (variance > 0).all()
    assert np.isfinite(model.joint(Z)[1]).all()
    if 1e-100 < magnitude < 1e100:
        np.testing.assert_allclose(variance / magnitude**2, base.predict(Z)[1], rtol=1e-9)


def test_predictions_stay_finite_at_the_largest_targets() -> None:
    y = np.array([1.7e308, -1.7e308, 1.7e308])
    X = np.array([[0.1], [0.5], [0.6]])
    model = make_gp(X, y, shape=numerical(1), hyper=Hyperparameters(1.0, [0.3], 1e-6))
    mean, variance = model.predict(np.linspace(0, 2, 50)[:, None])
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()


def test_targets_with_a_range_of_1e_12_around_one_are_told_apart() -> None:
    rng = np.random.default_rng(6)
    X = rng.random((10, 2))
    y = 1.0 + 1e-12 * rng.random(10)
    model = make_gp(X, y, shape=numerical(2), hyper=Hyperparameters(1.0, [0.4, 0.4], 1e-8))
    np.testing.assert_allclose(model.mean(X) - 1.0, y - 1.0, atol=5e-16)
    assert model.s == pytest.approx((y - 1.0).std(), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_constant_targets_give_a_constant_mean(n: int) -> None:
    X = np.random.default_rng(7).random((n, 2))
    model = make_gp(X, np.full(n, 0.1), shape=numerical(2), hyper=Hyperparameters(1.0, [0.4, 0.4], 1e-6))
    Z = np.random.default_rng(8).random((20, 2))
    np.testing.assert_array_equal(model.mean(Z), np.full(20, 0.1))
    assert (model.m, model.s) == (0.1, 1.0)
    assert (model.predict(Z)[1] > 0).all()


def test_the_model_owns_its_data_and_cannot_be_changed() -> None:
    X, y = np.random.default_rng(9).random((5, 2)), np.arange(5.0)
    model = make_gp(X, y, shape=numerical(2), hyper=Hyperparameters.default(2))
    X[:] = 0.0
    assert model.X.max() > 0.0
    with pytest.raises(ValueError, match="read-only"):
        model.y[0] = 3.0
    with pytest.raises(FrozenInstanceError):
        model.s = 2.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((0, 2)), [], "n >= 1"),
        (np.zeros((3, 2)), [1.0, 2.0], r"\(3, 2\) and \(2,\)"),
        (np.zeros(3), np.zeros(3), r"\(3,\)"),
        (np.zeros((2, 2)), [1.0, np.nan], "nan at position 1"),
        ([[0.0, np.inf]], [1.0], "inf"),
        (np.zeros((2, 3)), [1.0, 2.0], "2 columns"),
    ],
)
def test_unusable_data_are_refused(X, y, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_gp(X, y, shape=numerical(2), hyper=Hyperparameters.default(2))


def test_inputs_with_the_wrong_number_of_columns_are_refused() -> None:
    model = example()
    for use in (model.mean, model.predict, model.joint):
        with pytest.raises(InputError, match=r"\(m, 3\)"):
            use(np.zeros((2, 4)))
    with pytest.raises(InputError, match=r"\(m, 3\)"):
        model.condition(np.zeros((2, 4)), np.zeros(2))


def test_a_matrix_beyond_help_is_a_numerical_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def negative(A: np.ndarray, *_: object, **__: object) -> np.ndarray:
        return -np.eye(len(A))

    monkeypatch.setattr("recollect.surrogate.gp.covariance", negative)
    with pytest.raises(NumericalError, match="positive definite"):
        example()
