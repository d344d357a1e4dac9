"""The slack box's quadratic program against its optimality conditions, closed forms, grids and a general solver.

Notation as in `recollect.transfer.search_box`: X (k, d) optima, nan = inactive; l, u (d,) the box: low, high.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from recollect.transfer.search_box import slack_bounds

Array = np.ndarray
NEAR = 1e-5


def gaps(X: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """How far each active entry lies below low and above high (k, d); -inf where inactive."""
    return np.where(np.isnan(X), -np.inf, low - X), np.where(np.isnan(X), -np.inf, X - high)


def objective(X: Array, low: Array, high: Array, strength: float) -> float:
    """The program's value, written with loops."""
    total = strength / 2 * sum((b - a) ** 2 for a, b in zip(low, high, strict=True))
    for row in X:
        below = [a - x for a, x in zip(low, row, strict=True) if not math.isnan(x)]
        above = [x - b for b, x in zip(high, row, strict=True) if not math.isnan(x)]
        total += (max(0.0, *below, 0.0) + max(0.0, *above, 0.0)) / (2 * len(X))
    return float(total)


def kkt_residual(X: Array, low: Array, high: Array, strength: float) -> float:
    """The least r such that multipliers exist that satisfy every optimality condition up to r: a linear program."""
    k, d = X.shape
    cost, rows, limits, bounds = [1.0], [], [], [(0.0, None)]
    terms: list[dict[int, float]] = []
    for side in gaps(X, low, high):
        slack = np.maximum(side.max(axis=1), 0.0)
        held = np.argwhere(slack[:, None] - side < NEAR)
        names = {(int(t), int(j)): len(cost) + i for i, (t, j) in enumerate(held)}
        cost += [0.0] * len(names)
        bounds += [(0.0, None)] * len(names)
        for j in range(d):  # strength (u_j - l_j) = sum of the multipliers of column j
            own = {at: 1.0 for (_, column), at in names.items() if column == j}
            both = strength * (high[j] - low[j])
            terms += [own, dict.fromkeys(own, -1.0)]
            limits += [both, -both]
        for t in range(k):  # those of row t add up to 1/(2k), or less where there is no slack
            own = {at: 1.0 for (row, _), at in names.items() if row == t}
            terms.append(own)
            limits.append(1 / (2 * k))
            if slack[t] > NEAR:
                terms.append(dict.fromkeys(own, -1.0))
                limits.append(-1 / (2 * k))
    for own in terms:
        row = np.zeros(len(cost))
        row[0] = -1.0
        row[list(own)] = list(own.values())
        rows.append(row)
    found = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=bounds)
    assert found.status == 0
    return float(found.fun)


def cases() -> dict[str, Array]:
    rng = np.random.default_rng(7)
    crowd = np.clip(0.5 + 0.1 * rng.standard_normal((50, 10)), 0, 1)
    crowd[:6] = rng.integers(0, 2, (6, 10))
    holes = rng.random((30, 4))
    holes[rng.random(holes.shape) < 0.4] = np.nan
    nested = rng.random((20, 3))
    nested[1:, 2] = np.nan
    return {
        "random": rng.random((50, 10)),
        "crowd with outliers": crowd,
        "grid values, many ties": rng.integers(0, 5, (40, 5)) / 4,
        "corners": rng.integers(0, 2, (30, 6)) * 1.0,
        "repeated rows": rng.random((5, 4))[rng.integers(0, 5, 25)],
        "inactive cells": holes,
        "a column used once": nested,
        "one column": rng.random((50, 1)),
        "one row": rng.random((1, 4)),
        "two rows": rng.random((2, 3)),
        "all the same": np.tile(rng.random(4), (12, 1)),
        "a row without any entry": np.vstack((rng.random((6, 2)), [np.nan, np.nan])),
    }


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("strength", [0.01, 0.04, 0.1])
def test_the_optimality_conditions_hold(name: str, strength: float) -> None:
    X = cases()[name]
    low, high = slack_bounds(X, strength)
    assert (np.nanmin(X, axis=0) <= low).all()
    assert (low <= high).all()
    assert (high <= np.nanmax(X, axis=0)).all()
    assert kkt_residual(X, low, high, strength) < 1e-6


def test_the_check_of_the_optimality_conditions_can_fail() -> None:
    X = cases()["random"]
    low, high = slack_bounds(X, 0.04)
    shifted = high.copy()
    shifted[3] -= 1e-3
    assert kkt_residual(X, low, shifted, 0.04) > 1e-5
    assert kkt_residual(X, low, high, 0.041) > 1e-5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("strength", [0.02, 0.1])
