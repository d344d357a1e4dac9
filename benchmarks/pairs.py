"""Whether two methods differ: 100 x mean normalised regret of each, and p, after so many evaluations.

    python benchmarks/pairs.py benchmarks/results/ablation.csv.gz tstr-ei+rho0.1 tstr-ei+rho1.0

On every benchmark that has both, over the tasks and repetitions that both have; p of the exact paired two-sided
Wilcoxon signed-rank test over tasks, as in all tables, and on how many tasks the first is better and worse.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from recollect.bench.results import read_runs
from recollect.bench.significance import signed_rank
from recollect.bench.study import common_runs, make_study

AFTER = (5, 10, 20, 30, 50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("first")
    parser.add_argument("second")
    given = parser.parse_args()
    runs = [run for run in read_runs(given.results) if run.key.method in (given.first, given.second)]
    study = make_study(common_runs(runs))
    for benchmark, outcomes in study.outcomes.items():
        if {given.first, given.second} <= outcomes.keys():
            for after in (count for count in AFTER if count <= study.horizons[benchmark]):
                one, other = (outcomes[name].at(after) for name in (given.first, given.second))
                a, b = (np.array([found[task] for task in sorted(one)]) for found in (one, other))
                better, worse = np.count_nonzero(a < b), np.count_nonzero(a > b)
                means = f"{100 * a.mean():6.2f} {100 * b.mean():6.2f}"
                print(f"{benchmark:<16}{after:3} {means}  p {signed_rank(a, b):.3f}  better {better}, worse {worse}")


if __name__ == "__main__":
    main()
