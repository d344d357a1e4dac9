"""How much do misleading past runs harm ``rgpe-taf``, compared with ``gp`` from the same first point?

    OPENBLAS_NUM_THREADS=1 python benchmarks/robustness/misleading_past_runs.py --data DIR --jobs 2

Every past run consists of 50 random evaluations of another task. Its values are unchanged (``true``, the control),
negated (``negated``), or replaced by normal noise of the same mean and spread, independent of the configuration
(``noise``). ``gp`` never sees past runs: its first trial is the first configuration of ``rgpe-taf``, told as a
configuration of the user, and it continues with the rest of its initial design. Both have 50 trials.

Problems: the two real grids (all other tasks are past runs; 100 x normalised regret), and families of Branin and
Hartmann-6 functions shifted in their inputs, scaled and offset in their values (20 past tasks, drawn anew for every
seed; regret in the units of the plain function). Every finished pair of runs is appended to a CSV file; the same
command resumes. The fits of past runs are cached in a temporary folder, shared by the jobs.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import recollect
from recollect.bench import Benchmark, from_table

sys.path.append(str(Path(__file__).parents[1] / "quality"))
from standard_functions import FUNCTIONS

GRIDS = ("svm_grid", "adaboost_grid")
HORIZON = OBSERVATIONS = 50
PAST_TASKS = 20
SHOWN = (1, 2, 3, 5, 10, 20, 30, 40, 50)
FAMILIES = {"branin": 2.0, "hartmann6": 0.1}  # largest shift of an input; the plain minimiser stays inside
KINDS = ("true", "negated", "noise")
METHODS = ("rgpe-taf", "gp")
FIELDS = ("problem", "past", "task", "seed", *METHODS)
Config = dict[str, Any]
Cell = tuple[str, str, str, int]  # problem, kind of past, task, seed


@dataclass(frozen=True)
class Problem:
    """One task to tune, and the past runs as they truly were."""

    space: Any
    candidates: list[Config] | None
    value: Callable[[Config], float]
    best: float
    unit: float  # of the values, in which regret is counted
    past: list[recollect.Run]


@cache
def grid(data: Path, name: str) -> Benchmark:
    return from_table(data / f"{name}.csv.gz")


def grid_problem(data: Path, name: str, task: str, seed: int) -> Problem:
    """One task of a grid; the past runs of a seed are the same for all tasks, so that their fits are shared."""
    benchmark = grid(data, name)
    target, configs = benchmark.task(task), benchmark.candidates
    assert configs is not None
    past = []
    for number, other in enumerate(sorted(benchmark.tasks)):
        if other != task:
            picks = np.random.default_rng([seed, number]).permutation(len(configs))[:OBSERVATIONS]
            tried = [configs[g] for g in picks]
            past.append(recollect.Run(other, tried, [benchmark.task(other).evaluate(config) for config in tried]))
    return Problem(
        benchmark.space,
        list(configs),
        value=target.evaluate,
        best=target.best,
        unit=(target.worst - target.best) / 100,
        past=past,
    )


def family_problem(name: str, seed: int) -> Problem:
    """A random member of a family, with past runs on twenty others."""
    function = FUNCTIONS[name]
    space = {f"x{j}": bounds for j, bounds in enumerate(function.bounds)}
    low, high = np.array(function.bounds).T
    rng = np.random.default_rng([seed, *name.encode()])

    def member() -> tuple[Callable[[Config], float], float, float]:
        shift = rng.uniform(-1, 1, len(low)) * FAMILIES[name]
        scale, offset = math.exp(rng.uniform(-1, 1)), rng.uniform(-10, 10)

        def value(config: Config) -> float:
            return scale * function.evaluate(np.array([config[key] for key in space]) - shift) + offset

        return value, scale, scale * function.minimum + offset

    value, scale, best = member()
    past = []
    for number in range(PAST_TASKS):
        other, _, _ = member()
        points = rng.uniform(low, high, (OBSERVATIONS, len(low))).tolist()
        configs = [dict(zip(space, point, strict=True)) for point in points]
        past.append(recollect.Run(f"{name} {number}", configs, [other(config) for config in configs]))
    return Problem(space, None, value=value, best=best, unit=scale, past=past)


def mislead(run: recollect.Run, kind: str, rng: np.random.Generator) -> recollect.Run:
    y = run.y
    values = {"true": y, "negated": -y, "noise": rng.normal(y.mean(), y.std(), len(y))}[kind]
    return recollect.Run(run.task, run.configs, values)


def tune(problem: Problem, method: str, past: list[recollect.Run], *, seed: int, first: Config | None) -> recollect.Run:
    """One run of 50 trials; ``first`` is told before anything is asked."""
    optimizer = recollect.Optimizer(
        problem.space, past, method, horizon=HORIZON, seed=seed, candidates=problem.candidates
    )
    for number in range(HORIZON):
        config = optimizer.ask() if first is None or number > 0 else first
        optimizer.tell(config, problem.value(config))
    return optimizer.run


def run_cell(data: Path | None, cell: Cell) -> list[object]:
    """Regret after each evaluation of both methods, as a row of the results."""
    name, kind, task, seed = cell
    if name in FAMILIES:
        problem = family_problem(name, seed)
    else:
        assert data is not None
        problem = grid_problem(data, name, task, seed)
    # One stream for each past run: a run is spoilt in the same way for all tasks, so that its fit is shared.
    past = [mislead(run, kind, np.random.default_rng([seed, *run.task.encode()])) for run in problem.past]
    own_seed = int(np.random.SeedSequence([seed, *task.encode()]).generate_state(1)[0])
    transfer = tune(problem, METHODS[0], past, seed=own_seed, first=None)
    alone = tune(problem, METHODS[1], [], seed=own_seed, first=transfer.configs[0])
    curves = [(np.minimum.accumulate(run.y) - problem.best) / problem.unit for run in (transfer, alone)]
    return [*cell, *(" ".join(f"{regret:.6g}" for regret in curve) for curve in curves)]


def read_results(path: Path) -> dict[Cell, np.ndarray]:
    """Regrets (2, 50) of both methods by cell."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (row["problem"], row["past"], row["task"], int(row["seed"])): np.array(
                [[float(regret) for regret in row[method].split()] for method in METHODS]
            )
            for row in csv.DictReader(file)
        }


