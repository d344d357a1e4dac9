"""The task prior against a literal implementation: loops and dense covariances, no algebra shared with the module."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from recollect import InputError
from recollect.numerics.arrays import KernelShape
from recollect.surrogate.fit import FitSettings, fit_gp
from recollect.surrogate.gp import GP
from recollect.surrogate.kernels import Hyperparameters
from recollect.transfer.sources import SourceData, Sources
from recollect.transfer.task_prior import (
    FLAT,
    Factor,
    Hypothesis,
    PreparedTaskPrior,
    Structure,
    TaskPrior,
    TaskPriorPosterior,
    fit_process,
    plain_log_evidence,
    scaled_values,
)

SHAPE = KernelShape(np.array([False, False, True]), conditional=False)
RNG = np.random.default_rng(5)
SIGNS = {"alike": 1.0, "reversed": -1.0, "unrelated": 0.0}


def points(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack((rng.random((count, 2)), rng.integers(3, size=count)))


def value(X: np.ndarray, shift: float) -> np.ndarray:
    return np.asarray(np.exp((X[:, 0] - 0.3 - shift) ** 2 + 2 * (X[:, 1] - 0.6 + shift) ** 2 + 0.2 * (X[:, 2] == 1)))


def sources(count: int = 4) -> Sources:
    data = [SourceData(f"task {i}", X := points(9 + i, i), (1 + i) * value(X, 0.1 * i) + i) for i in range(count)]
    scales = [[0.5 + 0.1 * i, 0.4, 0.9] for i in range(count)]
    theta = np.array([Hyperparameters(1.5, np.array(scale), 1e-4).log() for scale in scales]).reshape(count, 5)
    return Sources(data, shape=SHAPE, theta=theta)


REFERENCE = points(60, 99)
X, NEW = points(7, 7), points(5, 8)
Y = value(X, 0.15)


def plain_process() -> GP:
    settings = FitSettings(restarts=0)
    return fit_gp(X, scaled_values(Y), categorical=SHAPE.categorical, settings=settings, start=None, rng=RNG)


def prepared(count: int = 4, **settings: Any) -> PreparedTaskPrior:
    return TaskPrior(**settings).prepare(sources(count), REFERENCE, finite=False)


def literal_scale(run: Sources, i: int) -> Callable[[float], float]:
    """The common scale of run i by its definition, one number at a time."""
    over = run.means(REFERENCE)[i]
    middle = sorted(over)[29] / 2 + sorted(over)[30] / 2
    scale = math.sqrt(sum((v - middle) ** 2 for v in over if v <= middle) / sum(v <= middle for v in over))

    def compressed(v: float) -> float:
        return (v - middle) / scale if v <= middle else math.log(1 + (v - middle) / scale)

    everywhere = [compressed(v) for v in over]
    return lambda v: float((compressed(v) - np.mean(everywhere)) / np.std(everywhere))


def literal_kernel(a: np.ndarray, b: np.ndarray, scales: np.ndarray) -> float:
    r = math.sqrt(sum((a[j] - b[j]) ** 2 / scales[j] ** 2 for j in (0, 1)))
    matern = (1 + math.sqrt(5) * r + 5 * r * r / 3) * math.exp(-math.sqrt(5) * r)
    return matern * math.exp(-float(a[2] != b[2]) / (2 * scales[2] ** 2))


class Literal:
    """Prior mean and covariance between any points: EM with inverses of whole matrices, by precisions."""

    def __init__(self, run: Sources, rows: np.ndarray) -> None:
        k = len(run)
        ordered = np.sort(np.exp(run.theta[:, 1:-1]), axis=0)
        scales = np.sqrt(ordered[1] * ordered[2])  # the median of four, on the scale of logarithms
        self.K = np.array([[literal_kernel(a, b, scales) for b in rows] for a in rows])
        Z = np.concatenate([run.data(i).X for i in range(k)])
        K = np.array([[literal_kernel(a, b, scales) for b in Z] for a in Z]) + 1e-6 * np.eye(len(Z))

        def weights(points: np.ndarray) -> np.ndarray:
            return np.array([[literal_kernel(a, b, scales) for b in Z] for a in points]) @ np.linalg.inv(K)

        mu, S, noise = np.zeros(len(Z)), K, 0.05
        for _ in range(5):
            means, spreads, squares = [], [], []
            for i in range(k):
                W, z = weights(run.data(i).X), np.array([literal_scale(run, i)(v) for v in run.data(i).y])
                residual = np.maximum(1 - np.diagonal(W @ K @ W.T), 0.0)
                precision = np.linalg.inv(S) + W.T @ np.diag(1 / (residual + noise)) @ W
                P = np.linalg.inv(precision)
                means.append(P @ (np.linalg.solve(S, mu) + W.T @ (z / (residual + noise))))
                spreads.append(P)
                squares += [*((z - W @ means[-1]) ** 2 + np.diagonal(W @ P @ W.T))]
            mu = np.mean(means, axis=0)
            S = (sum(P + np.outer(m - mu, m - mu) for m, P in zip(means, spreads, strict=True)) + K) / (k + 1)
            noise = max(float(np.mean(squares)), 1e-4)
        W = weights(rows)
        self.mean, self.C, self.tasks = W @ mu, W @ S @ W.T, np.array(means) @ W.T


LITERAL = Literal(sources(), np.concatenate((X, NEW)))
ROWS = np.concatenate((X, NEW))
PLAIN = plain_process()
FITTED = np.array([[literal_kernel(a, b, PLAIN.lengthscales) for b in ROWS] for a in ROWS])


def literal_covariance(structure: Structure) -> np.ndarray:
    """The prior covariance of g and its offset at X and NEW."""
    S = structure.deviation**2 * (LITERAL.K, FITTED)[structure.kernel] + FLAT
    return S + LITERAL.C if structure.uses_past else S


def literal_process(hypothesis: str, structure: Structure, noise: float) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Mean and covariance of t at NEW, the scale, and the evidence, by scipy and one dense covariance."""
    n, t = len(X), scaled_values(Y)
    mean = SIGNS[hypothesis] * LITERAL.mean
    S = literal_covariance(structure)
    observed = S[:n, :n] + noise**2 * np.eye(n)

    def log_density(u: float) -> float:
        joint = multivariate_normal(mean[:n], observed, allow_singular=True).logpdf(u * t)
        return float(joint + (n - 1) * math.log(u) + 0.5 * math.log(2 * math.pi * FLAT))

    best = minimize_scalar(lambda log_u: -log_density(math.exp(log_u)), bracket=(-1.0, 0.0), tol=1e-12)
    u = math.exp(best.x)
    gain = S[n:, :n] @ np.linalg.inv(observed)
    predicted = (mean[n:] + gain @ (u * t - mean[:n])) / u
    return predicted, (S[n:, n:] - gain @ S[:n, n:]) / u**2, u, -best.fun


