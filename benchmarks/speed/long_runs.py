"""How does the time of one suggestion grow with the number of observations?

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/long_runs.py

Ten continuous columns. The observations, half of them uniform and half around the optimum, are told at once; then the
user's loop goes on for as many trials as it takes until the hyperparameters have been fitted again (25, or all of
them below 100 observations). Prints the mean and the median time of these asks, in CPU time, so that other processes
do not count, and the ratio of the means to the first.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

COLUMNS, ASKS = 10, 25


def value(x: np.ndarray) -> float:
    return float(np.sum((x - 0.3) ** 2 * np.arange(1, COLUMNS + 1)) + 0.3 * np.sum(np.sin(9 * x)))


def time_asks(method: str, count: int) -> list[float]:
    import recollect

    rng = np.random.default_rng(0)
    space = {f"x{j}": (0.0, 1.0) for j in range(COLUMNS)}
    optimizer = recollect.Optimizer(space, method=method, horizon=count + ASKS + 1, seed=0)
    for number in range(count):
        x = rng.random(COLUMNS) if number % 2 else np.clip(0.3 + 0.15 * rng.standard_normal(COLUMNS), 0.0, 1.0)
        optimizer.tell(dict(zip(space, x.tolist(), strict=True)), value(x))
    times = []
    for _ in range(ASKS + 1):
        begin = time.process_time()
        config = optimizer.ask()
        times.append(time.process_time() - begin)
        optimizer.tell(config, value(np.array([config[name] for name in space])))
    return times[1:]  # the first fit starts from nothing, as it does only in a run that is resumed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="gp")
    parser.add_argument("--observations", type=int, nargs="+", default=[50, 100, 200, 500])
    options = parser.parse_args()
    means = []
    for count in options.observations:
        times = 1000 * np.array(time_asks(options.method, count))
        means.append(times.mean())
        line = (
            f"mean {means[-1]:7.1f} ms, median {np.median(times):7.1f} ms, {means[-1] / means[0]:5.1f} times the first"
        )
        print(f"{count:4} observations: {line}", flush=True)


if __name__ == "__main__":
    main()
