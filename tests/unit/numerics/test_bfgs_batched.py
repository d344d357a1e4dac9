"""Projected BFGS from several starting points at once: batched BFGS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from recollect.errors import InputError
from recollect.numerics.bfgs import BFGSOptions, minimize_batched_bfgs

Pointwise = Callable[[np.ndarray], tuple[float, np.ndarray]]
DEFAULT_OPTIONS = BFGSOptions()
BOX = np.array([[-2.0, 2.0], [-2.0, 2.0]])


class Together:
    """Functions of one point as one of many points; counts the points."""

    def __init__(self, *functions: Pointwise) -> None:
        self.functions = functions
        self.evaluations = 0

    def __call__(self, x: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.evaluations += len(x)
        pairs = [self.functions[number](row) for row, number in zip(x, group, strict=True)]
        return np.array([value for value, _ in pairs]), np.array([slope for _, slope in pairs])


def best_candidate(
    function: Pointwise, starts: np.ndarray, bounds: np.ndarray, options: BFGSOptions = DEFAULT_OPTIONS
) -> tuple[np.ndarray, float, int]:
    objective = Together(function)
    ends, values = minimize_batched_bfgs(
        objective, starts, bounds, group=np.zeros(len(starts), dtype=int), options=options
    )
    return ends[values.argmin()], float(values.min()), objective.evaluations


def rosenbrock(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(rosen(x)), rosen_der(x)


def two_wells(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Wells near -1 and 1; the one near 1 is deeper."""
    return float((x[0] ** 2 - 1) ** 2 - 0.2 * x[0]), np.array([4 * x[0] * (x[0] ** 2 - 1) - 0.2])


@pytest.mark.parametrize("guess", [None, 0.02, 0.2, 20.0])
@pytest.mark.parametrize("seed", range(20))
def test_a_convex_function_in_a_box_has_the_minimum_that_scipy_finds(seed: int, guess: float | None) -> None:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 9))
    root, middle = rng.normal(size=(p, p)), rng.normal(scale=2.0, size=p)
    A = root @ root.T + 0.1 * np.eye(p)

    def bowl(x: np.ndarray) -> tuple[float, np.ndarray]:
        away = x - middle
        return float(0.5 * away @ A @ away + np.cosh(away).sum()), A @ away + np.sinh(away)

    box = np.sort(rng.normal(size=(p, 2)), axis=1)
    starts = rng.uniform(box[:, 0], box[:, 1], size=(4, p))
    tight = {"ftol": 1e-14, "gtol": 1e-9}
    reference = minimize(bowl, starts[0], jac=True, method="L-BFGS-B", bounds=box, options=tight)
    best, value, _ = best_candidate(bowl, starts, box, BFGSOptions(inverse_curvature=guess))
    assert value == pytest.approx(reference.fun, rel=1e-7, abs=1e-7)
    np.testing.assert_allclose(best, reference.x, atol=1e-3)
    assert np.all((best >= box[:, 0]) & (best <= box[:, 1]))


