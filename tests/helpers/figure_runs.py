"""Made-up runs for tests of benchmark figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.bench.analysis.aggregate import BenchmarkResults, aggregate_runs
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey

FOURTEEN = (
    *("gp", "random", "gcp", "gp-box", "random-box", "smfo", "wac", "tstr-ei", "tstr-taf", "rgpe-mean", "rgpe-ei"),
    *("rgpe-nei", "rgpe-mogp", "rgpe-taf+copula"),
)
SHORT = ("gp", "random", "tstr-ei", "rgpe-mean")


def fake_runs(methods: Sequence[str], *, tasks: int = 4, t: int = 12, benchmark: str = "toy") -> list[CompletedRun]:
    rng = np.random.default_rng(0)
    runs = []
    for method in methods:
        for task in range(tasks):
            steps = np.exp(-0.2 * np.arange(2 * t if method == "random" else t))
            weights = None
            if method.startswith("rgpe"):
                weights = np.full((t, 5), np.nan)
                weights[2:] = [0.4, 0.3, 0.2, 0.1, 6]
            key = RunKey(benchmark, method, f"task {task}", 0)
            runs.append(CompletedRun(key, 0, 0.0, 1.0, rng.random(len(steps)) * steps, weights, 0.1, "0"))
    return runs


def results_of(runs: Sequence[CompletedRun]) -> BenchmarkResults:
    (results,) = aggregate_runs(runs).benchmarks.values()
    return results
