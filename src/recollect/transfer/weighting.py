"""Weightings as settings: each turns the models and what was observed into `Weights` (paper sections 3.1, 4.1, 5.3).

A weighting is first made ready for the past runs, once, and then weighs after every trial.

Notation: ``F (k, n)`` means of the past runs at the evaluated points ``X (n, d)``; the observations are the target's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import cholesky
from recollect.numerics.quasirandom import sobol_normals
from recollect.surrogate.gp import GP, make_gp
from recollect.surrogate.kernels import Hyperparameters, KernelShape
from recollect.surrogate.scaling import standardize
from recollect.transfer.dilution import Dilution, check_dilution
from recollect.transfer.kl import kl_weights
from recollect.transfer.minimizers import sample_minimizers
from recollect.transfer.rgpe import LEAST_OBSERVATIONS, percentile_weights, rgpe_weights
from recollect.transfer.sources import Sources
from recollect.transfer.tst import tst_weights
from recollect.transfer.wac import stacking_weights
from recollect.transfer.weights import Weights, as_count


class Weigher(Protocol):
    """A rule that says how much each model counts, for given past runs."""

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:
        """Weigh the past runs and the target."""


class Weighting(Protocol):
    """Settings of such a rule.

    ``guarded``: models that mislead are dropped. Only then may the optimizer also drop all of them when most rank worse
    than a coin: a rule of the paper's tables that never drops is left as it is.
    """

    @property
    def guarded(self) -> bool:
        """Whether misleading models are dropped."""

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Weigher:
        """Compute all that depends on the past runs alone."""


@dataclass(frozen=True, slots=True)
class RankingWeighting:
    """RGPE: the probability of ranking a bootstrap resample of the observations best."""

    samples: int = 1000
    dilution: Dilution = "probabilistic"

    def __post_init__(self) -> None:
        """Check the settings before anything is tuned with them."""
        as_count("samples", self.samples, least=1)
        check_dilution(self.dilution)

    @property
    def guarded(self) -> bool:
        """Whether misleading models are dropped."""
        return self.dilution != "none"

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Self:  # noqa: ARG002 (interface)
        """Return itself: there is nothing to compute."""
        return self

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:
        """Weigh by bootstrap ranking losses."""
        loo, _ = target.loo()
        return rgpe_weights(
            F, loo, target.y, samples=self.samples, horizon=horizon, dilution=self.dilution, rng=rng
        )


@dataclass(frozen=True, slots=True)
class TwoStageWeighting:
    """TST-R: an Epanechnikov kernel of bandwidth ``rho`` over the share of misranked pairs."""

    rho: float = 0.5
    dilution: Dilution = "none"

    def __post_init__(self) -> None:
        """Check the settings before anything is tuned with them."""
        if not 0.0 < self.rho < np.inf:
            raise InputError(f"rho must be a finite number above 0, got {self.rho}")
        check_dilution(self.dilution)

    @property
    def guarded(self) -> bool:
        """Whether misleading models are dropped."""
        return self.dilution != "none"

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Self:  # noqa: ARG002 (interface)
        """Return itself: there is nothing to compute."""
        return self

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:
        """Weigh by misranked pairs."""
        return tst_weights(F, target.y, rho=self.rho, horizon=horizon, dilution=self.dilution, rng=rng)


@dataclass(frozen=True, slots=True)
class PercentileWeighting:
    """RGPE of 2018: posterior draws instead of resamples, dropping by the target's 95th percentile."""

    samples: int = 1000

    def __post_init__(self) -> None:
        """Check the settings before anything is tuned with them."""
        as_count("samples", self.samples, least=1)

    @property
    def guarded(self) -> bool:
        """Whether the optimizer may drop more than the percentile rule does; no: that rule is the whole method."""
        return False

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Weigher:  # noqa: ARG002 (interface)
        """Keep the past runs, whose joint posteriors will be drawn from."""
        return _PercentileWeigher(self.samples, sources)


