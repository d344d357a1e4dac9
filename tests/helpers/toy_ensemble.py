"""A small ensemble of Gaussian processes beside a dense, plainly written reference implementation.

The reference uses nothing of the library: a Matern-5/2 kernel in two dimensions, posteriors by `np.linalg.solve`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import KernelShape
from recollect.surrogate.gp import make_gp
from recollect.surrogate.kernels import Hyperparameters
from recollect.transfer.ensemble import Ensemble
from recollect.transfer.sources import SourceData, Sources
from recollect.transfer.weighting.base import Weights

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
PLAIN = KernelShape(np.zeros(2, dtype=bool), False)


@dataclass(frozen=True)
class Dense:
    """A Gaussian process written out: data, amplitude, length scales and noise of the standardised targets."""

    X: Array
    y: Array
    amplitude: float
    scales: Array
    noise: float

    @property
    def centre(self) -> float:
        return float(self.y.mean())

    @property
    def spread(self) -> float:
        return float(self.y.std()) or 1.0

    def kernel(self, A: Array, B: Array) -> Array:
        r = np.sqrt((((A[:, None] - B[None]) / self.scales) ** 2).sum(axis=2))
        return self.amplitude * (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r)

    def mean(self, Q: Array) -> Array:
        A = self.kernel(self.X, self.X) + self.noise * np.eye(len(self.X))
        z = (self.y - self.centre) / self.spread
        return self.centre + self.spread * self.kernel(Q, self.X) @ np.linalg.solve(A, z)

    def cov(self, Q: Array, R: Array) -> Array:
        A = self.kernel(self.X, self.X) + self.noise * np.eye(len(self.X))
        gain = np.linalg.solve(A, self.kernel(self.X, R))
        return self.spread**2 * (self.kernel(Q, R) - self.kernel(Q, self.X) @ gain)

    def noise_free_variance(self, Z: Array, Q: Array) -> Array:
        """Variance at Q given exact values at Z; repeated rows of Z say the same thing twice."""
        Z = np.unique(Z, axis=0)
        K = self.kernel(Z, Z) + np.exp(-25.0) * np.eye(len(Z))
        inside = np.linalg.solve(K, self.kernel(Z, Q))
        return self.spread**2 * (self.amplitude - np.einsum("qz,zq->q", self.kernel(Q, Z), inside))


@dataclass(frozen=True)
class Toy:
    """An ensemble and its reference: ``dense`` holds the processes of the past runs and, last, of the target."""

    ensemble: Ensemble
    dense: tuple[Dense, ...]
    weights: Array

    @property
    def visited(self) -> Array:
        return np.concatenate([self.ensemble.X, self.ensemble.pending])

    def mean(self, Q: Array) -> Array:
        return sum((w * gp.mean(Q) for w, gp in zip(self.weights, self.dense, strict=True)), np.zeros(len(Q)))

    def cov(self, Q: Array, R: Array) -> Array:
        parts = (w**2 * gp.cov(Q, R) for w, gp in zip(self.weights, self.dense, strict=True))
        return sum(parts, np.zeros((len(Q), len(R))))


def wave(X: Array, phase: float) -> Array:
    return np.sin(4 * X[:, 0] + phase) + 0.5 * np.cos(5 * X[:, 1] - phase)


def build_toy(weights: list[float], *, pending: int = 0, seed: int = 0, n: int = 5) -> Toy:
    rng = np.random.default_rng(seed)
    dense = []
    for i in range(len(weights)):
        size = n if i == len(weights) - 1 else 6 + 3 * i
        X = rng.random((size, 2))
        y = 3 * i + (1 + i) * (wave(X, 0.3 * i) + 0.3 * rng.standard_normal(size))
        dense.append(Dense(X, y, 0.8 + 0.3 * i, np.array([0.4, 0.6 + 0.1 * i]), (0.3, 0.02, 0.1, 0.05)[i % 4]))
    hyper = [Hyperparameters(gp.amplitude, gp.scales, gp.noise) for gp in dense]
    data = [SourceData(f"task {i}", gp.X, gp.y) for i, gp in enumerate(dense[:-1])]
    sources = Sources(data, shape=PLAIN, theta=np.array([h.log() for h in hyper[:-1]])) if data else None
    own = dense[-1]
    target = make_gp(own.X, own.y, shape=PLAIN, hyper=hyper[-1])
    F = np.empty((0, n)) if sources is None else sources.means(own.X)
    ensemble = Ensemble(target, sources, as_weights(weights), own.X, F, rng.random((pending, 2)))
    return Toy(ensemble, tuple(dense), np.array(weights))


def as_weights(values: list[float]) -> Weights:
    unknown = np.full(len(values), np.nan)
    return Weights(np.array(values), unknown, unknown, np.array(values[:-1]) == 0, np.ones(len(values) - 1))
