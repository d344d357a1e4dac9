"""Stacking weights: against scikit-learn's regressor, a literal loop, and what must hold whatever the numbers are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor

from recollect.errors import InputError
from recollect.transfer.weighting import stacking
from recollect.transfer.weighting.stacking import descend, first_step, stacking_weights


def case(n, k, *, seed=0, spread=1.0):
    """Observations (n,), base predictions (k, n) that follow them more or less, and a target model in between."""
    rng = np.random.default_rng(seed)
    y = 40.0 + 7.0 * rng.normal(size=n)
    z = (y - y.mean()) / y.std()
    base = spread * (z * rng.uniform(-0.3, 1.0, size=(k, 1)) + 0.7 * rng.normal(size=(k, n)))
    return base, y + 5.0 * rng.normal(size=n), y


def design(n, k, **settings_):
    base, loo, y = case(n, k, **settings_)
    z = (y - y.mean()) / y.std()
    return np.vstack([base, (loo - y.mean()) / y.std()]).T, z


def reference(A, z, **changed):
    fixed = {"penalty": "l2", "alpha": 1e-4, "learning_rate": "invscaling", "power_t": 0.25}
    model = SGDRegressor(**fixed, **{"eta0": 0.01, "max_iter": 100, "tol": 1e-3, "shuffle": False, **changed})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(A, z)


def literal(A, z, seed, eta0=0.01):
    """Stochastic gradient descent, one step after another, on shuffled rows."""
    rng = np.random.default_rng(seed)
    c, b, t, best, idle = np.zeros(A.shape[1]), 0.0, 1, np.inf, 0
    for _ in range(100):
        loss = 0.0
        for i in rng.permutation(len(z)):
            residual = A[i] @ c + b - z[i]
            eta = eta0 / t**0.25
            loss += 0.5 * residual**2
            c = (1 - eta * 1e-4) * c - eta * residual * A[i]
            b -= eta * residual
            t += 1
        idle = idle + 1 if loss / len(z) > best - 1e-3 else 0
        best = min(best, loss / len(z))
        if idle == 5:
            break
    return c


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 0), (5, 49), (20, 9), (49, 49), (64, 3), (65, 20), (150, 5)])
def test_without_shuffling_it_is_scikit_learns_regressor(n, k, seed):
    A, z = design(n, k, seed=seed, spread=0.5)
    model, expected = descend(A, z, rng=None), reference(A, z)
    np.testing.assert_allclose(model.coefficients, expected.coef_, rtol=0, atol=1e-13)
    assert model.intercept == pytest.approx(expected.intercept_[0], abs=1e-13)
    assert model.epochs == expected.n_iter_


def test_a_regression_that_keeps_improving_ends_after_a_hundred_epochs_as_scikit_learns_does():
    z = np.array([1.0, -1.0, 1.0, -1.0])
    A = 0.5 * z[:, None]  # so short that every epoch still lowers the loss
    model, expected = descend(A, z, rng=None), reference(A, z)
    assert model.epochs == expected.n_iter_ == 100
    np.testing.assert_allclose(model.coefficients, expected.coef_, rtol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(2, 3), (12, 4), (49, 20), (130, 6)])
def test_weights_are_the_coefficients_of_the_literal_loop_over_their_sum(n, k):
    base, loo, y = case(n, k, seed=n)
    A, z = design(n, k, seed=n)
    coefficients = literal(A, z, 12345)
    assert coefficients.sum() > 0.01
    weights = stacking_weights(base, loo, y)
    np.testing.assert_allclose(weights.values, coefficients / coefficients.sum(), rtol=1e-9)
    assert not weights.dropped.any()
    np.testing.assert_array_equal(weights.keep_probability, 1.0)


def test_losses_are_mean_squared_errors_and_pairs_are_counted_as_everywhere():
    base, loo, y = case(15, 4)
    A, z = design(15, 4)
    weights = stacking_weights(base, loo, y)
    np.testing.assert_allclose(weights.losses, ((A - z[:, None]) ** 2).mean(axis=0), rtol=1e-12)
    pairs = [(a, b) for a in range(15) for b in range(15)]
    wrong = [sum((f[a] < f[b]) != (y[a] < y[b]) for a, b in pairs) for f in base]
    own = sum((loo[a] < y[b]) != (y[a] < y[b]) for a, b in pairs)
    np.testing.assert_array_equal(weights.misranked, [*wrong, own])


@pytest.mark.parametrize(("n", "by_far"), [(10, 1.0), (20, 2.0), (49, 4.0)])
@pytest.mark.parametrize("seed", range(5))
def test_a_past_run_of_the_very_same_task_outweighs_noise_and_the_more_the_more_is_seen(n, by_far, seed):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    base = rng.normal(size=(7, n))
    base[4] = (y - y.mean()) / y.std()
    weights = stacking_weights(base, rng.normal(size=n), y)
    others = np.delete(np.abs(weights.values), 4)
    assert weights.values[4] > by_far * others.max()
    assert weights.losses.argmin() == 4


def test_a_model_that_is_always_wrong_gets_a_negative_weight():
    base, loo, y = case(30, 4)
    base[2] = -base.mean(axis=0)
    weights = stacking_weights(base, loo, y)
    assert weights.values[2] < 0
    assert not weights.dropped.any()
    assert weights.values.sum() == pytest.approx(1.0)


def test_base_predictions_are_not_standardised_once_more():
    base, loo, y = case(30, 3)
    shifted = stacking_weights(base * np.array([[2.0], [1.0], [1.0]]), loo, y).values
    assert np.abs(shifted - stacking_weights(base, loo, y).values).max() > 0.01


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_the_units_of_the_target_do_not_matter(seed, scale, shift):
    base, loo, y = case(12, 5, seed=seed)
    plain = stacking_weights(base, loo, y)
    mapped = stacking_weights(base, scale * (loo + shift), scale * (y + shift))
    np.testing.assert_allclose(mapped.values, plain.values, rtol=1e-6, atol=1e-6)


def test_the_same_observations_always_give_the_same_weights():
    first, second = (stacking_weights(*case(25, 8)) for _ in range(2))
    np.testing.assert_array_equal(first.values, second.values)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_observations_give_uniform_weights(n):
    weights = stacking_weights(np.zeros((3, n)), np.full(n, np.nan), np.zeros(n))
    np.testing.assert_array_equal(weights.values, 0.25)
    assert not weights.dropped.any()


@pytest.mark.parametrize("n", [1, 2, 20])
def test_without_past_runs_the_target_has_all_the_weight(n):
    rng = np.random.default_rng(n)
    weights = stacking_weights(np.zeros((0, n)), rng.normal(size=n), rng.normal(size=n))
    np.testing.assert_array_equal(weights.values, [1.0])


def test_two_observations_and_past_runs_that_agree_with_them_make_the_target_negative():
    weights = stacking_weights([[-1.0, 1.0], [-0.5, 0.5]], [6.0, 5.0], [5.0, 6.0])
    assert weights.values[0] > weights.values[1] > 0 > weights.values[2]


@pytest.mark.parametrize(
    ("base", "y"),
    [
        (np.random.default_rng(0).normal(size=(4, 9)), np.full(9, 0.1)),  # a constant target: nothing to explain
        (np.array([[3.0, 2.0, 1.0, 0.0]] * 4), np.arange(4.0)),  # coefficients that are negative in sum
        (np.array([[-1.0, 1.0], [1.0, -1.0]]), np.array([0.0, 1.0])),  # and such as cancel
        (np.full((2, 6), 1e200), np.arange(6.0)),  # squares overflow
        (np.full((2, 6), 1e140) * np.arange(6), np.arange(6.0)),  # coefficients of the order 1e-140
    ],
    ids=["constant", "negative", "cancelling", "huge", "large"],
)
def test_a_sum_that_is_not_clearly_positive_leaves_everything_to_the_target(base, y):
    weights = stacking_weights(base, y[::-1] if y.size == 4 else np.full(y.size, y.mean()), y)
    np.testing.assert_array_equal(weights.values, np.eye(len(base) + 1)[-1])
    assert weights.dropped.all()


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_observations_of_any_magnitude_and_with_ties_give_finite_weights(scale):
    y = scale * np.array([1.0, 2.0, 2.0, 1.0, -1.0, 0.5])
    base = np.array([[1.0, 1.0, 1.0, 0.0, -1.0, 0.0], np.zeros(6)])
    np.testing.assert_allclose(
        stacking_weights(base, 0.9 * y, y).values, stacking_weights(base, 0.9 * y / scale, y / scale).values
    )


@pytest.mark.parametrize("k", [1, 49, 200, 2000])
def test_the_step_is_that_of_the_paper_unless_it_would_diverge(k):
    A, z = design(20, k, seed=k)
    longest = (A**2).sum(axis=1).max() + 1
    assert first_step(A) == (0.01 if longest <= 200 else 2.0 / longest)
    model = descend(A, z, rng=np.random.default_rng(0))
    assert np.mean((A @ model.coefficients + model.intercept - z) ** 2) < 1.0  # better than to predict the mean


def test_longer_predictions_than_the_paper_had_are_fitted_with_the_shorter_step():
    A, z = design(40, 300)
    assert first_step(A) < 0.01
    np.testing.assert_allclose(
        descend(A, z, rng=None).coefficients, reference(A, z, eta0=first_step(A)).coef_, rtol=0, atol=1e-13
    )


def test_how_many_steps_are_solved_at_a_time_does_not_matter(monkeypatch):
    whole = stacking_weights(*case(50, 6)).values
    monkeypatch.setattr(stacking, "BLOCK", 7)
    np.testing.assert_allclose(stacking_weights(*case(50, 6)).values, whole, rtol=1e-9)


@pytest.mark.parametrize(
    ("base", "loo", "y", "message"),
    [
        (np.zeros((2, 3)), np.zeros(4), np.zeros(4), r"base must have shape \(any, 4\), got \(2, 3\)"),
        (np.zeros((2, 3)), np.zeros(2), np.zeros(3), r"loo must have shape \(3,\), got \(2,\)"),
        (np.full((2, 3), np.nan), np.zeros(3), np.arange(3.0), "base must be finite, got 6 nan"),
        (np.zeros((2, 3)), np.array([0, np.inf, 0]), np.arange(3.0), "loo must be finite, got 1 nan"),
        (np.zeros((2, 3)), np.zeros(3), np.array([0, 1, np.nan]), "y must be finite, got 1 nan"),
    ],
)
def test_bad_input_is_refused(base, loo, y, message):
    with pytest.raises(InputError, match=message):
        stacking_weights(base, loo, y)
