"""The problems of plain.py: functions whose optimum moves with the seed, noisy ones, tables of real errors, forests.

A function is translated so that its optimum lies where the seed says: anywhere in the box, 5 % away from its sides, if
it is defined and nowhere lower outside of its usual box; otherwise up to a tenth of the box from its usual place. No
optimizer profits from beginning at the centre of the box more than at any other point. In `ellipsoid6` the optimum lies
at the bounds of three columns; `mixed7` has integers and choices. A forest is fitted to one task of a table and can be
evaluated everywhere in its space; the regret is the distance to a bound that no configuration may reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

Config = dict[str, Any]
Parameter = dict[str, Any]  # name, kind, low, high, log, choices, and of conditional ones parent and parent_values
NOISY = {"branin": 2.0, "hartmann6": 0.1, "levy8": 2.0}  # standard deviation of the noise
TABLES = {
    **dict.fromkeys(("own-mlp", "own-xgboost", "own-svm"), ""),  # they come with recollect
    "lcbench": "lcbench.csv.gz",
    "xgboost10d": "xgboost10d_yahpo.csv.gz",
    "svm4d": "svm4d_yahpo.csv.gz",
    "svm-grid": "svm_grid.csv.gz",
    "lightgbm": "lightgbm5d_tabrepo.csv.gz",
}
TABLE_TRIALS = 50
FOREST_TABLES = (
    "own-svm", "own-glmnet", "own-adaboost", "own-svm-grid", "own-xgboost", "own-mlp", "lcbench", "xgboost10d", "svm4d"
)  # fmt: skip
FOREST = "-forest"  # end of a problem's name
FOREST_TREES = 100
MARGIN = 0.05  # of the box, between an optimum that may be anywhere and the sides

HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN3_A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
HARTMANN3_P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
HARTMANN6_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
SHEKEL_DEPTHS = 0.1 * np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5])
SHEKEL_CENTRES = np.array(
    [[4] * 4, [1] * 4, [8] * 4, [6] * 4, [3, 7] * 2, [2, 9] * 2, [5, 5, 3, 3], [8, 1] * 2, [6, 2] * 2, [7, 3.6] * 2]
)


def branin(x: np.ndarray) -> float:
    a, b = x
    valley = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


def camel(x: np.ndarray) -> float:
    a, b = x
    return (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + (4 * b**2 - 4) * b**2


def hartmann3(x: np.ndarray) -> float:
    return -float(HARTMANN_WEIGHTS @ np.exp(-np.sum(HARTMANN3_A * (x - HARTMANN3_P) ** 2, axis=1)))


def hartmann6(x: np.ndarray) -> float:
    return -float(HARTMANN_WEIGHTS @ np.exp(-np.sum(HARTMANN6_A * (x - HARTMANN6_P) ** 2, axis=1)))


def shekel(x: np.ndarray) -> float:
    return -float(np.sum(1 / (SHEKEL_DEPTHS + np.sum((x - SHEKEL_CENTRES) ** 2, axis=1))))


def rastrigin(x: np.ndarray) -> float:
    return float(np.sum(x**2 + 10 * (1 - np.cos(2 * math.pi * x))))


def ackley(x: np.ndarray) -> float:
    spread, waves = math.sqrt(np.mean(x**2)), np.mean(np.cos(2 * math.pi * x))
    return -20 * math.exp(-0.2 * spread) - math.exp(waves) + 20 + math.e


def rosenbrock(x: np.ndarray) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def styblinski(x: np.ndarray) -> float:
    return float(np.sum(x**4 - 16 * x**2 + 5 * x)) / 2


def dixon_price(x: np.ndarray) -> float:
    return float((x[0] - 1) ** 2 + np.sum(np.arange(2, x.size + 1) * (2 * x[1:] ** 2 - x[:-1]) ** 2))


def levy(x: np.ndarray) -> float:
    w = 1 + (x - 1) / 4
    middle = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2))
    return float(np.sin(math.pi * w[0]) ** 2 + middle + (w[-1] - 1) ** 2 * (1 + np.sin(2 * math.pi * w[-1]) ** 2))


def michalewicz(x: np.ndarray) -> float:
    return -float(np.sum(np.sin(x) * np.sin(np.arange(1, x.size + 1) * x**2 / math.pi) ** 20))


def griewank(x: np.ndarray) -> float:
    return float(1 + np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(np.arange(1, x.size + 1)))))


@dataclass(frozen=True)
class Function:
    """A function on a box, one of its optima, and how far that moves, as a part of the box; None: anywhere."""

    evaluate: Callable[[np.ndarray], float]
    bounds: tuple[tuple[float, float], ...]
    minimum: float
    optimum: tuple[float, ...]
    move: float | None = None


HARTMANN6_OPTIMUM = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
MICHALEWICZ5_OPTIMUM = (2.202906, 1.570796, 1.284992, 1.923058, 1.720470)
SHEKEL_OPTIMUM = (4.000747, 4.000593, 3.999663, 3.999510)
FUNCTIONS = {
    "branin": Function(branin, ((-5.0, 10.0), (0.0, 15.0)), 0.39788735772973816, (math.pi, 2.275), 0.1),
    "camel": Function(camel, ((-3.0, 3.0), (-2.0, 2.0)), -1.031628453489877, (0.089842, -0.712656)),
    "hartmann3": Function(hartmann3, ((0.0, 1.0),) * 3, -3.862779787332663, (0.114614, 0.555649, 0.852547), 0.1),
    "shekel4": Function(shekel, ((0.0, 10.0),) * 4, -10.53640981669205, SHEKEL_OPTIMUM),
    "rastrigin4": Function(rastrigin, ((-5.12, 5.12),) * 4, 0.0, (0.0,) * 4),
    "rosenbrock4": Function(rosenbrock, ((-5.0, 10.0),) * 4, 0.0, (1.0,) * 4),
    "ackley5": Function(ackley, ((-32.768, 32.768),) * 5, 0.0, (0.0,) * 5),
    "michalewicz5": Function(michalewicz, ((0.0, math.pi),) * 5, -4.687658179088149, MICHALEWICZ5_OPTIMUM, 0.1),
    "hartmann6": Function(hartmann6, ((0.0, 1.0),) * 6, -3.322368011415515, HARTMANN6_OPTIMUM, 0.1),
    "styblinski6": Function(styblinski, ((-5.0, 5.0),) * 6, -234.99699422262847, (-2.903534,) * 6),
    "dixonprice6": Function(dixon_price, ((-10.0, 10.0),) * 6, 0.0, tuple(2.0 ** (2.0**-i - 1) for i in range(6))),
    "levy8": Function(levy, ((-10.0, 10.0),) * 8, 0.0, (1.0,) * 8),
    "ackley10": Function(ackley, ((-32.768, 32.768),) * 10, 0.0, (0.0,) * 10),
    "griewank10": Function(griewank, ((-600.0, 600.0),) * 10, 0.0, (0.0,) * 10),
    "rosenbrock10": Function(rosenbrock, ((-5.0, 10.0),) * 10, 0.0, (1.0,) * 10),
    "levy20": Function(levy, ((-10.0, 10.0),) * 20, 0.0, (1.0,) * 20),
}


@dataclass(frozen=True)
class Problem:
    """One problem with the randomness of one seed; `observe` returns what the optimizer sees, and the regret there."""

    space: Any  # as recollect takes it
    parameters: list[Parameter]  # as peers take it
    observe: Callable[[Config], tuple[float, float]]
    trials: int
    candidates: Any = None
    nearest: Callable[[Config], Config] | None = None  # from what a peer suggests to what can be evaluated


def make_problem(name: str, seed: int, data: Path | None, trials: int) -> Problem:
    if name in TABLES:
        return table_problem(name, seed, data)
    if name.endswith(FOREST):
        return forest_problem(name.removesuffix(FOREST), seed, data, trials)
    special = {"ellipsoid6": ellipsoid_problem, "mixed7": mixed_problem}
    return special[name](seed, trials) if name in special else function_problem(name, seed, trials)


NAMES = (
    *FUNCTIONS, "ellipsoid6", "mixed7", *(f"{name}-noisy" for name in NOISY), *TABLES,
    *(f"{name}{FOREST}" for name in FOREST_TABLES),
)  # fmt: skip


def stream(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, sum(map(ord, name))])


def function_problem(name: str, seed: int, trials: int) -> Problem:
    base, noisy, _ = name.partition("-noisy")
    function = FUNCTIONS[base]
    rng = stream(base, seed)
    shift = np.array(function.optimum) - moved_optimum(function, rng)

    def observe(x: np.ndarray) -> tuple[float, float]:
        value = function.evaluate(x + shift)
        return value + (NOISY[base] * rng.standard_normal() if noisy else 0.0), value - function.minimum

    return box_problem(function.bounds, observe, trials)


def moved_optimum(function: Function, rng: np.random.Generator) -> np.ndarray:
    """Draw where the optimum lies."""
    low, high = np.array(function.bounds).T
    optimum, size = np.array(function.optimum), high - low
    if function.move is None:
        return low + size * rng.uniform(MARGIN, 1.0 - MARGIN, len(low))
    wanted = optimum + function.move * size * rng.uniform(-1.0, 1.0, len(low))
    margin = 0.02 * size
    return np.clip(wanted, np.minimum(low + margin, optimum), np.maximum(high - margin, optimum))


def ellipsoid_problem(seed: int, trials: int) -> Problem:
    """A quadratic function whose centre lies outside the box in three of six columns, by up to half of the box."""
    rng = stream("ellipsoid6", seed)
    weights = rng.permutation(10.0 ** np.linspace(0.0, 2.0, 6))
    centre = rng.uniform(MARGIN, 1.0 - MARGIN, 6)
    outside = rng.permutation(6)[:3]
    centre[outside] = np.where(rng.random(3) < 0.5, -rng.uniform(0.0, 0.5, 3), 1.0 + rng.uniform(0.0, 0.5, 3))
    minimum = float(weights @ (centre - np.clip(centre, 0.0, 1.0)) ** 2)

    def observe(x: np.ndarray) -> tuple[float, float]:
        value = float(weights @ (x - centre) ** 2)
        return value, value - minimum

    return box_problem(((0.0, 1.0),) * 6, observe, trials)


def box_problem(
    bounds: tuple[tuple[float, float], ...], observe: Callable[[np.ndarray], tuple[float, float]], trials: int
) -> Problem:
    """Return a problem with one float per pair of bounds; ``observe`` takes a point."""
    space = {f"x{j}": pair for j, pair in enumerate(bounds)}
    parameters = [{"name": key, "kind": "float", "low": a, "high": b, "log": False} for key, (a, b) in space.items()]
    return Problem(space, parameters, lambda config: observe(np.array([config[key] for key in space])), trials)


def mixed_problem(seed: int, trials: int) -> Problem:
    """Choices, integers and floats that depend on each other.

    Each of four kinds has its own optimum of the five numerical columns, and three modes differ in how sensitive the
    value is to them. All but the best kind and the best mode cost something by themselves. The minimum is 0.
    """
    import recollect

    space = {
        "kind": ["a", "b", "c", "d"], "mode": ["x", "y", "z"], "depth": (1, 20), "units": (4, 512, "log"),
        "rate": (1e-5, 1e-1, "log"), "share": (0.0, 1.0), "decay": (0.5, 1.0),
    }  # fmt: skip
    rng = stream("mixed7", seed)
    unit = {
        "depth": lambda value: (value - 1) / 19,
        "units": lambda value: math.log(value / 4) / math.log(128),
        "rate": lambda value: math.log10(value) / 4 + 1.25,
        "share": lambda value: value,
        "decay": lambda value: 2 * value - 1,
    }
    best = np.array([*(unit[key](rng.integers(*space[key][:2])) for key in ("depth", "units")), *rng.random(3)])
    kinds = dict(zip(rng.permutation(space["kind"]), (0.0, *rng.uniform(0.1, 1.0, 3)), strict=True))
    modes = dict(zip(rng.permutation(space["mode"]), ((0.0, 4.0), (0.1, 2.0), (0.3, 1.0)), strict=True))
    moves = {kind: rng.uniform(-0.4, 0.4, 5) if cost else np.zeros(5) for kind, cost in kinds.items()}
    weights = rng.permutation([0.3, 0.6, 1.0, 2.0, 4.0])

    def observe(config: Config) -> tuple[float, float]:
        cost, steepness = modes[config["mode"]]
        gap = np.array([own(config[key]) for key, own in unit.items()]) - best - moves[config["kind"]]
        ripples = 0.05 * (1 - math.cos(4 * math.pi * gap[2]))
        value = kinds[config["kind"]] + cost + steepness * float(weights @ gap**2) + ripples
        return value, value

    return Problem(space, parameters_of(recollect.compile_space(space)), observe, trials)


@cache
def load_table(name: str, data: Path | None) -> Any:
    import recollect.bench

    if name.startswith("own-"):
        return recollect.bench.load(name)
    if data is None:
        raise SystemExit(f"{name} needs --data, the folder with {TABLES[name]}")
    return recollect.bench.from_table(data / TABLES[name])


def table_task(name: str, seed: int, data: Path | None) -> tuple[Any, Any]:
    """Return a table and the task that belongs to the seed."""
    benchmark = load_table(name, data)
    return benchmark, benchmark.task(benchmark.tasks[seed * len(benchmark.tasks) // 20 % len(benchmark.tasks)])


def observe_task(task: Any, config: Config) -> tuple[float, float]:
    value = task.evaluate(config)
    return value, 100 * (value - task.best) / (task.worst - task.best)


def forest_problem(name: str, seed: int, data: Path | None, trials: int) -> Problem:
    """A forest of default trees, fitted to the ranks of a task's errors."""
    from recollect.bench.problems.forest_benchmark import ForestBuild, TuneSettings, build_forests

    benchmark, task = table_task(name, seed, data)
    space, errors = benchmark.space, np.array([task.evaluate(config) for config in task.candidates])
    build = ForestBuild(TuneSettings(candidates=0, final_trees=FOREST_TREES, scale="rank"))
    forest = build_forests(space, {task.name: (space.encode(task.candidates), errors)}, build=build).task(task.name)
    return Problem(space, parameters_of(space), partial(observe_task, forest), trials)


