"""Why are the first ten evaluations of ``gp+paper`` on svm-grid worse than ten random ones?

    python benchmarks/quality/initial_design.py --data DIR [--repetitions 5]

Three columns of the grid encode the kernel of a configuration. A design drawn in the whole cube and moved to the
nearest grid points chooses kernels by their distance, random search by their number of points. Prints the share of each
kernel in the grid and in the design, its regrets, and 100 x the regret after ten evaluations of the design, of ten
random points, and of ten random points with the design's shares of kernels.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import recollect
from recollect.bench import from_table

POINTS = 10
DRAWS = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with svm_grid.csv.gz")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    benchmark = from_table(options.data / "svm_grid.csv.gz")
    tasks = [benchmark.task(name) for name in benchmark.tasks]
    grid = tasks[0].candidates
    kernels = np.array(["RBF" if c["x1"] else "polynomial" if c["x2"] else "linear" for c in grid])
    values = np.array([[task.evaluate(config) for config in grid] for task in tasks])
    low, high = values.min(axis=1, keepdims=True), values.max(axis=1, keepdims=True)
    regrets = (values - low) / (high - low)

    where = {repr(config): at for at, config in enumerate(grid)}
    designs = []
    for seed in range(options.repetitions * len(tasks)):
        optimizer = recollect.Optimizer(benchmark.space, method="gp+paper", seed=seed, candidates=grid)
        designs.append([where[repr(config)] for config in optimizer.ask(POINTS)])
    picked = kernels[np.concatenate(designs)]

    print("kernel       grid  design  mean regret  of its best")
    for kernel in ("RBF", "polynomial", "linear"):
        own = kernels == kernel
        mean, best = 100 * regrets[:, own].mean(), 100 * regrets[:, own].min(axis=1).mean()
        print(f"{kernel:<12} {own.mean():4.0%}  {np.mean(picked == kernel):6.0%}  {mean:11.1f}  {best:11.1f}")

    rng = np.random.default_rng(0)
    even = np.full(len(grid), 1.0 / len(grid))
    alike = np.array([np.mean(picked == kernel) / np.sum(kernels == kernel) for kernel in kernels])
    reached = {"the design": np.mean([regrets[at % len(tasks), design].min() for at, design in enumerate(designs)])}
    for name, chances in (("random", even), ("random, kernels as in the design", alike / alike.sum())):
        draws = [rng.choice(len(grid), POINTS, replace=False, p=chances) for _ in range(DRAWS)]
        reached[name] = np.mean([regrets[:, draw].min(axis=1).mean() for draw in draws])
    for name, regret in reached.items():
        print(f"{100 * regret:5.1f}  {name}")


if __name__ == "__main__":
    main()
