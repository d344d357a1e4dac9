"""How good is plain ``gp`` on standard continuous functions, compared with Optuna's samplers?

    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/standard_functions.py --seeds 20 --trials 60 --jobs 2

Prints the final regret after the same number of trials. Optuna's TPE always takes part, its GPSampler if torch is
installed.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

HARTMANN_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])


def branin(x: np.ndarray) -> float:
    a, b = x
    valley = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


def hartmann6(x: np.ndarray) -> float:
    return -float(HARTMANN_WEIGHTS @ np.exp(-np.sum(HARTMANN_A * (x - HARTMANN_P) ** 2, axis=1)))


def ackley(x: np.ndarray) -> float:
    spread, waves = math.sqrt(np.mean(x**2)), np.mean(np.cos(2 * math.pi * x))
    return -20 * math.exp(-0.2 * spread) - math.exp(waves) + 20 + math.e


def rosenbrock(x: np.ndarray) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


@dataclass(frozen=True)
class Function:
    evaluate: Callable[[np.ndarray], float]
    bounds: tuple[tuple[float, float], ...]
    minimum: float


FUNCTIONS = {
    "branin": Function(branin, ((-5.0, 10.0), (0.0, 15.0)), 0.39788735772973816),
    "hartmann6": Function(hartmann6, ((0.0, 1.0),) * 6, -3.322368011415515),
    "ackley5": Function(ackley, ((-32.768, 32.768),) * 5, 0.0),
    "rosenbrock4": Function(rosenbrock, ((-5.0, 10.0),) * 4, 0.0),
}


def run_recollect(function: Function, method: str, trials: int, seed: int) -> list[float]:
    import recollect

    space = {f"x{j}": bounds for j, bounds in enumerate(function.bounds)}
    optimizer = recollect.Optimizer(space, method=method, horizon=trials, seed=seed)
    values = []
    for _ in range(trials):
        config = optimizer.ask()
        values.append(function.evaluate(np.array([config[name] for name in space])))
        optimizer.tell(config, values[-1])
    return values


def run_optuna(function: Function, sampler_name: str, trials: int, seed: int) -> list[float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    sampler = getattr(optuna.samplers, sampler_name)(seed=seed)
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        return function.evaluate(np.array([trial.suggest_float(f"x{j}", *b) for j, b in enumerate(function.bounds)]))

    study.optimize(objective, n_trials=trials)
    return [trial.value for trial in study.trials]


def cell(job: tuple[str, str, int, int]) -> tuple[str, str, int, float, float]:
    name, contestant, trials, seed = job
    begin = time.perf_counter()
    function = FUNCTIONS[name]
    run = run_optuna if contestant.endswith("Sampler") else run_recollect
    best = min(run(function, contestant, trials, seed))
    return name, contestant, seed, best - function.minimum, time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=list(FUNCTIONS))
    parser.add_argument("--contestants", nargs="+", default=None)
    parser.add_argument("--out", type=Path, default=None, help="also write every regret to this CSV")
    options = parser.parse_args()
    contestants = options.contestants or ["gp", "random", "TPESampler", *(["GPSampler"] if find_spec("torch") else [])]
    jobs = [(f, c, options.trials, s) for f in options.functions for c in contestants for s in range(options.seeds)]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(cell, jobs))
    if options.out:
        with options.out.open("w", newline="") as file:
            csv.writer(file).writerows([("function", "contestant", "seed", "regret", "seconds"), *rows])
    print(f"regret after {options.trials} trials, {options.seeds} seeds: median (quartiles); ms a trial")
    for name in options.functions:
        for contestant in contestants:
            regrets = [row[3] for row in rows if row[:2] == (name, contestant)]
            low, middle, high = np.percentile(regrets, [25, 50, 75])
            pace = 1000 * np.median([row[4] for row in rows if row[:2] == (name, contestant)]) / options.trials
            print(f"{name:<12} {contestant:<11} {middle:10.3g} ({low:.2g} .. {high:.2g})  {pace:7.1f} ms")


if __name__ == "__main__":
    main()
