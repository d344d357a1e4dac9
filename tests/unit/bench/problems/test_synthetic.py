"""Families of formulas: published values, exact ends, tasks that depend on nothing but seed and number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize

from recollect.bench.benchmark import Benchmark
from recollect.bench.problems import synthetic
from recollect.errors import ConfigError, InputError

FAMILIES: dict[str, Callable[..., Benchmark]] = {
    "alpine-1d": synthetic.alpine_1d,
    "quadratic-3d": synthetic.quadratic_3d,
    "branin": synthetic.branin,
    "hartmann-3": synthetic.hartmann_3,
    "hartmann-6": synthetic.hartmann_6,
    "forrester": synthetic.forrester,
}
SEEDED = ("branin", "hartmann-3", "hartmann-6", "forrester")


def test_branin_has_its_published_minima() -> None:
    at = np.array([[-np.pi, 12.275], [np.pi, 2.275], [9.42478, 2.475]])
    assert synthetic.branin_values(at) == pytest.approx(0.397887, abs=1e-6)
    assert pytest.approx(0.397887, abs=1e-6) == synthetic.BRANIN_BEST
    assert synthetic.branin_values(np.array([[-5.0, 0.0]])) == pytest.approx(308.129096, abs=1e-5)


@pytest.mark.parametrize(("d", "best"), [(3, -3.86278), (6, -3.32237)])
def test_hartmann_has_its_published_minimum_and_the_stored_optimum_is_stationary(d: int, best: float) -> None:
    steepness, centres, at = (
        (synthetic.HARTMANN_3, synthetic.HARTMANN_3_CENTRES, synthetic.HARTMANN_3_OPTIMUM)
        if d == 3
        else (synthetic.HARTMANN_6, synthetic.HARTMANN_6_CENTRES, synthetic.HARTMANN_6_OPTIMUM)
    )

    def f(x: np.ndarray) -> float:
        return float(synthetic.hartmann_values(x[None, :], steepness, centres)[0])

    assert f(at) == pytest.approx(best, abs=6e-6)
    bumps = synthetic.HARTMANN_HEIGHTS * np.exp(-(steepness * (at - centres) ** 2).sum(axis=1))
    assert bumps @ (2 * steepness * (at - centres)) == pytest.approx(np.zeros(d), abs=1e-13)
    for e in 1e-4 * np.eye(d):
        assert min(f(at + e), f(at - e)) > f(at)


@pytest.mark.parametrize("number", range(6))
def test_alpine_is_the_formula_of_the_specification(number: int) -> None:
    task = synthetic.alpine_1d().task(str(number))
    for x in (-10.0, -3.3, 0.0, 7.1, 10.0):
        expected = x * np.sin(x + np.pi + number * np.pi / 12) + 0.1 * x
        assert task.evaluate({"x1": x}) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("number", [0, 7, 29])
def test_quadratic_is_the_formula_of_the_specification(number: int) -> None:
    benchmark = synthetic.quadratic_3d()
    assert len(benchmark.tasks) == 30
    a, b, c = np.random.default_rng(number).uniform(0.1, 10, 3)
    x = np.array([1.5, -4.0, 2.0])
    expected = a / 2 * (x @ x) + b * x.sum() + 3 * c
    config = dict(zip(("x1", "x2", "x3"), x.tolist(), strict=True))
    assert benchmark.task(str(number)).evaluate(config) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_best_and_worst_are_attained_and_never_passed(name: str) -> None:
    benchmark = FAMILIES[name]()
    d = len(benchmark.space.names)
    X = np.random.default_rng(5).random((3000, d))
    for label in (benchmark.tasks[0], benchmark.tasks[-1]):
        task = benchmark.task(label)
        y = task.evaluate_many(X)
        width = task.worst - task.best
        for sign, end in ((1.0, task.best), (-1.0, task.worst)):
            found = np.inf
            for x in X[np.argsort(sign * y)[:4]]:
                local = minimize(
                    lambda u, s=sign, t=task: s * t.evaluate_many(u[None, :])[0], x, bounds=[(0, 1)] * d, tol=1e-14
                )
                found = min(found, float(local.fun))
            assert found >= sign * end - 1e-6 * width  # nothing is better than best, or worse than worst
            assert found == pytest.approx(sign * end, abs=1e-5 * width)


@pytest.mark.parametrize("name", FAMILIES)
def test_one_configuration_is_evaluated_as_many_points_are(name: str) -> None:
    benchmark = FAMILIES[name]()
    task = benchmark.task(benchmark.tasks[-1])
    X = benchmark.space.canonical(np.random.default_rng(1).random((5, len(benchmark.space.names))))
    configs = benchmark.space.decode(X)
    assert task.evaluate_many(benchmark.space.encode(configs)).tolist() == [task.evaluate(c) for c in configs]
    with pytest.raises(ConfigError):
        task.evaluate({**configs[0], "x1": 1e3})


@pytest.mark.parametrize("name", SEEDED)
def test_tasks_follow_from_seed_and_number(name: str) -> None:
    make = FAMILIES[name]
    X = np.random.default_rng(2).random((8, len(make().space.names)))
    few, many, other = make(3), make(7), make(3, seed=1)
    assert few.tasks == ("0", "1", "2")
    for label in few.tasks:
        y = few.task(label).evaluate_many(X)
        assert (y == many.task(label).evaluate_many(X)).all()
        assert not np.isclose(y, other.task(label).evaluate_many(X)).any()
    assert not np.isclose(few.task("0").evaluate_many(X), few.task("1").evaluate_many(X)).any()


def test_extremes_find_the_lower_of_two_valleys_that_are_all_but_equal() -> None:
    def values(P: np.ndarray) -> np.ndarray:
        x = P[:, 0]
        return np.cos(4 * np.pi * x + 0.123) + 1e-9 * x  # minima of -1 + 1e-9 x, near 0.24 and 0.74

    low, high = synthetic.extremes(values, (0.0, 1.0))
    x = (np.pi - 0.123) / (4 * np.pi)
    assert low == pytest.approx(-1 + 1e-9 * x, abs=1e-14)
    assert high == pytest.approx(1 + 1e-9 * (4 * np.pi - 0.123) / (4 * np.pi), abs=1e-14)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_needs_a_task(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: expected at least one task, got 0"):
        FAMILIES[name](0)