def test_moments_and_functions_are_those_of_a_literal_em() -> None:
    prior, rows = prepared(), np.concatenate((X, NEW))
    mean, features = prior.moments(rows)
    np.testing.assert_allclose(mean, LITERAL.mean, atol=1e-5)
    np.testing.assert_allclose(features.T @ features, LITERAL.C, atol=1e-4)
    np.testing.assert_allclose(prior.functions(rows), LITERAL.tasks, atol=1e-5)


def test_every_process_predicts_like_a_dense_gaussian_process() -> None:
    posterior = prepared().fit(X, Y, PLAIN)
    means, variances = posterior._predictions(NEW, list(range(len(posterior.processes))))
    assert len(means) == (12 + 12) + 12 + 4
    assert {p.hypothesis for p in posterior.processes if posterior.factors[p.factor].structure.kernel} == {"alike"}
    for process, mean, variance in zip(posterior.processes, means, variances, strict=True):
        factor = posterior.factors[process.factor]
        expected = literal_process(process.hypothesis, factor.structure, factor.noise)
        assert process.u == pytest.approx(expected[2], rel=1e-4)
        np.testing.assert_allclose(mean, expected[0], atol=2e-4)
        np.testing.assert_allclose(variance, np.diagonal(expected[1]), rtol=1e-3, atol=1e-8)
        assert process.log_evidence == pytest.approx(expected[3], abs=1e-5)


