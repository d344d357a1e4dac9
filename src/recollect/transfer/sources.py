"""Past runs as Gaussian processes that predict together: what every transfer method asks.

Notation: k past runs, run i with ``X (n_i, d)`` in the encoding of the new space and targets ``y (n_i,)`` in the units
in which its predictions are wanted: raw, standardised or copula scores, as the caller decided.  Each process
standardises its targets, z = (y - centre) / scale, and its predictions are mapped back, so that means and variances of
run i are in the units of its own ``y``.  ``members (k',)`` are the numbers of the runs that are asked; None asks all.

``fitting.fit_sources`` finds the hyperparameters and makes ``Sources``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.surrogate.gp import checked_data, checked_inputs
from recollect.surrogate.kernels import Hyperparameters, KernelShape
from recollect.surrogate.prior import PAST_PRIOR, Prior
from recollect.surrogate.scaling import standardize
from recollect.surrogate.stack import GPStack

FEWEST = 2  # observations that make a run worth remembering
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
        """Check the data and keep copies that nobody can write to."""
        try:
            X, y = checked_data(self.X, self.y)
        except InputError as error:
            raise InputError(f"past run {self.task!r}: {error}") from error
        if y.size < FEWEST:
            raise InputError(f"past run {self.task!r}: expected at least {FEWEST} observations, got {y.size}")
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)

    def at(self, rows: IntArray) -> SourceData:
        """The run reduced to some of its observations."""
        return SourceData(self.task, self.X[rows], self.y[rows])


@dataclass(frozen=True, slots=True)
class SourceFit:
    """How past runs are fitted.

    A run with more than ``most`` observations is represented by that many of them.  The hyperparameters of a run with
    more than ``most_for_fit`` are found on that many, while its posterior uses all (up to ``most``).  Which
    observations represent a run is the rule of ``fitting.representative_rows``.
    """

    prior: Prior = PAST_PRIOR
    restarts: int = 4
    most: int = 1000
    most_for_fit: int = 300

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.restarts < 0:
            raise InputError(f"SourceFit: expected restarts >= 0, got {self.restarts}")
        for name, value in (("most", self.most), ("most_for_fit", self.most_for_fit)):
            if value < FEWEST:
                raise InputError(f"SourceFit: expected {name} >= {FEWEST}, got {value}")


class Sources:
    """k past runs, fitted; never changed after it was made."""

    __slots__ = ("_data", "_squares", "_stack", "best_rows", "centres", "scales", "shape", "sizes", "tasks", "theta")

    def __init__(self, data: Sequence[SourceData], *, shape: KernelShape, theta: FloatArray) -> None:
        """From the runs and their hyperparameters ``theta (k, d + 2)``, rows as of ``Hyperparameters.log``."""
        check_columns(data, shape)
        hyper = np.array(theta, dtype=np.float64)
        if hyper.shape != (len(data), shape.d + 2) or not np.isfinite(hyper).all():
            raise InputError(
                f"Sources: expected finite logarithms of hyperparameters {(len(data), shape.d + 2)}, got {hyper.shape}"
            )
        standardized = [standardize(run.y) for run in data]
        self._data = tuple(data)
        self.tasks: tuple[str, ...] = tuple(run.task for run in data)
        self.shape = shape
        self.theta: FloatArray = hyper
        self.sizes: IntArray = np.array([run.y.size for run in data], dtype=np.intp)
        self.best_rows: IntArray = np.array([int(run.y.argmin()) for run in data], dtype=np.intp)
        self.centres: FloatArray = np.array([centre for _, centre, _ in standardized], dtype=np.float64)
        self.scales: FloatArray = np.array([scale for _, _, scale in standardized], dtype=np.float64)
        for values in (self.theta, self.sizes, self.best_rows, self.centres, self.scales):
            values.flags.writeable = False
        with np.errstate(over="ignore", under="ignore"):
            self._squares = np.clip(self.scales * self.scales, *SQUARE_LIMITS)
        self._stack = GPStack([run.X for run in data], [z for z, _, _ in standardized], shape=shape, theta=hyper)

    def __len__(self) -> int:
        """Number of past runs."""
        return len(self._data)

    @property
    def k(self) -> int:
        """Number of past runs."""
        return len(self._data)

    def data(self, i: int) -> SourceData:
        """The observations that represent run i; the lowest of them is in row ``best_rows[i]``."""
        return self._data[i]

    def hyper(self, i: int) -> Hyperparameters:
        """Hyperparameters of run i, for its standardised targets."""
        return Hyperparameters.from_log(self.theta[i])

    def means(self, X: npt.ArrayLike, members: npt.ArrayLike | None = None) -> FloatArray:
        """Posterior means ``(k', m)`` at ``X (m, d)``."""
        chosen = None if members is None else self._members(members)
        return self._outward(self._stack.means(checked_inputs(X, self.shape.d), chosen), chosen)

    def posterior(self, X: npt.ArrayLike, members: npt.ArrayLike | None = None) -> tuple[FloatArray, FloatArray]:
        """Posterior means and variances of the latent functions, both ``(k', m)``, at ``X (m, d)``."""
        chosen = None if members is None else self._members(members)
        mean, variance = self._stack.posterior(checked_inputs(X, self.shape.d), chosen)
        variance *= self._square(chosen)
        return self._outward(mean, chosen), variance

    def covariances(self, A: npt.ArrayLike, B: npt.ArrayLike, members: npt.ArrayLike | None = None) -> FloatArray:
        """Posterior covariances ``(k', a, b)`` of the latent functions between ``A (a, d)`` and ``B (b, d)``."""
        chosen = self._members(np.arange(self.k) if members is None else members)
        covariance = self._stack.covariances(checked_inputs(A, self.shape.d), checked_inputs(B, self.shape.d), chosen)
        covariance *= self._square(chosen)[:, :, None]
        return covariance

    def reinterpolated(
        self, X_t: npt.ArrayLike, members: npt.ArrayLike | None = None
    ) -> Callable[[npt.ArrayLike], FloatArray]:
        """Function from ``X (m, d)`` to the re-interpolated variances ``(k', m)`` given ``X_t (n, d)``.

        The re-interpolated mean is that of ``means``.  Everything that does not depend on X is computed here, once.
        """
        chosen = self._members(np.arange(self.k) if members is None else members)
        evaluate = self._stack.noise_free(checked_inputs(X_t, self.shape.d), chosen)
        square = self._square(chosen)
        return lambda X: evaluate(checked_inputs(X, self.shape.d)) * square

    def _members(self, members: npt.ArrayLike) -> IntArray:
        chosen = np.asarray(members)
        if chosen.size == 0:
            chosen = chosen.astype(np.intp)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or np.any(chosen < 0) or np.any(chosen >= self.k):
            raise InputError(f"Sources: expected members as integers (k',) from 0 to {self.k - 1}, got {members!r}")
        return chosen.astype(np.intp)

    def _outward(self, mean: FloatArray, chosen: IntArray | None) -> FloatArray:
        """Standardised means in the units of each run."""
        some: slice | IntArray = slice(None) if chosen is None else chosen
        mean *= self.scales[some, None]
        mean += self.centres[some, None]
        return mean

    def _square(self, chosen: IntArray | None) -> FloatArray:
        return np.asarray(self._squares[slice(None) if chosen is None else chosen, None])


def check_columns(data: Sequence[SourceData], shape: KernelShape) -> None:
    """Refuse runs that do not have the columns of the kernel."""
    for run in data:
        if run.X.shape[1] != shape.d:
            raise InputError(f"past run {run.task!r}: expected inputs with {shape.d} columns, got {run.X.shape}")