def test_with_the_right_guess_the_first_step_ends_in_the_minimum_of_a_parabola() -> None:
    def parabola(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(2.5 * np.square(x - 0.5).sum()), 5.0 * (x - 0.5)

    start = np.array([[-0.7, 1.9]])
    best, _, evaluations = best_candidate(parabola, start, BOX, BFGSOptions(inverse_curvature=0.2))
    assert (best.tolist(), evaluations) == (pytest.approx([0.5, 0.5], abs=1e-12), 2)
    assert best_candidate(parabola, start, BOX)[2] > 2


def test_a_guess_is_not_trusted_with_a_first_step_longer_than_two() -> None:
    wide = 100.0 * BOX
    ends, _ = minimize_batched_bfgs(
        Together(lambda x: (float(np.square(x).sum()), 2.0 * x)),
        np.array([[30.0, -40.0]]),
        wide,
        group=np.zeros(1, dtype=int),
        options=BFGSOptions(inverse_curvature=0.5, max_steps=1),
    )
    np.testing.assert_allclose(ends, [[28.8, -38.4]])


def test_a_run_near_a_better_one_is_given_up_and_the_others_are_not() -> None:
    starts = np.array([[-1.5], [-1.45], [1.5], [1.45]])
    best, _, apart = best_candidate(two_wells, starts, BOX[:1])
    same, _, merged = best_candidate(two_wells, starts, BOX[:1], BFGSOptions(merge_distance=0.5))
    assert merged < apart
    assert same[0] == pytest.approx(best[0], abs=1e-4)


def test_a_run_that_meets_a_refused_point_goes_on_with_shorter_steps() -> None:
    def cliff(x: np.ndarray) -> tuple[float, np.ndarray]:
        return (np.nan if x[0] > 0.5 else float((x[0] - 0.45) ** 4)), np.array([4 * (x[0] - 0.45) ** 3])

    best, value, _ = best_candidate(cliff, np.array([[-1.9]]), BOX[:1])
    assert best[0] == pytest.approx(0.45, abs=0.1)
    assert value < 1e-5


def test_the_number_of_rounds_can_be_limited() -> None:
    _, far, _ = best_candidate(rosenbrock, np.array([[-1.2, 1.0]]), BOX, BFGSOptions(max_steps=0))
    _, nearer, evaluations = best_candidate(rosenbrock, np.array([[-1.2, 1.0]]), BOX, BFGSOptions(max_steps=6))
    assert far == rosenbrock(np.array([-1.2, 1.0]))[0]
    assert 1e-3 < nearer < far
    assert evaluations == 7


def test_every_run_says_where_it_ended() -> None:
    starts = np.array([[-1.5], [1.5], [0.9]])
    ends, values = minimize_batched_bfgs(
        Together(two_wells), starts, BOX[:1], group=np.zeros(3, dtype=int), options=DEFAULT_OPTIONS
    )
    np.testing.assert_allclose(ends[:, 0], [-0.974, 1.024, 1.024], atol=1e-3)
    assert values.tolist() == [two_wells(end)[0] for end in ends]


def test_functions_minimised_together_end_as_they_end_alone() -> None:
    def mirrored(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = two_wells(-x)
        return value, -slope

    rng = np.random.default_rng(1)
    functions = (two_wells, mirrored, lambda x: (float((x[0] - 0.3) ** 2), 2 * (x - 0.3)))
    starts = rng.uniform(-2.0, 2.0, size=(9, 1))
    group, options = np.repeat(np.arange(3), 3), BFGSOptions(merge_distance=0.5)
    ends, values = minimize_batched_bfgs(Together(*functions), starts, BOX[:1], group=group, options=options)
    for number, function in enumerate(functions):
        one = group == number
        alone = minimize_batched_bfgs(
            Together(function), starts[one], BOX[:1], group=np.zeros(3, dtype=int), options=options
        )
        np.testing.assert_array_equal(ends[one], alone[0])
        np.testing.assert_array_equal(values[one], alone[1])


def test_without_parameters_the_objective_is_evaluated_once_for_each_start() -> None:
    best, value, evaluations = best_candidate(lambda x: (3.0, x), np.zeros((4, 0)), np.zeros((0, 2)))
    assert (best.shape, value, evaluations) == ((0,), 3.0, 4)


def test_a_flat_function_ends_where_it_starts() -> None:
    best, value, evaluations = best_candidate(lambda x: (1.0, 0.0 * x), np.array([[0.3, 0.4]]), BOX)
    assert (best.tolist(), value, evaluations) == ([0.3, 0.4], 1.0, 1)


def test_slopes_that_lie_end_after_some_steps() -> None:
    best, value, evaluations = best_candidate(lambda x: (float(x.sum()), -np.ones(2)), np.array([[0.0, 0.0]]), BOX)
    assert (best.tolist(), value) == ([0.0, 0.0], 0.0)
    assert evaluations < 40


@pytest.mark.parametrize(
    ("starts", "bounds", "group"),
    [
        (np.zeros(2), BOX, np.zeros(2)),
        (np.zeros((1, 3)), BOX, np.zeros(1)),
        (np.zeros((1, 2)), BOX.T[:1], np.zeros(1)),
        (np.zeros((1, 2)), BOX, np.zeros(2)),
    ],
)
def test_shapes_that_do_not_match_are_refused(starts: np.ndarray, bounds: np.ndarray, group: np.ndarray) -> None:
    with pytest.raises(InputError, match="expected starts"):
        minimize_batched_bfgs(Together(rosenbrock), starts, bounds, group=group, options=DEFAULT_OPTIONS)