def test_processes_are_averaged_by_prior_probability_and_evidence() -> None:
    plain, settings = PLAIN, TaskPrior(plain_probability=0.4, levels=False)
    posterior = settings.prepare(sources(), REFERENCE, finite=False).fit(X, Y, plain)
    parts = {"alike": 0.6 * 0.92 / 24, "reversed": 0.6 * 0.03 / 12, "unrelated": 0.6 * 0.05 / 4}
    raw = [parts[p.hypothesis] * math.exp(p.log_evidence) for p in posterior.processes]
    raw.append(0.4 * math.exp(plain_log_evidence(plain)))
    np.testing.assert_allclose(posterior.weights, np.array(raw) / sum(raw), rtol=1e-8)
    names: tuple[Hypothesis, ...] = ("alike", "reversed", "unrelated", "plain")
    assert sum(posterior.probability(name) for name in names) == pytest.approx(1.0)
    assert posterior.probability("plain") == pytest.approx(raw[-1] / sum(raw))


def test_length_scales_of_the_plain_process_take_part_from_five_results_on() -> None:
    def kernels(n: int, **settings: Any) -> int:
        return len(prepared(**settings).fit(X[:n], Y[:n], PLAIN).hypers)

    assert [kernels(4), kernels(5), kernels(5, fitted_scales=False)] == [1, 2, 1]
    assert len(prepared().fit(X, Y, None).hypers) == 1


def test_evidence_integrates_over_a_flat_offset() -> None:
    """With the offset's density 1 / sqrt(2 pi FLAT) taken out, a wide normal is flat: the integral over offsets."""
    process, t = prepared().fit(X, Y, None).processes[0], scaled_values(Y)
    n, S = len(X), 0.1**2 * LITERAL.K[:7, :7] + LITERAL.C[:7, :7] + 0.01**2 * np.eye(7)
    density = multivariate_normal(np.zeros(n), S, allow_singular=True)
    gap = process.u * t - LITERAL.mean[:n]

    def integrand(a: float) -> float:
        return math.exp(density.logpdf(gap - a) - process.log_evidence)

    middle = float(np.linalg.solve(S, gap).sum() / np.linalg.inv(S).sum())
    total = quad(integrand, middle - 3, middle + 3, points=[middle], limit=200)[0] * process.u ** (n - 1)
    assert total == pytest.approx(1.0, rel=0.02)  # FLAT is not infinite


def test_the_scale_is_where_the_evidence_is_highest() -> None:
    t, mean = scaled_values(Y), LITERAL.mean[:7]
    factor = Factor.of(LITERAL.C[:7, :7], (LITERAL.K[:7, :7],), Structure(True, 0.3), noise=0.1)
    process = fit_process(0, factor, "alike", t, mean)
    S = 0.3**2 * LITERAL.K[:7, :7] + LITERAL.C[:7, :7] + FLAT + 0.1**2 * np.eye(7)
    density = multivariate_normal(mean, S)

    def evidence(u: float) -> float:
        return float(density.logpdf(u * t) + 6 * math.log(u))

    assert evidence(process.u) > max(evidence(process.u * 1.01), evidence(process.u / 1.01))


def test_the_plain_evidence_is_the_density_of_the_values_less_the_price_of_its_fit() -> None:
    plain, t = plain_process(), scaled_values(Y)
    scales = plain.hyper.lengthscales
    K = np.array([[literal_kernel(a, b, scales) for b in X] for a in X])
    S = plain.s**2 * (plain.hyper.amplitude * K + plain.hyper.noise * np.eye(7))
    expected = multivariate_normal(np.full(7, plain.m), S, allow_singular=True).logpdf(t) - 5 / 4 * math.log(7)
    assert plain_log_evidence(plain) == pytest.approx(float(expected), abs=1e-4)


