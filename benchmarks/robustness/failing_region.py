"""How many trials fail where a part of the space fails, with few past runs and without any?

    OPENBLAS_NUM_THREADS=1 python benchmarks/robustness/failing_region.py [--seeds 3] [--trials 25]

The objective is a shifted sphere in five dimensions, [-1, 1] each, that fails where the first coordinate is beyond 0.8:
in all corners of the space. Past runs are runs of `gp` on spheres with other shifts, 20 trials each. Prints the
failures of each seed and the mean of the best values.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from recollect import FailedTrialWarning, Run, minimize

NAMES = "abcde"
SPACE: dict[str, Any] = dict.fromkeys(NAMES, (-1.0, 1.0))
SHIFTS = (0.0, 0.1, -0.2, 0.3)


def sphere(shift: float) -> Callable[[dict[str, float]], float]:
    def value(config: dict[str, float]) -> float:
        if abs(config["a"]) > 0.8:
            return float("nan")
        return sum((config[name] - 0.1 * place - shift) ** 2 for place, name in enumerate(NAMES))

    return value


def tuned(shift: float, *, trials: int, seed: int, past: list[Run]) -> Run:
    method = "rgpe-taf" if past else "gp"
    return minimize(sphere(shift), SPACE, trials=trials, past=past, method=method, seed=seed, progress=False).run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=25)
    given = parser.parse_args()
    warnings.simplefilter("ignore", FailedTrialWarning)
    past = [tuned(shift, trials=20, seed=seed, past=[]) for seed, shift in enumerate(SHIFTS)]
    for count in (0, 1, 2, 4):
        runs = [tuned(0.15, trials=given.trials, seed=100 + seed, past=past[:count]) for seed in range(given.seeds)]
        failed = ", ".join(str(len(run) - len(run.succeeded)) for run in runs)
        best = np.mean([run.y.min() for run in runs])
        print(f"{count} past runs: {failed} of {given.trials} trials failed, best value {best:.4f}")


if __name__ == "__main__":
    main()
