"""How good is Bayesian optimization without past runs, compared with other optimizers?

    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/plain.py run --out plain.csv --seeds 20 --contestants gp random
    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/plain.py run --out plain.csv --seeds 20 \\
        --contestants optuna-gp optuna-tpe --python PEERS/bin/python
    python benchmarks/quality/plain.py report plain.csv

Contestants: any method of recollect, and ``optuna-gp``, ``optuna-tpe``, ``smac`` and ``skopt``, which run in the
interpreter ``--python`` (a virtual environment of their own, see docs/plain-bo.md). That process only suggests; all
values are computed here. Problems: functions whose optimum is moved at random with the seed, three of them also with
noise, and tables of real errors, one task per seed (``--data DIR`` for those that do not come with recollect). On a
table, recollect chooses among its rows; a peer searches the whole space, and the nearest row that it has not seen is
evaluated. A finished run is one line appended to ``--out``, so an interrupted comparison resumes.

Regret is the distance to the optimum; on tables, 100 x the normalized regret. Under noise it is the noise-free value at
the best observation. The time of suggestions is CPU time, so that other processes do not count.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Config = dict[str, Any]
Parameter = dict[str, Any]  # name, kind, low, high, log, choices, and of conditional ones parent and parent_values
Runs = dict[tuple[str, str], dict[int, list[float]]]  # by problem and contestant, then by seed: regret after each trial
FIELDS = ("problem", "contestant", "seed", "seconds", "regrets")
AFTER = (10, 20, 50, 60, 100)
PEERS = ("optuna-gp", "optuna-tpe", "smac", "skopt")
NOISY = {"branin": 2.0, "hartmann6": 0.1, "levy8": 2.0}  # standard deviation of the noise
TABLES = {
    **dict.fromkeys(("own-mlp", "own-xgboost", "own-svm"), ""),
    "lcbench": "lcbench.csv.gz",
    "xgboost10d": "xgboost10d_yahpo.csv.gz",
    "svm4d": "svm4d_yahpo.csv.gz",
    "svm-grid": "svm_grid.csv.gz",
    "lightgbm": "lightgbm5d_tabrepo.csv.gz",
}
TABLE_TRIALS = 50

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


def branin(x: np.ndarray) -> float:
    a, b = x
    valley = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


def hartmann3(x: np.ndarray) -> float:
    return -float(HARTMANN_WEIGHTS @ np.exp(-np.sum(HARTMANN3_A * (x - HARTMANN3_P) ** 2, axis=1)))


def hartmann6(x: np.ndarray) -> float:
    return -float(HARTMANN_WEIGHTS @ np.exp(-np.sum(HARTMANN6_A * (x - HARTMANN6_P) ** 2, axis=1)))


def ackley(x: np.ndarray) -> float:
    spread, waves = math.sqrt(np.mean(x**2)), np.mean(np.cos(2 * math.pi * x))
    return -20 * math.exp(-0.2 * spread) - math.exp(waves) + 20 + math.e


def rosenbrock(x: np.ndarray) -> float:
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


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
    """A function on a box, and how far its optimum moves, as a part of the box."""

    evaluate: Callable[[np.ndarray], float]
    bounds: tuple[tuple[float, float], ...]
    minimum: float
    optima: tuple[tuple[float, ...], ...]  # one of them stays inside the box
    move: float


HARTMANN6_OPTIMUM = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
FUNCTIONS = {
    "branin": Function(branin, ((-5.0, 10.0), (0.0, 15.0)), 0.39788735772973816, ((math.pi, 2.275),), 0.1),
    "hartmann3": Function(hartmann3, ((0.0, 1.0),) * 3, -3.86277979, ((0.114614, 0.555649, 0.852547),), 0.1),
    "hartmann6": Function(hartmann6, ((0.0, 1.0),) * 6, -3.322368011415515, (HARTMANN6_OPTIMUM,), 0.1),
    "ackley5": Function(ackley, ((-32.768, 32.768),) * 5, 0.0, ((0.0,) * 5,), 0.25),
    "ackley10": Function(ackley, ((-32.768, 32.768),) * 10, 0.0, ((0.0,) * 10,), 0.25),
    "rosenbrock4": Function(rosenbrock, ((-5.0, 10.0),) * 4, 0.0, ((1.0,) * 4,), 0.1),
    "rosenbrock10": Function(rosenbrock, ((-5.0, 10.0),) * 10, 0.0, ((1.0,) * 10,), 0.1),
    "levy8": Function(levy, ((-10.0, 10.0),) * 8, 0.0, ((1.0,) * 8,), 0.25),
    "levy20": Function(levy, ((-10.0, 10.0),) * 20, 0.0, ((1.0,) * 20,), 0.25),
    "michalewicz5": Function(
        michalewicz, ((0.0, math.pi),) * 5, -4.687658179, ((2.202906, 1.570796, 1.284992, 1.923058, 1.720470),), 0.1
    ),
    "griewank10": Function(griewank, ((-600.0, 600.0),) * 10, 0.0, ((0.0,) * 10,), 0.25),
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
    return table_problem(name, seed, data) if name in TABLES else function_problem(name, seed, trials)


def function_problem(name: str, seed: int, trials: int) -> Problem:
    base, noisy, _ = name.partition("-noisy")
    function = FUNCTIONS[base]
    rng = np.random.default_rng([seed, sum(map(ord, base))])
    low, high = np.array(function.bounds).T
    optimum = np.array(function.optima[0])
    # The optimum moves, but stays inside the box, 2 % away from its sides.
    margin = 0.02 * (high - low)
    wanted = optimum + function.move * (high - low) * rng.uniform(-1.0, 1.0, len(low))
    shift = optimum - np.clip(wanted, np.minimum(low + margin, optimum), np.maximum(high - margin, optimum))
    names = [f"x{j}" for j in range(len(low))]

    def observe(config: Config) -> tuple[float, float]:
        value = function.evaluate(np.array([config[key] for key in names]) + shift)
        return value + (NOISY[base] * rng.standard_normal() if noisy else 0.0), value - function.minimum

    space = dict(zip(names, function.bounds, strict=True))
    parameters = [{"name": key, "kind": "float", "low": a, "high": b, "log": False} for key, (a, b) in space.items()]
    return Problem(space, parameters, observe, trials)


@cache
def load_table(name: str, data: Path | None) -> Any:
    import recollect.bench

    if not TABLES[name]:
        return recollect.bench.load(name)
    if data is None:
        raise SystemExit(f"{name} needs --data, the folder with {TABLES[name]}")
    return recollect.bench.from_table(data / TABLES[name])


def table_problem(name: str, seed: int, data: Path | None) -> Problem:
    from recollect.bench.problems.tabular import distances

    benchmark = load_table(name, data)
    task = benchmark.task(benchmark.tasks[seed * len(benchmark.tasks) // 20 % len(benchmark.tasks)])
    rows = benchmark.space.encode(task.candidates)
    left = np.ones(len(rows), dtype=bool)

    def nearest(config: Config) -> Config:
        gap = distances(benchmark.space, rows, benchmark.space.encode([config])[0])
        row = int(np.where(left, gap, np.inf).argmin())
        left[row] = False
        return dict(task.candidates[row])

    def observe(config: Config) -> tuple[float, float]:
        value = task.evaluate(config)
        return value, 100 * (value - task.best) / (task.worst - task.best)

    trials = min(TABLE_TRIALS, len(rows))
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


def run_recollect(problem: Problem, method: str, seed: int) -> tuple[list[tuple[float, float]], float]:
    import recollect

    optimizer = recollect.Optimizer(
        problem.space, method=method, horizon=problem.trials, seed=seed, candidates=problem.candidates
    )
    observed, seconds = [], 0.0
    for _ in range(problem.trials):
        begin = time.process_time()
        config = optimizer.ask()
        seconds += time.process_time() - begin
        observed.append(problem.observe(config))
        optimizer.tell(config, observed[-1][0])
    return observed, seconds


class Peer:
    """Another interpreter that suggests, over lines of JSON."""

    def __init__(self, python: str) -> None:
        command = [python, __file__, "suggest"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def send(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def run(self, problem: Problem, contestant: str, seed: int) -> tuple[list[tuple[float, float]], float]:
        start = {"parameters": problem.parameters, "trials": problem.trials}
        self.send({"contestant": contestant, "seed": seed, **start})
        observed, seconds = [], 0.0
        for _ in range(problem.trials):
            config, taken = self.receive()
            seconds += taken
            observed.append(problem.observe(config if problem.nearest is None else problem.nearest(config)))
            self.send(observed[-1][0])
        return observed, seconds


def serve() -> None:
    """Suggest for the process that started this one, until it closes the pipe."""
    warnings.simplefilter("ignore")
    out, sys.stdout = sys.stdout, sys.stderr  # libraries may print
    suggesters = {"smac": suggest_smac, "skopt": suggest_skopt}
    for line in sys.stdin:
        job = json.loads(line)
        suggester = suggesters.get(job["contestant"], suggest_optuna)(job)
        value = None
        for _ in range(job["trials"]):
            begin = time.process_time()
            config = suggester.send(value)
            out.write(json.dumps((config, time.process_time() - begin)) + "\n")
            out.flush()
            value = json.loads(sys.stdin.readline())


Suggester = Iterator[Any]


def suggest_optuna(job: dict[str, Any]) -> Suggester:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kind = optuna.samplers.GPSampler if job["contestant"] == "optuna-gp" else optuna.samplers.TPESampler
    study = optuna.create_study(sampler=kind(seed=job["seed"]))
    while True:
        trial, config = study.ask(), {}
        for own in job["parameters"]:
            if "parent" in own and config.get(own["parent"]) not in own["parent_values"]:
                continue
            if own["kind"] == "choice":
                config[own["name"]] = trial.suggest_categorical(own["name"], own["choices"])
            else:
                suggest = trial.suggest_int if own["kind"] == "int" else trial.suggest_float
                config[own["name"]] = suggest(own["name"], own["low"], own["high"], log=own["log"])
        study.tell(trial, (yield config))


def suggest_smac(job: dict[str, Any]) -> Suggester:
    import logging
    import tempfile

    from ConfigSpace import Categorical, ConfigurationSpace, Float, InCondition, Integer
    from smac import BlackBoxFacade, Scenario
    from smac.runhistory.dataclasses import TrialValue

    space = ConfigurationSpace()
    for own in job["parameters"]:
        if own["kind"] == "choice":
            space.add(Categorical(own["name"], own["choices"]))
        else:
            kind = Integer if own["kind"] == "int" else Float
            space.add(kind(own["name"], (own["low"], own["high"]), log=own["log"]))
    for own in job["parameters"]:
        if "parent" in own:
            space.add(InCondition(space[own["name"]], space[own["parent"]], own["parent_values"]))
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space, n_trials=job["trials"] + 1, deterministic=True, seed=job["seed"], output_directory=Path(folder)
        )
        smac = BlackBoxFacade(scenario, lambda config, seed: 0.0, overwrite=True, logging_level=False)  # noqa: ARG005
        while True:
            info = smac.ask()
            smac.tell(info, TrialValue(cost=(yield dict(info.config))))


def suggest_skopt(job: dict[str, Any]) -> Suggester:
    """scikit-optimize has no conditions: all hyperparameters are always active."""
    from skopt import Optimizer
    from skopt.space import Categorical, Integer, Real

    dimensions: list[Any] = []
    for own in job["parameters"]:
        if own["kind"] == "choice":
            dimensions.append(Categorical(own["choices"]))
        else:
            kind = Integer if own["kind"] == "int" else Real
            dimensions.append(kind(own["low"], own["high"], prior="log-uniform" if own["log"] else "uniform"))
    optimizer = Optimizer(dimensions, random_state=job["seed"])
    while True:
        point = optimizer.ask()
        config: Config = {}
        for own, value in zip(job["parameters"], point, strict=True):
            if "parent" not in own or config.get(own["parent"]) in own["parent_values"]:
                config[own["name"]] = np.asarray(value).item()
        optimizer.tell(point, (yield config))


def best_regrets(observed: list[tuple[float, float]]) -> list[float]:
    """Return the regret at the best observation after each trial."""
    values, regrets = np.array(observed).T
    places = [int(values[: t + 1].argmin()) for t in range(len(values))]
    return [float(regrets[place]) for place in places]


def run(options: argparse.Namespace) -> None:
    """Run what the file does not have yet, all problems with one seed before the next seed."""
    finished = {(row[0], row[1], int(row[2])) for row in read_rows(options.out)} if options.out.exists() else set()
    if not finished:
        with options.out.open("a", newline="") as file:
            csv.writer(file).writerow(FIELDS)
    peer: Peer | None = None
    for seed in range(options.first_seed, options.seeds):
        for name in options.problems:
            for contestant in options.contestants:
                if (name, contestant, seed) in finished:
                    continue
                problem = make_problem(name, seed, options.data, options.trials)
                if contestant in PEERS:
                    peer = peer or Peer(options.python)
                    observed, seconds = peer.run(problem, contestant, seed)
                else:
                    observed, seconds = run_recollect(problem, contestant, seed)
                regrets = " ".join(f"{regret:.6g}" for regret in best_regrets(observed))
                with options.out.open("a", newline="") as file:
                    csv.writer(file).writerow((name, contestant, seed, f"{seconds:.4f}", regrets))


def read_rows(path: Path) -> list[list[str]]:
    """Return the finished runs in a file, which may be packed (.gz)."""
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def read_runs(paths: list[Path]) -> tuple[Runs, dict[str, list[float]]]:
    """Return the regrets of all runs, and the milliseconds per suggestion in each run of a contestant."""
    runs: Runs = {}
    pace: dict[str, list[float]] = {}
    for path in paths:
        for problem, contestant, seed, seconds, regrets in read_rows(path):
            values = [float(regret) for regret in regrets.split()]
            runs.setdefault((problem, contestant), {})[int(seed)] = values
            if math.isfinite(float(seconds)):  # nan where CPU time was not measured
                pace.setdefault(contestant, []).append(1000 * float(seconds) / len(values))
    return runs, pace


def report(options: argparse.Namespace) -> None:
    """Print medians, quartiles, mean ranks and times over the seeds that all contestants have."""
    runs, pace = read_runs(options.files)
    contestants = list(options.contestants or dict.fromkeys(contestant for _, contestant in runs))
    problems = [p for p in dict.fromkeys(p for p, _ in runs) if all((p, c) in runs for c in contestants)]
    for after in AFTER:
        print_table(runs, problems, contestants, after)
    print("\nms of CPU time per suggestion, median over runs")
    for contestant in contestants:
        times = pace.get(contestant, [math.nan])
        print(f"{contestant:<12}{np.median(times):8.1f}")


def print_table(runs: Runs, problems: list[str], contestants: list[str], after: int) -> None:
    """Print one row per problem, then the mean ranks with the critical difference of the Nemenyi test (p = 0.05)."""
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    print(f"\nregret after {after} trials: median (quartiles)")
    print("".join(f"{text:<26}" for text in ("problem (seeds)", *contestants)))
    ranks = []
    for problem in problems:
        seeds = sorted(set.intersection(*(set(runs[problem, c]) for c in contestants)))
        rows = [[runs[problem, c][seed] for seed in seeds] for c in contestants]
        if min((len(run) for own in rows for run in own), default=0) < after:
            continue
        values = np.array([[run[after - 1] for run in own] for own in rows])
        cells = [f"{m:.3g} ({a:.2g} .. {b:.2g})" for a, m, b in np.percentile(values, [25, 50, 75], axis=1).T]
        print("".join(f"{text:<26}" for text in (f"{problem} ({len(seeds)})", *cells)))
        ranks.append(rankdata(values, axis=0).mean(axis=1))
    if len(ranks) > 2 and len(contestants) > 2:
        k = len(contestants)
        critical = studentized_range.ppf(0.95, k, np.inf) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * len(ranks)))
        p = friedmanchisquare(*np.array(ranks).T).pvalue
        means = ", ".join(f"{c} {r:.2f}" for c, r in zip(contestants, np.mean(ranks, axis=0), strict=True))
        print(f"mean rank over {len(ranks)} problems: {means}; Friedman p {p:.2g}, critical difference {critical:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="run what is missing in a file of results")
    problems = [*FUNCTIONS, *(f"{name}-noisy" for name in NOISY), *TABLES]
    runner.add_argument("--out", type=Path, required=True)
    runner.add_argument("--contestants", nargs="+", required=True)
    runner.add_argument("--problems", nargs="+", default=problems, choices=problems)
    runner.add_argument("--seeds", type=int, default=20)
    runner.add_argument("--first-seed", type=int, default=0)
    runner.add_argument("--trials", type=int, default=100, help="on functions")
    runner.add_argument("--data", type=Path, default=None)
    runner.add_argument("--python", default=sys.executable, help="interpreter that has the peers")
    commands.add_parser("suggest", help="what a peer's interpreter runs")
    reporter = commands.add_parser("report", help="print what files of results say")
    reporter.add_argument("files", type=Path, nargs="+")
    reporter.add_argument("--contestants", nargs="+", default=None)
    options = parser.parse_args()
    {"run": lambda: run(options), "suggest": serve, "report": lambda: report(options)}[options.command]()


if __name__ == "__main__":
    main()