def test_a_general_solver_finds_the_same_value_and_widths(seed: int, strength: float) -> None:
    rng = np.random.default_rng(seed)
    k, d = [(4, 2), (6, 3), (9, 2)][seed % 3]
    X = rng.random((k, d)) if seed % 2 else rng.integers(0, 4, (k, d)) / 3
    if seed > 2:
        X[0, 0] = np.nan
    t, j = np.nonzero(~np.isnan(X))
    # Variables low, high, xi-, xi+ as in the program's own statement, all in [0, 1].
    A = np.zeros((2 * len(t), 2 * d + 2 * k))
    for i, (row, column) in enumerate(zip(t, j, strict=True)):
        A[i, column], A[i, 2 * d + row] = -1.0, 1.0
        A[len(t) + i, d + column], A[len(t) + i, 2 * d + k + row] = 1.0, 1.0
    b = np.concatenate((-X[t, j], X[t, j]))
    width = np.hstack((-np.eye(d), np.eye(d), np.zeros((d, 2 * k))))
    cost = np.concatenate((np.zeros(2 * d), np.full(2 * k, 1 / (2 * k))))
    found = minimize(
        lambda z: strength / 2 * (width @ z) @ (width @ z) + cost @ z,
        np.concatenate((np.zeros(d), np.ones(d), np.zeros(2 * k))),
        jac=lambda z: strength * width.T @ (width @ z) + cost,
        bounds=[(0, 1)] * len(cost),
        constraints={"type": "ineq", "fun": lambda z: A @ z - b, "jac": lambda _: A},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    low, high = slack_bounds(X, strength)
    assert objective(X, low, high, strength) == pytest.approx(found.fun, abs=1e-8)
    np.testing.assert_allclose(high - low, width @ found.x, atol=2e-3)


@pytest.mark.parametrize("strength", [0.05, 0.5, 5.0])
def test_no_box_on_a_fine_grid_is_better_in_one_dimension(strength: float) -> None:
    X = np.array([0.0, 0.1, 0.45, 0.5, 0.5, 0.52, 0.6, 1.0])[:, None]
    low, high = slack_bounds(X, strength)
    grid = np.linspace(0, 1, 101)
    tried = {(a, b): objective(X, np.array([a]), np.array([b]), strength) for a, b in itertools.product(grid, grid)}
    least = min(tried.values())
    assert objective(X, low, high, strength) <= least + 1e-9
    assert objective(X, low, high, strength) >= least - 1e-3
    widths = [b - a for (a, b), value in tried.items() if value < least + 1e-12]
    assert high[0] - low[0] == pytest.approx(np.median(widths), abs=0.011)


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize(("k", "d", "strength"), [(10, 4, 0.1), (40, 10, 0.01), (40, 10, 0.05), (5, 2, 0.01)])
def test_a_single_outlier_holds_the_box_as_the_formula_says(upper: bool, k: int, d: int, strength: float) -> None:
    # Minimise d strength/2 w^2 + (1/2 - w)/(2k) over the width w: the outlier costs the same above and below.
    X = np.full((k, d), 0.5)
    X[0] = 1.0 if upper else 0.0
    low, high = slack_bounds(X, strength)
    w = min(0.5, 1 / (2 * k * d * strength))
    np.testing.assert_allclose(high, 0.5 + w * upper, atol=1e-7)
    np.testing.assert_allclose(low, 0.5 - w * (not upper), atol=1e-7)


def test_turning_or_reordering_the_problem_turns_or_reorders_the_box() -> None:
    rng = np.random.default_rng(3)
    X = np.clip(0.6 + 0.15 * rng.standard_normal((30, 5)), 0, 1)
    low, high = slack_bounds(X, 0.05)
    turned = slack_bounds(1 - X, 0.05)
    np.testing.assert_allclose(turned[0], 1 - high, atol=1e-6)
    np.testing.assert_allclose(turned[1], 1 - low, atol=1e-6)
    rows, columns = rng.permutation(30), rng.permutation(5)
    mixed = slack_bounds(X[rows][:, columns], 0.05)
    np.testing.assert_allclose(mixed[0], low[columns], atol=1e-6)
    np.testing.assert_allclose(mixed[1], high[columns], atol=1e-6)


def test_the_same_optima_give_the_same_box_bitwise() -> None:
    X = cases()["crowd with outliers"]
    np.testing.assert_array_equal(slack_bounds(X, 0.03), slack_bounds(X.copy(), 0.03))


def test_a_strength_of_nearly_nothing_gives_the_bounding_box() -> None:
    for X in cases().values():
        low, high = slack_bounds(X, 1e-6)
        np.testing.assert_array_equal(low, np.nanmin(X, axis=0))
        np.testing.assert_array_equal(high, np.nanmax(X, axis=0))


@pytest.mark.parametrize(("seed", "held"), [(0, True), (1, False), (2, True), (3, False), (4, True)])
def test_in_one_dimension_the_edges_are_optima_exactly_unless_only_the_width_counts(seed: int, held: bool) -> None:
    # The price of a violation jumps by 1/(2k) at every optimum, so that of the width meets it at one; or it equals
    # that of the same number of violations on both sides, and then the box may slide.
    X = np.random.default_rng(seed).random((50, 1))
    low, high = slack_bounds(X, 0.1)
    ordered, width = np.sort(X[:, 0]), high[0] - low[0]
    assert (low[0] in ordered[1:], high[0] in ordered[:-1]) == (held, held)
    below, above = (ordered < low[0]).sum(), (ordered > high[0]).sum()
    for outside in (below, above):
        assert outside / 100 - 1e-7 <= 0.1 * width <= (outside + 1) / 100 + 1e-7
    if not held:
        assert below == above
        assert 0.1 * width == pytest.approx(below / 100, abs=1e-7)
