"""What every search for a minimum from several starting points does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from recollect.numerics.bfgs import BFGSOptions, minimize_batched_bfgs, minimize_multistart

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]
Minimizer = Callable[[Function, np.ndarray, np.ndarray], tuple[np.ndarray, float, int]]
BOX = np.array([[-2.0, 2.0], [-2.0, 2.0]])


def batched_bfgs(function: Function, starts: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float, int]:
    """The best end, its value, and how many points were evaluated."""
    evaluated = []

    def objective(x: np.ndarray, _group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        evaluated.extend(map(function, x))
        pairs = evaluated[-len(x) :]
        return np.array([value for value, _ in pairs]), np.array([slope for _, slope in pairs])

    ends, values = minimize_batched_bfgs(
        objective, starts, bounds, group=np.zeros(len(starts), dtype=int), options=BFGSOptions()
    )
    return ends[values.argmin()], float(values.min()), len(evaluated)


@pytest.fixture(params=[minimize_multistart, batched_bfgs], ids=["multistart", "batched_bfgs"])
def minimizer(request: pytest.FixtureRequest) -> Minimizer:
    made: Minimizer = request.param
    return made


def rosenbrock(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(rosen(x)), rosen_der(x)


def two_wells(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Wells near -1 and 1; the one near 1 is deeper."""
    return float((x[0] ** 2 - 1) ** 2 - 0.2 * x[0]), np.array([4 * x[0] * (x[0] ** 2 - 1) - 0.2])


@pytest.mark.parametrize("d", [2, 5])
def test_finds_the_minimum_of_rosenbrock(minimizer: Minimizer, d: int) -> None:
    box = np.tile([-2.0, 2.0], (d, 1))
    best, value, evaluations = minimizer(rosenbrock, np.full((1, d), -0.5), box)
    np.testing.assert_allclose(best, np.ones(d), atol=1e-3)
    assert value < 1e-6
    assert evaluations < 40 * d


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_keeps_the_best_of_all_starts(minimizer: Minimizer, order: list[int]) -> None:
    starts = np.array([[-1.5], [1.5]])[order]
    best, value, _ = minimizer(two_wells, starts, BOX[:1])
    assert best[0] > 0.9
    assert value == two_wells(best)[0]


def test_bounds_hold_and_starts_outside_are_moved_in(minimizer: Minimizer) -> None:
    seen = []

    def slope_only(x: np.ndarray) -> tuple[float, np.ndarray]:
        seen.append(x.copy())
        return float(x.sum()), np.ones(2)

    best, value, _ = minimizer(slope_only, np.array([[50.0, -50.0]]), BOX)
    np.testing.assert_array_equal(best, [-2.0, -2.0])
    assert value == -4.0
    assert np.abs(seen).max() <= 2.0


@pytest.mark.parametrize("bad", [(np.nan, 0.0), (np.inf, 0.0), (-np.inf, 0.0), (0.0, np.nan), (0.0, -np.inf)])
def test_a_start_that_is_not_finite_is_refused(minimizer: Minimizer, bad: tuple[float, float]) -> None:
    def parabola(x: np.ndarray) -> tuple[float, np.ndarray]:
        if x[0] > 1.2:
            return bad[0], np.array([bad[1]])
        return float((x[0] - 0.4) ** 2), np.array([2 * (x[0] - 0.4)])

    best, value, _ = minimizer(parabola, np.array([[1.5], [-0.1]]), BOX[:1])
    assert best[0] == pytest.approx(0.4, abs=1e-6)
    assert value < 1e-10
    best, value, evaluations = minimizer(parabola, np.array([[1.5]]), BOX[:1])
    assert (best[0], value, evaluations) == (1.5, 1e25, 1)
