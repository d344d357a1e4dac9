"""The search for hyperparameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from recollect import bench
from recollect.errors import InputError
from recollect.numerics.arrays import KernelShape
from recollect.surrogate.fit import SOURCE_BFGS, FitSettings, NegativeLogPosterior, RowPairs, fit_gp
from recollect.surrogate.kernels import Hyperparameters
from recollect.surrogate.prior import PAPER_PRIOR, SOURCE_PRIOR, Prior
from recollect.surrogate.scaling import standardize


def data(n: int = 25, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, np.sin(6 * X[:, 0]) + X[:, -1] ** 2 + 0.05 * rng.standard_normal(n)


def rng() -> np.random.Generator:
    return np.random.default_rng(11)


def within(value, bounds: tuple[float, float]) -> bool:
    return bool(np.all(value >= bounds[0]) and np.all(value <= bounds[1]))


@pytest.mark.parametrize("n", [1, 2, 3, 25])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("use_priors", [False, True])
def test_fitted_hyperparameters_respect_the_bounds_even_for_few_or_equal_targets(
    n: int, constant: bool, use_priors: bool
) -> None:
    X, y = data(n)
    prior = replace(PAPER_PRIOR, use_priors=use_priors)
    model = fit_gp(X, np.full(n, 2.5) if constant else y, settings=FitSettings(prior=prior), rng=rng())
    assert within(model.hyper.amplitude, prior.amplitude_bounds)
    assert within(model.hyper.lengthscales, prior.lengthscale_bounds)
    assert within(model.hyper.noise, prior.noise_bounds)
    mean, variance = model.predict(np.random.default_rng(1).random((10, 3)))
    assert np.isfinite(mean).all()
    assert (variance > 0).all()
    if constant:
        np.testing.assert_array_equal(mean, np.full(10, 2.5))


def test_narrower_bounds_are_respected_too() -> None:
    prior = Prior(amplitude_bounds=(0.5, 0.6), lengthscale_bounds=(0.05, 0.1), noise_bounds=(0.01, 0.02))
    model = fit_gp(*data(), settings=FitSettings(prior=prior), rng=rng())
    assert within(model.hyper.amplitude, (0.5, 0.6))
    assert within(model.hyper.lengthscales, (0.05, 0.1))
    assert within(model.hyper.noise, (0.01, 0.02))


@pytest.mark.parametrize("mine", [1, 2, 5])
def test_values_for_one_set_of_data_are_the_same_bits_in_any_company(mine: int) -> None:
    shape = KernelShape(np.array([False, True, False]), conditional=False)
    sets = [data(20, seed=seed) for seed in range(4)]
    pairs = [RowPairs(np.column_stack((X[:, 0], np.rint(2 * X[:, 1]), X[:, 2])), shape) for X, _ in sets]
    targets = [standardize(y)[0] for _, y in sets]
    alone = NegativeLogPosterior(pairs[2:3], targets[2:3], prior=PAPER_PRIOR)
    together = NegativeLogPosterior(pairs, targets, prior=PAPER_PRIOR)
    counts = np.array([3, 0, mine, 4])
    theta = rng().uniform(-3.0, 0.0, (counts.sum(), 5))
    own = slice(3, 3 + mine)
    expected = alone(theta[own])
    found = together(theta, np.repeat(np.arange(4), counts))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other[own])


def test_the_fit_is_a_maximum_of_the_posterior() -> None:
    X, y = data()
    model = fit_gp(X, y, rng=rng())
    objective = NegativeLogPosterior([RowPairs(model.X, model.shape)], [standardize(y)[0]], prior=PAPER_PRIOR)
    theta = model.hyper.log()
    (value,), (gradient,) = objective(theta[None])
    assert model.log_posterior == pytest.approx(-value, rel=1e-9)
    bounds = PAPER_PRIOR.log_bounds(3)
    inside = (theta > bounds[:, 0] + 1e-6) & (theta < bounds[:, 1] - 1e-6)
    assert np.abs(gradient[inside]).max() < 1e-2
    shifted = theta + 0.05 * np.vstack((np.eye(5), -np.eye(5)))
    assert objective(np.clip(shifted, bounds[:, 0], bounds[:, 1]))[0].min() >= value - 1e-6


def test_the_same_generator_gives_the_same_model_and_restarts_are_random() -> None:
    X, y = data(12)
    first, second = fit_gp(X, y, rng=rng()), fit_gp(X, y, rng=rng())
    np.testing.assert_array_equal(first.hyper.log(), second.hyper.log())
    starts = PAPER_PRIOR.draw_starts(5, 3, rng=rng())
    assert not np.array_equal(starts, PAPER_PRIOR.draw_starts(5, 3, rng=np.random.default_rng(12)))


def test_more_restarts_never_end_worse() -> None:
    X, y = data(15, seed=4)
    values = [fit_gp(X, y, settings=FitSettings(restarts=r), rng=rng()).log_posterior for r in (0, 30)]
    assert values[1] >= values[0] - 1e-9


def test_a_start_at_the_optimum_stays_there() -> None:
    X, y = data()
    best = fit_gp(X, y, rng=rng())
    again = fit_gp(X, y, settings=FitSettings(restarts=0), start=best.hyper, rng=rng())
    assert again.log_posterior >= best.log_posterior - 1e-9
    np.testing.assert_allclose(again.hyper.log(), best.hyper.log(), atol=1e-2)


def test_the_given_start_and_the_random_ones_are_all_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(20, 4)
    best = fit_gp(X, y, settings=FitSettings(restarts=20), rng=rng())
    hopeless = Hyperparameters(1.0, np.full(4, 0.0012), 1.0)  # a plateau: all points are unrelated, and mostly noise
    stuck = fit_gp(X, y, settings=FitSettings(restarts=0), start=hopeless, rng=rng())
    assert stuck.log_posterior < best.log_posterior - 1.0
    assert fit_gp(X, y, start=hopeless, rng=rng()).log_posterior >= best.log_posterior - 1e-6

    def draw_hopeless(self: Prior, count: int, d: int, *, rng: np.random.Generator) -> np.ndarray:
        return np.tile(hopeless.log(), (count, 1))

    monkeypatch.setattr(Prior, "draw_starts", draw_hopeless)
    assert fit_gp(X, y, start=best.hyper, rng=rng()).log_posterior >= best.log_posterior - 1e-6


def test_columns_that_never_vary_keep_the_length_scale_of_the_start() -> None:
    X, y = data(20, 4)
    X[:, 1] = 0.3
    X[:, 2] = np.nan
    assert fit_gp(X, y, rng=rng()).hyper.lengthscales[[1, 2]].tolist() == [1.0, 1.0]
    start = Hyperparameters(1.0, [0.5, 0.25, 0.125, 0.5], 1e-3)
    model = fit_gp(X, y, start=start, rng=rng())
    np.testing.assert_allclose(model.hyper.lengthscales[[1, 2]], [0.25, 0.125], rtol=1e-14)
    assert not np.isin(model.hyper.lengthscales[[0, 3]], 0.5).any()


def test_dropping_columns_that_never_vary_changes_nothing_else() -> None:
    X, y = data(20, 4)
    X[:, 1] = 0.3
    full, short = fit_gp(X, y, rng=rng()), fit_gp(X[:, [0, 2, 3]], y, rng=rng())
    np.testing.assert_allclose(full.hyper.lengthscales[[0, 2, 3]], short.hyper.lengthscales, rtol=1e-12)
    assert full.log_posterior == pytest.approx(short.log_posterior, rel=1e-12)


def test_inactive_entries_make_the_kernel_conditional_unless_told_otherwise() -> None:
    X, y = data(16)
    assert not fit_gp(X, y, rng=rng()).shape.conditional
    assert fit_gp(X, y, settings=FitSettings(conditional=True), rng=rng()).shape.conditional
    X[::2, 1] = np.nan
    model = fit_gp(X, y, rng=rng())
    assert model.shape.conditional
    unseen = np.array([[np.nan, 0.5, 0.5]])
    mean, variance = model.predict(unseen)
    assert mean[0] == model.m
    assert variance[0] == pytest.approx(model.s**2 * model.hyper.amplitude)
    assert not fit_gp(X, y, settings=FitSettings(conditional=False), rng=rng()).shape.conditional


def test_a_categorical_column_is_learned_by_equality() -> None:
    generator = np.random.default_rng(3)
    X = np.column_stack((generator.random(40), generator.integers(0, 4, 40)))
    y = np.array([0.0, 5.0, -3.0, 1.0])[X[:, 1].astype(int)] + 0.1 * X[:, 0]
    model = fit_gp(X, y, categorical=[False, True], rng=rng())
    means = model.mean(np.column_stack((np.full(4, 0.5), np.arange(4))))
    np.testing.assert_allclose(means, np.array([0.0, 5.0, -3.0, 1.0]) + 0.05, atol=0.05)


@pytest.mark.parametrize("magnitude", [1e-12, 1e300])
def test_the_fit_does_not_depend_on_the_units_of_the_targets(magnitude: float) -> None:
    X, y = data(15)
    base = fit_gp(X, y, rng=rng())
    model = fit_gp(X, magnitude * y, rng=rng())
    np.testing.assert_allclose(model.hyper.log(), base.hyper.log(), atol=1e-3)
    assert model.log_posterior == pytest.approx(base.log_posterior, rel=1e-9)


def test_repeated_points_with_equal_values_can_be_fitted() -> None:
    X, y = data(10)
    model = fit_gp(np.repeat(X, 4, axis=0), np.repeat(y, 4), rng=rng())
    np.testing.assert_allclose(model.mean(X), y, atol=1e-2)


def test_random_starts_follow_their_distributions_within_the_bounds() -> None:
    starts = PAPER_PRIOR.draw_starts(4000, 2, rng=rng())
    bounds = PAPER_PRIOR.log_bounds(2)
    assert starts.shape == (4000, 4)
    assert (starts >= bounds[:, 0]).all()
    assert (starts <= bounds[:, 1]).all()
    assert np.median(starts[:, 0]) == pytest.approx(0.0, abs=0.1)
    assert np.quantile(starts[:, 0], 0.1587) == pytest.approx(-1.0, abs=0.1)
    np.testing.assert_allclose(np.median(starts[:, 1:3], axis=0), bounds[1].mean(), atol=0.2)

    def below(limit: float) -> float:
        """P(|normal x Cauchy| < limit)"""
        return quad(lambda u: 2 * norm.pdf(u) * 2 / np.pi * np.arctan(limit / u), 0, np.inf)[0]

    median = brentq(lambda limit: below(limit) - 0.5, 0.1, 2.0)
    assert np.exp(np.median(starts[:, 3])) == pytest.approx(0.1 * median, rel=0.1)


def test_starts_for_past_runs_have_no_short_length_scale_and_are_else_the_same() -> None:
    starts, whole = SOURCE_PRIOR.draw_starts(4000, 2, rng=rng()), PAPER_PRIOR.draw_starts(4000, 2, rng=rng())
    np.testing.assert_array_equal(starts[:, [0, 3]], whole[:, [0, 3]])
    np.testing.assert_allclose(starts[:, 1:3].min(axis=0), np.log(0.15), atol=0.01)
    np.testing.assert_allclose(np.median(starts[:, 1:3], axis=0), np.log(0.15 * 1.08966) / 2.0, atol=0.1)


@pytest.mark.parametrize(("shortest", "least"), [(0.0, 0.3), (0.1, 0.3), (0.4, 0.4), (0.5, 0.5)])
def test_no_start_is_shorter_than_asked_for_nor_outside_the_bounds(shortest: float, least: float) -> None:
    prior = Prior(lengthscale_bounds=(0.3, 0.5), shortest_start=shortest)
    lengths = np.exp(prior.draw_starts(50, 2, rng=rng())[:, 1:3])
    assert least * (1.0 - 1e-12) <= lengths.min() <= lengths.max() <= 0.5 * (1.0 + 1e-12)


@pytest.mark.parametrize("shortest", [-0.1, 2.0, np.nan])
def test_a_shortest_start_outside_the_bounds_is_refused(shortest: float) -> None:
    with pytest.raises(InputError, match="shortest_start"):
        Prior(shortest_start=shortest)


def test_few_starts_that_are_not_too_short_find_what_many_from_anywhere_miss() -> None:
    benchmark = bench.load("own-svm-grid")
    gained = []
    for number, name in enumerate(benchmark.tasks[:12]):
        task = benchmark.task(name)
        rows = np.random.default_rng(number).choice(len(task.candidates), 50, replace=False)
        X = benchmark.space.encode([task.candidates[row] for row in rows])
        y = [task.evaluate(task.candidates[row]) for row in rows]
        few, many = (
            fit_gp(X, y, categorical=benchmark.space.categorical, settings=settings, rng=rng())
            for settings in (FitSettings(SOURCE_PRIOR, 4, bfgs=SOURCE_BFGS), FitSettings(PAPER_PRIOR, 10))
        )
        gained.append(few.log_posterior - many.log_posterior)
    assert np.mean(gained) > 0.05


def test_paper_prior_has_the_bounds_of_the_specification() -> None:
    np.testing.assert_allclose(PAPER_PRIOR.amplitude_bounds, (4.54e-5, 7.389), rtol=1e-4)
    np.testing.assert_allclose(PAPER_PRIOR.lengthscale_bounds, (0.001166, 1.08966), rtol=1e-3)
    np.testing.assert_allclose(PAPER_PRIOR.noise_bounds, (1.389e-11, 7.389), rtol=1e-3)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (2.0, 1.0), (1.0, np.inf), (np.nan, 1.0)])
def test_impossible_bounds_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="noise_bounds"):
        Prior(noise_bounds=bounds)
    with pytest.raises(InputError, match="horseshoe_scale"):
        Prior(horseshoe_scale=0.0)


def test_impossible_arguments_are_refused() -> None:
    X, y = data(5)
    with pytest.raises(InputError, match=r"shape \(3,\), got \(2,\)"):
        fit_gp(X, y, categorical=[True, False], rng=rng())
    with pytest.raises(InputError, match="3 length scales, got 2"):
        fit_gp(X, y, start=Hyperparameters.default(2), rng=rng())
    with pytest.raises(InputError, match="restarts >= 0, got -1"):
        FitSettings(restarts=-1)
    with pytest.raises(InputError, match="n >= 1"):
        fit_gp(np.zeros((0, 3)), [], rng=rng())
