"""How fast and how good is one Gaussian process fit, compared with scikit-learn, on one core?

    python benchmarks/speed/gp_fit.py

Both sides maximise the same log marginal likelihood (no priors) within the same bounds, from one fixed and
``--restarts`` random starting points anywhere within the bounds, by default on 50 points in 10 dimensions. With
``--past`` recollect starts as it does for past runs, from fewer and better points. A fit counts as "as good" when its
log marginal likelihood, which scikit-learn evaluates for both, is at least the other's less 1e-6 (1 + |other|).

If BoTorch is installed, its ``SingleTaskGP`` is also timed on the first datasets, with its own priors and its usual
single start.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from recollect.numerics.linalg import single_threaded
from recollect.surrogate.fit import SOURCE_BFGS, FitSettings, fit_gp
from recollect.surrogate.prior import PAPER_PRIOR, SOURCE_PRIOR
from recollect.transfer.sources import SourceFit

PLAIN = dataclasses.replace(PAPER_PRIOR, use_priors=False)
PAST = FitSettings(dataclasses.replace(SOURCE_PRIOR, use_priors=False), SourceFit().restarts, bfgs=SOURCE_BFGS)
HARTMANN_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def smooth(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A draw from a Gaussian process with random length scales, by random Fourier features."""
    lengthscales = np.exp(rng.uniform(np.log(0.2), np.log(3.0), X.shape[1]))
    frequency = rng.standard_normal((X.shape[1], 500)) / lengthscales[:, None]
    wave = np.cos(X @ frequency + rng.uniform(0, 2 * np.pi, 500))
    return wave @ rng.standard_normal(500) * np.sqrt(2 / 500)


def hartmann(X: np.ndarray, _: np.random.Generator) -> np.ndarray:
    """Hartmann-6 in the first six columns; the others do nothing."""
    inner = (HARTMANN_A * (X[:, None, :6] - HARTMANN_P) ** 2).sum(axis=2)
    return -np.exp(-inner) @ np.array([1.0, 1.2, 3.0, 3.2])


def noisy(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Linear plus a sine of one column, with noise."""
    return X @ rng.standard_normal(X.shape[1]) + np.sin(8 * X[:, 0]) + 0.3 * rng.standard_normal(len(X))


def ackley(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Ackley's function around a random centre."""
    U = 4 * (X - rng.random(X.shape[1]))
    return -20 * np.exp(-0.2 * np.sqrt((U**2).mean(axis=1))) - np.exp(np.cos(2 * np.pi * U).mean(axis=1))


KINDS: tuple[Callable[[np.ndarray, np.random.Generator], np.ndarray], ...] = (smooth, hartmann, noisy, ackley)


def fit_sklearn(X: np.ndarray, y: np.ndarray, *, restarts: int, seed: int):
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel(2.0, PLAIN.amplitude_bounds) * Matern(
        np.ones(X.shape[1]), PLAIN.lengthscale_bounds, nu=2.5
    ) + WhiteKernel(1e-8, PLAIN.noise_bounds)
    model = GaussianProcessRegressor(
        kernel, alpha=0.0, normalize_y=True, n_restarts_optimizer=restarts, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def compare(X: np.ndarray, y: np.ndarray, *, restarts: int, past: bool, seed: int) -> tuple[float, float, float, float]:
    """Seconds of recollect and of scikit-learn, and both log marginal likelihoods."""
    settings = PAST if past else FitSettings(PLAIN, restarts)
    begin = time.perf_counter()
    ours = fit_gp(X, y, settings=settings, rng=np.random.default_rng(seed))
    between = time.perf_counter()
    theirs = fit_sklearn(X, y, restarts=restarts, seed=seed)
    end = time.perf_counter()
    value = theirs.log_marginal_likelihood(ours.hyper.log())
    return between - begin, end - between, value, theirs.log_marginal_likelihood_value_


def time_botorch(sets: list[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    times = []
    for X, y in sets:
        inputs, targets = torch.tensor(X), torch.tensor((y - y.mean()) / y.std())[:, None]
        begin = time.perf_counter()
        model = SingleTaskGP(inputs, targets)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        times.append(time.perf_counter() - begin)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=100, help="number of datasets")
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--past", action="store_true", help="begin as for past runs")
    parser.add_argument("--n", type=int, default=50)
    parser.add_argument("--d", type=int, default=10)
    options = parser.parse_args()
    rows, sets = [], []
    with single_threaded():
        rng = np.random.default_rng(0)
        # imports are not part of a fit
        compare(rng.random((5, options.d)), rng.random(5), restarts=1, past=False, seed=0)
        for index in range(options.sets):
            rng = np.random.default_rng(1000 + index)
            X = rng.random((options.n, options.d))
            y = KINDS[index % len(KINDS)](X, rng)
            sets.append((X, y))
            rows.append(compare(X, y, restarts=options.restarts, past=options.past, seed=index))
    report(np.array(rows))
    if find_spec("botorch"):
        times = time_botorch(sets[:21])[1:]  # the first call compiles
        print(f"BoTorch SingleTaskGP, one start: median {1e3 * np.median(times):.1f} ms over {len(times)} sets")


def report(rows: np.ndarray) -> None:
    print(f"{'data':<10}{'sets':>6}{'recollect ms':>14}{'sklearn ms':>12}{'ratio':>8}{'as good':>9}{'better':>8}")
    groups = {kind.__name__: slice(first, None, len(KINDS)) for first, kind in enumerate(KINDS)}
    for name, chosen in {**groups, "all": slice(None)}.items():
        ours, theirs, mine, other = rows[chosen].T
        margin = 1e-6 * (1 + np.abs(other))
        print(
            f"{name:<10}{len(ours):>6}{1e3 * np.median(ours):>14.1f}{1e3 * np.median(theirs):>12.1f}"
            f"{np.median(theirs / ours):>8.1f}{np.sum(mine >= other - margin):>9}{np.sum(mine > other + margin):>8}"
        )


if __name__ == "__main__":
    main()
