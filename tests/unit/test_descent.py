"""Multistart L-BFGS-B."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from recollect.errors import InputError
from recollect.numerics.descent import minimize_multistart

BOX = np.array([[-2.0, 2.0], [-2.0, 2.0]])


def rosenbrock(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(rosen(x)), rosen_der(x)


def two_wells(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Wells near -1 and 1; the one near 1 is deeper."""
    return float((x[0] ** 2 - 1) ** 2 - 0.2 * x[0]), np.array([4 * x[0] * (x[0] ** 2 - 1) - 0.2])


def test_finds_what_scipy_finds_from_the_same_start() -> None:
    start = np.array([-1.2, 1.0])
    best, value, evaluations = minimize_multistart(rosenbrock, start[None], BOX)
    reference = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", bounds=BOX)
    np.testing.assert_array_equal(best, reference.x)
    assert value == reference.fun
    assert evaluations == reference.nfev


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_keeps_the_best_of_all_starts(order: list[int]) -> None:
    starts = np.array([[-1.5], [1.5]])[order]
    best, value, _ = minimize_multistart(two_wells, starts, BOX[:1])
    assert best[0] > 0.9
    assert value == two_wells(best)[0]


def test_bounds_hold_and_starts_outside_are_moved_in() -> None:
    seen = []

    def slope_only(x: np.ndarray) -> tuple[float, np.ndarray]:
        seen.append(x.copy())
        return float(x.sum()), np.ones(2)

    best, value, _ = minimize_multistart(slope_only, np.array([[50.0, -50.0]]), BOX)
    np.testing.assert_array_equal(best, [-2.0, -2.0])
    assert value == -4.0
    assert np.abs(seen).max() <= 2.0


@pytest.mark.parametrize("bad", [(np.nan, 0.0), (np.inf, 0.0), (-np.inf, 0.0), (0.0, np.nan), (0.0, -np.inf)])
def test_points_that_are_not_finite_count_as_refused(bad: tuple[float, float]) -> None:
    def parabola(x: np.ndarray) -> tuple[float, np.ndarray]:
        if x[0] > 1.2:
            return bad[0], np.array([bad[1]])
        return float((x[0] - 0.4) ** 2), np.array([2 * (x[0] - 0.4)])

    best, value, _ = minimize_multistart(parabola, np.array([[1.5], [-0.1]]), BOX[:1])
    assert best[0] == pytest.approx(0.4, abs=1e-6)
    assert value < 1e-10
    best, value, evaluations = minimize_multistart(parabola, np.array([[1.5]]), BOX[:1])
    assert (best[0], value, evaluations) == (1.5, 1e25, 1)


def test_a_run_that_meets_a_refused_point_keeps_the_best_before_it() -> None:
    def cliff(x: np.ndarray) -> tuple[float, np.ndarray]:
        return (np.nan if x[0] > 0.5 else float(-x[0])), np.array([-1.0])

    best, value, _ = minimize_multistart(cliff, np.array([[-1.9]]), BOX[:1])
    assert -1.9 <= best[0] <= 0.5
    assert value == -best[0]


def test_without_parameters_the_objective_is_evaluated_once() -> None:
    best, value, evaluations = minimize_multistart(lambda x: (3.0, x), np.zeros((4, 0)), np.zeros((0, 2)))
    assert (best.shape, value, evaluations) == ((0,), 3.0, 1)


def test_the_number_of_evaluations_can_be_limited() -> None:
    _, _, free = minimize_multistart(rosenbrock, np.array([[-1.2, 1.0]]), BOX)
    _, _, limited = minimize_multistart(rosenbrock, np.array([[-1.2, 1.0]]), BOX, evaluations=5)
    assert limited < 10 < free


@pytest.mark.parametrize(
    ("starts", "bounds"),
    [(np.zeros((0, 2)), BOX), (np.zeros(2), BOX), (np.zeros((1, 3)), BOX), (np.zeros((1, 2)), BOX.T[:1])],
)
def test_shapes_that_do_not_match_are_refused(starts: np.ndarray, bounds: np.ndarray) -> None:
    with pytest.raises(InputError, match="expected starts"):
        minimize_multistart(rosenbrock, starts, bounds)
