"""Adaptive Bayesian linear regression against dense normal distributions, textbook posteriors, finite differences."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("jax")

import mpmath
from scipy.stats import multivariate_normal, spearmanr

from recollect.errors import InputError, NumericalError
from recollect.neural import ablr
from recollect.neural.ablr import (
    ABLR,
    ABLRPosterior,
    Evidence,
    JointEvidence,
    PreparedABLR,
    make_batch,
    make_head,
    negative_log_evidence,
)
from recollect.neural.network import OneHot, draw_parameters, layers, parameter_count
from recollect.numerics.arrays import KernelShape
from recollect.transfer.sources import SourceData

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
PLAIN = KernelShape(np.zeros(2, dtype=bool), False)
SIZES = np.array([100, 100])
SMALL = ABLR(hidden=(8, 6), cold_evaluations=60, warm_evaluations=10)


def evidence(Phi: Array, y: Array, alpha: float, beta: float) -> Evidence:
    """The library's evidence of one task beside another one, both with two rows of padding; less that of the other."""
    n, D = Phi.shape
    other, values = features(n, D, seed=8)
    alone = [np.pad(np.stack((a, a)), ((0, 0), (0, 2), (0, 0))[: a.ndim + 1]) for a in (other, values)]
    both = [np.pad(np.stack((a, b)), ((0, 0), (0, 2), (0, 0))[: a.ndim + 1]) for a, b in ((other, Phi), (values, y))]
    rows, log_alpha, log_beta = np.array([n, n]), np.log([1.0, alpha]), np.log([2.0, beta])
    found = negative_log_evidence(both[0], both[1], rows=rows, log_alpha=log_alpha, log_beta=log_beta)
    twice = negative_log_evidence(alone[0], alone[1], rows=rows, log_alpha=np.zeros(2), log_beta=np.log([2.0, 2.0]))
    value = found.value - 0.5 * twice.value
    return Evidence(value, found.by_features[1], found.by_log_alpha[1], found.by_log_beta[1])


def dense_evidence(Phi: Array, y: Array, alpha: float, beta: float) -> float:
    covariance = Phi @ Phi.T / alpha + np.eye(len(y)) / beta
    return -float(multivariate_normal.logpdf(y, np.zeros(len(y)), covariance))


