"""Maximum a posteriori fit of a Gaussian process (spec 1.3).

``fit_gp`` searches the logarithms of the hyperparameters by quasi-Newton steps, from one given starting point and from
``restarts`` random ones together, and keeps the best.  Columns that never vary do not matter; their length scales stay
at the given starting point's (1 by default).

A start is followed to convergence unless every hyperparameter comes within a factor of two of those of a better one:
that saves a quarter of the evaluations and was not seen to lose an optimum.  Giving up starts because they seem too far
behind, or following all loosely and polishing the best, loses one now and then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.numerics.lockstep import minimize_lockstep
from recollect.numerics.threads import single_threaded
from recollect.surrogate.gp import GP, checked_data, make_gp
from recollect.surrogate.kernels import Hyperparameters, KernelShape, inactive
from recollect.surrogate.objective import NegativeLogPosterior
from recollect.surrogate.prior import PAPER_PRIOR, Prior
from recollect.surrogate.scaling import standardize


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How to fit: prior, random starts besides the given one, and whether rows of different activity are unrelated.

    ``conditional=None`` means: if the data have inactive entries.
    """

    prior: Prior = PAPER_PRIOR
    restarts: int = 10
    conditional: bool | None = None

    def __post_init__(self) -> None:
        """Check the number of restarts."""
        if self.restarts < 0:
            raise InputError(f"FitSettings: expected restarts >= 0, got {self.restarts}")


PAPER_SETTINGS = FitSettings()
SAME = math.log(2.0)


def fit_gp(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    categorical: npt.ArrayLike | None = None,
    settings: FitSettings = PAPER_SETTINGS,
    start: Hyperparameters | None = None,
    rng: np.random.Generator,
) -> GP:
    """Gaussian process on ``X (n, d)``, nan = inactive, and ``y (n,)``, at the most probable hyperparameters found.

    ``categorical (d,)`` marks the columns compared by equality; ``start`` is the first starting point, for instance the
    hyperparameters of the previous fit.
    """
    X, y = checked_data(X, y)
    shape = _kernel_shape(X, categorical, settings.conditional)
    first = start or Hyperparameters.default(shape.d)
    if first.lengthscales.size != shape.d:
        raise InputError(f"fit_gp: expected a start with {shape.d} length scales, got {first.lengthscales.size}")
    with single_threaded():
        theta = _most_probable(X, standardize(y)[0], shape=shape, settings=settings, first=first.log(), rng=rng)
        log_prior = float(settings.prior.log_density(theta[:1], theta[-1:])[0][0])
        log_prior += float(settings.prior.lengthscale_log_density(theta[None, 1:-1])[0][0])
        hyper = settings.prior.clip(Hyperparameters.from_log(theta))
        return make_gp(X, y, shape=shape, hyper=hyper, log_prior=log_prior)


def _kernel_shape(X: FloatArray, categorical: npt.ArrayLike | None, conditional: bool | None) -> KernelShape:
    d = X.shape[1]
    mask = np.zeros(d, dtype=np.bool_) if categorical is None else np.asarray(categorical, dtype=np.bool_)
    if mask.shape != (d,):
        raise InputError(f"fit_gp: expected categorical to be a mask of shape ({d},), got {mask.shape}")
    return KernelShape(mask, bool(inactive(X).any()) if conditional is None else conditional)


def _most_probable(
    X: FloatArray,
    z: FloatArray,
    *,
    shape: KernelShape,
    settings: FitSettings,
    first: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Logarithms of the hyperparameters ``(d + 2,)`` that maximise the posterior."""
    objective = NegativeLogPosterior(X, z, shape=shape, prior=settings.prior)
    moving = np.concatenate(([True], objective.free, [True]))
    bounds = settings.prior.log_bounds(shape.d)
    theta = np.clip(first, bounds[:, 0], bounds[:, 1])
    random = settings.prior.draw_starts(settings.restarts, int(objective.free.sum()), rng=rng)
    starts = np.vstack((theta[moving], random))
    theta[moving], _, _ = minimize_lockstep(objective, starts, bounds[moving], near=SAME)
    return theta
