"""Small sets of data of several tasks, and hyperparameters for them."""

from __future__ import annotations

import numpy as np

from recollect.numerics.arrays import KernelShape
from recollect.surrogate.multitask import TaskHyperparameters

SIZES = (7, 5, 6)


ONE = KernelShape(np.zeros(1, bool), False)


def points(n: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    X = rng.random((n, 3))
    if kind != "numerical":
        X[:, 1] = rng.integers(0, 3, n)
    if kind == "conditional":
        X[X[:, 1] == 1, 2] = np.nan
    return X


def tasks(kind: str, sizes: tuple[int, ...] = SIZES) -> tuple[list[np.ndarray], list[np.ndarray], KernelShape]:
    rng = np.random.default_rng(len(sizes))
    Xs = [points(n, kind, rng) for n in sizes]
    ys = [10.0**i * (i + rng.standard_normal(n)) for i, n in enumerate(sizes)]
    return Xs, ys, KernelShape(np.array([False, kind != "numerical", False]), kind == "conditional")


def some_hyper(t: int = 3, r: int = 2, seed: int = 0, d: int = 3) -> TaskHyperparameters:
    rng = np.random.default_rng(seed)
    own, noise = rng.uniform(0.1, 1, t), 10.0 ** rng.uniform(-3, -1, t)
    return TaskHyperparameters(rng.uniform(0.3, 1, d), rng.standard_normal((t, r)), own, noise)


def theta_of(hyper: TaskHyperparameters) -> np.ndarray:
    return np.concatenate([np.log(hyper.lengthscales), hyper.shared.ravel(), np.log(hyper.own), np.log(hyper.noise)])
