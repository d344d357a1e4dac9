"""The functions of past runs on one scale, and the levels that they have in the units of the values.

Past run i of k takes part by its mean function. At reference points ``R (r, d)`` all over the space its values are
compressed above the median (`scaling.compress_tail`) and standardized; the same constants give z_i at any point, and
bring the run's own observations to the same scale. Where z_i = 0, the run has the value c_i, its *level*, and one unit
of z is worth s_i, its *spread*, in the units of its values. A model that explains nearly all of a run as noise
has a nearly constant mean function; the spread is at least a tenth of that of the run's observations.

Past runs *agree* as far as the mean of the others' functions orders the observations of each run. As a rank correlation
(Kendall's tau) below `LEAST_AGREEMENT`, two standard errors away, it is not a basis for a prior: they have nothing in
common. Fewer than five past runs with five observations are given the benefit of the doubt.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray, row_keys
from recollect.numerics.normal import log_sum_exp
from recollect.space.sampling import latin_hypercube
from recollect.space.space import Space
from recollect.surrogate.scaling import standardize, tail_constants
from recollect.transfer.sources import SourceData, Sources
from recollect.transfer.weighting.ranking import misranked_counts, order_scores, tied_pairs

LEAST_SPREAD = 0.1  # of a run's function, in standard deviations of its observations
LEAST_AGREEMENT = 0.1  # rank correlation of a run with the mean of the others
MIN_JUDGED, MAX_JUDGED = 5, 32  # runs whose observations are compared with the others' functions
MIN_OBSERVATIONS = 5  # of such a run
OTHER_UNITS = 0.2  # probability that levels of past runs say nothing about the new task, for example after a new metric
LEAST_WIDTHS = (0.5, 0.5)  # of the density of levels, in spreads, and of log spreads
ALONE_WIDTHS = (1.0, 1.0)  # the same with a single past run
WIDE_WIDTHS = (10.0, 3.0)  # of the density that stands for other units: standard deviations of levels; of log spreads
LARGEST = 1e150  # level or spread, in units of values
MAX_REFERENCE = 4096  # candidates that are reference points


def reference_points(
    space: Space, candidates: FloatArray | None, *, count: int, rng: np.random.Generator
) -> FloatArray:
    """Return points (r, d) all over the space: the candidates, a sample of them if they are many, or a hypercube."""
    if candidates is None:
        return latin_hypercube(space, count, rng)
    chosen = np.sort(rng.permutation(len(candidates))[:MAX_REFERENCE]) if len(candidates) > MAX_REFERENCE else ...
    return candidates[chosen]


class Tabulated:
    """A function of points whose values at the reference points are looked up."""

    def __init__(self, evaluate: Callable[[FloatArray], FloatArray], reference: FloatArray) -> None:
        """Evaluate ``evaluate (m, d) -> (r, m)`` at the reference points."""
        self._evaluate = evaluate
        self._values = evaluate(reference)
        self._index = {key: number for number, key in enumerate(row_keys(reference))}

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the values ``(r, m)`` at ``X (m, d)``, a new array."""
        places = np.array([self._index.get(key, -1) for key in row_keys(X)], dtype=np.intp)
        values: FloatArray = self._values[:, places]
        new = np.flatnonzero(places < 0)
        if new.size:
            values[:, new] = self._evaluate(X[new])
        return values


class PastFunctions:
    """The scales of k past runs, with constants from the reference points; immutable."""

    def __init__(self, sources: Sources, reference: FloatArray) -> None:
        """Evaluate the mean functions at the reference points ``(r, d)``."""
        self.sources, self.reference = sources, reference
        means = sources.means(reference)
        constants = [tail_constants(row) for row in means]
        self._middles, self._scales = np.array([entry[:2] for entry in constants]).T
        self._compresses = np.array([entry[2] for entry in constants])
        rows = self._compressed(means, slice(None))
        self._centres, spreads = np.array([standardize(row)[1:] for row in rows]).T
        observed = [self._compressed(sources.data(i).y[None], slice(i, i + 1)).std() for i in range(len(sources))]
        self._spreads = np.maximum(spreads, LEAST_SPREAD * np.array(observed))

    def observations(self, i: int) -> tuple[FloatArray, FloatArray]:
        """Return the points ``(n, d)`` that run i evaluated, and its values ``(n,)`` on the common scale."""
        data: SourceData = self.sources.data(i)
        return data.X, self._standardized(data.y[None], slice(i, i + 1))[0]

    def agreement(self) -> float:
        """Return how far above `LEAST_AGREEMENT` past runs agree, in standard errors; 0 if that cannot be judged."""
        above = []
        for i in range(0, len(self.sources), math.ceil(len(self.sources) / MAX_JUDGED)):
            data = self.sources.data(i)
            if len(self.sources) < MIN_JUDGED or len(data.y) < MIN_OBSERVATIONS or data.y.min() == data.y.max():
                continue
            functions = self._standardized(self.sources.means(data.X), slice(None))
            others = np.delete(functions, i, axis=0).mean(axis=0)
            misranked = [*misranked_counts(others[None], None, data.y), tied_pairs(data.y)]  # by them; by a perfect one
            score, perfect = order_scores(np.array(misranked), data.y)
            above.append(score - LEAST_AGREEMENT * perfect)
        return sum(above) / math.sqrt(len(above)) if len(above) >= MIN_JUDGED else 0.0

    def levels(self) -> TaskLevels:
        """Return what levels and spreads tasks have."""
        centres, spreads = raw_units(self._centres, self._spreads, self._middles, self._scales, self._compresses)
        return TaskLevels.of(centres, spreads)

    def _standardized(self, values: FloatArray, runs: slice) -> FloatArray:
        """Return values ``(k', m)`` of some of the runs on the common scale."""
        gaps = self._compressed(values, runs) - self._centres[runs, None]
        return np.asarray(gaps / self._spreads[runs, None])

    def _compressed(self, values: FloatArray, runs: slice) -> FloatArray:
        z = (values - self._middles[runs, None]) / self._scales[runs, None]
        return np.asarray(np.where(self._compresses[runs, None] & (z > 0.0), np.log1p(np.maximum(z, 0.0)), z))


