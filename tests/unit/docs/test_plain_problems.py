"""The problems of benchmarks/quality/plain.py: known minima, moved optima, and the same values for the same seed."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from typing import Any

import numpy as np
import pytest
from tests.helpers.documents import ROOT

import recollect

PATH = ROOT / "benchmarks" / "quality" / "plain_problems.py"
# From the literature (Surjanovic and Bingham, Virtual Library of Simulation Experiments; Dixon and Szego for Shekel).
MINIMA = {
    "branin": 0.397887, "camel": -1.031628, "hartmann3": -3.86278, "shekel4": -10.5364, "rastrigin4": 0.0,
    "rosenbrock4": 0.0, "ackley5": 0.0, "michalewicz5": -4.687658, "hartmann6": -3.32237,
    "styblinski6": 6 * -39.166166, "dixonprice6": 0.0, "levy8": 0.0, "ackley10": 0.0, "griewank10": 0.0,
    "rosenbrock10": 0.0, "levy20": 0.0,
}  # fmt: skip
# Computed by hand from the formulas.
VALUES = {
    "camel": ([1.0, 1.0], 4 - 2.1 + 1 / 3 + 1.0),
    "rastrigin4": ([1.0, 0.5, 0.0, 0.0], 1.0 + 0.25 + 20.0),
    "styblinski6": ([1.0] * 6, -30.0),
    "dixonprice6": ([1.0] * 6, 2.0 + 3.0 + 4.0 + 5.0 + 6.0),
    "rosenbrock4": ([0.0] * 4, 3.0),
    "levy8": ([1.0] * 7 + [5.0], 1.0),
}


def load() -> Any:
    spec = importlib.util.spec_from_file_location("plain_problems", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


problems = load()
NEED_FILES = [name for name in problems.NAMES if problems.TABLES.get(name.removesuffix(problems.FOREST))]
SELF_CONTAINED = [name for name in problems.NAMES if name not in problems.TABLES and name not in NEED_FILES]


def make(name: str, seed: int) -> Any:
    return problems.make_problem(name, seed, None, 30)


@pytest.mark.parametrize("name", problems.FUNCTIONS)
def test_minima_are_those_of_the_literature(name: str) -> None:
    function = problems.FUNCTIONS[name]
    assert function.minimum == pytest.approx(MINIMA[name], rel=1e-5, abs=1e-12)
    assert function.evaluate(np.array(function.optimum)) == pytest.approx(function.minimum, abs=1e-8)


@pytest.mark.parametrize("name", VALUES)
def test_values_agree_with_the_formulas(name: str) -> None:
    point, value = VALUES[name]
    assert problems.FUNCTIONS[name].evaluate(np.array(point)) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", problems.FUNCTIONS)
def test_the_optimum_moves_with_the_seed_and_stays_inside(name: str) -> None:
    function = problems.FUNCTIONS[name]
    low, high = np.array(function.bounds).T
    places = []
    for seed in range(30):
        place = problems.moved_optimum(function, problems.stream(name, seed))
        config = {f"x{j}": value for j, value in enumerate(place)}
        value, regret = make(name, seed).observe(config)
        assert value == pytest.approx(function.minimum, abs=1e-6)
        assert regret == pytest.approx(0.0, abs=1e-6)
        places.append((place - low) / (high - low))
    assert np.min(places) > 0.0
    assert np.max(places) < 1.0
    if function.move is None:  # neither the centre nor a side of the box is favoured
        assert np.min(places) < 0.2
        assert np.max(places) > 0.8


@pytest.mark.parametrize("name", SELF_CONTAINED)
def test_no_configuration_is_better_than_the_minimum_and_seeds_repeat(name: str) -> None:
    problem, again = make(name, 3), make(name, 3)
    configs = recollect.Optimizer(problem.space, method="random", seed=0).ask(200)
    seen = [problem.observe(config) for config in configs]
    assert min(regret for _, regret in seen) >= 0.0
    assert seen == [again.observe(config) for config in configs]
    assert seen != [make(name, 4).observe(config) for config in configs]
    assert {own["name"] for own in problem.parameters} == set().union(*configs)


def test_the_optimum_of_the_ellipsoid_lies_at_bounds_in_three_columns() -> None:
    for seed in range(5):
        problem = make("ellipsoid6", seed)
        x = np.full(6, 0.5)
        for j in range(6):  # the function is separable: each column by itself
            grid = np.linspace(0.0, 1.0, 10_001)
            rows = [{f"x{k}": float(v if k == j else x[k]) for k in range(6)} for v in grid]
            x[j] = grid[int(np.argmin([problem.observe(row)[1] for row in rows]))]
        assert problem.observe({f"x{k}": x[k] for k in range(6)})[1] == pytest.approx(0.0, abs=1e-5)
        assert int(np.isin(x, (0.0, 1.0)).sum()) == 3


def test_the_minimum_of_the_mixed_problem_is_attained() -> None:
    problem = make("mixed7", 0)
    grids = {
        "depth": range(1, 21), "units": range(4, 513), "rate": np.geomspace(1e-5, 1e-1, 501),
        "share": np.linspace(0.0, 1.0, 501), "decay": np.linspace(0.5, 1.0, 501),
    }  # fmt: skip
    lowest = {}
    for kind, mode in itertools.product("abcd", "xyz"):
        config = {"kind": kind, "mode": mode, **{name: grid[0] for name, grid in grids.items()}}
        for name, grid in grids.items():  # separable for a kind and a mode
            config[name] = min(grid, key=lambda value: problem.observe({**config, name: value})[1])
        lowest[kind, mode] = problem.observe(config)[1]
    best, other = sorted(lowest.values())[:2]
    assert best == pytest.approx(0.0, abs=1e-3)
    assert other > 0.05


@pytest.mark.parametrize("name", NEED_FILES)
def test_a_table_from_a_file_is_named_where_the_folder_is_missing(name: str) -> None:
    with pytest.raises(SystemExit, match=problems.TABLES[name.removesuffix(problems.FOREST)]):
        make(name, 0)
