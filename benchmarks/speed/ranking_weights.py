"""What do the ranking weights cost: compared with the literal computation, with many resamples, with many past runs?

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/ranking_weights.py [--smoke]

The literal computation draws resample indices, gathers predictions and observations for each model, and compares them
with themselves rolled by every shift, as the paper's loss is written.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from recollect.transfer.weighting.ranking_weights import rgpe_weights


def data(k: int, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Base models from good to useless, and a target with a middling leave-one-out error."""
    y = rng.normal(size=n)
    noise = np.linspace(0.2, 3.0, k)[:, None]
    return y + noise * rng.normal(size=(k, n)), y + 0.5 * rng.normal(size=n), y


def literal_weights(base: np.ndarray, loo: np.ndarray, y: np.ndarray, samples: int, rng: np.random.Generator) -> None:
    """Vectorised over resamples, one model and one shift at a time; dilution as in the paper."""
    k, n = base.shape
    drawn = rng.integers(0, n, size=(samples, n))
    true = y[drawn]
    losses = np.zeros((k + 1, samples))
    for i in range(k + 1):
        left = (base[i] if i < k else loo)[drawn]
        right = left if i < k else true
        for shift in range(n):
            ranked = left < np.roll(right, shift, axis=1)
            losses[i] += (ranked ^ (true < np.roll(true, shift, axis=1))).sum(axis=1)
    keep = (1 - n / 100) * (losses[:-1] < losses[-1]).mean(axis=1)
    losses[:-1][rng.random(k) < 1 - keep] = 2 * losses.max() + 1
    best = losses == losses.min(axis=0)
    (best / best.sum(axis=0)).mean(axis=1)


def seconds(run: Callable[[], object], repeats: int) -> float:
    """Median wall time, after one call to warm up."""
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def against_literal(repeats: int) -> None:
    """S = 1000, k = n = 50, alternating both ways so that a busy machine hits both alike."""
    base, loo, y = data(50, 50, np.random.default_rng(0))
    ours, theirs, ratios = [], [], []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        ours.append(seconds(lambda rng=rng: rgpe_weights(base, loo, y, samples=1000, horizon=100, rng=rng), 5))
        start = time.perf_counter()
        literal_weights(base, loo, y, 1000, rng)
        theirs.append(time.perf_counter() - start)
        ratios.append(theirs[-1] / ours[-1])
    print("S = 1,000, k = n = 50, one thread")
    print(f"  recollect  {1e3 * np.median(ours):9.2f} ms")
    print(f"  literal    {1e3 * np.median(theirs):9.2f} ms")
    print(f"  ratio      {np.median(ratios):9.1f}    (wanted: at least 20)")


def one_call(k: int, n: int, samples: int) -> None:
    """Run in a process of its own: seconds and peak memory of a single call."""
    base, loo, y = data(k, n, np.random.default_rng(0))
    before = peak()
    with threadpool_limits(1):
        start = time.perf_counter()
        rgpe_weights(base, loo, y, samples=samples, horizon=2 * n, rng=np.random.default_rng(1))
        took = time.perf_counter() - start
    print(f"{k:8,d} {n:5d} {samples:9,d} {took:9.3f} s {before:9.0f} MB {peak():9.0f} MB")


def peak() -> float:
    """Largest resident memory so far, in MB."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def main() -> None:
    parser = argparse.ArgumentParser(description="cost of the ranking weights")
    parser.add_argument("--smoke", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--one", nargs=3, type=int, metavar=("K", "N", "S"), help="a single measurement")
    arguments = parser.parse_args()
    if arguments.one:
        one_call(*arguments.one)
        return
    with threadpool_limits(1):
        against_literal(2 if arguments.smoke else 7)
    print("\n       k     n         S       time    before       peak", flush=True)
    sizes = [(50, 50, 100_000), (10, 50, 1000), (100, 50, 1000), (1000, 50, 1000), (10_000, 50, 1000)]
    for size in [(10, 20, 1000)] if arguments.smoke else [*sizes, (10_000, 50, 10_000), (50, 200, 1000)]:
        subprocess.run([sys.executable, __file__, "--one", *map(str, size)], check=True)


if __name__ == "__main__":
    main()
