"""Multi-task processes against a dense model written here from its definition, single processes, finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gamma, lognorm, multivariate_normal, norm

from recollect.errors import InputError
from recollect.surrogate.fit import FitSettings, fit_gp
from recollect.surrogate.gp import make_gp
from recollect.surrogate.kernels import Hyperparameters, KernelShape
from recollect.surrogate.multitask import MultiTaskSettings, TaskHyperparameters, fit_multitask, make_multitask
from recollect.surrogate.multitask_objective import MultiTaskObjective
from recollect.surrogate.objective import NegativeLogPosterior
from recollect.surrogate.pairs import Pairs
from recollect.surrogate.prior import PAPER_PRIOR, TARGET_PRIOR, Prior
from recollect.transfer.multitask import MOST, MultiTask, TaskPosterior
from recollect.transfer.sources import SourceData

FLAT = replace(PAPER_PRIOR, use_priors=False)
KINDS = ["numerical", "categorical", "conditional"]
SIZES = (7, 5, 6)
ONE = KernelShape(np.zeros(1, bool), False)
NO_SIZES = np.zeros(1, np.intp)


def points(n: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    X = rng.random((n, 3))
    if kind != "numerical":
        X[:, 1] = rng.integers(0, 3, n)
    if kind == "conditional":
        X[X[:, 1] == 1, 2] = np.nan
    return X


def tasks(kind: str, sizes: tuple[int, ...] = SIZES) -> tuple[list[np.ndarray], list[np.ndarray], KernelShape]:
    rng = np.random.default_rng(len(sizes))
    Xs = [points(n, kind, rng) for n in sizes]
    ys = [10.0**i * (i + rng.standard_normal(n)) for i, n in enumerate(sizes)]
    return Xs, ys, KernelShape(np.array([False, kind != "numerical", False]), kind == "conditional")


def some_hyper(t: int = 3, r: int = 2, seed: int = 0, d: int = 3) -> TaskHyperparameters:
    rng = np.random.default_rng(seed)
    own, noise = rng.uniform(0.1, 1, t), 10.0 ** rng.uniform(-3, -1, t)
    return TaskHyperparameters(rng.uniform(0.3, 1, d), rng.standard_normal((t, r)), own, noise)


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
        got_mean, got_spread = model.joint(X, task=task, include_noise=include)
        np.testing.assert_allclose(got_mean, mean, rtol=1e-9)
        np.testing.assert_allclose(got_spread, spread + include * noise * np.eye(9), atol=1e-10 * scale)
        assert (got_spread == got_spread.T).all()
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
        np.testing.assert_allclose(model.joint(X, task=i)[1], alone.joint(X)[1], rtol=1e-9, atol=1e-12 * alone.s**2)


def theta_of(hyper: TaskHyperparameters) -> np.ndarray:
    return np.concatenate([np.log(hyper.lengthscales), hyper.shared.ravel(), np.log(hyper.own), np.log(hyper.noise)])


def objective_on(kind: str, prior: Prior, rank: int, sizes: tuple[int, ...] = SIZES) -> MultiTaskObjective:
    Xs, ys, shape = tasks(kind, sizes)
    z = np.concatenate([(y - y.mean()) / y.std() for y in ys])
    task = np.repeat(np.arange(len(sizes)), sizes)
    return MultiTaskObjective(np.concatenate(Xs), z, task, shape=shape, prior=prior, rank=rank)


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
    (value,), (gradient,) = NegativeLogPosterior([Pairs(X, shape)], [(y - y.mean()) / y.std()], prior=prior)(
        theta[None, [3, 0, 1, 2, 4]]
    )
    got, slopes = objective_on(kind, prior, 0, (15,))(theta)
    assert got == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(slopes, gradient[[1, 2, 3, 0, 4]], rtol=1e-9, atol=1e-9)


def test_objective_is_infinite_where_the_matrix_is_singular_and_recovers() -> None:
    X, z = np.zeros((4, 1)), np.array([1.0, -1.0, 1.0, -1.0])
    objective = MultiTaskObjective(X, z, np.array([0, 0, 1, 1]), shape=ONE, prior=FLAT, rank=1)
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


def wave(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.sin(7.0 * x[:, 0]) + 0.5 * np.cos(15.0 * x[:, 0]))


def two_waves(sign: float, n: int = 4) -> tuple[SourceData, np.ndarray, np.ndarray]:
    past, X = np.linspace(0, 1, 25)[:, None], np.linspace(0, 0.55, n)[:, None]
    return SourceData("past", past, 100.0 + 30.0 * sign * wave(past)), X, wave(X)


def learned(past: list[SourceData], model: MultiTask | None = None, seed: int = 0):
    rng = np.random.default_rng(seed)
    return (model or MultiTask()).learn(past, shape=ONE, sizes=NO_SIZES, rng=rng)


@pytest.mark.parametrize(("sign", "n"), [(1.0, 4), (-1.0, 7)])
def test_a_past_run_that_is_a_copy_or_the_negative_of_the_task_helps_far_from_its_observations(sign, n) -> None:
    past, X, y = two_waves(sign, n)
    fit = learned([past]).fit(X, y, start=None, rng=np.random.default_rng(1))
    alone = fit_gp(X, y, settings=FitSettings(TARGET_PRIOR), rng=np.random.default_rng(1))
    far = np.linspace(0.7, 1, 20)[:, None]
    error, lone_error = (np.sqrt(np.mean((model.mean(far) - wave(far)) ** 2)) for model in (fit, alone))
    assert sign * fit.correlations[0] > 0.7
    assert error < 0.5 * lone_error
    assert (fit.predict(far)[1] < alone.predict(far)[1]).all()


def test_an_unrelated_past_run_is_not_believed() -> None:
    past, X, _ = two_waves(1.0, 25)
    other = np.cos(23.0 * X[:, 0] + 1.0) * (1.0 - X[:, 0])
    fit = learned([past]).fit(X, other, start=None, rng=np.random.default_rng(1))
    assert abs(fit.correlations[0]) < 0.6
    np.testing.assert_allclose(fit.mean(X), other, atol=0.1)


def test_one_observation_suffices_to_follow_past_runs_that_agree() -> None:
    past, _, _ = two_waves(1.0)
    also = SourceData("also", past.X[::2], wave(past.X[::2]) + 5.0)
    fit = learned([past, also]).fit([[0.5]], [3.0], start=None, rng=np.random.default_rng(1))
    x = np.linspace(0, 1, 50)[:, None]
    assert np.corrcoef(fit.mean(x), wave(x))[0, 1] > 0.9
    assert fit.mean([[0.5]])[0] == pytest.approx(3.0, abs=0.2)


EDGES = {
    "single": ([[0.5]], [1.0]),
    "constant": ([[0.1], [0.5], [0.9]], [2.0, 2.0, 2.0]),
    "ties": ([[0.1], [0.5], [0.9], [0.7]], [2.0, 1.0, 2.0, 1.0]),
    "repeated": ([[0.5], [0.5], [0.5]], [1.0, 2.0, 1.5]),
    "same as past": (np.linspace(0, 1, 25)[:, None], wave(np.linspace(0, 1, 25)[:, None])),
    "huge": ([[0.1], [0.5], [0.9]], [-1e300, 0.0, 1e300]),
    "tiny": ([[0.1], [0.5], [0.9]], [1e-300, 2e-300, 4e-300]),
}


@pytest.mark.parametrize("edge", list(EDGES))
def test_odd_data_give_finite_predictions_and_positive_variances(edge: str) -> None:
    past, _, _ = two_waves(1.0)
    flat = SourceData("flat", [[0.2], [0.2], [0.8]], [1.0, 1.0, 1.0])
    X, y = EDGES[edge]
    past_tasks = learned([past, flat, past])
    fit = past_tasks.fit(X, y, start=None, rng=np.random.default_rng(1))
    for model in (fit, past_tasks.fit(X, y, start=fit, rng=np.random.default_rng(1)), fit.condition(X, y)):
        mean, variance = model.predict(np.linspace(-0.1, 1.1, 9)[:, None])
        assert np.isfinite(mean).all()
        assert np.isfinite(variance).all()
        assert (variance > 0).all()
    np.testing.assert_array_equal(fit.X, X)
    np.testing.assert_array_equal(fit.y, y)
    assert fit.n == len(y)


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


def test_a_task_posterior_is_the_last_task_of_its_model() -> None:
    Xs, ys, shape = tasks("conditional")
    model = make_multitask(Xs, ys, shape=shape, hyper=some_hyper())
    view, X = TaskPosterior(model), points(5, "conditional", np.random.default_rng(0))
    np.testing.assert_array_equal(view.X, Xs[2])
    np.testing.assert_array_equal(view.y, ys[2])
    np.testing.assert_array_equal(view.mean(X), model.mean(X, task=2))
    for include in (False, True):
        np.testing.assert_array_equal(
            view.predict(X, include_noise=include), model.predict(X, task=2, include_noise=include)
        )
        got, wanted = view.joint(X, include_noise=include), model.joint(X, task=2, include_noise=include)
        np.testing.assert_array_equal(got[1], wanted[1])
    np.testing.assert_array_equal(view.covariance(X, X[:2]), model.covariance(X, X[:2], task=2))
    np.testing.assert_array_equal(view.correlations, model.hyper.correlations[2, :2])
    assert (view.jitter, view.shape, view.n) == (model.jitter, shape, SIZES[2])
    after = view.condition(X[:2], [1.0, 2.0])
    np.testing.assert_array_equal(after.y, [*ys[2], 1.0, 2.0])
    np.testing.assert_array_equal(after.X, np.vstack((Xs[2], X[:2])))


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


def test_without_past_runs_the_fit_is_that_of_a_single_process() -> None:
    _, X, y = two_waves(1.0, 9)
    fit = learned([]).fit(X, y, start=None, rng=np.random.default_rng(0))
    alone = fit_gp(X, y, settings=FitSettings(TARGET_PRIOR, restarts=0), rng=np.random.default_rng(0))
    assert fit.model.log_posterior == pytest.approx(alone.log_posterior, abs=1e-3)
    x = np.linspace(0, 1, 9)[:, None]
    np.testing.assert_allclose(fit.mean(x), alone.mean(x), atol=0.01)
    assert fit.correlations.size == 0


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TaskHyperparameters, int]]:
    """Starting points and numbers of restarts of all fits."""
    calls: list[tuple[TaskHyperparameters, int]] = []

    def noted(*args, start, settings, **rest):
        calls.append((start, settings.restarts))
        return fit_multitask(*args, start=start, settings=settings, **rest)

    monkeypatch.setattr("recollect.transfer.multitask.fit_multitask", noted)
    return calls


def test_the_first_fit_starts_with_the_new_task_as_an_average_of_the_past_ones(starts) -> None:
    past, X, y = two_waves(1.0, 8)
    past_tasks = learned([past, past.at(np.arange(9))], MultiTask(rank=2, restarts=1))
    past_tasks.fit(X, y, start=None, rng=np.random.default_rng(0))
    found, (first, restarts) = past_tasks.hyper, starts[-1]
    assert restarts == 1
    np.testing.assert_array_equal(first.lengthscales, found.lengthscales)
    np.testing.assert_allclose(first.shared[:, 0], [*found.shared[:, 0], found.shared[:, 0].mean()])
    np.testing.assert_allclose(first.own, [*found.own, np.sqrt(found.own.prod())])
    np.testing.assert_allclose(first.noise, [*found.noise, np.sqrt(found.noise.prod())])
    assert first.shared[:, 1].any()


def test_a_fit_goes_on_from_the_one_before_and_from_nothing_else(starts) -> None:
    past, X, y = two_waves(1.0, 8)
    past_tasks = learned([past, past], MultiTask(rank=2, restarts=1))
    before = past_tasks.fit(X[:7], y[:7], start=None, rng=np.random.default_rng(0))
    cold = starts[-1][0]
    past_tasks.fit(X, y, start=before, rng=np.random.default_rng(0))
    assert starts[-1] == (before.model.hyper, 0)
    stranger = make_gp(X, y, shape=ONE, hyper=Hyperparameters.default(1))
    fewer_tasks = learned([past]).fit(X, y, start=None, rng=np.random.default_rng(0))
    for start in (stranger, fewer_tasks):
        past_tasks.fit(X, y, start=start, rng=np.random.default_rng(0))
        assert starts[-1][1] == 1
        np.testing.assert_array_equal(theta_of(starts[-1][0]), theta_of(cold))


def test_the_same_random_numbers_give_the_same_fit() -> None:
    past, X, y = two_waves(1.0)
    fits = [
        learned([past], MultiTask(restarts=2)).fit(X, y, start=None, rng=np.random.default_rng(4)) for _ in range(2)
    ]
    np.testing.assert_array_equal(theta_of(fits[0].model.hyper), theta_of(fits[1].model.hyper))


def test_too_many_past_observations_are_refused_with_a_reason_and_a_way_out() -> None:
    run = SourceData("run", np.linspace(0, 1, 8)[:, None], np.arange(8.0))
    with pytest.raises(InputError) as error:
        learned([run] * 3, MultiTask(most=23))
    for words in (
        "at most 23",
        "got 24 from 3 runs",
        "cubic",
        "0.1 seconds per suggestion",
        "fewer past runs",
        "rgpe-taf",
    ):
        assert words in str(error.value)
    with pytest.raises(InputError, match="at most 23"):
        MultiTask(most=23).check([run] * 3)
    MultiTask(most=24).check([run] * 3)
    assert learned([run] * 3, MultiTask(most=24)).hyper is not None
    many = SourceData("many", np.linspace(0, 1, 2 * MOST)[:, None], np.arange(2.0 * MOST))
    with pytest.raises(InputError, match=rf"at most {MOST} .* got {2 * MOST} .* about 8\.0 seconds"):
        learned([many])


def test_w_gets_no_more_columns_than_tasks_can_use() -> None:
    assert [MultiTaskSettings(rank=2).columns(t) for t in (1, 2, 3, 4)] == [0, 1, 2, 2]


BAD = {
    "no tasks": (lambda: make_multitask([], [], shape=ONE, hyper=some_hyper(1, 0, d=1)), "at least one task"),
    "uneven": (lambda: make_multitask([[[0.0]]], [], shape=ONE, hyper=some_hyper(1, 0, d=1)), "got 1 and 0"),
    "columns": (lambda: make_multitask([[[0.0, 1.0]]], [[1.0]], shape=ONE, hyper=some_hyper(1, 0, d=1)), "task 0"),
    "empty task": (lambda: make_multitask([np.empty((0, 1))], [[]], shape=ONE, hyper=some_hyper(1, 0, d=1)), "n >= 1"),
    "nan": (lambda: make_multitask([[[0.0]]], [[np.nan]], shape=ONE, hyper=some_hyper(1, 0, d=1)), "finite targets"),
    "hyper": (lambda: make_multitask([[[0.0]]], [[1.0]], shape=ONE, hyper=some_hyper(2, 1, d=1)), "2 tasks with 1"),
    "task": (lambda: one_point().predict([[0.0]], task=1), "from 0 to 0, got 1"),
    "negative task": (lambda: one_point().condition([[0.0]], [1.0], task=-1), "from 0 to 0, got -1"),
    "inputs": (lambda: one_point().mean([[0.0, 1.0]], task=0), r"\(m, 1\)"),
    "new columns": (lambda: one_point().condition([[0.0, 1.0]], [1.0], task=0), r"\(m, 1\)"),
    "zero own": (lambda: TaskHyperparameters([1.0], [[1.0]], [0.0], [1.0]), "own positive"),
    "nan W": (lambda: TaskHyperparameters([1.0], [[np.nan]], [1.0], [1.0]), "shared finite"),
    "axes": (lambda: TaskHyperparameters([1.0], [1.0], [1.0], [1.0]), "with 2 axes"),
    "sizes": (lambda: TaskHyperparameters([1.0], [[1.0]], [1.0, 1.0], [1.0]), "t >= 1"),
    "rank": (lambda: MultiTask(rank=-1), "rank >= 0, got -1"),
    "restarts": (lambda: MultiTaskSettings(restarts=-1), "restarts >= 0, got -1"),
    "most": (lambda: MultiTask(most=-1), "most >= 0, got -1"),
    "start": (lambda: fit_from(some_hyper(2, 1, d=1)), r"W \(1, 0\), got 1 and \(2, 1\)"),
    "past": (lambda: learned([SourceData("odd", np.zeros((2, 3)), [1.0, 2.0])]), "'odd'"),
}


def one_point():
    return make_multitask([[[0.0]]], [[1.0]], shape=ONE, hyper=some_hyper(1, 0, d=1))


def fit_from(start: TaskHyperparameters):
    rng = np.random.default_rng(0)
    return fit_multitask([[[0.0]]], [[1.0]], shape=ONE, settings=MultiTaskSettings(), start=start, rng=rng)


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_is_refused_and_named(case: str) -> None:
    call, words = BAD[case]
    with pytest.raises(InputError, match=words):
        call()