def raw_units(
    centre: FloatArray, spread: FloatArray, middle: FloatArray | float, scale: FloatArray | float,
    compresses: BoolArray | bool,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return a value and a small difference on the compressed scale in the units of the values (`tail_constants`).

    Both are at most `LARGEST` in magnitude, so that their squares are finite.
    """
    stretch = np.exp(np.where(compresses & (centre > 0.0), np.minimum(centre, 600.0), 0.0))
    above = np.where(compresses & (centre > 0.0), stretch - 1.0, centre)
    with np.errstate(over="ignore"):
        values, differences = middle + scale * above, scale * spread * stretch
    return np.clip(values, -LARGEST, LARGEST), np.clip(differences, -LARGEST, LARGEST)


@dataclass(frozen=True, slots=True, eq=False)
class TaskLevels:
    """The density of a task's level c and the logarithm of its spread s: a kernel estimate from those of past runs.

    With a small probability, `OTHER_UNITS`, the new task's values have nothing to do with those of past runs; a wide
    normal density stands for that. ``typical`` is the mean log density of the past runs, each judged by the others.
    """

    centres: FloatArray  # (k,)
    log_spreads: FloatArray  # (k,)
    widths: tuple[float, float]  # of the kernels
    wide: tuple[float, float]
    typical: float = 0.0

    @classmethod
    def of(cls, centres: FloatArray, spreads: FloatArray) -> TaskLevels:
        """Estimate the density from levels and spreads ``(k,)``; copies of one run count once."""
        logs = np.log(np.maximum(spreads, np.finfo(float).tiny))
        centres, logs = np.unique(np.column_stack((centres, logs)), axis=0).T
        spread, k = math.exp(float(np.median(logs))), len(logs)
        least = ALONE_WIDTHS if k == 1 else LEAST_WIDTHS
        shrink = k ** (-1.0 / 6.0)  # the rate at which kernels in two dimensions become narrower
        widths = (shrink * max(robust_spread(centres), least[0] * spread), shrink * max(robust_spread(logs), least[1]))
        wide = (WIDE_WIDTHS[0] * max(float(np.std(centres)), spread), WIDE_WIDTHS[1])
        own = cls(centres, logs, widths, wide)
        return cls(centres, logs, widths, wide, float(own.log_density(centres, logs, leave_out=k > 1).mean()))

    def log_density(
        self, centres: FloatArray, log_spreads: FloatArray, errors: FloatArray | float = 0.0, log_error: float = 0.0,
        *, leave_out: bool = False,
    ) -> FloatArray:  # fmt: skip
        """Return the log density ``(m,)``, convolved with the errors of centres and log spreads.

        With ``leave_out`` the arguments are the past runs themselves, and each is judged by the others.
        """
        first = np.hypot(self.widths[0], errors) + np.zeros_like(centres)
        second = math.hypot(self.widths[1], log_error)
        terms = _log_normal(centres[:, None], self.centres, first[:, None])
        terms = terms + _log_normal(log_spreads[:, None], self.log_spreads, second)
        if leave_out:
            np.fill_diagonal(terms, -np.inf)
        near = log_sum_exp(terms.T) - math.log(len(self.centres) - leave_out)
        far = _log_normal(centres, float(np.median(self.centres)), self.wide[0])
        far = far + _log_normal(log_spreads, float(np.median(self.log_spreads)), self.wide[1])
        return np.logaddexp(near + math.log(1.0 - OTHER_UNITS), far + math.log(OTHER_UNITS))


def robust_spread(values: FloatArray) -> float:
    """Return the smaller of the standard deviation and the normal equivalent of the interquartile range."""
    lower, upper = np.quantile(values, (0.25, 0.75))
    quartiles = float(upper - lower) / 1.349
    return min(float(np.std(values)), quartiles) if quartiles > 0.0 else float(np.std(values))


def _log_normal(x: FloatArray, mean: FloatArray | float, width: FloatArray | float) -> FloatArray:
    return np.asarray(-0.5 * np.square((x - mean) / width) - np.log(width) - 0.5 * math.log(2.0 * math.pi))
