"""How many trials does `stop_when="unlikely"` save on real tables, and what regret does it cost?

    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/stop_when_unlikely.py

Every task of a table is tuned with the default method and plain `gp` runs of all others as past runs. Then every run is
replayed with the rule, judged by all other runs of the default method (as in a memory of finished runs), by the plain
runs (of another method, which improve later), and without any. Regret is normalized: 0 is the best configuration of the
task, 100 the worst. "same budget" is the regret of stopping all runs after the rule's mean number of trials.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Sequence

import numpy as np

import recollect
from recollect.bench.benchmark import Benchmark
from recollect.numerics.arrays import FloatArray
from recollect.tuning.improvement_forecast import (
    CHECK_INTERVAL,
    MIN_OBSERVATIONS,
    UNLIKELY,
    ImprovementForecast,
    calibrated_rate,
)

TRIALS = 50
DEFAULT_METHOD = inspect.signature(recollect.minimize).parameters["method"].default


def tuned(benchmark: Benchmark, name: str, method: str, past: Sequence[recollect.Run], seed: int) -> recollect.Run:
    """Return a run of one task."""
    task = benchmark.task(name)
    optimizer = recollect.Optimizer(
        benchmark.space, past, method, horizon=TRIALS, seed=seed, candidates=task.candidates
    )
    for _ in range(TRIALS):
        config = optimizer.ask()
        optimizer.tell(config, task.evaluate(config))
    return recollect.Run(name, trials=optimizer.run.trials, space=benchmark.space)


def lengths(forecast: ImprovementForecast, runs: Sequence[recollect.Run], past: Sequence[recollect.Run]) -> list[int]:
    """Return after how many trials each run ends, judged by the past runs of other tasks."""
    ended = [TRIALS] * len(runs)
    for n in range(TRIALS - 1, MIN_OBSERVATIONS - 1, -1):
        if (n - MIN_OBSERVATIONS) % CHECK_INTERVAL:
            continue
        claims = forecast.rates([(run.X, run.y) for run in runs], n)
        rates = np.array(forecast.rates([(run.X, run.y) for run in past], n)) if past else np.empty(0)
        improved = np.array([forecast.improved(run.y, n) for run in past], dtype=bool)
        for i, (run, claim) in enumerate(zip(runs, claims, strict=True)):
            others = np.array([other.task != run.task for other in past], dtype=bool)
            windows = np.full(int(others.sum()), float(TRIALS - n))
            rate = calibrated_rate(claim, rates[others], windows, improved[others])
            if -np.expm1(-(TRIALS - n) * rate) < UNLIKELY:
                ended[i] = n
    return ended


def regrets(benchmark: Benchmark, runs: Sequence[recollect.Run], after: Sequence[int]) -> FloatArray:
    """Return the normalized regret of each run after its number of trials."""
    tasks = [benchmark.task(run.task) for run in runs]
    pairs = zip(runs, tasks, after, strict=True)
    return np.array([100.0 * (run.y[:n].min() - task.best) / (task.worst - task.best) for run, task, n in pairs])


def study(table: str, count: int) -> None:
    """Print the table of one benchmark."""
    benchmark = recollect.bench.load(table)
    names = benchmark.tasks[:count]
    plain = [tuned(benchmark, name, "gp", (), seed) for seed, name in enumerate(names)]
    runs = [
        tuned(benchmark, name, DEFAULT_METHOD, [run for run in plain if run.task != name], 100 + seed)
        for seed, name in enumerate(names)
    ]
    candidates = None if benchmark.candidates is None else benchmark.space.encode(list(benchmark.candidates))
    forecast = ImprovementForecast(benchmark.space, (), candidates=candidates)
    print(f"{table}, {len(runs)} tasks, {DEFAULT_METHOD}, {TRIALS} trials: ", end="")
    print(f"regret {regrets(benchmark, runs, [TRIALS] * len(runs)).mean():.3f}")
    print("judged by              mean trials  median  regret  same budget  more than 1 worse")
    for title, past in ((f"{DEFAULT_METHOD} runs", runs), ("gp runs", plain), ("no past runs", [])):
        ended = lengths(forecast, runs, past)
        own, full = regrets(benchmark, runs, ended), regrets(benchmark, runs, [TRIALS] * len(runs))
        same = regrets(benchmark, runs, [round(float(np.mean(ended)))] * len(runs)).mean()
        worse = int((own - full > 1.0).sum())
        numbers = f"{np.mean(ended):11.1f}  {np.median(ended):6.0f}  {own.mean():6.3f}  {same:11.3f}  {worse:17d}"
        print(f"{title:<20}  {numbers}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=["own-svm-grid"])
    parser.add_argument("--tasks", type=int, default=30, help="tasks per table")
    options = parser.parse_args()
    for table in options.tables:
        study(table, options.tasks)


if __name__ == "__main__":
    main()