def wanted(options: argparse.Namespace) -> list[Cell]:
    cells: list[Cell] = []
    for problem in options.problems:
        if problem in FAMILIES:
            seeds = range(20 if options.seeds is None else options.seeds)
            cells += [(problem, kind, "", seed) for kind in options.past for seed in seeds]
        else:
            tasks = sorted(grid(options.data, problem).tasks)[: options.tasks]
            seeds = range(5 if options.seeds is None else options.seeds)
            cells += [(problem, kind, task, seed) for kind in options.past for seed in seeds for task in tasks]
    return cells


def run_missing(options: argparse.Namespace) -> None:
    done = read_results(options.out)
    missing = [cell for cell in wanted(options) if cell not in done]
    fresh = not options.out.exists()
    with options.out.open("a", newline="") as file, ProcessPoolExecutor(options.jobs) as pool:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(FIELDS)
        for future in as_completed([pool.submit(run_cell, options.data, cell) for cell in missing]):
            writer.writerow(future.result())
            file.flush()


def report(results: dict[Cell, np.ndarray]) -> None:
    """Mean regrets; when each method is where ``rgpe-taf`` ends; the ratio of the two in the end."""
    groups = defaultdict(list)
    for (problem, kind, _, _), curves in results.items():
        groups[problem, kind].append(curves)
    heads = "".join(f"{count:>9}" for count in SHOWN)
    print(f"{'mean regret after':<32}{heads}   runs  there after   ratio at {HORIZON} (90 % interval)")
    for (problem, kind), group in sorted(groups.items(), key=lambda item: (item[0][0], KINDS.index(item[0][1]))):
        curves = np.array(group)  # (runs, 2, 50)
        for index, method in enumerate(METHODS):
            cells = "".join(f"{curves[:, index, count - 1].mean():9.3g}" for count in SHOWN)
            ending = f"{len(curves):7d} {caught_up(curves):>12}   {ratio(curves[:, :, -1])}" if index == 0 else ""
            print(f"{problem:<14} {kind:<8} {method:<8}{cells}{ending}")


def caught_up(curves: np.ndarray) -> str:
    """After how many evaluations each method has the mean regret that ``rgpe-taf`` has in the end."""
    means = curves.mean(axis=0)
    reached = [np.flatnonzero(mean <= means[0, -1]) for mean in means]
    return " / ".join(str(places[0] + 1) if len(places) else "never" for places in reached)


def ratio(final: np.ndarray) -> str:
    """Ratio of the mean regrets ``final (runs, 2)``, with an interval from resampling the pairs."""
    rng = np.random.default_rng(0)
    drawn = final[rng.integers(len(final), size=(2000, len(final)))].mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # both may find the optimum in every run
        middle = np.divide(*final.mean(axis=0))
        low, high = np.nanpercentile(drawn[:, 0] / drawn[:, 1], [5, 95]) if final.any() else (np.nan, np.nan)
    return f"{middle:.2f} ({low:.2f} .. {high:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RECOLLECT_DATA"), help="folder of the grids")
    parser.add_argument("--out", type=Path, default=Path("no_harm.csv"))
    parser.add_argument("--problems", nargs="+", default=[*GRIDS, *FAMILIES], choices=[*GRIDS, *FAMILIES])
    parser.add_argument("--past", nargs="+", default=KINDS, choices=KINDS, help="kinds of past runs")
    parser.add_argument("--seeds", type=int, default=None, help="by default 5 on the grids, 20 on the families")
    parser.add_argument("--tasks", type=int, default=None, help="only the first so many tasks of each grid")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.data is None and set(options.problems) & set(GRIDS):
        raise SystemExit("name the folder of the grids: --data DIR or RECOLLECT_DATA; or --problems branin hartmann6")
    options.data = None if options.data is None else Path(options.data)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RECOLLECT_CACHE"] = folder
        run_missing(options)
    report(read_results(options.out))


if __name__ == "__main__":
    main()
