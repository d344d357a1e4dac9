r"""How long does one suggestion with past runs take, on one core, and how does it grow with their number?

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/suggestion_with_past_runs.py \
        [--parts finite xgboost methods growth] [--sizes 10 100]

Parts ``finite`` and ``xgboost``: 49 past runs of 50 observations, on 288 candidates in six dimensions and in the
paper's ten-dimensional conditional space. Both follow the user's loop: ask, evaluate, tell. The asks at 45 to 49
observations are timed, and those at 5, 10 and 20, because close to the horizon nearly all past runs are dropped. Prints
medians of wall time and of processor time, which other programs do not lengthen, and the mean number of past runs with
a weight (``members``).

Part ``methods``: the same two settings for every method of the catalog, at 45 to 49 observations, and the longest ask
of the run, which contains everything that is learned from past runs once (the Gaussian processes of the past runs come
from the cache after the first method that needs them). ``mtgp`` gets as many of the past runs as it accepts, ``kl``
refuses the conditional space.

Part ``growth``: 10, 100, 1000, 10000 past runs of 50 observations in five dimensions. A start is ``Optimizer(...)`` up
to its first suggestion: with an empty cache of fits, which uses all cores, and with a full one. More than
``--real-fits`` past runs are not fitted: their cache is filled with the hyperparameters of the first ten. The
observations before 18 and from 21 to 46 come from a ``gp`` run of the same task; the asks at 18 to 20 and 47 to 49 are
timed. Peak memory is that of the process so far, with the past runs as Python objects.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import recollect
from recollect.space.sampling import uniform
from recollect.surrogate.scaling import standardize
from recollect.transfer.fit_cache import FitCache
from recollect.transfer.source_fitting import DECIMALS, FitTask, _fits
from suggestion import xgboost_space

METHOD, HORIZON, OBSERVATIONS, PAST, CANDIDATES = "rgpe-taf", 50, 50, 49, 288
GROUPS = {"5": (5,), "10": (10,), "20": (20,), "45-49": (45, 46, 47, 48, 49)}
TIMED = (20, 49)
Config = dict[str, Any]
Measured = tuple[float, float, int]  # seconds that passed, seconds of work, past runs with a weight


def cube(d: int) -> recollect.Space:
    return recollect.compile_space({f"x{j}": (0.0, 1.0) for j in range(d)})


def draw_task(space: recollect.Space, rng: np.random.Generator) -> Callable[[Sequence[Config]], np.ndarray]:
    """A bowl with waves on the encoded columns; centres, curvatures and waves differ a little from task to task."""
    d = len(space.names)
    centre, curvature = 0.4 + 0.12 * rng.standard_normal(d), np.exp(0.5 * rng.standard_normal(d))
    height, phase = 0.1 * rng.random(d), 0.5 * rng.standard_normal(d)
    scale, offset = np.exp(0.3 * rng.standard_normal()), rng.standard_normal()

    def values(configs: Sequence[Config]) -> np.ndarray:
        X = space.encode(configs)
        waves = curvature * (X - centre) ** 2 + height * np.sin(12 * X + phase)
        return offset + scale * np.nansum(waves, axis=1)

    return values


def sample(space: recollect.Space, count: int, rng: np.random.Generator) -> list[Config]:
    X = uniform(space, count, rng)
    if "x0" in space.names:  # the unit cube is its own encoding: no need to decode half a million rows
        return [dict(zip(space.names, row, strict=True)) for row in X.tolist()]
    return space.decode(X)


def draw_past(
    space: recollect.Space, count: int, candidates: Sequence[Config] | None, rng: np.random.Generator
) -> list[recollect.Run]:
    """Past runs of random search, each on a task of its own."""
    runs = []
    for number in range(count):
        if candidates is None:
            configs = sample(space, OBSERVATIONS, rng)
        else:
            configs = [candidates[g] for g in rng.permutation(len(candidates))[:OBSERVATIONS]]
        runs.append(recollect.Run(f"task {number}", configs, draw_task(space, rng)(configs)))
    return runs


def members(optimizer: recollect.Optimizer) -> int:
    return sum(1 for entry in optimizer.explain().past if entry.weight)


def timed_ask(optimizer: recollect.Optimizer) -> tuple[Config, Measured]:
    wall, work = time.perf_counter(), time.process_time()
    config = optimizer.ask()
    wall, work = time.perf_counter() - wall, time.process_time() - work
    return config, (wall, work, members(optimizer))


def time_loop(
    space: recollect.Space, candidates: list[Config] | None, seed: int, *, method: str = METHOD
) -> dict[int, Measured]:
    """All asks of one run, by number of observations."""
    rng = np.random.default_rng(seed)
    past, target = draw_past(space, PAST, candidates, rng), draw_task(space, rng)
    if method == "mtgp":
        past = past[: recollect.method(method).joint.max_observations // OBSERVATIONS]
    optimizer = recollect.Optimizer(space, past, method, horizon=HORIZON, seed=seed, candidates=candidates)
    measured = {}
    for n in range(HORIZON):
        config, measured[n] = timed_ask(optimizer)
        optimizer.tell(config, float(target([config])[0]))
    return measured


def report_loop(
    title: str, space: recollect.Space, candidates: list[Config] | None, *, seeds: int, method: str
) -> None:
    measured = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RECOLLECT_CACHE"] = folder
        for seed in range(seeds):
            for n, entry in time_loop(space, candidates, seed, method=method).items():
                measured[n].append(entry)
    print(f"\n{title}: ask() of {method}, {PAST} past runs of {OBSERVATIONS} observations, {seeds} seeds")
    print("observations       time       work   members")
    for group, numbers in GROUPS.items():
        wall, work, taking_part = summary([entry for n in numbers for entry in measured[n]])
        print(f"{group:>12} {1000 * wall:7.1f} ms {1000 * work:7.1f} ms {taking_part:9.1f}", flush=True)


def report_methods(names: Sequence[str], seeds: int) -> None:
    finite, mixed = cube(6), recollect.compile_space(xgboost_space())
    candidates = sample(finite, CANDIDATES, np.random.default_rng(0))
    print(f"\nask() at 45-49 observations with {PAST} past runs of {OBSERVATIONS} observations, {seeds} seeds")
    print(f"{'':<12} {CANDIDATES} candidates in 6-d           XGBoost, 10-d conditional")
    print(f"{'method':<12} {'time':>10} {'work':>10} {'longest':>10} {'time':>10} {'work':>10} {'longest':>10}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RECOLLECT_CACHE"] = folder
        for name in names:
            cells = ""
            for space, limited in ((finite, candidates), (mixed, None)):
                try:
                    runs = [time_loop(space, limited, seed, method=name) for seed in range(seeds)]
                except recollect.InputError:
                    cells += f"{'refused':>11}"
                    continue
                wall, work, _ = summary([run[n] for run in runs for n in GROUPS["45-49"]])
                longest = statistics.median(max(run[n][0] for n in range(HORIZON)) for run in runs)
                cells += f"{1000 * wall:8.1f} ms{1000 * work:8.1f} ms{longest:9.2f} s"
            print(f"{name:<12}{cells}", flush=True)


def summary(asks: Sequence[Measured]) -> tuple[float, float, float]:
    wall, work, taking_part = zip(*asks, strict=True)
    return statistics.median(wall), statistics.median(work), statistics.mean(taking_part)


def start(space: recollect.Space, past: list[recollect.Run]) -> tuple[recollect.Optimizer, Config, float]:
    begin = time.perf_counter()
    optimizer = recollect.Optimizer(space, past, METHOD, horizon=HORIZON, seed=0)
    config = optimizer.ask()
    return optimizer, config, time.perf_counter() - begin


def fill_cache(space: recollect.Space, past: list[recollect.Run]) -> None:
    """Put hyperparameters for all past runs into the cache: those of the first ten, over and over."""
    settings = recollect.method(METHOD).sources
    shape = space.kernel_shape
    aligned = [entry.data for entry in recollect.Optimizer(space, past, METHOD).past]
    tasks = [
        FitTask(data.X, np.round(standardize(data.y)[0], DECIMALS) + 0.0, shape, settings.prior, settings.restarts)
        for data in aligned
    ]
    fitted = list(_fits({task.key(): task for task in tasks[:10]}).values())
    FitCache.default().put({task.key(): fitted[i % len(fitted)] for i, task in enumerate(tasks)})


def follow_gp(space: recollect.Space, target: Callable[[Sequence[Config]], np.ndarray]) -> list[tuple[Config, float]]:
    optimizer = recollect.Optimizer(space, method="gp", horizon=HORIZON, seed=1)
    for _ in range(HORIZON):
        config = optimizer.ask()
        optimizer.tell(config, float(target([config])[0]))
    return list(zip(optimizer.run.configs, optimizer.run.values, strict=True))


def time_growth(count: int, real_fits: int) -> tuple[float | None, float, list[tuple[float, float, float]]]:
    """Seconds of the first start (None if not measured) and of one with cached fits; summaries of the asks."""
    space, rng = cube(5), np.random.default_rng(0)
    target = draw_task(space, rng)
    past = draw_past(space, count, None, rng)
    first = None
    if count <= real_fits:
        first = start(space, past)[2]
    else:
        fill_cache(space, past)
    written = FitCache.default().path.stat().st_mtime_ns
    optimizer, config, again = start(space, past)
    if FitCache.default().path.stat().st_mtime_ns != written:
        raise SystemExit("the cache did not hold all fits: the cached start was none")
    optimizer.tell(config, float(target([config])[0]))
    summaries = []
    told = iter(follow_gp(space, target))
    for n in TIMED:
        while len(optimizer.run) < n - 3:
            optimizer.tell(*next(told))
        asks = []
        for _ in range(4):  # the first one fits from scratch and predicts at all the points that were told: not timed
            config, measured = timed_ask(optimizer)
            asks.append(measured)
            optimizer.tell(config, float(target([config])[0]))
        summaries.append(summary(asks[1:]))
    return first, again, summaries


def report_growth(sizes: list[int], real_fits: int) -> None:
    print(f"\ngrowth: {METHOD} in 5 dimensions, past runs of {OBSERVATIONS} observations; {os.cpu_count()} cores")
    heads = "".join(f"   ask, n = {n}       work  members" for n in TIMED)
    print(f"past runs   first start  cached start{heads}      peak")
    for count in sorted(sizes):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["RECOLLECT_CACHE"] = folder
            first, again, asks = time_growth(count, real_fits)
        begin = "not fitted" if first is None else f"{first:.2f} s"
        cells = "".join(f" {1000 * wall:10.1f} ms {1000 * work:7.1f} ms {active:8.1f}" for wall, work, active in asks)
        print(f"{count:9,d} {begin:>13} {again:11.2f} s{cells} {peak():6.0f} MB", flush=True)


def peak() -> float:
    """Largest resident memory so far, in MB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("finite", "xgboost", "methods", "growth")
    parser.add_argument("--parts", nargs="+", default=parts, choices=parts)
    parser.add_argument("--seeds", type=int, default=5, help="repetitions of all parts but growth")
    parser.add_argument("--method", default=METHOD, help="for the parts finite and xgboost")
    parser.add_argument("--methods", nargs="+", default=recollect.methods(), help="for the part methods")
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 100, 1000, 10_000], help="for the part growth")
    parser.add_argument("--real-fits", type=int, default=100, help="largest number of past runs that is really fitted")
    options = parser.parse_args()
    if "finite" in options.parts:
        space = cube(6)
        candidates = sample(space, CANDIDATES, np.random.default_rng(0))
        report_loop(f"{CANDIDATES} candidates in 6-d", space, candidates, seeds=options.seeds, method=options.method)
    if "xgboost" in options.parts:
        space = recollect.compile_space(xgboost_space())
        report_loop("XGBoost, 10-d conditional", space, None, seeds=options.seeds, method=options.method)
    if "methods" in options.parts:
        report_methods(options.methods, options.seeds)
    if "growth" in options.parts:
        report_growth(options.sizes, options.real_fits)


if __name__ == "__main__":
    main()
