"""From where to begin a fit: how many random starts, drawn from which length scales, find the best optimum.

    OPENBLAS_NUM_THREADS=1 python benchmarks/starts.py [--sets 12] [--target]

Fits runs of 50, 25 and 10 random rows of real data sets from the six embedded benchmarks, with the priors of the paper
(past runs), or with ``--target`` those of the new task's model. "guess" is what the search takes the inverse second
derivatives for at the beginning. The best optimum that any row of the table finds is taken for the true one; "lost"
counts the fits that end more than 0.001 below it, "loss" is the mean of how far.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import recollect
from recollect.space.space import Space
from recollect.surrogate.fit import PAST_RULES, RULES, FitSettings, fit_gp
from recollect.surrogate.prior import PAPER_PRIOR, TARGET_PRIOR

BENCHMARKS = ("own-svm", "own-glmnet", "own-adaboost", "own-svm-grid", "own-xgboost", "own-mlp")
WHOLE = 0.0
SCHEMES = [
    (WHOLE, 40, RULES),
    (0.05, 40, RULES),
    (WHOLE, 10, RULES),
    (WHOLE, 10, PAST_RULES),
    (WHOLE, 5, RULES),
    (0.05, 10, RULES),
    (0.05, 5, RULES),
    (0.1, 10, RULES),
    (0.1, 5, RULES),
    (0.1, 5, PAST_RULES),
    (0.15, 5, PAST_RULES),
    (0.15, 4, RULES),
    (0.15, 4, PAST_RULES),
    (0.15, 3, PAST_RULES),
    (0.3, 5, RULES),
]


def data_sets(count: int) -> list[tuple[Space, np.ndarray, np.ndarray]]:
    made = []
    for name in BENCHMARKS:
        benchmark, rng = recollect.bench.load(name), np.random.default_rng(0)
        space = benchmark.space
        for number in range(count):
            task = benchmark.task(benchmark.tasks[number % len(benchmark.tasks)])
            for n in (50, 25, 10):
                configs = [task.candidates[row] for row in rng.choice(len(task.candidates), n, replace=False)]
                values = np.array([task.evaluate(config) for config in configs])
                if np.ptp(values) > 0.0:
                    made.append((space, space.encode(configs), values))
    return made


def fitted(sets: list[tuple[Space, np.ndarray, np.ndarray]], settings: FitSettings) -> np.ndarray:
    found = []
    for number, (space, X, y) in enumerate(sets):
        settings = replace(settings, conditional=space.conditional)
        model = fit_gp(X, y, categorical=space.categorical, settings=settings, rng=np.random.default_rng(number))
        found.append(model.log_posterior)
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=12, help="data sets of each benchmark")
    parser.add_argument("--target", action="store_true", help="with the priors of the new task's model")
    given = parser.parse_args()
    sets, prior = data_sets(given.sets), TARGET_PRIOR if given.target else PAPER_PRIOR
    rows = []
    for shortest, restarts, rules in SCHEMES:
        begin = time.process_time()
        values = fitted(sets, FitSettings(replace(prior, shortest_start=shortest), restarts, rules=rules))
        rows.append((shortest, restarts, rules.guess, 1e3 * (time.process_time() - begin) / len(sets), values))
    best = np.max([values for *_, values in rows], axis=0)
    print(f"{len(sets)} fits\nlength scales from  random starts  guess  ms a fit  lost    loss")
    for shortest, restarts, guess, milliseconds, values in rows:
        lost, loss = np.sum(best - values > 1e-3), np.mean(best - values)
        print(f"{shortest or 'the bound':>18}{restarts:15}{guess or '-':>7}{milliseconds:10.1f}{lost:6}{loss:8.4f}")


if __name__ == "__main__":
    main()
