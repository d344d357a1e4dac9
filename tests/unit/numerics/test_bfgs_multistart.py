"""Multistart L-BFGS-B."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from recollect.errors import InputError
from recollect.numerics.bfgs import minimize_multistart

BOX = np.array([[-2.0, 2.0], [-2.0, 2.0]])


def rosenbrock(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(rosen(x)), rosen_der(x)


def test_finds_what_scipy_finds_from_the_same_start() -> None:
    start = np.array([-1.2, 1.0])
    best, value, evaluations = minimize_multistart(rosenbrock, start[None], BOX)
    reference = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", bounds=BOX)
    np.testing.assert_array_equal(best, reference.x)
    assert value == reference.fun
    assert evaluations == reference.nfev


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
    _, _, limited = minimize_multistart(rosenbrock, np.array([[-1.2, 1.0]]), BOX, max_evaluations=5)
    assert limited < 10 < free


@pytest.mark.parametrize(
    ("starts", "bounds"),
    [(np.zeros((0, 2)), BOX), (np.zeros(2), BOX), (np.zeros((1, 3)), BOX), (np.zeros((1, 2)), BOX.T[:1])],
)
def test_shapes_that_do_not_match_are_refused(starts: np.ndarray, bounds: np.ndarray) -> None:
    with pytest.raises(InputError, match="expected starts"):
        minimize_multistart(rosenbrock, starts, bounds)
