"""Past runs as Gaussian processes that predict together.

Notation: k past runs, run i with ``X (n_i, d)`` in the encoding of the new space and targets ``y (n_i,)`` in the units
in which its predictions are wanted: raw, standardized or copula scores, as the caller decides. Each process
standardizes its targets, z = (y - centre) / scale, and its predictions are mapped back, so means and variances of run i
are in the units of its own ``y``. ``subset (k',)`` are the numbers of the runs to evaluate; None evaluates all.

`source_fitting.fit_sources` finds the hyperparameters and creates `Sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, IntArray, KernelShape
from recollect.runs.usability import MIN_TRIALS
from recollect.surrogate.batched_gp import BatchedGP
from recollect.surrogate.gp import checked_data, checked_inputs
from recollect.surrogate.kernels import Hyperparameters
from recollect.surrogate.prior import SOURCE_PRIOR, Prior
from recollect.surrogate.scaling import standardize

SQUARE_LIMITS = (1e-290, 1e290)  # of scale^2, as for a single process: variances stay finite and positive


@dataclass(frozen=True, slots=True, eq=False)
class SourceData:
    """One past run: inputs ``X (n, d)`` with nan where inactive, finite targets ``y (n,)``, n >= 2.

    Inputs may lie a little outside the unit cube: the new space may be narrower than the old one.
    """

    task: str
    X: FloatArray
    y: FloatArray

    def __post_init__(self) -> None:
        """Check the data and keep read-only copies."""
        try:
            X, y = checked_data(self.X, self.y)
        except InputError as error:
            raise InputError(f"past run {self.task!r}: {error}") from error
        if y.size < MIN_TRIALS:
            raise InputError(f"past run {self.task!r}: expected at least {MIN_TRIALS} observations, got {y.size}")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)

    def at(self, rows: IntArray) -> SourceData:
        """Return the run reduced to some of its observations."""
        return SourceData(self.task, self.X[rows], self.y[rows])


@dataclass(frozen=True, slots=True)
class SourceFit:
    """How past runs are fitted; `source_fitting.representative_rows` chooses the observations of longer runs."""

    prior: Prior = SOURCE_PRIOR
    restarts: int = 4  # random restarts of each fit
    max_observations: int = 1000  # a longer run is represented by this many
    max_fit_observations: int = 300  # a longer run's hyperparameters are found on this many, its posterior uses all

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name, minimum in (("restarts", 0), ("max_observations", MIN_TRIALS), ("max_fit_observations", MIN_TRIALS)):
            if getattr(self, name) < minimum:
                raise InputError(f"SourceFit: expected {name} >= {minimum}, got {getattr(self, name)}")


class Sources:
    """The k past runs, fitted; immutable."""

    __slots__ = ("_batch", "_centres", "_data", "_scales", "_squares", "shape", "tasks", "theta")

    def __init__(self, data: Sequence[SourceData], *, shape: KernelShape, theta: FloatArray) -> None:
        """Take the runs and their hyperparameters ``theta (k, d + 2)``, rows as of ``Hyperparameters.log``."""
        check_columns(data, shape)
        theta = np.array(theta, dtype=np.float64)
        if theta.shape != (len(data), shape.d + 2) or not np.isfinite(theta).all():
            rule = f"finite logarithms of hyperparameters {(len(data), shape.d + 2)}"
            raise InputError(f"Sources: expected {rule}, got {theta.shape}")
        theta.flags.writeable = False
        standardized = [standardize(run.y) for run in data]
        self._data, self.shape = tuple(data), shape
        self.tasks: tuple[str, ...] = tuple(run.task for run in data)
        self.theta: FloatArray = theta
        self._centres, self._scales = np.array([own[1:] for own in standardized], dtype=np.float64).reshape(-1, 2).T
        with np.errstate(over="ignore", under="ignore"):
            self._squares = np.clip(self._scales * self._scales, *SQUARE_LIMITS)
        self._batch = BatchedGP([run.X for run in data], [z for z, _, _ in standardized], shape=shape, theta=theta)

    def __len__(self) -> int:
        """Number of past runs."""
        return len(self._data)

    def data(self, i: int) -> SourceData:
        """The observations that represent run i."""
        return self._data[i]

    def hyper(self, i: int) -> Hyperparameters:
        """Hyperparameters of run i, for its standardized targets."""
        return Hyperparameters.from_log(self.theta[i])

    def means(self, X: npt.ArrayLike, subset: npt.ArrayLike | None = None) -> FloatArray:
        """Posterior means ``(k', m)`` at ``X (m, d)``."""
        chosen = None if subset is None else self._subset(subset)
        return self._in_own_units(self._batch.means(checked_inputs(X, self.shape.d), chosen), chosen)

    def posterior(self, X: npt.ArrayLike, subset: npt.ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
        """Posterior means and variances of the latent functions, both ``(k', m)``, at ``X (m, d)``."""
        chosen = None if subset is None else self._subset(subset)
        mean, variance = self._batch.posterior(checked_inputs(X, self.shape.d), chosen)
        variance *= self._squares[slice(None) if chosen is None else chosen, None]
        return self._in_own_units(mean, chosen), variance

    def covariances(self, A: npt.ArrayLike, B: npt.ArrayLike, subset: npt.ArrayLike | None = None) -> FloatArray:
        """Posterior covariances ``(k', a, b)`` of the latent functions between ``A (a, d)`` and ``B (b, d)``."""
        chosen = self._subset(np.arange(len(self)) if subset is None else subset)
        covariance = self._batch.covariances(checked_inputs(A, self.shape.d), checked_inputs(B, self.shape.d), chosen)
        covariance *= self._squares[chosen, None, None]
        return covariance

    def reinterpolated(
        self, X_t: npt.ArrayLike, subset: npt.ArrayLike | None = None
    ) -> Callable[[npt.ArrayLike], FloatArray]:
        """Function from ``X (m, d)`` to the re-interpolated variances ``(k', m)`` given ``X_t (n, d)``; means stay."""
        chosen = self._subset(np.arange(len(self)) if subset is None else subset)
        evaluate = self._batch.noise_free(checked_inputs(X_t, self.shape.d), chosen)
        squares = self._squares[chosen, None]
        return lambda X: evaluate(checked_inputs(X, self.shape.d)) * squares

    def _subset(self, subset: npt.ArrayLike) -> IntArray:
        """Check the numbers of runs."""
        chosen = np.asarray(subset)
        if chosen.size == 0:
            chosen = chosen.astype(np.intp)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or np.any(chosen < 0) or np.any(chosen >= len(self)):
            raise InputError(f"Sources: expected a subset as integers (k',) from 0 to {len(self) - 1}, got {subset!r}")
        return chosen.astype(np.intp)

    def _in_own_units(self, mean: FloatArray, chosen: IntArray | None) -> FloatArray:
        """Convert standardized means to the units of each run."""
        rows: slice | IntArray = slice(None) if chosen is None else chosen
        mean *= self._scales[rows, None]
        mean += self._centres[rows, None]
        return mean


def check_columns(data: Sequence[SourceData], shape: KernelShape) -> None:
    """Refuse runs that do not have the columns of the kernel."""
    for run in data:
        if run.X.shape[1] != shape.d:
            raise InputError(f"past run {run.task!r}: expected inputs with {shape.d} columns, got {run.X.shape}")
