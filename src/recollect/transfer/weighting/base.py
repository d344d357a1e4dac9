"""What every weighting shares: the result (`Weights`), the two protocols, and the prevention of weight dilution.

A `Weighting` is a setting. It is prepared for the past runs once, which gives a `Weigher`; the weigher computes the
weights after every trial. Each weighting is in its own module: `ranking_weights`, `stacking`, `kl`.

Weight dilution (paper sections 4.3 and 4.4): among many poor models one looks right by chance. Each base model is
therefore kept only with the probability of ranking better than the target, times a factor that shrinks towards the
horizon. In every iteration all base models are dropped with some probability; then plain Bayesian optimization decides,
on all observations so far. Its convergence guarantees hold, stretched by how rarely that happens.

Notation: ``k`` past runs (the sources; their models are the base models), ``n`` observations of the target. The target
always comes last, so arrays over all models have length k + 1 (paper section 4.1). ``F (k, n)`` are the means of the
sources at the evaluated points ``X (n, d)``; ``fraction (k,)`` how often a base model did better, ``horizon`` H
evaluations in all, ``keep (k,)`` the probability of keeping a base model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.surrogate.gp import GP
from recollect.transfer.sources import Sources
from recollect.validation import as_count, as_finite, as_shape

Dilution = Literal["probabilistic", "constant", "none"]

MAX_HORIZON = 10_000_000  # evaluations over which `slowdown_factor` averages at most
_SUM_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The weight of each model in the ensemble, and why. All arrays are read-only; nan stands for "not measured".

    Attributes:
        values: Weights (k+1,), target last; they sum to 1.
        losses: Mean loss (k+1,) by which the models were compared; for RGPE the mean over resamples.
        misranked: Misranked ordered pairs (k+1,) on the observations as they are, without resampling.
        dropped: Which base models (k,) were dropped; their weight is 0. The target is never dropped.
        keep_probability: Probability (k,) with which each base model was kept; 1 where none is ever dropped.
    """

    values: FloatArray
    losses: FloatArray
    misranked: FloatArray
    dropped: BoolArray
    keep_probability: FloatArray

    def __post_init__(self) -> None:
        """Make read-only copies and check that they fit together."""
        models = np.size(self.values)
        for name in ("values", "losses", "misranked", "dropped", "keep_probability"):
            size = models - (name in ("dropped", "keep_probability"))  # the target has none
            array = np.array(getattr(self, name), dtype=np.bool_ if name == "dropped" else np.float64)
            if array.shape != (size,):
                raise InputError(f"Weights: {name} must have shape ({size},), got {array.shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if not abs(self.values.sum() - 1.0) <= _SUM_TOLERANCE:
            raise InputError(f"Weights: values must be finite and sum to 1, got the sum {self.values.sum()}")
        if self.values[:-1][self.dropped].any():
            raise InputError("Weights: a dropped base model must have the value 0")

    @classmethod
    def uniform(cls, k: int) -> Self:
        """Return equal weights for ``k`` base models and the target, for too few observations to compare them.

        Args:
            k: Number of base models.
        """
        unknown = np.full(k + 1, np.nan)
        equal = np.full(k + 1, 1.0 / (k + 1))
        return cls(equal, unknown, unknown, np.zeros(k, dtype=np.bool_), np.ones(k))

    def without(self, some: BoolArray) -> Self:
        """Return the weights with some base models dropped; the others keep their proportions.

        Args:
            some: Which base models (k,) to drop. If no weight is left, the target gets all.
        """
        values = np.where(np.append(some, False), 0.0, self.values)
        total = values.sum()
        values = values / total if total > 0 else np.append(np.zeros(len(some)), 1.0)
        keep = np.where(some, 0.0, self.keep_probability)
        return replace(self, values=values, dropped=self.dropped | some, keep_probability=keep)

    def drop_all_with(self, probability: float, rng: np.random.Generator) -> Self:
        """Return the weights with all base models dropped or none, by one random draw.

        Args:
            probability: Probability of dropping all.
            rng: Source of the draw; unused if no base model has a weight.
        """
        if len(self.active) == 0:
            return self
        drawn = self.without(np.full(len(self.dropped), rng.random() < probability))
        return replace(drawn, keep_probability=(1.0 - probability) * self.keep_probability)

    @property
    def target(self) -> float:
        """Weight of the target model; exactly 1.0 if all base models were dropped."""
        return float(self.values[-1])

    @property
    def active(self) -> IntArray:
        """Indices of the base models with a nonzero weight."""
        return np.flatnonzero(self.values[:-1] != 0.0)


class Weigher(Protocol):
    """A weighting prepared for given past runs."""

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:
        """Compute the weights of the sources and the target."""


class Weighting(Protocol):
    """Settings of a rule that weighs past runs."""

    @property
    def allows_guard(self) -> bool:
        """Whether the negative-transfer guard (`optimizer.model`) may drop more sources: if the weighting drops any.

        A rule of the paper's tables that never drops is left as it is.
        """

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Weigher:
        """Compute everything that depends on the past runs alone."""


class StatelessWeighting:
    """A weighting without preparation: it is its own weigher."""

    __slots__ = ()

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Self:  # noqa: ARG002 (interface)
        """Return the weighting itself: nothing depends on the past runs alone."""
        return self


def check_predictions(
    base: ArrayLike, loo: ArrayLike, y: ArrayLike, *, minimum: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return base (k, n), leave-one-out predictions (n,) and y (n,) as arrays; loo may be nan for n < ``minimum``."""
    y = as_finite("y", y, shape=(None,))
    base = as_finite("base", base, shape=(None, y.size))
    loo = as_shape("loo", loo, shape=(y.size,))
    if y.size < minimum:
        return base, loo, y
    loo = as_finite("loo", loo, shape=(y.size,))
    # For a constant y they are known exactly; a rounding error below y would count as n^2 misranked pairs.
    return base, y if y.min() == y.max() else loo, y


def check_dilution(kind: str, *, has_horizon: bool = True) -> None:
    """Refuse a ``kind`` of dilution that does not exist, or that lacks its horizon."""
    if not isinstance(kind, str) or kind not in get_args(Dilution):  # an array compares elementwise
        raise InputError(f"dilution must be one of {', '.join(map(repr, get_args(Dilution)))}, got {kind!r}")
    if kind == "probabilistic" and not has_horizon:
        raise InputError("horizon must be given for the dilution 'probabilistic', got None")


def keep_probability(fraction: FloatArray, n: int, *, horizon: int | None, kind: Dilution) -> FloatArray:
    """Return the probability of keeping each base model: (k,), 1 - p_drop of equation 9."""
    check_dilution(kind, has_horizon=horizon is not None)
    if kind == "none":
        return np.ones_like(fraction)
    if kind == "constant" or horizon is None:
        return fraction.copy()
    return max(0.0, 1.0 - n / horizon) * fraction  # 0 from n = H on


def draw_dropped(keep: FloatArray, rng: np.random.Generator) -> BoolArray:
    """Draw which base models (k,) to drop, by one uniform number per model in order."""
    return np.asarray(rng.random(keep.size) < 1.0 - keep)


def slowdown_factor(horizon: int, past: int) -> float:
    """Return the worst-case factor by which past runs slow down Bayesian optimization: 1 / mean over h of (h/H)^k.

    Theorem: with dilution "probabilistic", all base models are dropped after h observations with a probability of at
    least (h/H)^k, which is reached if every one ranks better than the target in every resample. The expected share of
    iterations h = 1..H that use only the target model is thus at least the mean of (h/H)^k. The search needs at most
    the reciprocal times as many evaluations as plain Bayesian optimization for the same guarantee on simple regret.

    Args:
        horizon: Evaluations planned in all.
        past: Number of past runs.

    Returns:
        A factor between 1 (no past runs) and ``horizon``.

    Raises:
        InputError: If ``horizon`` is below 1 or above 10 million, or ``past`` is below 0.
        InputTypeError: If an argument is not an integer.

    Examples:
        >>> round(slowdown_factor(horizon=50, past=1), 2)
        1.96
    """
    horizon = as_count("horizon", horizon, minimum=1)
    past = min(as_count("past", past, minimum=0), 2**62)  # more make no difference
    if horizon > MAX_HORIZON:
        raise InputError(f"horizon must be at most {MAX_HORIZON}, got {horizon}")
    return float(1.0 / np.mean((np.arange(1, horizon + 1) / horizon) ** past))
