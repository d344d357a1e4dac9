"""Does it cost anything that of many past runs only a few hundred take part in a suggestion?

    recollect bench fetch oboe --from oboe-0.2.0-py3-none-any.whl
    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/screening_study.py --data DIR --out screening.csv
    python benchmarks/quality/screening_study.py --out screening.csv --tasks 0

Each method is run twice on the same tasks, past runs and seeds: with all past runs, and with as many as it uses of
many (or ``--limits``). Past runs are random trials of all other tasks, each with a seed of its own: on Oboe (418
datasets) one or three runs of each other dataset, on svm-grid (50 datasets) 21 runs. DIR is the folder of the tables
that do not come with recollect. Finished runs are appended to the file and not repeated; the last lines are the
comparison, by the Wilcoxon test over tasks, each with the mean regret of its seeds.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import wilcoxon

import recollect
from recollect.bench.benchmark import Benchmark
from recollect.numerics.arrays import FloatArray
from recollect.transfer.screening import Screening

CASES = {"oboe-ksvm": ("oboe-ksvm", 1), "oboe-ksvm x 3": ("oboe-ksvm", 3), "svm-grid": ("svm-grid", 21)}  # runs of each
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


def regret_curve(
    benchmark: Benchmark, name: str, past: list[recollect.Run], method: str, *, limit: int, seed: int
) -> list[float]:
    """Return the regret after each evaluation; 0 is the best configuration of the task, 100 the worst."""
    task = benchmark.task(name)
    screened = replace(recollect.method(method), screening=Screening(limit))
    optimizer = recollect.Optimizer(
        benchmark.space, past, screened, horizon=EVALUATIONS, seed=seed, candidates=task.candidates
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
    curves: dict[tuple[str, str, str, str], dict[int, list[float]]] = defaultdict(dict)
    with path.open(newline="") as file:
        for case, task, seed, method, limit, *curve in csv.reader(file):
            curves[case, method, task, seed][int(limit)] = [float(value) for value in curve]
    for case, method in dict.fromkeys(key[:2] for key in curves):
        entries = {key[2:]: entry for key, entry in curves.items() if key[:2] == (case, method) and ALL in entry}
        for few_runs in sorted({number for entry in entries.values() for number in entry} - {ALL}):
            by_task: dict[str, list[tuple[list[float], list[float]]]] = defaultdict(list)
            for (task, _), entry in entries.items():
                if few_runs in entry:
                    by_task[task].append((entry[few_runs], entry[ALL]))
            pairs = np.array([np.mean(curve_pairs, axis=0) for curve_pairs in by_task.values()])
            runs = sum(map(len, by_task.values()))
            title = f"{len(pairs)} tasks, {runs} pairs of runs, regret with at most {few_runs} past runs and with all"
            print(f"{case}, {method}: {title}")
            for count in SHOWN:
                show_difference(f"after {count:2}", *pairs[:, :, count - 1].T)
            show_difference("mean of all", *pairs.mean(axis=2).T)


def show_difference(title: str, few: FloatArray, every: FloatArray) -> None:
    p = wilcoxon(few, every).pvalue if (few != every).any() else 1.0
    wins = f"lower {np.sum(few < every)}, higher {np.sum(few > every)}"
    print(f"  {title:<11}: {few.mean():6.2f} {every.mean():6.2f}  {wins}, p = {p:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder of the tables that do not come with recollect")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--methods", nargs="+", default=["rgpe-taf", "task-prior"])
    parser.add_argument("--tasks", type=int, default=50, help="tasks per case, spread over all")
    parser.add_argument("--seeds", type=int, default=3, help="runs per task")
    parser.add_argument("--limits", type=int, nargs="+", help="past runs that take part; default: as in the method")
    options = parser.parse_args()
    if options.data:
        os.environ["RECOLLECT_DATA"] = options.data
    with options.out.open("a+", newline="", buffering=1) as file:
        file.seek(0)
        finished = {tuple(row[:5]) for row in csv.reader(file)}
        writer = csv.writer(file)
        for case in options.cases if options.tasks else ():
            table, repetitions = CASES[case]
            benchmark = recollect.bench.load(table)
            past = past_runs(benchmark, repetitions)
            chosen = np.linspace(0, len(benchmark.tasks) - 1, min(options.tasks, len(benchmark.tasks))).astype(int)
            names = [benchmark.tasks[number] for number in np.random.default_rng(0).permutation(chosen)]
            for seed, name, method in itertools.product(range(1, options.seeds + 1), names, options.methods):
                others = [run for other, runs in past.items() if other != name for run in runs]
                limits = options.limits or [recollect.method(method).screening.limit]
                for limit in (ALL, *(limit for limit in limits if limit < len(others))):
                    if (case, name, str(seed), method, str(limit)) not in finished:
                        curve = regret_curve(benchmark, name, others, method, limit=limit, seed=seed)
                        writer.writerow([case, name, seed, method, limit, *(f"{value:.4g}" for value in curve)])
    show(options.out)


if __name__ == "__main__":
    main()
