"""Where should a fit start: how many random starts, drawn from which length scales, find the best optimum?

    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/gp_fit_starts.py [--sets 12] [--target]

Fits runs of 50, 25 and 10 random rows of real datasets from the six embedded benchmarks, with the paper's priors (past
runs) or, with ``--target``, those of the new task's model. "guess" is the initial inverse Hessian of the search. The
best optimum that any row of the table finds is taken as the true one. "lost" counts the fits that end more than 0.001
below it, "loss" is the mean distance.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import recollect
from recollect.space.space import Space
from recollect.surrogate.fit import SOURCE_BFGS, TARGET_BFGS, FitSettings, fit_gp
from recollect.surrogate.prior import PAPER_PRIOR, TARGET_PRIOR

BENCHMARKS = ("own-svm", "own-glmnet", "own-adaboost", "own-svm-grid", "own-xgboost", "own-mlp")
WHOLE = 0.0
SCHEMES = [
    (WHOLE, 40, TARGET_BFGS),
    (0.05, 40, TARGET_BFGS),
    (WHOLE, 10, TARGET_BFGS),
    (WHOLE, 10, SOURCE_BFGS),
    (WHOLE, 5, TARGET_BFGS),
    (0.05, 10, TARGET_BFGS),
    (0.05, 5, TARGET_BFGS),
    (0.1, 10, TARGET_BFGS),
    (0.1, 5, TARGET_BFGS),
    (0.1, 5, SOURCE_BFGS),
    (0.15, 5, SOURCE_BFGS),
    (0.15, 4, TARGET_BFGS),
    (0.15, 4, SOURCE_BFGS),
    (0.15, 3, SOURCE_BFGS),
    (0.3, 5, TARGET_BFGS),
]


def data_sets(count: int) -> list[tuple[Space, np.ndarray, np.ndarray]]:
    sets = []
    for name in BENCHMARKS:
        benchmark, rng = recollect.bench.load(name), np.random.default_rng(0)
        space = benchmark.space
        for number in range(count):
            task = benchmark.task(benchmark.tasks[number % len(benchmark.tasks)])
            for n in (50, 25, 10):
                configs = [task.candidates[row] for row in rng.choice(len(task.candidates), n, replace=False)]
                values = np.array([task.evaluate(config) for config in configs])
                if np.ptp(values) > 0.0:
                    sets.append((space, space.encode(configs), values))
    return sets


def fitted(sets: list[tuple[Space, np.ndarray, np.ndarray]], settings: FitSettings) -> np.ndarray:
    values = []
    for number, (space, X, y) in enumerate(sets):
        settings = replace(settings, conditional=space.conditional)
        model = fit_gp(X, y, categorical=space.categorical, settings=settings, rng=np.random.default_rng(number))
        values.append(model.log_posterior)
    return np.array(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=12, help="datasets of each benchmark")
    parser.add_argument("--target", action="store_true", help="with the priors of the new task's model")
    options = parser.parse_args()
    sets, prior = data_sets(options.sets), TARGET_PRIOR if options.target else PAPER_PRIOR
    rows = []
    for shortest, restarts, rules in SCHEMES:
        begin = time.process_time()
        values = fitted(sets, FitSettings(replace(prior, shortest_start=shortest), restarts, bfgs=rules))
        rows.append(
            (shortest, restarts, rules.inverse_curvature, 1e3 * (time.process_time() - begin) / len(sets), values)
        )
    best = np.max([values for *_, values in rows], axis=0)
    print(f"{len(sets)} fits\nlength scales from  random starts  guess  ms per fit  lost    loss")
    for shortest, restarts, guess, milliseconds, values in rows:
        lost, loss = np.sum(best - values > 1e-3), np.mean(best - values)
        print(f"{shortest or 'the bound':>18}{restarts:15}{guess or '-':>7}{milliseconds:10.1f}{lost:6}{loss:8.4f}")


if __name__ == "__main__":
    main()
