"""The multi-task Gaussian process against a dense one written out, and against single processes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma, lognorm, multivariate_normal, norm
from tests.helpers.multitask_data import ONE, SIZES, points, some_hyper, tasks, theta_of

from recollect.numerics.arrays import KernelShape
from recollect.surrogate.fit import NegativeLogPosterior, RowPairs
from recollect.surrogate.gp import make_gp
from recollect.surrogate.kernels import Hyperparameters
from recollect.surrogate.multitask import (
    MultiTaskSettings,
    NegativeMultiTaskLogPosterior,
    TaskHyperparameters,
    fit_multitask,
    make_multitask,
)
from recollect.surrogate.prior import PAPER_PRIOR, TARGET_PRIOR, Prior

FLAT = replace(PAPER_PRIOR, use_priors=False)


KINDS = ["numerical", "categorical", "conditional"]


def correlation(x: np.ndarray, other: np.ndarray, shape: KernelShape, lengths: np.ndarray) -> float:
    """The kernel of two points, with amplitude 1, by its definition."""
    if shape.conditional and (np.isnan(x) != np.isnan(other)).any():
        return 0.0
    squared, hamming = 0.0, 0.0
    for a, b, category, length in zip(x, other, shape.categorical, lengths, strict=True):
        if np.isnan(a):
            continue
        if category:
            hamming += float(a != b) / length**2
        else:
            squared += (a - b) ** 2 / length**2
    root = np.sqrt(5.0 * squared)
    return float((1 + root + 5 * squared / 3) * np.exp(-root) * np.exp(-hamming / 2))


def gram(P: np.ndarray, Q: np.ndarray, shape: KernelShape, lengths: np.ndarray) -> np.ndarray:
    return np.array([[correlation(p, q, shape, lengths) for q in Q] for p in P])


class Dense:
    """All rows of all tasks, entry by entry; targets standardised with the moments of ``reference``."""

    def __init__(self, Xs, ys, shape, hyper, reference=None):
        reference = ys if reference is None else reference
        self.m, self.s = [np.mean(y) for y in reference], [np.std(y) or 1.0 for y in reference]
        self.rows = [(x, i) for i, X in enumerate(Xs) for x in X]
        self.z = np.concatenate([(y - m) / s for y, m, s in zip(ys, self.m, self.s, strict=True)])
        self.shape, self.hyper = shape, hyper
        self.B = sum(np.outer(w, w) for w in hyper.shared.T) + np.diag(hyper.own)
        self.A = np.array([[self.k(*a, *b) for b in self.rows] for a in self.rows])
        self.A += np.diag([hyper.noise[i] for _, i in self.rows])

    def k(self, x, i, other, j):
        return self.B[i, j] * correlation(x, other, self.shape, self.hyper.lengthscales)

    def posterior(self, X, task):
        cross = np.array([[self.k(x, task, *row) for row in self.rows] for x in X])
        prior = self.B[task, task] * gram(X, X, self.shape, self.hyper.lengthscales)
        mean = cross @ np.linalg.solve(self.A, self.z)
        spread = prior - cross @ np.linalg.solve(self.A, cross.T)
        return self.m[task] + self.s[task] * mean, self.s[task] ** 2 * spread

    @property
    def evidence(self) -> float:
        return float(multivariate_normal(np.zeros(len(self.z)), self.A).logpdf(self.z))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", [0, 1, 2])
def test_predictions_are_those_of_the_dense_model(kind: str, task: int) -> None:
    Xs, ys, shape = tasks(kind)
    hyper = some_hyper()
    model, dense = make_multitask(Xs, ys, shape=shape, hyper=hyper), Dense(Xs, ys, shape, hyper)
    X = points(9, kind, np.random.default_rng(5))
    mean, spread = dense.posterior(X, task)
    noise = hyper.noise[task] * dense.s[task] ** 2
    scale = dense.s[task] ** 2
    np.testing.assert_allclose(model.mean(X, task=task), mean, rtol=1e-9)
    for include in (False, True):
        got_mean, got_variance = model.predict(X, task=task, include_noise=include)
        np.testing.assert_allclose(got_mean, mean, rtol=1e-9)
        np.testing.assert_allclose(got_variance, np.diag(spread) + include * noise, rtol=1e-8)
    np.testing.assert_allclose(model.covariance(X, X, task=task), spread, atol=1e-10 * scale)
    np.testing.assert_allclose(model.covariance(X[:4], X[4:], task=task), spread[:4, 4:], atol=1e-10 * scale)


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_is_the_normal_density_of_the_standardised_targets(kind: str) -> None:
    Xs, ys, shape = tasks(kind)
    for seed in range(3):
        hyper = some_hyper(seed=seed)
        model = make_multitask(Xs, ys, shape=shape, hyper=hyper)
        assert model.log_marginal_likelihood == pytest.approx(Dense(Xs, ys, shape, hyper).evidence, rel=1e-10)


def test_tasks_observed_at_the_same_points_have_a_kronecker_product_as_covariance() -> None:
    X, y = np.random.default_rng(0).random((6, 3)), np.random.default_rng(1).standard_normal((3, 6))
    shape, hyper = KernelShape(np.zeros(3, bool), False), some_hyper()
    A = np.kron(hyper.B, gram(X, X, shape, hyper.lengthscales)) + np.kron(np.diag(hyper.noise), np.eye(6))
    z = ((y - y.mean(axis=1, keepdims=True)) / y.std(axis=1, keepdims=True)).ravel()
    model = make_multitask([X] * 3, list(y), shape=shape, hyper=hyper)
    assert model.log_marginal_likelihood == pytest.approx(multivariate_normal(np.zeros(18), A).logpdf(z), rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_with_nothing_in_common_are_single_processes(kind: str) -> None:
    Xs, ys, shape = tasks(kind)
    hyper = replace(some_hyper(r=0), own=np.array([0.5, 1.0, 2.0]))
    model = make_multitask(Xs, ys, shape=shape, hyper=hyper)
    assert (model.hyper.correlations == np.eye(3)).all()
    X = points(9, kind, np.random.default_rng(5))
    for i in range(3):
        alone = make_gp(
            Xs[i], ys[i], shape=shape, hyper=Hyperparameters(hyper.own[i], hyper.lengthscales, hyper.noise[i])
        )
        for include in (False, True):
            for got, wanted in zip(
                model.predict(X, task=i, include_noise=include), alone.predict(X, include_noise=include), strict=True
            ):
                np.testing.assert_allclose(got, wanted, rtol=1e-11)
        got, wanted = model.covariance(X, X, task=i), alone.joint(X)[1]
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12 * alone.s**2)


def objective_on(kind: str, prior: Prior, rank: int, sizes: tuple[int, ...] = SIZES) -> NegativeMultiTaskLogPosterior:
    Xs, ys, shape = tasks(kind, sizes)
    z = np.concatenate([(y - y.mean()) / y.std() for y in ys])
    task = np.repeat(np.arange(len(sizes)), sizes)
    return NegativeMultiTaskLogPosterior(np.concatenate(Xs), z, task, shape=shape, prior=prior, rank=rank)


@pytest.mark.parametrize("prior", [TARGET_PRIOR, FLAT])
@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_agrees_with_finite_differences(kind: str, rank: int, prior: Prior) -> None:
    objective = objective_on(kind, prior, rank)
    assert objective.free.all()
    for seed in range(3):
        theta = theta_of(some_hyper(r=rank, seed=seed))
        _, gradient = objective(theta)
        numeric = [(objective(theta + e)[0] - objective(theta - e)[0]) / 2e-5 for e in 1e-5 * np.eye(theta.size)]
        np.testing.assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_objective_is_minus_evidence_and_prior_densities(kind: str, rank: int) -> None:
    Xs, ys, shape = tasks(kind)
    hyper = some_hyper(r=rank)
    evidence = Dense(Xs, ys, shape, hyper).evidence
    value, _ = objective_on(kind, FLAT, rank)(theta_of(hyper))
    assert value == pytest.approx(-evidence, rel=1e-10)
    prior = lognorm(1.0).logpdf(hyper.own).sum() + np.log(np.log1p(0.03 / hyper.noise**2) + 1e-10).sum()
    prior += (gamma(3.0, scale=1 / 6).logpdf(hyper.lengthscales) - 3 * np.log(6.0) + np.log(2.0)).sum()
    middle = np.zeros((3, rank))
    middle[:, :1] = 1.0
    prior += (norm(middle, 0.5).logpdf(hyper.shared) - norm(0, 0.5).logpdf(0)).sum()
    value, _ = objective_on(kind, TARGET_PRIOR, rank)(theta_of(hyper))
    assert value == pytest.approx(-evidence - prior, rel=1e-10)


@pytest.mark.parametrize("prior", [TARGET_PRIOR, PAPER_PRIOR, FLAT])
@pytest.mark.parametrize("kind", KINDS)
def test_objective_of_one_task_is_that_of_a_single_process(kind: str, prior: Prior) -> None:
    (X,), (y,), shape = tasks(kind, (15,))
    theta = np.array([-0.5, -1.0, 0.0, 0.3, -5.0])
    (value,), (gradient,) = NegativeLogPosterior([RowPairs(X, shape)], [(y - y.mean()) / y.std()], prior=prior)(
        theta[None, [3, 0, 1, 2, 4]]
    )
    got, slopes = objective_on(kind, prior, 0, (15,))(theta)
    assert got == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slopes, gradient[[1, 2, 3, 0, 4]], rtol=1e-9, atol=1e-9)


def test_objective_is_infinite_where_the_matrix_is_singular_and_recovers() -> None:
    X, z = np.zeros((4, 1)), np.array([1.0, -1.0, 1.0, -1.0])
    objective = NegativeMultiTaskLogPosterior(X, z, np.array([0, 0, 1, 1]), shape=ONE, prior=FLAT, rank=1)
    good, bad = np.array([1.0, 1.0, 0.0, 0.0, -1.0, -1.0]), np.array([1.0, 1.0, 0.0, 0.0, -80.0, -80.0])
    before = objective(good)[0]
    assert objective(bad)[0] == np.inf
    assert objective(good)[0] == before


def test_nothing_of_a_point_that_is_no_number_is_left_behind() -> None:
    objective, theta = objective_on("conditional", TARGET_PRIOR, 1), theta_of(some_hyper(r=1))
    value, gradient = objective(theta)
    objective(np.full(theta.size, np.nan))
    again, slopes = objective(theta)
    assert again == value
    np.testing.assert_array_equal(slopes, gradient)


def test_a_fit_is_a_maximum_of_the_posterior_it_reports() -> None:
    Xs, ys, shape = tasks("numerical", (15, 12))
    options = MultiTaskSettings(rank=1)
    fit = fit_multitask(Xs, ys, shape=shape, settings=options, start=None, rng=np.random.default_rng(0))
    objective = objective_on("numerical", options.prior, 1, (15, 12))
    theta = theta_of(fit.hyper)
    value, gradient = objective(theta)
    assert fit.log_posterior == pytest.approx(-value, rel=1e-9)
    bounds = objective.layout.bounds(options.prior)
    inside = (theta > bounds[:, 0] + 1e-6) & (theta < bounds[:, 1] - 1e-6)
    assert np.abs(gradient[inside]).max() < 0.05
    first = -objective(theta_of(TaskHyperparameters.default(3, 2, 1)))[0]
    assert fit.log_posterior > first + 1.0
    more = replace(options, restarts=3)
    assert (
        fit_multitask(Xs, ys, shape=shape, settings=more, start=None, rng=np.random.default_rng(0)).log_posterior
        >= fit.log_posterior - 1e-9
    )


def test_length_scales_of_columns_that_never_vary_stay_where_they_were() -> None:
    Xs, ys, shape = tasks("numerical", (6, 6))
    for X in Xs:
        X[:, 1] = 0.25
    start = replace(TaskHyperparameters.default(3, 2, 1), lengthscales=np.array([1.0, 0.123, 1.0]))
    fit = fit_multitask(Xs, ys, shape=shape, settings=MultiTaskSettings(), start=start, rng=np.random.default_rng(0))
    assert fit.hyper.lengthscales[1] == 0.123
    assert fit.hyper.lengthscales[0] != 1.0


@pytest.mark.parametrize("kind", KINDS)
def test_conditioning_is_a_model_with_more_rows_and_the_same_standardisation(kind: str) -> None:
    Xs, ys, shape = tasks(kind)
    hyper, rng = some_hyper(), np.random.default_rng(3)
    new_X, new_y = points(4, kind, rng), 10.0 + 10.0 * rng.standard_normal(4)
    model = make_multitask(Xs, ys, shape=shape, hyper=hyper)
    after = model.condition(new_X[:1], new_y[:1], task=1).condition(new_X[1:], new_y[1:], task=1)
    Xs_after, ys_after = list(Xs), list(ys)
    Xs_after[1], ys_after[1] = np.vstack((Xs[1], new_X)), np.append(ys[1], new_y)
    dense = Dense(Xs_after, ys_after, shape, hyper, reference=ys)
    X = points(6, kind, rng)
    for task in range(3):
        mean, spread = dense.posterior(X, task)
        got, variance = after.predict(X, task=task)
        np.testing.assert_allclose(got, mean, rtol=1e-9)
        np.testing.assert_allclose(variance, np.diag(spread), rtol=1e-8)
    assert after.log_marginal_likelihood == pytest.approx(dense.evidence, rel=1e-10)
    assert model.condition(np.empty((0, 3)), [], task=1) is model
    assert model.y.size == sum(SIZES)


@settings(deadline=None, max_examples=20)
@given(st.permutations([0, 1, 2]), st.floats(-50, 50), st.floats(0.01, 100))
def test_predictions_follow_units_and_do_not_depend_on_the_order_of_tasks(order, offset, factor) -> None:
    Xs, ys, shape = tasks("conditional")
    hyper, X = some_hyper(), points(5, "conditional", np.random.default_rng(2))
    mean, variance = make_multitask(Xs, ys, shape=shape, hyper=hyper).predict(X, task=0)
    moved = [offset + factor * ys[0], 7.0 - 2.0 * ys[1], ys[2]]
    sign = np.array([1.0, -1.0, 1.0])
    turned = replace(
        hyper, shared=(sign[:, None] * hyper.shared)[order], own=hyper.own[order], noise=hyper.noise[order]
    )
    model = make_multitask([Xs[i] for i in order], [moved[i] for i in order], shape=shape, hyper=turned)
    got, got_variance = model.predict(X, task=order.index(0))
    np.testing.assert_allclose(got, offset + factor * mean, rtol=1e-8, atol=1e-8 * factor)
    np.testing.assert_allclose(got_variance, factor**2 * variance, rtol=1e-7)


def test_w_gets_no_more_columns_than_tasks_can_use() -> None:
    assert [MultiTaskSettings(rank=2).columns(t) for t in (1, 2, 3, 4)] == [0, 1, 2, 2]
