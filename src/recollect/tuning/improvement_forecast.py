"""``stop_when="unlikely"``: how probable a worthwhile improvement is in the trials that are left.

After n observations a Gaussian process of the task's own observations says how probable it is that one more trial
brings a worthwhile improvement: p, the highest probability over untried configurations. As a rate per trial that is ``h
= -ln(1 - p)``. The model treats all further trials as if they were as promising as its best guess, and knows nothing of
what it has not seen. Its rate is therefore calibrated on how past runs continued. For every past run that has more than
n observations, the same model of its first n says h_j, and its further w_j observations show whether it improved:

    P(run j improved | f) = 1 - exp(-f w_j r_j),    r_j = g (h_j / g)^b,    g the geometric mean of all h_j.

The factor f by which all claims are wrong has the prior Exp(1), whose mean is 1, and the forecast is the posterior
predictive probability for the task itself. If none of k past runs with the same claim and window w improved, it is
``w r / (1 + (k + 1) w r)``, below 1 / (k + 1) whatever the model claims. Windows of different lengths count
accordingly. Without past runs the forecast is the model's own claim, which is high as long as anything is uncertain.

The power b is small because claims hardly tell past runs of one problem apart; it was chosen by the likelihood of runs
that were left out (`benchmarks/quality/stop_when_unlikely.py`), as was the lowest claim that is told from lower ones.

An improvement is worthwhile if it is at least ``min_improvement`` or, where the user has not said, one percent of the
distance between the median and the best value so far.

Notation: ``X (m, d)`` encoded observations in the order of the trials, ``y (m,)`` their values, lower is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect._text import plural
from recollect.numerics.arrays import BoolArray, FloatArray, row_key
from recollect.numerics.linalg import single_threaded
from recollect.runs.run import Run
from recollect.space.sampling import enumerate_space, gaussian_moves, one_exchange, uniform
from recollect.space.space import Space
from recollect.surrogate.scaling import compress_tail
from recollect.transfer.fit_cache import FitCache
from recollect.transfer.source_fitting import fit_sources
from recollect.transfer.sources import SourceData, SourceFit, Sources

UNLIKELY = 0.1  # probability below which a run ends
MIN_OBSERVATIONS = 10  # before which no run ends
CHECK_INTERVAL = 5  # observations between two forecasts
WORTHWHILE_SHARE = 0.01  # of the distance between median and best value
MAX_PAST_RUNS = 50  # the newest of those that are long enough
MAX_ENUMERATED = 1000  # configurations of a finite space that are all considered
RANDOM_POINTS, NEAR_POINTS = 300, 50  # considered in other spaces: anywhere, and around the best
NEAR_STEPS = (0.1, 0.02)  # standard deviations of the distances from the best
CLAIM_POWER = 0.1  # b
CLAIM_LIMITS = (1e-3, 1.0)  # within which rates that the model claims are compared
LOG_FACTORS = np.linspace(-20.0, 5.0, 251)  # ln f, where its density is evaluated
RATE_LIMITS = (1e-9, 20.0)
FIT = SourceFit(restarts=1)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected of the trials that are left.

    Attributes:
        probability: Of a worthwhile improvement, calibrated.
        claimed: The same by the task's own model alone.
        observations: Number of observations so far.
        remaining: Number of trials left.
        past: Number of past runs that continued from there.
        improved: Number of those that improved.
    """

    probability: float
    claimed: float
    observations: int
    remaining: int
    past: int
    improved: int

    @property
    def reason(self) -> str:
        """Why the run ends; empty if it does not."""
        if self.probability >= UNLIKELY:
            return ""
        left = f"{self.probability:.1%} in the {plural(self.remaining, 'trial')} left"
        if not self.past:
            return f"a worthwhile improvement is unlikely: {left}, by the model of this task"
        seen = f"{self.improved} of {plural(self.past, 'past run')} had one after {self.observations} trials"
        return f"a worthwhile improvement is unlikely: {left}; {seen}"