def test_conditioning_is_the_fit_with_more_values_at_the_same_scale() -> None:
    posterior = prepared().fit(X, Y, PLAIN)
    pending, at, t = NEW[:2], NEW[2:], np.array([0.3, -0.2])
    means, variances = posterior.condition(pending, t)._predictions(at, list(range(len(posterior.processes))))
    for h, process in enumerate(posterior.processes):
        factor = posterior.factors[process.factor]
        mean, spread, u, _ = literal_process(process.hypothesis, factor.structure, factor.noise)
        gain = spread[2:, :2] @ np.linalg.inv(spread[:2, :2] + (factor.noise / u) ** 2 * np.eye(2))
        np.testing.assert_allclose(means[h], mean[2:] + gain @ (t - mean[:2]), atol=2e-3)
        np.testing.assert_allclose(variances[h], np.diagonal(spread[2:, 2:] - gain @ spread[:2, 2:]), rtol=2e-3)


@pytest.mark.parametrize("finite", [False, True])
def test_reinterpolation_keeps_the_means_and_leaves_no_variance_at_visited_points(finite: bool) -> None:
    posterior = TaskPrior().prepare(sources(), REFERENCE, finite=finite).fit(X, Y, PLAIN)
    pending, at = NEW[:2], NEW[2:]
    given = posterior.reinterpolated(pending)
    everything = list(range(len(posterior.weights)))
    before, after = (posterior._predictions(at, everything, visited) for visited in (None, given))
    np.testing.assert_allclose(after[0], before[0], atol=1e-6)
    without_gain = pending if finite else given.X
    assert posterior._predictions(without_gain, everything[:-1], given)[1].max() < 1e-4
    rows = np.r_[0:9]  # evaluated and pending points among those of the literal covariance
    for h, process in enumerate(posterior.processes):
        factor = posterior.factors[process.factor]
        S = literal_covariance(factor.structure)
        noises = np.where(rows < 7, factor.noise if finite else 1e-4, 1e-4)
        gain = S[9:][:, rows] @ np.linalg.inv(S[np.ix_(rows, rows)] + np.diag(noises**2))
        expected = np.diagonal(S[9:, 9:] - gain @ S[rows, 9:]) / process.u**2
        np.testing.assert_allclose(after[1][h], expected, rtol=1e-4, atol=1e-8)


def test_the_mixture_has_the_moments_of_its_processes() -> None:
    posterior = prepared().fit(X, Y, PLAIN)
    weights, means, variances = posterior.components(NEW)
    mean, variance = posterior.predict(NEW)
    draws = [weights @ (v + m**2) for m, v in zip(means.T, variances.T, strict=True)]
    np.testing.assert_allclose(mean, weights @ means)
    np.testing.assert_allclose(variance, np.array(draws) - mean**2, atol=1e-9)
    np.testing.assert_allclose(posterior.mean(NEW), mean)


def test_coefficients_are_the_prior_mean_and_the_covariance_between_tasks() -> None:
    """Of C, the part of past task i is (f_i - m)(f_i - m)' / (k + 1)."""
    posterior = prepared(unrelated_probability=0.0, plain_probability=0.0).fit(X, Y, None)
    b = posterior.coefficients()
    assert b.sum() == pytest.approx(posterior.probability("alike") - posterior.probability("reversed"))
    own = np.zeros(len(NEW))
    gaps = LITERAL.tasks - LITERAL.mean
    for weight, process in zip(posterior.weights, posterior.processes, strict=False):
        between = sum(np.outer(gap[7:], gap[:7]) for gap in gaps) / 5
        own += weight * (SIGNS[process.hypothesis] * LITERAL.mean[7:] + between @ process.alpha)
    np.testing.assert_allclose(b @ LITERAL.tasks[:, 7:], own, atol=1e-4)


def test_one_past_run_leaves_more_uncertainty_than_ten_copies_of_it() -> None:
    one = sources(1)
    copies = Sources([one.data(0)] * 10, shape=SHAPE, theta=np.repeat(one.theta, 10, axis=0))
    few, many = (TaskPrior().prepare(runs, REFERENCE, finite=False) for runs in (one, copies))
    variances = [np.square(prior.moments(one.data(0).X)[1]).sum(axis=0) for prior in (few, many)]
    assert (variances[1] < variances[0]).all()
    assert np.isfinite(few.fit(X, Y, PLAIN).predict(NEW)).all()
    coefficients = many.fit(X, Y, None).coefficients()
    np.testing.assert_allclose(coefficients, coefficients[0])


