"""How many trials does `stop_when="unlikely"` save on real tables, and what regret does it cost?

    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/stop_when_unlikely.py

Every task of a table is tuned with the default method and plain `gp` runs of all others as past runs. Then every run is
replayed with the rule, judged by all other runs of the default method (as in a memory of finished runs), by the plain
runs (of another method, which improve later), by five of the plain runs, and without any. Regret is normalized: 0 is
the best configuration of the task, 100 the worst. "same budget" is the regret of stopping all runs after the rule's
mean number of trials. "wrongly" is the share of runs that were ended although they would have improved.

The last line of a table compares the forecasts of the default method's runs by the others, for several powers of the
model's claim (`CLAIM_POWER`): the mean logarithmic loss, with 29 past runs and with five. 0 ignores the claim.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import recollect
from recollect.bench.benchmark import Benchmark
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.tuning.improvement_forecast import (
    CHECK_INTERVAL,
    CLAIM_POWER,
    MIN_OBSERVATIONS,
    UNLIKELY,
    ImprovementForecast,
    calibrated_probability,
)

TRIALS = 50
TABLES = ("own-svm-grid", "own-svm", "own-mlp", "own-glmnet", "own-adaboost")
LOOKS = range(MIN_OBSERVATIONS, TRIALS, CHECK_INTERVAL)
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


@dataclass(frozen=True)
class Claims:
    """What the model claims for each run (rows) at each look (columns), and whether the run improved then."""

    tasks: list[str]
    rates: FloatArray
    improved: BoolArray

    @classmethod
    def of(cls, forecast: ImprovementForecast, runs: Sequence[recollect.Run]) -> Claims:
        observed = [(run.X, run.y) for run in runs]
        rates = [forecast.rates(observed, n) if runs else [] for n in LOOKS]
        improved = [[forecast.improved(y, n) for _, y in observed] for n in LOOKS]
        return cls([run.task for run in runs], np.array(rates).T, np.array(improved, dtype=bool).T)


def probabilities(own: Claims, past: Claims, *, most: int = 50, power: float = CLAIM_POWER) -> FloatArray:
    """Return the forecast of every run at every look, judged by at most so many past runs of other tasks."""
    found = np.empty(own.rates.shape)
    for row, task in enumerate(own.tasks):
        others = [number for number, other in enumerate(past.tasks) if other != task]
        chosen = sorted(np.random.default_rng(row).permutation(others)[:most].astype(int))
        for look, n in enumerate(LOOKS):
            windows = np.full(len(chosen), float(TRIALS - n))
            rates, improved = (past.rates[chosen, look], past.improved[chosen, look]) if chosen else (windows, windows)
            found[row, look] = calibrated_probability(
                own.rates[row, look], TRIALS - n, rates=rates, windows=windows, improved=improved, power=power
            )
    return found


def lengths(forecasts: FloatArray) -> list[int]:
    """Return after how many trials each run ends."""
    return [next((n for n, p in zip(LOOKS, row, strict=True) if p < UNLIKELY), TRIALS) for row in forecasts]


def log_loss(forecasts: FloatArray, improved: BoolArray) -> float:
    return float(-np.log(np.where(improved, forecasts, 1.0 - forecasts)).mean())


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
    own, others, none = (Claims.of(forecast, group) for group in (runs, plain, ()))
    full = regrets(benchmark, runs, [TRIALS] * len(runs))
    print(f"{table}, {len(runs)} tasks, {DEFAULT_METHOD}, {TRIALS} trials: regret {full.mean():.3f}")
    print("judged by              mean trials  median  regret  same budget  more than 1 worse  wrongly")
    cases = (
        (f"{DEFAULT_METHOD} runs", own, 50),
        ("gp runs", others, 50),
        ("5 gp runs", others, 5),
        ("no past runs", none, 0),
    )
    for title, past, most in cases:
        ended = lengths(probabilities(own, past, most=most))
        short = regrets(benchmark, runs, ended)
        same = regrets(benchmark, runs, [round(float(np.mean(ended)))] * len(runs)).mean()
        wrong = [own.improved[row, LOOKS.index(n)] for row, n in enumerate(ended) if n < TRIALS]
        numbers = f"{np.mean(ended):11.1f}  {np.median(ended):6.0f}  {short.mean():6.3f}  {same:11.3f}  "
        print(f"{title:<20}  {numbers}{int((short - full > 1.0).sum()):17d}  {np.mean(wrong or [0.0]):7.2f}")
    losses = {
        power: [log_loss(probabilities(own, own, most=most, power=power), own.improved) for most in (50, 5)]
        for power in (0.0, CLAIM_POWER, 0.2, 0.3, 0.5, 1.0)
    }
    print(
        "log loss by power ", ";  ".join(f"{power:g}: {x:.3f}, {y:.3f}" for power, (x, y) in losses.items()), flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--tasks", type=int, default=30, help="tasks per table")
    options = parser.parse_args()
    for table in options.tables:
        study(table, options.tasks)


if __name__ == "__main__":
    main()
