"""How well does the local search maximize the acquisition function, compared with gradient search?

    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/acquisition_search.py

For fixed models on standard continuous functions: the log-EI that each search reaches, as a gap to the best value found
by any search, the number of acquisition values it computed, and its time. ``halving`` is the search of recollect, ``one
width`` that of the paper (steps of 0.2, ten plateaus, no survivors), ``gradient`` is L-BFGS-B on log-EI from ten
starting points, with central differences counted as values.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import minimize

from recollect.acquisition.maximize import LocalSearch, maximize_score
from recollect.numerics.normal import log_expected_improvement
from recollect.space.sampling import sobol, uniform
from recollect.space.space import Space, compile_space
from recollect.surrogate.fit import fit_gp
from recollect.surrogate.gp import GP
from standard_functions import FUNCTIONS


@dataclass
class Counted:
    """Log-EI of a model, counting how many values were asked for."""

    gp: GP
    eta: float = field(init=False)
    count: int = 0

    def __post_init__(self) -> None:
        self.eta = float(self.gp.mean(self.gp.X).min())

    def __call__(self, X: np.ndarray) -> np.ndarray:
        self.count += len(X)
        mean, variance = self.gp.predict(X)
        return log_expected_improvement(mean, np.sqrt(variance), self.eta)


def search_locally(space: Space, score: Counted, rng: np.random.Generator, settings: LocalSearch) -> float:
    means = score.gp.mean(score.gp.X)
    return float(maximize_score(space, score, score.gp.X, means=means, settings=settings, rng=rng)[1][0])


def search_by_gradient(space: Space, score: Counted, rng: np.random.Generator) -> float:
    drawn = uniform(space, 1000, rng)
    seen = score.gp.X
    starts = [*drawn[np.argsort(-score(drawn))[:5]], *seen[np.argsort(score.gp.mean(seen))[:5]]]
    d, step = drawn.shape[1], 1e-6

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        around = np.clip(np.vstack([x, x + step * np.eye(d), x - step * np.eye(d)]), 0.0, 1.0)
        values = score(around)
        widths = np.diagonal(around[1 : d + 1] - around[d + 1 :])
        return -values[0], -(values[1 : d + 1] - values[d + 1 :]) / widths

    settings = {"jac": True, "bounds": [(0, 1)] * d, "method": "L-BFGS-B", "options": {"maxiter": 50}}
    return max(-minimize(negative, x, **settings).fun for x in starts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    one_width = LocalSearch(survivors=30, rounds=60, patience=10, shrink=1.0, moves=0)
    searches = {
        "halving": lambda *a: search_locally(*a, LocalSearch()),
        "one width": lambda *a: search_locally(*a, one_width),
        "gradient": search_by_gradient,
    }
    print("function       n   search      gap to best log-EI: median, worst     values      ms")
    for name, function in FUNCTIONS.items():
        space = compile_space({f"x{j}": bounds for j, bounds in enumerate(function.bounds)})
        low, high = np.array(function.bounds).T
        for n in (20, 50):
            X = sobol(space, n, np.random.default_rng(n))
            y = np.array([function.evaluate(low + x * (high - low)) for x in X])
            gp = fit_gp(X, y, rng=np.random.default_rng(0))
            rows: dict[str, list[tuple[float, int, float]]] = {label: [] for label in searches}
            for seed in range(options.seeds):
                for label, search in searches.items():
                    score, begin = Counted(gp), time.perf_counter()
                    value = search(space, score, np.random.default_rng(seed))
                    rows[label].append((value, score.count, time.perf_counter() - begin))
            best = max(row[0] for measured in rows.values() for row in measured)
            for label, measured in rows.items():
                gaps = [best - row[0] for row in measured]
                values, seconds = np.median([row[1] for row in measured]), np.median([row[2] for row in measured])
                print(
                    f"{name:<12} {n:>3}   {label:<10} {np.median(gaps):12.4f} {np.max(gaps):9.4f}"
                    f" {values:21.0f} {1000 * seconds:7.1f}"
                )


if __name__ == "__main__":
    main()
