"""Do two methods differ?

    python benchmarks/quality/compare_methods.py benchmarks/results/ablation.csv.gz tstr-ei+rho0.1 tstr-ei+rho1.0

For every benchmark that has both methods, over the tasks and repetitions that both have: 100 x mean normalised regret
after several numbers of evaluations, p of the exact paired two-sided Wilcoxon signed-rank test over tasks (as in all
tables), and on how many tasks the first method is better and worse. Last, after how many evaluations the second method
is as good on average as the first after 5, 10 and 20.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from recollect.bench.analysis.aggregate import aggregate_runs, common_runs
from recollect.bench.analysis.statistics import signed_rank
from recollect.bench.experiment.results import read_results

AFTER = (5, 10, 20, 30, 50)


def needed(first: np.ndarray, second: np.ndarray) -> list[str]:
    """Return after how many evaluations the second curve reaches the first after 5, 10 and 20."""
    reached = (np.flatnonzero(second <= first[after - 1]) for after in AFTER[:3])
    return [str(places[0] + 1) if places.size else f"more than {second.size}" for places in reached]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("first")
    parser.add_argument("second")
    given = parser.parse_args()
    runs = [run for run in read_results(given.results) if run.key.method in (given.first, given.second)]
    for benchmark, results in aggregate_runs(common_runs(runs)).benchmarks.items():
        if {given.first, given.second} <= results.methods.keys():
            for after in (count for count in AFTER if count <= results.horizon):
                one, other = (results.methods[name].task_regrets(after) for name in (given.first, given.second))
                a, b = (np.array([found[task] for task in sorted(one)]) for found in (one, other))
                better, worse = np.count_nonzero(a < b), np.count_nonzero(a > b)
                means = f"{100 * a.mean():6.2f} {100 * b.mean():6.2f}"
                print(f"{benchmark:<16}{after:3} {means}  p {signed_rank(a, b):.3f}  better {better}, worse {worse}")
            curves = (results.methods[name].adtm for name in (given.first, given.second))
            print(f"{benchmark:<16}    as good after", ", ".join(needed(*curves)))


if __name__ == "__main__":
    main()