class ImprovementForecast:
    """Forecasts for one task, from its own observations and from past runs (X, y) in the same encoding."""

    def __init__(
        self, space: Space, past: Sequence[tuple[FloatArray, FloatArray]],
        *, min_improvement: float | None = None, candidates: FloatArray | None = None, cache: FitCache | None = None,
    ) -> None:  # fmt: skip
        """Prepare; ``candidates`` are all configurations there are, if they are few."""
        self._space, self._past, self._min_improvement, self._cache = space, past, min_improvement, cache
        self._candidates = enumerate_space(space, MAX_ENUMERATED) if candidates is None else candidates

    def __call__(self, X: FloatArray, y: FloatArray, remaining: int) -> Forecast:
        """Return how probable a worthwhile improvement of ``y`` is in this many more trials."""
        n = len(y)
        longer = [(Xp, yp) for Xp, yp in self._past if len(yp) > n][-MAX_PAST_RUNS:]
        with single_threaded():
            own, *others = self.rates([*longer, (X, y)][::-1], n)
        rates, windows = np.array(others[::-1]), np.array([len(yp) - n for _, yp in longer], dtype=float)
        improved = np.array([self.improved(yp, n) for _, yp in longer], dtype=bool)
        probability = calibrated_probability(own, remaining, rates=rates, windows=windows, improved=improved)
        return Forecast(probability, _claim(own, remaining), n, remaining, len(longer), int(improved.sum()))

    def _worthwhile(self, y: FloatArray) -> float:
        if self._min_improvement is not None:
            return self._min_improvement
        return WORTHWHILE_SHARE * float(np.median(y) - y.min())

    def improved(self, y: FloatArray, n: int) -> bool:
        """Return whether a run brought a worthwhile improvement after its first n observations."""
        gain = float(y[:n].min() - y[n:].min())
        return gain > 0.0 and gain >= self._worthwhile(y[:n])

    def rates(self, runs: Sequence[tuple[FloatArray, FloatArray]], n: int) -> list[float]:
        """Return the rate h that the model of the first n observations of each run claims."""
        scaled = [compress_tail(y[:n]) for _, y in runs]
        data = [
            SourceData(f"run {i}", X[:n], z) for i, ((X, _), (z, _, _)) in enumerate(zip(runs, scaled, strict=True))
        ]
        models = fit_sources(data, shape=self._space.kernel_shape, settings=FIT, cache=self._cache)
        rng = np.random.default_rng(n)
        anywhere = uniform(self._space, RANDOM_POINTS, rng) if self._candidates is None else self._candidates
        targets = [
            z.min() - self._worthwhile(y[:n]) / scale for (_, y), (z, _, scale) in zip(runs, scaled, strict=True)
        ]
        return [self._rate(models, i, anywhere, float(target), rng) for i, target in enumerate(targets)]

    def _rate(self, models: Sources, i: int, anywhere: FloatArray, target: float, rng: np.random.Generator) -> float:
        from scipy.special import log_ndtr

        X, y = models.data(i).X, models.data(i).y
        points = self._untried(anywhere, X, X[[int(y.argmin())]], rng)
        if not len(points):
            return RATE_LIMITS[0]
        mean, variance = models.posterior(points, [i])
        # ln(1 - p), p the probability that the function is below the target
        survival = log_ndtr((mean[0] - target) / np.sqrt(variance[0]))
        return float(np.clip(-survival.min(), *RATE_LIMITS))

    def _untried(self, anywhere: FloatArray, X: FloatArray, best: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return the points to consider for a run that has tried X; ``best (1, d)`` is its best point."""
        if self._candidates is None:
            # A past run may have been outside the new range.
            inside = np.where(self._space.categorical, best, np.clip(best, 0.0, 1.0))
            near = [gaussian_moves(self._space, inside, rng, step=step, count=NEAR_POINTS)[0] for step in NEAR_STEPS]
            anywhere = np.vstack([anywhere, *near, one_exchange(self._space, inside, rng, step=NEAR_STEPS[0])[0]])
        tried = {row_key(x) for x in X}
        return anywhere[[row_key(x) not in tried for x in anywhere]]


def calibrated_probability(
    own: float, remaining: float, *, rates: FloatArray, windows: FloatArray, improved: BoolArray,
    power: float = CLAIM_POWER,
) -> float:  # fmt: skip
    """Return the probability that a task improves, whose own model claims a rate, as past runs (k,) correct it.

    Past runs for which the model claimed these ``rates`` did or did not improve within ``windows`` more trials.
    """
    if not len(rates):
        return _claim(own, remaining)
    logs = np.log(np.clip(rates, *CLAIM_LIMITS))
    centre = logs.mean()
    # w_j r_j, and for the task itself
    expected = windows * np.exp(centre + power * (logs - centre))
    own_expected = remaining * np.exp(centre + power * (np.log(np.clip(own, *CLAIM_LIMITS)) - centre))
    factors = np.exp(LOG_FACTORS)
    counts = factors[:, None] * expected
    likelihood = np.where(improved, np.log(-np.expm1(-counts)), -counts).sum(axis=1)
    density = likelihood - factors + LOG_FACTORS  # of ln f, up to a constant
    weights = np.exp(density - density.max())
    return float(weights @ -np.expm1(-factors * own_expected) / weights.sum())


def _claim(rate: float, remaining: float) -> float:
    return float(-np.expm1(-remaining * rate))


class UnlikelyRule:
    """Ends a run when a worthwhile improvement is unlikely; looks again after every few observations."""

    def __init__(self, forecast: ImprovementForecast, trials: int) -> None:
        """Use forecasts for a budget of ``trials``."""
        self._forecast, self._trials = forecast, trials
        self._next, self._reason = MIN_OBSERVATIONS, ""

    def __call__(self, run: Run) -> str:
        """Return why the run ends, "" if it does not."""
        observations, remaining = len(run.usable), self._trials - len(run)
        if not self._reason and observations >= self._next and remaining > 0:
            self._next = observations + CHECK_INTERVAL
            self._reason = self._forecast(run.X, run.y, remaining).reason
        return self._reason
