"""Do two methods differ?

    python benchmarks/quality/compare_methods.py benchmarks/results/ablation.csv.gz tstr-ei+rho0.1 tstr-ei+rho1.0

For every benchmark that has both methods, over the tasks and repetitions that both have: 100 x mean normalised regret
after several numbers of evaluations, p of the exact paired two-sided Wilcoxon signed-rank test over tasks (as in all
tables), on how many tasks the first method is better and worse, and after how many evaluations the second method is as
good on average as the first after 5, 10 and 20. Last, the difference of the log regret of each run (mean over
evaluations from the second on of the log of 100 x regret + 0.05), its mean over benchmarks, and p over all tasks.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from recollect.bench.analysis.aggregate import MethodResult, aggregate_runs, common_runs
from recollect.bench.analysis.statistics import signed_rank
from recollect.bench.experiment.results import read_results

AFTER = (5, 10, 20, 30, 50)
OFFSET = 0.05  # added to 100 x regret, as it may be 0


def needed(first: np.ndarray, second: np.ndarray) -> list[str]:
    """Return after how many evaluations the second curve reaches the first after 5, 10 and 20."""
    reached = (np.flatnonzero(second <= first[after - 1]) for after in AFTER[:3])
    return [str(places[0] + 1) if places.size else f"more than {second.size}" for places in reached]


def log_regrets(result: MethodResult) -> np.ndarray:
    """Return the mean log regret of the runs on each task (t,), in the order of the tasks."""
    runs = defaultdict(list)
    for (task, _), curve in sorted(result.curves.items()):
        runs[task].append(np.log(100 * np.asarray(curve)[1:] + OFFSET).mean())
    return np.array([np.mean(own) for _, own in sorted(runs.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("first")
    parser.add_argument("second")
    given = parser.parse_args()
    runs = [run for run in read_results(given.results) if run.key.method in (given.first, given.second)]
    gaps = []
    for benchmark, results in aggregate_runs(common_runs(runs)).benchmarks.items():
        if {given.first, given.second} <= results.methods.keys():
            for after in (count for count in AFTER if count <= results.horizon):
                found = [results.methods[name].task_regrets(after) for name in (given.first, given.second)]
                a, b = (np.array([own[task] for task in sorted(found[0])]) for own in found)
                better, worse = np.count_nonzero(a < b), np.count_nonzero(a > b)
                means = f"{100 * a.mean():6.2f} {100 * b.mean():6.2f}"
                print(f"{benchmark:<16}{after:3} {means}  p {signed_rank(a, b):.3f}  better {better}, worse {worse}")
            curves = (results.methods[name].adtm for name in (given.first, given.second))
            print(f"{benchmark:<16}    as good after", ", ".join(needed(*curves)))
            one, other = (log_regrets(results.methods[name]) for name in (given.first, given.second))
            gaps.append(one - other)
            print(f"{benchmark:<16}    log regret of each run {gaps[-1].mean():+.2f}")
    if gaps:
        all_tasks = np.concatenate(gaps)
        p = signed_rank(all_tasks, np.zeros(len(all_tasks)))
        mean = np.mean([gap.mean() for gap in gaps])
        print(f"all: log regret of each run {mean:+.3f}, p {p:.3g} over {len(all_tasks)} tasks")


if __name__ == "__main__":
    main()
