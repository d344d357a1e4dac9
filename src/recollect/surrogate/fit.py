"""Maximum a posteriori fit of a Gaussian process.

``fit_gp`` searches the logarithms of the hyperparameters by quasi-Newton steps, from one given starting point and from
``restarts`` random ones together, and keeps the best.  Columns that never vary do not matter; their length scales stay
at the given starting point's (1 by default).

A start is followed to convergence unless every hyperparameter comes within a factor of two of those of a better one:
that saves a quarter of the evaluations and was not seen to lose an optimum.  Giving up starts because they seem too far
behind, or following all loosely and polishing the best, loses one now and then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.numerics.lockstep import Rules, minimize_lockstep
from recollect.numerics.threads import single_threaded
from recollect.surrogate.gp import GP, checked_data, make_gp
from recollect.surrogate.kernels import Hyperparameters, KernelShape, inactive
from recollect.surrogate.objective import NegativeLogPosterior
from recollect.surrogate.pairs import Pairs, Scratch
from recollect.surrogate.prior import PAPER_PRIOR, Prior
from recollect.surrogate.scaling import standardize

RULES = Rules(near=math.log(2.0))
# Second derivatives of finished runs' log posteriors are about 5; to know that saves a third of the time.
PAST_RULES = replace(RULES, guess=0.2)


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How to fit: prior, random starts besides the given one, and whether rows of different activity are unrelated.

    ``conditional=None`` means: if the data have inactive entries. ``rules`` say how starts are followed.
    """

    prior: Prior = PAPER_PRIOR
    restarts: int = 10
    conditional: bool | None = None
    rules: Rules = RULES

    def __post_init__(self) -> None:
        """Check the number of restarts."""
        if self.restarts < 0:
            raise InputError(f"FitSettings: expected restarts >= 0, got {self.restarts}")


PAPER_SETTINGS = FitSettings()


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
        (theta,) = most_probable([Search(X, standardize(y)[0], shape, first.log(), rng)], settings)
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


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """Data ``X (n, d)``, ``z (n,)`` standardised, whose hyperparameters are sought, and where to begin.

    ``first (d + 2,)`` are the logarithms of the first starting point; the random ones come from ``rng``.
    """

    X: FloatArray
    z: FloatArray
    shape: KernelShape
    first: FloatArray
    rng: np.random.Generator


def most_probable(searches: Sequence[Search], settings: FitSettings) -> list[FloatArray]:
    """Logarithms of the hyperparameters ``(d + 2,)`` that maximise each posterior; none depends on the others."""
    prior, each = settings.prior, settings.restarts + 1
    bounds = prior.log_bounds(searches[0].shape.d)
    pairs = [Pairs(search.X, search.shape) for search in searches]
    bundles = _bundles(pairs)
    order = [number for bundle in bundles for number in bundle]
    starts = np.vstack([_starts(searches[number], settings, pairs[number].free) for number in order])
    scratch = Scratch()
    objectives = [
        NegativeLogPosterior(
            [pairs[number] for number in bundle],
            [searches[number].z for number in bundle],
            prior=prior,
            scratch=scratch,
        )
        for bundle in bundles
    ]
    moving = [_moving(objective.free) for objective in objectives]
    firsts = np.cumsum([0, *map(len, bundles)])  # the first group of each bundle

    def posterior(theta: FloatArray, group: IntArray) -> tuple[FloatArray, FloatArray]:
        values, slopes = np.empty(len(theta)), np.zeros(theta.shape)
        edges = np.searchsorted(group, firsts)
        for objective, free, first, begin, end in zip(objectives, moving, firsts, edges, edges[1:], strict=False):
            if begin < end:
                found = objective(theta[begin:end, free], group[begin:end] - first)
                values[begin:end], slopes[begin:end, free] = found
        return values, slopes

    group = np.repeat(np.arange(len(order)), each)
    ends, values = minimize_lockstep(posterior, starts, bounds, group=group, rules=settings.rules)
    best = ends[values.reshape(len(order), each).argmin(axis=1) + each * np.arange(len(order))]
    return [best[place] for place in np.argsort(order)]


def _bundles(pairs: Sequence[Pairs]) -> list[list[int]]:
    """The numbers of sets of data that can be evaluated together; one with inactive entries stays alone."""
    bundles: dict[tuple[object, ...], list[int]] = {}
    for number, one in enumerate(pairs):
        alike = (one.n, one.free.tobytes()) if one.complete else (number,)
        bundles.setdefault(alike, []).append(number)
    return list(bundles.values())


def _starts(search: Search, settings: FitSettings, free: BoolArray) -> FloatArray:
    """Where to begin (restarts + 1, d + 2): the given start, and random ones, equal to it in the other columns."""
    bounds = settings.prior.log_bounds(search.shape.d)
    starts = np.tile(np.clip(search.first, bounds[:, 0], bounds[:, 1]), (settings.restarts + 1, 1))
    starts[1:, _moving(free)] = settings.prior.draw_starts(settings.restarts, int(free.sum()), rng=search.rng)
    return starts


def _moving(free: BoolArray) -> BoolArray:
    """Which hyperparameters are sought: amplitude, length scales of free columns, and noise."""
    return np.concatenate(([True], free, [True]))
