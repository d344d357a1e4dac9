"""Sampled minimizers against the exact process and SciPy; the divergence against closed forms; the weights of both."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from recollect.errors import InputError, InputTypeError
from recollect.surrogate.kernels import Hyperparameters
from recollect.transfer.weighting import kl
from recollect.transfer.weighting.kl import (
    draw_posterior,
    kl_weights,
    minimize_draws,
    nearest_neighbour_kl,
    refuse_unless_continuous,
    sample_minimizers,
)


def matern(A, B, hyper):
    r = np.sqrt((((A[:, None] - B[None]) / hyper.lengthscales) ** 2).sum(axis=2))
    return hyper.amplitude * (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)


def data(n, d, *, seed=0):
    X = np.random.default_rng(seed).random((n, d))
    y = np.sin(5 * X).sum(axis=1) + X[:, 0]
    return X, (y - y.mean()) / (y.std() or 1.0)


def some_draws(n, d, *, scale=0.4, noise=1e-4, count=40, seed=0):
    rng = np.random.default_rng(seed)
    X, z = data(n, d, seed=seed)
    hyper = Hyperparameters(1.5, scale * rng.uniform(0.6, 1.6, size=d), noise)
    return draw_posterior(X, z, hyper=hyper, count=count, features=200, rng=rng), rng.random((count, d))


HYPER = {
    "smooth": Hyperparameters(0.7, np.array([0.5, 1.0]), 0.05),
    "rough": Hyperparameters(2.0, np.array([0.05, 0.3]), 1e-8),
}


@pytest.mark.parametrize("name", HYPER)
@pytest.mark.parametrize("n", [1, 12])
def test_draws_have_the_mean_and_the_covariance_of_the_exact_posterior(name, n):
    hyper, count = HYPER[name], 6000
    X, z = data(n, 2)
    Q = np.vstack([np.random.default_rng(5).random((6, 2)), X[:1] + 0.02])
    gain = np.linalg.solve(matern(X, X, hyper) + hyper.noise * np.eye(n), matern(X, Q, hyper)).T
    mean, C = gain @ z, matern(Q, Q, hyper) - gain @ matern(X, Q, hyper)
    draws = draw_posterior(X, z, hyper=hyper, count=count, features=100, rng=np.random.default_rng(1))
    deviations = draws.values(Q) - mean
    variance = np.diagonal(C)
    assert np.all(np.abs(deviations.mean(axis=0)) < 4.5 * np.sqrt(variance / count))
    # standard error of a product of normals: sqrt(C_ii C_jj + C_ij^2); functions of 50 waves have slightly longer tails
    error = np.sqrt((np.outer(variance, variance) + C**2) / count)
    assert np.all(np.abs(deviations.T @ deviations / count - C) < 5.0 * error)


def test_the_waves_alone_have_the_covariance_of_the_prior():
    hyper, count = HYPER["rough"], 6000
    draws = draw_posterior(*data(3, 2), hyper=hyper, count=count, features=40, rng=np.random.default_rng(2))
    Q = np.array([[0.0, 0.0], [0.03, 0.0], [0.0, 0.2], [0.1, 0.4], [1.0, 1.0]])
    values, C = draws.waves(Q), matern(Q, Q, hyper)
    assert np.all(np.abs(values.T @ values / count - C) < 5.0 * np.sqrt((hyper.amplitude**2 + C**2) / count))


def test_without_noise_every_draw_goes_through_the_observations():
    X, z = data(15, 3)
    hyper = Hyperparameters(1.0, np.full(3, 0.5), 1e-10)
    draws = draw_posterior(X, z, hyper=hyper, count=20, features=500, rng=np.random.default_rng(0))
    np.testing.assert_allclose(draws.values(X), np.tile(z, (20, 1)), atol=1e-3)


@pytest.mark.parametrize("d", [1, 3])
def test_expansions_agree_with_values_and_their_differences(d):
    draws, x = some_draws(9, d)
    scales, step = draws.lengthscales, 1e-5
    f, g, H = draws.expand(x)
    np.testing.assert_allclose(f, np.diagonal(draws.values(x)), rtol=0, atol=1e-9)
    for j in range(d):
        shift = step * scales * np.eye(d)[j]  # derivatives are by x / l
        (up, g_up, _), (down, g_down, _) = draws.expand(x + shift), draws.expand(x - shift)
        np.testing.assert_allclose(g[:, j], (up - down) / (2 * step), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(H[:, j], (g_up - g_down) / (2 * step), rtol=1e-5, atol=1e-5)
    assert H.shape == (40, d, d)


def scipy_minimum(draws, i, start):
    one = draws.take(np.array([i]))

    def objective(x):
        f, g, _ = one.expand(x[None])
        return f[0], g[0] / draws.lengthscales

    options = {"ftol": 1e-15, "gtol": 1e-9}
    end = minimize(objective, start, jac=True, bounds=[(0, 1)] * start.size, method="L-BFGS-B", options=options)
    return end.fun


@pytest.mark.parametrize(
    ("n", "d", "scale", "noise"), [(6, 1, 0.1, 1e-8), (20, 2, 0.3, 1e-4), (49, 6, 0.5, 1e-8), (30, 3, 0.02, 1e-2)]
)
def test_nothing_is_left_to_gain_by_descending_further_with_scipy(n, d, scale, noise):
    draws, starts = some_draws(n, d, scale=scale, noise=noise)
    ends = minimize_draws(draws, starts)
    found, started = draws.expand(ends)[0], draws.expand(starts)[0]
    assert np.all((ends >= 0) & (ends <= 1))
    assert np.all(found < started)
    further = np.array([scipy_minimum(draws, i, x) for i, x in enumerate(ends)])
    np.testing.assert_allclose(found, further, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("n", "d", "scale"), [(10, 1, 0.1), (20, 2, 0.3), (49, 6, 0.5)])
def test_minima_are_as_deep_as_those_that_scipy_finds_from_the_same_starts(n, d, scale):
    draws, starts = some_draws(n, d, scale=scale, count=100, seed=3)
    found = draws.expand(minimize_draws(draws, starts))[0]
    expected = np.array([scipy_minimum(draws, i, x) for i, x in enumerate(starts)])
    gap = found - expected  # two methods may end in different valleys, but neither always in the higher ones
    assert gap.mean() < 3.0 * gap.std() / np.sqrt(gap.size)
    assert np.mean(np.abs(gap) < 1e-8) > 0.25


@pytest.mark.parametrize("seed", range(8))
def test_every_descent_reaches_a_minimum_whatever_the_hyperparameters(seed):
    rng = np.random.default_rng(seed)
    X, z = data(20, 8, seed=seed)
    scales = np.exp(rng.uniform(-6.75, 0.08, size=8))  # over the range in which length scales are fitted
    hyper = Hyperparameters(np.exp(rng.uniform(-4, 2)), scales, np.exp(rng.uniform(-25, 2)))
    draws = draw_posterior(X, z, hyper=hyper, count=100, features=100, rng=rng)
    x = minimize_draws(draws, rng.random((100, 8)))
    g = draws.expand(x)[1]
    np.testing.assert_allclose(np.clip(-g, -x / scales, (1 - x) / scales), 0.0, atol=1e-5)


def test_minimizers_on_the_boundary_are_there_exactly():
    draws, starts = some_draws(4, 3, scale=2.0, count=1000)
    ends = minimize_draws(draws, starts)
    at_a_wall = (ends == 0.0) | (ends == 1.0)
    near_a_wall = np.minimum(ends, 1.0 - ends) < 1e-9
    assert at_a_wall.mean() > 0.3
    np.testing.assert_array_equal(near_a_wall, at_a_wall)


def test_minimizers_gather_where_the_observations_are_lowest():
    X = np.random.default_rng(0).random((60, 2))
    y = ((X - [0.3, 0.6]) ** 2).sum(axis=1)
    z = (y - y.mean()) / y.std()
    hyper = Hyperparameters(2.0, np.full(2, 0.8), 1e-6)
    samples = sample_minimizers(X, z, hyper=hyper, count=100, rng=np.random.default_rng(1))
    assert samples.shape == (100, 2)
    assert np.quantile(np.abs(samples - [0.3, 0.6]).max(axis=1), 0.9) < 0.03


def test_functions_that_finished_early_do_not_change_the_others(monkeypatch):
    draws, starts = some_draws(10, 2)
    together = minimize_draws(draws, starts)
    alone = [minimize_draws(draws.take(np.array([i])), starts[i : i + 1])[0] for i in range(len(starts))]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-7)
    before = draws.values(starts)
    monkeypatch.setattr(kl, "MAX_COSINES", 1)
    np.testing.assert_allclose(draws.values(starts), before, rtol=0, atol=1e-9)


def test_the_same_generator_gives_the_same_samples_and_another_gives_others():
    X, z = data(8, 2)
    first, same, other = (
        sample_minimizers(X, z, hyper=HYPER["smooth"], count=9, rng=np.random.default_rng(seed)) for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("z", [np.zeros(1), np.zeros(7)])
def test_constant_observations_are_as_good_as_any(z):
    X = np.full((z.size, 2), 0.5)  # even all at one point
    samples = sample_minimizers(
        X, z, hyper=Hyperparameters(1.0, np.ones(2), 1e-11), count=100, rng=np.random.default_rng(0)
    )
    assert np.isfinite(samples).all()
    assert np.abs(samples.mean(axis=0) - 0.5).max() < 0.2


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"X": np.zeros((3, 3))}, InputError, r"X must have shape \(3, 2\), got \(3, 3\)"),
        ({"X": np.full((3, 2), np.nan)}, InputError, "X must be finite, got 6 nan"),
        ({"z": np.array([0, np.inf, 0])}, InputError, "z must be finite, got 1 nan"),
        ({"X": np.zeros((0, 2)), "z": np.zeros(0)}, InputError, "at least one row and one column, got \\(0, 2\\)"),
        ({"count": 0}, InputError, "count must be at least 1, got 0"),
        ({"features": 1}, InputError, "features must be at least 2, got 1"),
        ({"rng": 7}, InputTypeError, "rng must be a numpy.random.Generator, got int"),
    ],
)
def test_sampling_refuses_bad_input(changed, error, message):
    given = {"X": np.zeros((3, 2)), "z": np.zeros(3), "count": 5, "rng": np.random.default_rng(0), **changed}
    with pytest.raises(error, match=message):
        sample_minimizers(given.pop("X"), given.pop("z"), hyper=HYPER["smooth"], **{"count": 100} | given)


def gaussian_kl(shift, width, d):
    """KL(N(0, I) || N(shift 1, width^2 I))."""
    return 0.5 * d * ((1 + shift**2) / width**2 - 1 + 2 * np.log(width))


@pytest.mark.parametrize(("N", "M"), [(2000, 2000), (1000, 3000)])
@pytest.mark.parametrize(
    ("d", "shift", "width"), [(1, 0.0, 1.0), (1, 0.5, 1.5), (2, 0.5, 1.5), (3, 0.5, 1.5), (5, 0.0, 1.0), (5, 0.2, 1.2)]
)
def test_the_divergence_of_two_gaussians_is_that_of_the_closed_form(d, shift, width, N, M):
    rng = np.random.default_rng(d)
    estimates = [
        nearest_neighbour_kl(rng.normal(size=(N, d)), shift + width * rng.normal(size=(M, d))) for _ in range(4)
    ]
    # 0.06 is the largest spread of single estimates seen for these settings, so of four 0.03
    assert np.mean(estimates) == pytest.approx(gaussian_kl(shift, width, d), abs=4 * 0.03)


def literal_kl(P, Q):
    N, d = P.shape
    total = 0.0
    for i in range(N):
        rho = min(np.sqrt(((P[i] - P[j]) ** 2).sum()) for j in range(N) if j != i)
        nu = min(np.sqrt(((P[i] - q) ** 2).sum()) for q in Q)
        total += np.log((nu + 1e-14) / (rho + 1e-14))
    return d / N * total + np.log(len(Q) / (N - 1))


@pytest.mark.parametrize(("N", "M", "d"), [(2, 1, 1), (30, 30, 2), (20, 50, 6), (50, 20, 3)])
def test_both_distances_are_measured_from_the_first_samples(monkeypatch, N, M, d):
    rng = np.random.default_rng(N)
    P, Q = rng.random((N, d)), rng.random((M, d)) ** 2
    assert nearest_neighbour_kl(P, Q) == pytest.approx(literal_kl(P, Q), rel=1e-10)
    monkeypatch.setattr(kl, "MAX_DISTANCES", 7 * max(N, M))
    assert nearest_neighbour_kl(P, Q) == pytest.approx(literal_kl(P, Q), rel=1e-10)


def test_samples_that_coincide_give_finite_divergences():
    corner, cloud = np.zeros((10, 3)), np.random.default_rng(0).random((10, 3))
    away = 1e-14 / (1e-14 + np.linalg.norm(cloud, axis=1).min())
    assert nearest_neighbour_kl(corner, cloud) == pytest.approx(-3 * np.log(away) + np.log(10 / 9))
    assert nearest_neighbour_kl(corner, corner) == pytest.approx(np.log(10 / 9))
    assert nearest_neighbour_kl(cloud, cloud) < -50  # every sample of P has its twin in Q


@pytest.mark.parametrize("eta", [1.0, 10.0, 100.0])
def test_weights_fall_exponentially_with_the_divergence_from_base_to_target(eta):
    rng = np.random.default_rng(0)
    target = 0.5 + 0.1 * rng.normal(size=(80, 2))
    base = np.stack([0.5 + width * rng.normal(size=(60, 2)) for width in (0.1, 0.3, 0.02)])
    divergence = np.array([literal_kl(P, target) for P in base])
    v = np.append(np.exp(-divergence / eta), 1.0)
    weights = kl_weights(base, target, eta=eta)
    np.testing.assert_allclose(weights.values, v / v.sum(), rtol=1e-9)
    np.testing.assert_allclose(weights.losses, [*divergence, 0.0], rtol=1e-9)
    assert np.isnan(weights.misranked).all()
    assert not weights.dropped.any()


def test_ten_is_the_default_of_eta():
    rng = np.random.default_rng(0)
    base, target = rng.random((2, 20, 3)), rng.random((20, 3))
    np.testing.assert_array_equal(kl_weights(base, target).values, kl_weights(base, target, eta=10.0).values)


def test_extreme_divergences_neither_overflow_nor_vanish_altogether():
    corner, cloud = np.zeros((10, 3)), np.random.default_rng(0).random((10, 3))
    np.testing.assert_array_equal(kl_weights([corner], cloud, eta=1e-3).values, [0.0, 1.0])
    np.testing.assert_array_equal(kl_weights([cloud], cloud, eta=1e-3).values, [1.0, 0.0])
    assert kl_weights([corner], cloud, eta=1e-320).values.tolist() == [0.0, 1.0]


def test_without_past_runs_the_target_has_all_the_weight():
    assert kl_weights(np.zeros((0, 10, 2)), np.zeros((10, 2))).values.tolist() == [1.0]


def test_a_past_run_of_the_same_task_weighs_more_than_one_with_its_optimum_elsewhere():
    X = np.random.default_rng(0).random((40, 2))
    hyper, rng = Hyperparameters(2.0, np.full(2, 0.6), 1e-3), np.random.default_rng(1)
    bowls = [((X - np.array(best)) ** 2).sum(axis=1) for best in ([0.3, 0.3], [0.8, 0.8], [0.3, 0.3])]
    samples = [sample_minimizers(X, (y - y.mean()) / y.std(), hyper=hyper, count=100, rng=rng) for y in bowls]
    weights = kl_weights(np.stack(samples[:-1]), samples[-1], eta=1.0)
    assert weights.values[0] > 20 * weights.values[1]
    assert weights.values[0] == pytest.approx(weights.target, rel=0.5)


@pytest.mark.parametrize(
    ("base", "target", "eta", "message"),
    [
        (np.zeros((2, 5, 3)), np.zeros((5, 2)), 1.0, r"base_samples must have shape \(any, any, 2\), got \(2, 5, 3\)"),
        (np.zeros((2, 5, 3)), np.zeros((0, 3)), 1.0, "number of samples in Q must be at least 1, got 0"),
        (np.zeros((2, 1, 3)), np.zeros((5, 3)), 1.0, "number of samples in P must be at least 2, got 1"),
        (np.full((2, 5, 3), np.nan), np.zeros((5, 3)), 1.0, "base_samples must be finite, got 30 nan"),
        (np.zeros((2, 5, 3)), np.zeros((5, 3)), 0.0, "eta must be a finite number above 0, got 0.0"),
        (np.zeros((2, 5, 3)), np.zeros((5, 3)), np.nan, "eta must be a finite number above 0, got nan"),
    ],
)
def test_weighing_refuses_bad_input(base, target, eta, message):
    with pytest.raises(InputError, match=message):
        kl_weights(base, target, eta=eta)


@pytest.mark.parametrize(
    ("mask", "conditional", "message"),
    [
        ([False, True, False], False, "kl needs a search space of floats and integers without conditions; 'b' is cat"),
        ([True, True, False], True, "'a', 'b' are categorical"),
        ([False, False, False], True, "without conditions; some hyperparameters of this one are active only when"),
        ([False], False, r"categorical must have shape \(3,\), one entry for each name, got \(1,\)"),
    ],
)
def test_spaces_with_categories_or_conditions_are_refused(mask, conditional, message):
    with pytest.raises(InputError, match=message):
        refuse_unless_continuous(np.array(mask), ["a", "b", "c"], conditional=conditional)


def test_spaces_of_floats_and_integers_are_accepted():
    refuse_unless_continuous(np.zeros(3, dtype=bool), ("a", "b", "c"), conditional=False)