def features(n: int, D: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return np.tanh(rng.standard_normal((n, D))), rng.standard_normal(n)


def runs(k: int, n: int = 12, seed: int = 0) -> list[SourceData]:
    """Past runs that are all an affine function of one curved valley, each with its own sign-free scale and offset."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(k):
        X = rng.random((n + i % 2, 2))
        y = valley(X)
        found.append(SourceData(f"run {i}", X, (y - y.mean()) / y.std()))
    return found


def valley(X: Array) -> Array:
    return (X[:, 0] - 0.3) ** 2 + np.cos(7.0 * X[:, 1])


def prepare(settings: ABLR, past: list[SourceData]) -> PreparedABLR:
    return settings.prepare(past, shape=PLAIN, sizes=SIZES, rng=np.random.default_rng(0))


def fit(tasks: PreparedABLR, n: int, *, start: object = None, seed: int = 3, scale: float = 1.0) -> ABLRPosterior:
    X = np.random.default_rng(5).random((n, 2))
    return tasks.fit(X, scale * valley(X), start=start, rng=np.random.default_rng(seed))


@pytest.fixture(scope="module")
def tasks() -> PreparedABLR:
    return prepare(SMALL, runs(3))


@pytest.fixture(scope="module")
def posterior(tasks: PreparedABLR) -> ABLRPosterior:
    return fit(tasks, 6)


# ---------------------------------------------------------------------------------------------- encoding


def test_numerical_columns_come_first_then_a_block_for_each_categorical_and_inactive_is_minus_one() -> None:
    encoding = OneHot(np.array([True, False, True, False]), np.array([3, 9, 2, 9]))
    X = np.array([[2.0, 0.25, 0.0, 1.1], [np.nan, np.nan, 1.0, -0.5], [0.0, 0.0, np.nan, -1.0]])
    expected = [
        [0.25, 1.1, 0.0, 0.0, 1.0, 1.0, 0.0],
        [-1.0, -0.5, -1.0, -1.0, -1.0, 0.0, 1.0],
        [0.0, -1.0, 1.0, 0.0, 0.0, -1.0, -1.0],
    ]
    np.testing.assert_array_equal(encoding.encode(X), expected)
    assert encoding.width == 7
    assert encoding.encode(np.empty((0, 4))).shape == (0, 7)


@pytest.mark.parametrize("code", [3.0, 0.5])
def test_a_code_that_is_no_choice_is_refused(code: float) -> None:
    encoding = OneHot(np.array([False, True]), np.array([9, 3]))
    with pytest.raises(InputError, match=r"codes 0\.\.2 in column 1, got .* in row 1"):
        encoding.encode(np.array([[0.0, 1.0], [0.0, code]]))


def test_inputs_and_sizes_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(InputError, match=r"expected inputs of shape \(n, 2\)"):
        OneHot(np.array([False, True]), np.array([9, 3])).encode(np.zeros((4, 3)))
    with pytest.raises(InputError, match="number of values >= 1"):
        OneHot(np.array([False, True]), np.array([9, 0]))


# ---------------------------------------------------------------------------------------------- network


def test_weights_are_xavier_normal_and_biases_start_at_zero() -> None:
    widths = (40, 60, 30)
    flat = draw_parameters(widths, np.random.default_rng(0))
    assert flat.size == parameter_count(widths) == 41 * 60 + 61 * 30
    (W, b), (V, c) = layers(flat, widths)
    assert (W.shape, V.shape) == ((40, 60), (60, 30))
    assert W.std() == pytest.approx(np.sqrt(2 / 100), rel=0.05)
    assert V.std() == pytest.approx(np.sqrt(2 / 90), rel=0.05)
    assert not b.any()
    assert not c.any()


# ------------------------------------------------------------------------------ Bayesian linear regression


@pytest.mark.parametrize("n", [1, 3, 12])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1e3), (1e3, 1.0), (0.05, 30.0)])
def test_evidence_is_that_of_the_dense_normal_distribution(n: int, alpha: float, beta: float) -> None:
    Phi, y = features(n, 5)
    assert evidence(Phi, y, alpha, beta).value == pytest.approx(dense_evidence(Phi, y, alpha, beta), rel=1e-9)


@pytest.mark.parametrize("n", [3, 9])
def test_gradient_of_the_evidence_is_that_of_finite_differences(n: int) -> None:
    Phi, y = features(n, 5)
    alpha, beta, h = 0.7, 40.0, 1e-5
    _, by_features, by_alpha, by_beta = evidence(Phi, y, alpha, beta)
    assert not by_features[n:].any()
    for i, j in ((0, 0), (n - 1, 4), (1, 2)):
        step = np.zeros((n, 5))
        step[i, j] = h
        difference = dense_evidence(Phi + step, y, alpha, beta) - dense_evidence(Phi - step, y, alpha, beta)
        assert by_features[i, j] == pytest.approx(difference / (2 * h), rel=1e-6)
    up, down = np.exp(h), np.exp(-h)
    difference = dense_evidence(Phi, y, alpha * up, beta) - dense_evidence(Phi, y, alpha * down, beta)
    assert by_alpha == pytest.approx(difference / (2 * h), rel=1e-6)
    difference = dense_evidence(Phi, y, alpha, beta * up) - dense_evidence(Phi, y, alpha, beta * down)
    assert by_beta == pytest.approx(difference / (2 * h), rel=1e-6)


def test_evidence_and_posterior_are_exact_at_the_corner_of_the_bounds_with_repeated_points() -> None:
    Phi, _ = features(4, 5)
    Phi = np.vstack((Phi[:2], Phi[:2] + 1e-4 * Phi[2:]))
    y, query = np.array([0.5, -1.0, 0.5001, -1.0002]), np.array([0.3, -0.9, 0.5, 0.1, -0.2])
    alpha, beta = 1e-3, 1e6
    value, *slopes = evidence(Phi, y, alpha, beta)
    with mpmath.workdps(60):
        P, t, q = mpmath.matrix(Phi.tolist()), mpmath.matrix(y.tolist()), mpmath.matrix(query.tolist())
        C = P * P.T / mpmath.mpf(alpha) + mpmath.eye(4) / mpmath.mpf(beta)
        expected = ((t.T * mpmath.inverse(C) * t)[0] + mpmath.log(mpmath.det(C)) + 4 * mpmath.log(2 * mpmath.pi)) / 2
        S = mpmath.inverse(mpmath.mpf(beta) * P.T * P + mpmath.mpf(alpha) * mpmath.eye(5))
        mean, variance = (q.T * S * P.T * t)[0] * mpmath.mpf(beta), (q.T * S * q)[0]
    assert value == pytest.approx(float(expected), rel=1e-6)
    assert all(np.isfinite(slope).all() for slope in slopes)
    head = make_head(Phi, y, alpha=alpha, beta=beta)
    assert head.mean(query[None])[0] == pytest.approx(float(mean), rel=1e-8)
    assert head.variance(query[None])[0] == pytest.approx(float(variance), rel=1e-8)


def test_evidence_is_not_finite_where_features_are_not() -> None:
    assert not np.isfinite(evidence(np.full((2, 3), np.nan), np.zeros(2), 1.0, 1.0).value)


def test_evidence_is_right_where_fifty_features_agree_at_fifty_points() -> None:
    """K is then I plus one large number times a matrix of ones, and all is known in closed form."""
    y = features(50, 1)[1]
    alpha, beta = 1e-3, 1e6
    value, *slopes = evidence(np.ones((50, 50)), y, alpha, beta)
    spread = 1.0 + 2500 * beta / alpha
    squares = y.var() * 50 + 50 * y.mean() ** 2 / spread
    assert value == pytest.approx(0.5 * (beta * squares + np.log(spread) - 50 * np.log(beta / (2 * np.pi))), rel=1e-9)
    assert float(slopes[2]) == pytest.approx(0.5 * (beta * squares - 49), rel=1e-6)
    assert all(np.isfinite(slope).all() for slope in slopes)


@pytest.mark.parametrize(("n", "D"), [(1, 4), (3, 7), (12, 5)])
def test_posterior_of_the_head_is_the_textbook_one(n: int, D: int) -> None:
    Phi, y = features(n, D)
    query, _ = features(9, D, seed=1)
    alpha, beta = 0.8, 25.0
    covariance = np.linalg.inv(alpha * np.eye(D) + beta * Phi.T @ Phi)
    head = make_head(Phi, y, alpha=alpha, beta=beta)
    np.testing.assert_allclose(head.mean(query), beta * query @ covariance @ Phi.T @ y, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(head.variance(query), np.einsum("ij,jk,ik->i", query, covariance, query), rtol=1e-9)


def test_features_that_are_not_finite_are_an_error() -> None:
    with pytest.raises(NumericalError, match="finite features"):
        make_head(np.full((2, 3), np.nan), np.zeros(2), alpha=1.0, beta=1.0)


# --------------------------------------------------------------------------------------------- the whole


def dense_total(theta: Array, data: list[tuple[Array, Array]], widths: tuple[int, ...]) -> float:
    """Sum of the tasks' negative log evidences, all in double precision and without the library."""
    p, t = parameter_count(widths), len(data)
    log_alpha, log_beta = theta[p : p + t], theta[p + t :]
    total = 0.0
    for i, (X, y) in enumerate(data):
        Phi, begin = X, 0
        for a, b in pairwise(widths):
            W = theta[begin : begin + a * b].reshape(a, b)
            Phi = np.tanh(Phi @ W + theta[begin + a * b : begin + (a + 1) * b])
            begin += (a + 1) * b
        total += dense_evidence(Phi, y, float(np.exp(log_alpha[i])), float(np.exp(log_beta[i])))
    return total


def test_objective_is_the_sum_of_the_dense_evidences_of_tasks_of_different_lengths() -> None:
    past = [run.at(np.arange(n)) for run, n in zip(runs(3), (3, 9, 4), strict=True)]
    tasks = prepare(SMALL, past)
    X, y = past[1].X[:5] + 0.01, past[1].y[:5]
    joint = JointEvidence.of((*tasks.batches, make_batch([(X, y)], 64)), tasks.widths)
    order = [past[0], past[2], past[1]]  # by length, in powers of two
    data = [*((run.X, run.y) for run in order), (X, y)]
    rng = np.random.default_rng(1)
    heads = np.concatenate((rng.normal(0, 0.3, 4), rng.normal(3, 0.3, 4)))
    theta = np.concatenate((rng.normal(0, 0.4, parameter_count(tasks.widths)), heads))
    value, slope = joint(theta)
    assert value == pytest.approx(dense_total(theta, data, tasks.widths), rel=1e-4)
    biases = slice(2 * 8, 3 * 8)
    assert np.abs(slope[biases]).min() > 0.0
    for direction in rng.standard_normal((4, theta.size)):
        step = 1e-5 * direction
        ahead, behind = (dense_total(theta + s * step, data, tasks.widths) for s in (1, -1))
        assert float(slope @ direction) == pytest.approx((ahead - behind) / 2e-5, rel=2e-3)


def test_past_runs_shape_the_prediction_for_a_task_with_six_observations() -> None:
    """The same runs with their values shuffled say nothing about the function."""
    settings = replace(SMALL, cold_evaluations=200)
    query = np.random.default_rng(12).random((200, 2))
    agreement = []
    for seed in range(3):
        told, rng = runs(3, 60, seed=seed), np.random.default_rng(seed)
        untold = [SourceData(run.task, run.X, rng.permutation(run.y)) for run in told]
        models = [fit(prepare(settings, past), 6, seed=seed) for past in (told, untold)]
        agreement.append([spearmanr(model.mean(query), valley(query)).statistic for model in models])
    telling, shuffled = np.mean(agreement, axis=0)
    assert telling > 0.95
    assert shuffled < telling - 0.1


def test_training_moves_biases_and_heads_and_keeps_the_bounds(tasks: PreparedABLR, posterior: ABLRPosterior) -> None:
    (_, b), (_, c) = layers(posterior.theta[: parameter_count(tasks.widths)], tasks.widths)
    assert np.abs(b).min() > 0.0
    assert np.abs(c).min() > 0.0
    log_alpha, log_beta = np.split(posterior.theta[parameter_count(tasks.widths) :], 2)
    assert np.all(np.abs(log_alpha) <= np.log(1e3))
    assert np.all((log_beta >= 0.0) & (log_beta <= np.log(1e6)))
    assert np.all(log_alpha != 0.0)
    assert posterior.head.alpha == pytest.approx(np.exp(log_alpha[-1]))
    assert posterior.head.beta == pytest.approx(np.exp(log_beta[-1]))


def test_a_warm_fit_starts_from_the_previous_one_and_needs_no_random_numbers(
    tasks: PreparedABLR, posterior: ABLRPosterior
) -> None:
    first, second = (fit(tasks, 7, start=posterior, seed=seed) for seed in (1, 2))
    np.testing.assert_array_equal(first.theta, second.theta)
    assert not np.array_equal(first.theta, posterior.theta)
    p = parameter_count(tasks.widths)
    assert np.linalg.norm(first.theta[:p] - posterior.theta[:p]) < 0.5 * np.linalg.norm(posterior.theta[:p])


def test_a_start_of_another_kind_or_for_other_past_runs_is_not_used(
    tasks: PreparedABLR, posterior: ABLRPosterior
) -> None:
    cold = fit(tasks, 6)
    for start in ("nonsense", replace(posterior, theta=posterior.theta[:-2])):
        np.testing.assert_array_equal(fit(tasks, 6, start=start).theta, cold.theta)


def test_the_same_seed_gives_the_same_model_and_another_one_another(tasks: PreparedABLR) -> None:
    a, b, c = (fit(tasks, 6, seed=seed) for seed in (3, 3, 4))
    query = np.random.default_rng(0).random((5, 2))
    np.testing.assert_array_equal(a.predict(query), b.predict(query))
    assert not np.array_equal(a.mean(query), c.mean(query))


def compilations() -> int:
    return int(ablr.features._cache_size() + ablr.pulled_back._cache_size())


def test_nothing_is_recompiled_from_trial_to_trial(tasks: PreparedABLR) -> None:
    previous = fit(tasks, 1)
    known = compilations()
    for n in (2, 3, 17, 33, 64):
        previous = fit(tasks, n, start=previous)
    fit(prepare(SMALL, runs(3, seed=9)), 5)
    assert compilations() == known
    fit(tasks, 65, start=previous)
    assert compilations() == known + 2


def test_prediction_is_that_of_the_textbook_on_the_network_features(posterior: ABLRPosterior) -> None:
    query = np.random.default_rng(0).random((30, 2))
    Phi, Q = posterior.features(posterior.X), posterior.features(query)
    alpha, beta = posterior.head.alpha, posterior.head.beta
    covariance = np.linalg.inv(alpha * np.eye(Phi.shape[1]) + beta * Phi.T @ Phi)
    mean, variance = posterior.predict(query)
    np.testing.assert_allclose(mean, beta * Q @ covariance @ Phi.T @ posterior.y, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(variance, np.einsum("ij,jk,ik->i", Q, covariance, Q), rtol=1e-6, atol=1e-10)
    np.testing.assert_array_equal(posterior.mean(query), mean)
    assert mean.dtype == variance.dtype == np.float64
    assert posterior.predict(np.empty((0, 2)))[0].shape == (0,)


def test_conditioning_adds_rows_to_the_head_and_leaves_network_alpha_and_beta(posterior: ABLRPosterior) -> None:
    X_new, y_new = np.array([[0.9, 0.1], [0.2, 0.7]]), np.array([2.0, -1.0])
    more = posterior.condition(X_new, y_new)
    X, y = np.vstack((posterior.X, X_new)), np.append(posterior.y, y_new)
    head = make_head(posterior.features(X), y, alpha=posterior.head.alpha, beta=posterior.head.beta)
    query = np.random.default_rng(0).random((10, 2))
    np.testing.assert_allclose(more.mean(query), head.mean(posterior.features(query)), rtol=1e-10)
    np.testing.assert_array_equal(more.X, X)
    np.testing.assert_array_equal(more.y, y)
    assert np.all(more.predict(query)[1] <= posterior.predict(query)[1] + 1e-12)
    assert np.any(np.abs(more.mean(X_new) - y_new) < np.abs(posterior.mean(X_new) - y_new))
    assert posterior.condition(np.empty((0, 2)), np.empty(0)) is posterior
    with pytest.raises(InputError, match="shape"):
        posterior.condition(np.zeros((1, 3)), np.zeros(1))


@pytest.mark.parametrize("values", [[0.3], [0.3, 0.3], [0.0, 0.0, 0.0], [1.0, -1.0, 1.0]])
def test_one_observation_constants_and_repeated_points_give_finite_predictions(
    tasks: PreparedABLR, values: list[float]
) -> None:
    model = tasks.fit(np.full((len(values), 2), 0.4), values, start=None, rng=np.random.default_rng(0))
    mean, variance = model.predict(np.random.default_rng(0).random((20, 2)))
    assert np.isfinite(mean).all()
    assert np.isfinite(variance).all()
    assert np.all(variance > 0.0)


def test_categorical_and_inactive_columns_tell_points_apart() -> None:
    rng = np.random.default_rng(0)
    shape = KernelShape(np.array([False, True, False]), True)

    def draw(n: int) -> tuple[Array, Array]:
        code = rng.integers(3, size=n).astype(float)
        X = np.column_stack((rng.random(n), code, np.where(code == 2, np.nan, rng.random(n))))
        return X, code - 1.0 + 0.3 * X[:, 0]

    past = [SourceData(str(i), *draw(20)) for i in range(3)]
    settings = replace(SMALL, cold_evaluations=200)
    learned = settings.prepare(past, shape=shape, sizes=np.array([100, 3, 100]), rng=rng)
    model = learned.fit(*draw(8), start=None, rng=rng)
    query, expected = draw(60)
    assert spearmanr(model.mean(query), expected).statistic > 0.95


# ---------------------------------------------------------------------------------------------- failures


def test_a_network_without_finite_evidence_is_redrawn(tasks: PreparedABLR, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def sick(Phi: Array, y: Array, **rest: Array) -> Evidence:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise NumericalError
        found = negative_log_evidence(Phi, y, **rest)
        return found._replace(by_log_beta=found.by_log_beta * np.nan) if calls == 2 else found

    rng = np.random.default_rng(7)
    draw_parameters(tasks.widths, rng), draw_parameters(tasks.widths, rng)
    X = np.random.default_rng(5).random((6, 2))
    third = tasks.fit(X, valley(X), start=None, rng=rng)
    monkeypatch.setattr(ablr, "negative_log_evidence", sick)
    np.testing.assert_array_equal(fit(tasks, 6, seed=7).theta, third.theta)


def test_a_broken_start_is_replaced_by_a_new_network(tasks: PreparedABLR, posterior: ABLRPosterior) -> None:
    broken = replace(posterior, theta=np.full_like(posterior.theta, np.nan))
    np.testing.assert_array_equal(fit(tasks, 6, start=broken).theta, posterior.theta)


def test_targets_too_large_for_their_squares_end_in_a_numerical_error(tasks: PreparedABLR) -> None:
    with pytest.raises(NumericalError, match="3 past runs and 6 observations, even after 10 new networks"):
        fit(tasks, 6, scale=1e200)


def test_settings_and_data_that_make_no_sense_are_refused(tasks: PreparedABLR) -> None:
    with pytest.raises(InputError, match="hidden layers"):
        ABLR(hidden=())
    with pytest.raises(InputError, match="cold_evaluations >= 1"):
        ABLR(warm_evaluations=0)
    with pytest.raises(InputError, match="shape"):
        tasks.fit(np.zeros((2, 3)), np.zeros(2), start=None, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="finite targets"):
        tasks.fit(np.zeros((2, 2)), [0.0, np.nan], start=None, rng=np.random.default_rng(0))
    with pytest.raises(InputError, match="columns"):
        SMALL.prepare(
            runs(1), shape=KernelShape(np.zeros(3, dtype=bool), False), sizes=SIZES, rng=np.random.default_rng()
        )
