"""How long does a start from 200 past runs of 50 trials in SQLite take, and what does `minimize` add to each trial?

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/memory_start.py [--runs 200] [--trials 50] [--starts 1] [--peer]

Past runs are drawn from the embedded benchmark own-svm-grid (six hyperparameters, 35 real datasets, random rows). The
start is measured in a fresh process, from opening the memory to the first suggestion, ``--starts`` times without and
then three times with the cache of fitted models. ``--peer`` also reads the same file with Optuna's own
study.get_trials().
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import recollect
from recollect import Memory, Optimizer, Run, minimize

START = """
import json, sys, time
import recollect
space = recollect.bench.load("own-svm-grid").space
recollect.Optimizer, recollect.Memory
begin = time.perf_counter()
memory = recollect.Memory(sys.argv[1])
past = memory.past(space, "svm")
loaded = time.perf_counter()
optimizer = recollect.Optimizer(space, past)
optimizer.ask()
ready = time.perf_counter()
print(json.dumps([loaded - begin, ready - begin, len(past)]))
"""
PEER = """
import sys, time, optuna
begin = time.perf_counter()
for study in optuna.get_all_study_names(f"sqlite:///{sys.argv[1]}"):
    optuna.load_study(study_name=study, storage=f"sqlite:///{sys.argv[1]}").get_trials(deepcopy=False)
print(time.perf_counter() - begin)
"""


def fill(path: Path, runs: int, trials: int) -> None:
    benchmark = recollect.bench.load("own-svm-grid")
    memory = Memory(path)
    rng = np.random.default_rng(0)
    for number in range(runs):
        name = benchmark.tasks[number % len(benchmark.tasks)]
        task = benchmark.task(name)
        rows = rng.choice(len(task.candidates), trials, replace=False)
        configs = [task.candidates[row] for row in rows]
        values = [task.evaluate(config) for config in configs]
        memory.add(Run(f"{name} {number}", configs, values, space=benchmark.space), "svm")
    memory.close()


def start(path: Path, cache: Path) -> tuple[float, float, int]:
    environment = os.environ | {"RECOLLECT_CACHE": str(cache)}
    out = subprocess.run(
        [sys.executable, "-c", START, str(path)], env=environment, capture_output=True, text=True, check=True
    ).stdout
    loaded, ready, count = json.loads(out)
    return loaded, ready, count


def overhead(folder: Path, trials: int = 60) -> tuple[float, float]:
    """Median milliseconds of a trial in `minimize` on SQLite, and of the same ask and tell alone."""
    space: dict[str, Any] = {f"x{i}": (0.0, 1.0) for i in range(6)}
    ends: list[float] = []

    def objective(config: dict[str, Any]) -> float:
        ends.append(time.perf_counter())
        return float(sum((value - 0.3) ** 2 for value in config.values()))

    kept = {"memory": folder / "o.db", "problem": "p", "task": "t"}
    minimize(objective, space, trials=trials, method="gp", progress=False, **kept)
    whole = np.diff(ends)
    optimizer = Optimizer(space, method="gp", horizon=trials)
    alone = []
    for _ in range(trials):
        begin = time.perf_counter()
        config = optimizer.ask()
        optimizer.tell(config, sum((value - 0.3) ** 2 for value in config.values()))
        alone.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(whole - np.array(alone[1:])), 1e3 * statistics.median(alone)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--starts", type=int, default=1, help="first starts, each with an empty cache")
    parser.add_argument("--peer", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tuning.db"
        begin = time.perf_counter()
        fill(path, given.runs, given.trials)
        print(f"writing {given.runs} runs of {given.trials} trials: {time.perf_counter() - begin:.1f} s")
        caches = [f"cache {number}" for number in range(given.starts)]
        for what, cache in [*(("first", cache) for cache in caches), *[("cached", caches[-1])] * 3]:
            loaded, ready, count = start(path, Path(folder) / cache)
            print(f"start from {count} past runs, {what}: read in {loaded:.2f} s, first suggestion after {ready:.2f} s")
        if given.peer:
            out = subprocess.run([sys.executable, "-c", PEER, str(path)], capture_output=True, text=True, check=True)
            print(f"the same file read by Optuna: {float(out.stdout):.2f} s")
        extra, alone = overhead(Path(folder))
        print(f"a trial: {extra:.1f} ms beyond ask() and tell(), which take {alone:.1f} ms")


if __name__ == "__main__":
    main()