def table_problem(name: str, seed: int, data: Path | None) -> Problem:
    from recollect.bench.problems.tabular import distances

    benchmark, task = table_task(name, seed, data)
    rows = benchmark.space.encode(task.candidates)
    left = np.ones(len(rows), dtype=bool)

    def nearest(config: Config) -> Config:
        gap = distances(benchmark.space, rows, benchmark.space.encode([config])[0])
        row = int(np.where(left, gap, np.inf).argmin())
        left[row] = False
        return dict(task.candidates[row])

    trials, observe = min(TABLE_TRIALS, len(rows)), partial(observe_task, task)
    return Problem(benchmark.space, parameters_of(benchmark.space), observe, trials, task.candidates, nearest)


def parameters_of(space: Any) -> list[Parameter]:
    """Describe a space in plain data, parents first."""
    parameters = []
    for name in space.names:
        own = space.source[name]
        kind = type(own).__name__
        if hasattr(own, "lower"):
            parameter = {"kind": "int" if "Integer" in kind else "float", "low": own.lower, "high": own.upper}
            parameter["log"] = bool(own.log)
        else:
            choices = getattr(own, "choices", None) or getattr(own, "sequence", None) or (own.value,)
            parameter = {"kind": "choice", "choices": [np.asarray(choice).item() for choice in choices]}
        for condition in space.source.parent_conditions_of[name]:
            values = condition.values if hasattr(condition, "values") else [condition.value]
            parameter |= {"parent": condition.parent.name, "parent_values": [np.asarray(v).item() for v in values]}
        parameters.append({"name": name, **parameter})
    return parameters
