"""The common scale of past runs, and the density of the levels they have."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import kendalltau, norm

from recollect.numerics.arrays import KernelShape
from recollect.surrogate.kernels import Hyperparameters
from recollect.surrogate.scaling import compress_tail
from recollect.transfer.past_functions import OTHER_UNITS, PastFunctions, Tabulated, TaskLevels, raw_units
from recollect.transfer.sources import SourceData, Sources

SHAPE = KernelShape(np.array([False]), conditional=False)
REFERENCE = np.linspace(0, 1, 41)[:, None]


def past(*scales: tuple[float, float]) -> PastFunctions:
    """Past runs of one function with other offsets and scales, evaluated densely."""
    X = np.linspace(0, 1, 101)[:, None]
    data = [SourceData(f"task {i}", X, a + b * np.square(X[:, 0] - 0.4)) for i, (a, b) in enumerate(scales)]
    theta = np.repeat(Hyperparameters(4.0, np.array([0.5]), 1e-6).log()[None], len(data), axis=0)
    return PastFunctions(Sources(data, shape=SHAPE, theta=theta), REFERENCE)


def test_runs_that_differ_in_offset_and_scale_are_the_same_on_the_common_scale() -> None:
    functions = past((0.0, 1.0), (5.0, 20.0))
    first, second = functions.observations(0)[1], functions.observations(1)[1]
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert first.argmin() == 40


def test_a_level_is_the_value_where_the_common_scale_is_zero() -> None:
    functions = past((3.0, 2.0))
    X, z = functions.observations(0)
    levels = functions.levels()
    y = 3.0 + 2.0 * np.square(X[:, 0] - 0.4)
    at_zero = np.interp(0.0, np.sort(z), np.sort(y))
    assert levels.centres[0] == pytest.approx(at_zero, abs=0.01)
    slope = np.interp(0.02, np.sort(z), np.sort(y)) - np.interp(-0.02, np.sort(z), np.sort(y))
    assert math.exp(levels.log_spreads[0]) == pytest.approx(slope / 0.04, rel=0.05)


def test_raw_units_undo_the_compression() -> None:
    y = np.array([1.0, 2.0, 4.0, 9.0, 30.0])
    t, middle, scale = compress_tail(y)
    back, _ = raw_units(t, np.ones(5), middle, scale, True)
    np.testing.assert_allclose(back, y)


def test_the_density_of_levels_integrates_to_one() -> None:
    levels = TaskLevels.of(np.array([1.0, 2.0, 2.5]), np.array([0.5, 0.7, 1.1]))

    def density(log_spread: float, centre: float) -> float:
        return math.exp(levels.log_density(np.array([centre]), np.array([log_spread]))[0])

    narrow = dblquad(density, -60, 60, -25, 25, epsabs=1e-3)[0]
    assert narrow == pytest.approx(1.0, abs=0.02)


def test_errors_widen_the_density_as_a_convolution() -> None:
    levels = TaskLevels.of(np.array([1.0]), np.array([1.0]))
    width = levels.widths[0]
    at = levels.log_density(np.array([1.5]), np.array([0.0]), np.array([2.0]))[0]
    near = norm(1.0, math.hypot(width, 2.0)).pdf(1.5) * norm(0.0, levels.widths[1]).pdf(0.0)
    far = norm(1.0, levels.wide[0]).pdf(1.5) * norm(0.0, levels.wide[1]).pdf(0.0)
    assert at == pytest.approx(math.log((1 - OTHER_UNITS) * near + OTHER_UNITS * far))


def test_copies_of_a_run_do_not_sharpen_the_density() -> None:
    one = TaskLevels.of(np.array([1.0]), np.array([1.0]))
    copies = TaskLevels.of(np.full(1000, 1.0), np.full(1000, 1.0))
    assert one.widths == copies.widths
    assert one.typical == pytest.approx(copies.typical)


def test_tabulated_values_are_those_of_the_function() -> None:
    calls: list[int] = []

    def evaluate(X: np.ndarray) -> np.ndarray:
        calls.append(len(X))
        return np.vstack((X[:, 0], X[:, 0] ** 2))

    table = Tabulated(evaluate, REFERENCE)
    rows = np.array([[0.5], [0.123], [1.0]])
    np.testing.assert_array_equal(table(rows), evaluate(rows))
    assert calls[:2] == [41, 1]


def smooth_runs(count: int, trials: int, *, noise: float, seed: int = 0) -> PastFunctions:
    """Past runs of one parabola under noise; with much noise there is nothing else in them."""
    rng = np.random.default_rng(seed)
    data = []
    for i in range(count):
        X = rng.random((trials, 1))
        data.append(SourceData(f"task {i}", X, np.square(X[:, 0] - 0.4) + noise * rng.normal(size=trials)))
    theta = np.repeat(Hyperparameters(1.0, np.array([0.3]), 0.1).log()[None], count, axis=0)
    return PastFunctions(Sources(data, shape=SHAPE, theta=theta), REFERENCE)


def test_agreement_is_a_mean_rank_correlation_in_standard_errors() -> None:
    functions = smooth_runs(5, 20, noise=0.05)
    above, trials = [], 20
    for i in range(5):
        data, rows = functions.sources.data(i), []
        for j in range(5):
            # One run's function on the common scale, up to offset and scale, which `observations` shows.
            (_, z), y = functions.observations(j), functions.sources.data(j).y
            order = np.argsort(y)
            if j != i:
                rows.append(np.interp(functions.sources.means(data.X)[j], y[order], z[order]))
        tau = kendalltau(np.mean(rows, axis=0), data.y).statistic
        above.append((tau - 0.1) / math.sqrt(2 * (2 * trials + 5) / (9 * trials * (trials - 1))))
    assert functions.agreement() == pytest.approx(sum(above) / math.sqrt(5), rel=0.05)


def test_runs_of_one_function_agree_and_noise_does_not() -> None:
    assert smooth_runs(6, 30, noise=0.01).agreement() > 10.0
    assert smooth_runs(12, 50, noise=100.0).agreement() < -2.0


@pytest.mark.parametrize(("count", "trials"), [(1, 50), (4, 50), (30, 4)])
def test_few_or_short_past_runs_are_not_judged(count: int, trials: int) -> None:
    assert smooth_runs(count, trials, noise=100.0).agreement() == 0.0


def test_constant_past_runs_are_not_judged() -> None:
    X = np.linspace(0, 1, 9)[:, None]
    theta = np.repeat(Hyperparameters(1.0, np.array([0.3]), 0.1).log()[None], 6, axis=0)
    constant = Sources([SourceData(f"task {i}", X, np.ones(9)) for i in range(6)], shape=SHAPE, theta=theta)
    assert PastFunctions(constant, REFERENCE).agreement() == 0.0


def test_a_run_that_its_model_takes_for_noise_stays_within_ten_spreads() -> None:
    X = np.linspace(0, 1, 20)[:, None]
    y = np.random.default_rng(3).normal(size=20)
    theta = Hyperparameters(1e-12, np.array([0.3]), 1.0).log()[None]
    functions = PastFunctions(Sources([SourceData("noise", X, y)], shape=SHAPE, theta=theta), REFERENCE)
    z = functions.observations(0)[1]
    assert z.std() == pytest.approx(10.0)
    assert functions.levels().log_spreads[0] > math.log(0.05)