def test_values_that_repeat_past_runs_make_the_new_task_alike_and_negated_ones_reversed() -> None:
    prior = prepared()
    rows = points(12, 3)
    mean = prior.moments(rows)[0]
    alike, reverse = (prior.fit(rows, sign * mean, None) for sign in (1.0, -1.0))
    assert alike.probability("alike") > 0.99
    assert reverse.probability("reversed") > 0.99
    assert np.corrcoef(alike.mean(NEW), prior.moments(NEW)[0])[0, 1] > 0.95
    assert np.corrcoef(reverse.mean(NEW), prior.moments(NEW)[0])[0, 1] < -0.95


@pytest.mark.parametrize(
    "y", [[2.0], [2.0, 2.0], [2.0, 2.0, 2.0], [1.0, 3.0], [1e300, -1e300, 0.0], [1e-300, 0.0, 0.0]]
)
def test_any_values_give_finite_predictions(y: list[float]) -> None:
    posterior = prepared().fit(X[: len(y)], np.array(y), None)
    assert np.isfinite(posterior.predict(NEW)).all()
    assert posterior.weights.sum() == pytest.approx(1.0)


def test_repeated_points_are_measurements_with_noise() -> None:
    rows = np.concatenate((X, X))
    posterior = prepared().fit(rows, np.concatenate((Y, Y + 0.1)), None)
    np.testing.assert_array_less(np.zeros(7), posterior.predict(X)[1])


def test_constant_past_runs_say_nothing() -> None:
    rows = points(6, 2)
    data = [SourceData("constant", rows, np.full(6, 4.5))]
    flat = Sources(data, shape=SHAPE, theta=Hyperparameters.default(3).log()[None])
    prior = TaskPrior().prepare(flat, REFERENCE, finite=False)
    np.testing.assert_allclose(prior.functions(NEW), 0.0, atol=1e-12)
    assert np.isfinite(prior.fit(X, Y, None).predict(NEW)).all()


def test_values_at_a_level_that_no_past_run_had_speak_against_alike() -> None:
    """The same values, shifted so far that past runs would have to lie elsewhere; the shape is the same."""
    prior = prepared()
    good = prior.moments(REFERENCE)[0].argsort()[:4]
    rows = REFERENCE[good]
    usual, high = (prior.fit(rows, value(rows, 0.15) * 2 + shift, None) for shift in (1.0, 60.0))
    assert high.probability("alike") < usual.probability("alike")
    unaware = prepared(levels=False)
    same = [unaware.fit(rows, value(rows, 0.15) * 2 + shift, None).probability("alike") for shift in (1.0, 60.0)]
    assert same[0] == pytest.approx(same[1])


def test_among_candidates_what_looks_like_noise_is_part_of_the_value() -> None:
    finite = TaskPrior().prepare(sources(), REFERENCE, finite=True).fit(X, Y, PLAIN)
    incumbents, lowest = finite.incumbents(X), finite.components(X)[1].min(axis=1)
    np.testing.assert_allclose(incumbents[:-1], scaled_values(Y).min())
    assert incumbents[-1] == lowest[-1]  # of the plain process, which decides as gp does
    latent = finite.components(NEW, finite.reinterpolated(NEW[:0]))[2]
    whole = finite.reinterpolated(NEW[:0]).components(NEW)[2]
    np.testing.assert_allclose(
        whole - latent, np.repeat(finite.noise_variances()[:, None], len(NEW), axis=1), atol=1e-9
    )
    continuous = prepared().fit(X, Y, PLAIN)
    np.testing.assert_allclose(continuous.incumbents(X), continuous.components(X)[1].min(axis=1))


def test_nothing_given_changes_nothing() -> None:
    posterior: TaskPriorPosterior = prepared().fit(X, Y, PLAIN)
    assert posterior.condition(NEW[:0], np.empty(0)) is posterior


@pytest.mark.parametrize(
    "settings",
    [{"deviations": ()}, {"noises": (0.1, 0.0)}, {"reference_points": 1}, {"plain_probability": 1.0},
     {"reversed_probability": 0.6, "unrelated_probability": 0.5}, {"plain_probability": -0.1}],
)  # fmt: skip
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="TaskPrior"):
        replace(TaskPrior(), **settings)