@dataclass(frozen=True, slots=True, eq=False)
class _PercentileWeigher:
    samples: int
    sources: Sources

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:  # noqa: ARG002
        """Weigh by losses of joint posterior draws."""
        n = target.n
        if n < LEAST_OBSERVATIONS:
            return Weights.uniform(len(F))
        spreads = self.sources.covariances(target.X, target.X, np.arange(len(F)))
        points = sobol_normals(self.samples, n, rng)
        base = np.stack([_draws(mean, C, rng.permutation(points)) for mean, C in zip(F, spreads, strict=True)])
        folds = np.stack([_draws(*_fold(target, k), rng.permutation(points)) for k in range(n)])
        return percentile_weights(base, folds, target.y)


@dataclass(frozen=True, slots=True)
class StackingWeighting:
    """WAC: coefficients of a linear regression of the observations on what the models predict."""

    @property
    def guarded(self) -> bool:
        """Whether misleading models are dropped; none is, it may get a negative weight."""
        return False

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Self:  # noqa: ARG002 (interface)
        """Return itself: there is nothing to compute."""
        return self

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:  # noqa: ARG002
        """Weigh by stacking, with the target's leave-one-out predictions."""
        return stacking_weights(F, target.loo()[0], target.y)


@dataclass(frozen=True, slots=True)
class DivergenceWeighting:
    """KL: how far each past run's minimizer, as it believes, is from the target's; ``draws`` of it for each model."""

    eta: float = 10.0
    draws: int = 100

    def __post_init__(self) -> None:
        """Check the settings before anything is tuned with them."""
        if not 0.0 < self.eta < np.inf:
            raise InputError(f"eta must be a finite number above 0, got {self.eta}")
        as_count("draws", self.draws, least=2)

    @property
    def guarded(self) -> bool:
        """Whether misleading models are dropped; none is."""
        return False

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Weigher:
        """Sample the past runs' minimizers, once."""
        samples = []
        for i, own_rng in enumerate(rng.spawn(len(sources))):
            data = sources.data(i)
            z, hyper = standardize(data.y)[0], sources.hyper(i)
            samples.append(self.sample(data.X, z, shape=sources.shape, hyper=hyper, rng=own_rng))
        return _DivergenceWeigher(self, np.stack(samples))

    def sample(
        self, X: FloatArray, z: FloatArray, *, shape: KernelShape, hyper: Hyperparameters, rng: np.random.Generator
    ) -> FloatArray:
        """Sample minimizers (draws, d') over the numerical columns; the others are constants, or were refused."""
        columns = ~shape.categorical
        numerical = Hyperparameters(hyper.amplitude, hyper.lengthscales[columns], hyper.noise)
        return sample_minimizers(X[:, columns], z, hyper=numerical, count=self.draws, rng=rng)


@dataclass(frozen=True, slots=True, eq=False)
class _DivergenceWeigher:
    settings: DivergenceWeighting
    base_samples: FloatArray

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:  # noqa: ARG002
        """Sample the target's minimizer and weigh by divergence."""
        own = self.settings.sample(target.X, target.z, shape=target.shape, hyper=target.hyper, rng=rng)
        return kl_weights(self.base_samples, own, eta=self.settings.eta)


def _fold(target: GP, left_out: int) -> tuple[FloatArray, FloatArray]:
    """Return the joint posterior at all of X of a model that never saw one observation."""
    kept = np.arange(target.n) != left_out
    return make_gp(target.X[kept], target.y[kept], shape=target.shape, hyper=target.hyper).joint(target.X)


def _draws(mean: FloatArray, C: FloatArray, points: FloatArray) -> FloatArray:
    """Return draws (S, n) of N(mean, C) for scrambled Sobol ``points (S, n)``: mean + U L^T, not U L.

    All models have the same points, each in a random order of its own, for draw number s of one model is compared with
    number s of another: in one order the models' draws would go the same way instead of being independent.
    """
    scale = max(float(np.max(np.diagonal(C))), np.finfo(float).tiny)
    L, _ = cholesky(C + 1e-8 * scale * np.eye(len(C)), scale)
    return np.asarray(mean + points @ L.T)
