"""Do two versions of recollect give different results?

    python benchmarks/quality/compare_versions.py benchmarks/results/ablation.csv.gz benchmarks/results/grids.csv.gz

Compares two files with runs of the same methods, tasks and repetitions. For every benchmark and method that both have:
100 x mean normalised regret in either file after several numbers of evaluations, and p of the exact paired two-sided
Wilcoxon signed-rank test over the common runs, as in all tables.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from recollect.bench.analysis.statistics import signed_rank
from recollect.bench.experiment.experiment_run import RunKey
from recollect.bench.experiment.results import read_results

AFTER = (5, 10, 20, 50)


def regrets(path: Path) -> dict[RunKey, np.ndarray]:
    return {run.key: run.regret for run in read_results(path)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    given = parser.parse_args()
    one, other = regrets(given.one), regrets(given.other)
    lower = higher = 0
    smallest = 1.0
    for benchmark, method in sorted({(key.benchmark, key.method) for key in one.keys() & other.keys()}):
        common = [key for key in one.keys() & other.keys() if (key.benchmark, key.method) == (benchmark, method)]
        cells = []
        for after in AFTER:
            a, b = (np.array([found[key][after - 1] for key in common]) for found in (one, other))
            p = signed_rank(a, b)
            lower, higher, smallest = lower + (b.mean() < a.mean()), higher + (b.mean() > a.mean()), min(smallest, p)
            cells.append(f"{100 * a.mean():6.2f} {100 * b.mean():6.2f} p {p:.3f}")
        print(f"{benchmark:<14}{method:<11}{len(common):4}  " + "  ".join(cells))
    print(f"the other file has a lower mean {lower} times, a higher one {higher} times; smallest p {smallest:.2f}")


if __name__ == "__main__":
    main()
