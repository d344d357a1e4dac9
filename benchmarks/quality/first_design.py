"""Which first points serve plain Bayesian optimization best on real tables?

    python benchmarks/quality/first_design.py --data DIR --out first_design.csv

Runs `gp` with three first designs on the same tasks and seeds: ten points of a Latin hypercube (as in the paper), the
default configuration and four Sobol points (what `gp` does), and five random points. DIR is the folder of the tables
that do not come with recollect. Finished runs are appended to the file and not repeated.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np

import recollect
from recollect.bench.benchmark import Benchmark
from recollect.optimizer.method import Design, Method

TABLES = [
    *("svm-grid", "lcbench", "lightgbm5d_tabrepo", "own-mlp", "xgboost10d_yahpo", "own-svm", "adaboost-grid"),
    *("svm_openml100", "own-xgboost", "own-svm-grid"),
]
DESIGNS = {
    "hypercube-10": Design("latin-hypercube", 10),
    "default-sobol-5": Design("sobol", 5),
    "random-5": Design("random", 5),
}
EVALUATIONS, SHOWN = 50, (5, 10, 20, 30, 50)


def regret_curve(benchmark: Benchmark, name: str, method: Method, seed: int) -> list[float]:
    """Return the regret after each evaluation; 0 is the best configuration of the task, 100 the worst."""
    task = benchmark.task(name)
    optimizer = recollect.Optimizer(
        benchmark.space, method=method, horizon=EVALUATIONS, seed=seed, candidates=task.candidates
    )
    values = []
    for _ in range(EVALUATIONS):
        config = optimizer.ask()
        values.append(task.evaluate(config))
        optimizer.tell(config, values[-1])
    lowest = np.minimum.accumulate(values)
    return list(100.0 * (lowest - task.best) / max(task.worst - task.best, 1e-12))


def show(path: Path) -> None:
    """Print mean regrets and mean log regret of the runs that all designs have."""
    curves: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(dict)
    with path.open(newline="") as file:
        for table, task, seed, design, *curve in csv.reader(file):
            curves[table, task, seed][design] = [float(value) for value in curve]
    for table in dict.fromkeys(key[0] for key in curves):
        runs = [entry for key, entry in curves.items() if key[0] == table and len(entry) == len(DESIGNS)]
        print(f"{table}, {len(runs)} runs; regret after {', '.join(map(str, SHOWN))}; mean log regret")
        for design in DESIGNS if runs else ():
            mean = np.mean([entry[design] for entry in runs], axis=0)
            shown = " ".join(f"{mean[count - 1]:6.2f}" for count in SHOWN)
            print(f"  {design:<16} {shown}  {np.log(mean[1:] + 0.05).mean():6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of the tables that do not come with recollect")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--tasks", type=int, default=24, help="tasks per table")
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    options = parser.parse_args()
    if options.data:
        os.environ["RECOLLECT_DATA"] = options.data
    with options.out.open("a+", newline="", buffering=1) as file:
        file.seek(0)
        finished = {tuple(row[:4]) for row in csv.reader(file)}
        writer = csv.writer(file)
        for table in options.tables:
            benchmark = recollect.bench.load(table)
            for task in benchmark.tasks[: options.tasks]:
                for seed in options.seeds:
                    for name, design in DESIGNS.items():
                        if (table, task, str(seed), name) not in finished:
                            method = replace(recollect.method("gp"), design=design)
                            curve = regret_curve(benchmark, task, method, seed)
                            writer.writerow([table, task, seed, name, *(f"{value:.4g}" for value in curve)])
    show(options.out)


if __name__ == "__main__":
    main()
