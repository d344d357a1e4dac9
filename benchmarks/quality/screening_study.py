"""Does it cost anything that of many past runs only a few hundred take part in a suggestion?

    recollect bench fetch oboe --from oboe-0.2.0-py3-none-any.whl
    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/screening_study.py --data DIR --out screening.csv
    python benchmarks/quality/screening_study.py --out screening.csv --tasks 0

Each method is run twice on the same tasks, past runs and seeds: with all past runs, and with at most ``--limits`` of
them. Past runs are random trials of all other tasks: one run of each on Oboe (418 data sets), and 21 runs of each with
seeds of their own on svm-grid (49 other data sets, 1,029 past runs). DIR is the folder of the tables that do not come
with recollect. Finished runs are appended to the file and not repeated; the last lines are the comparison, by the
Wilcoxon test over tasks.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import wilcoxon

import recollect
from recollect.bench.benchmark import Benchmark
from recollect.transfer.screening import Screening

RUNS_OF_EACH = {"oboe": 1, "oboe-ksvm": 1, "oboe-gbt": 1, "svm-grid": 21}
PAST_TRIALS, EVALUATIONS, SHOWN = 15, 15, (3, 5, 10, 15)
ALL = 1_000_000


def past_runs(benchmark: Benchmark, repetitions: int) -> dict[str, list[recollect.Run]]:
    """Return random past runs of every task."""
    runs: dict[str, list[recollect.Run]] = {}
    for number, name in enumerate(benchmark.tasks):
        task, runs[name] = benchmark.task(name), []
        assert task.candidates is not None
        for repetition in range(repetitions):
            rng = np.random.default_rng([number, repetition])
            configs = [task.candidates[g] for g in rng.permutation(len(task.candidates))[:PAST_TRIALS]]
            runs[name].append(recollect.Run(f"{name} {repetition}", configs, [task.evaluate(c) for c in configs]))
    return runs


def regret_curve(benchmark: Benchmark, name: str, past: list[recollect.Run], method: str, limit: int) -> list[float]:
    """Return the regret after each evaluation; 0 is the best configuration of the task, 100 the worst."""
    task = benchmark.task(name)
    screened = replace(recollect.method(method), screening=Screening(limit))
    optimizer = recollect.Optimizer(
        benchmark.space, past, screened, horizon=EVALUATIONS, seed=1, candidates=task.candidates
    )
    values = []
    for _ in range(EVALUATIONS):
        config = optimizer.ask()
        values.append(task.evaluate(config))
        optimizer.tell(config, values[-1])
    lowest = np.minimum.accumulate(values)
    return list(100.0 * (lowest - task.best) / max(task.worst - task.best, 1e-12))


def show(path: Path) -> None:
    """Print mean regrets with all and with few past runs, and the p-values of their differences."""
    curves: dict[tuple[str, str, str], dict[int, list[float]]] = defaultdict(dict)
    with path.open(newline="") as file:
        for table, task, method, limit, *curve in csv.reader(file):
            curves[table, method, task][int(limit)] = [float(value) for value in curve]
    for table, method in dict.fromkeys(key[:2] for key in curves):
        entries = [entry for key, entry in curves.items() if key[:2] == (table, method) and ALL in entry]
        for few_runs in sorted({number for entry in entries for number in entry} - {ALL}):
            pairs = np.array([(entry[few_runs], entry[ALL]) for entry in entries if few_runs in entry])
            print(f"{table}, {method}: {len(pairs)} tasks, regret with at most {few_runs} past runs and with all")
            for count in SHOWN:
                few, every = pairs[:, :, count - 1].T
                p = wilcoxon(few, every).pvalue if (few != every).any() else 1.0
                wins = f"lower {np.sum(few < every)}, higher {np.sum(few > every)}"
                print(f"  after {count:2}: {few.mean():6.2f} {every.mean():6.2f}  {wins}, p = {p:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of the tables that do not come with recollect")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", choices=RUNS_OF_EACH, default=["oboe-ksvm", "svm-grid"])
    parser.add_argument("--methods", nargs="+", default=["rgpe-taf", "task-prior"])
    parser.add_argument("--tasks", type=int, default=30, help="tasks per table, spread over all")
    parser.add_argument("--limits", type=int, nargs="+", default=[256])
    options = parser.parse_args()
    if options.data:
        os.environ["RECOLLECT_DATA"] = options.data
    with options.out.open("a+", newline="", buffering=1) as file:
        file.seek(0)
        finished = {tuple(row[:4]) for row in csv.reader(file)}
        writer = csv.writer(file)
        for table in options.tables if options.tasks else ():
            benchmark = recollect.bench.load(table)
            past = past_runs(benchmark, RUNS_OF_EACH[table])
            chosen = np.linspace(0, len(benchmark.tasks) - 1, min(options.tasks, len(benchmark.tasks))).astype(int)
            for name in (benchmark.tasks[number] for number in np.random.default_rng(0).permutation(chosen)):
                others = [run for other, runs in past.items() if other != name for run in runs]
                for method in options.methods:
                    for limit in (ALL, *options.limits):
                        if (table, name, method, str(limit)) not in finished:
                            curve = regret_curve(benchmark, name, others, method, limit)
                            writer.writerow([table, name, method, limit, *(f"{value:.4g}" for value in curve)])
    show(options.out)


if __name__ == "__main__":
    main()
