"""One Gaussian process for the past runs and the new task together (MTGP; paper, appendix on scaling).

``MultiTask.learn`` fits the past runs, once; ``PastTasks.fit`` fits them again together with the new task, after every
trial, starting from what was found before; ``TaskPosterior`` is what that says about the new task alone.

Notation: k past runs are the tasks 0, ..., k - 1; the new task is task k.  Every fit factorises a matrix of all N
observations some tens of times, in time cubic in N.  That is why ``most`` limits how many may come from the past.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.surrogate.kernels import KernelShape
from recollect.surrogate.multitask import MultiTaskGP, MultiTaskSettings, TaskHyperparameters, fit_multitask
from recollect.surrogate.prior import TARGET_PRIOR, Prior
from recollect.transfer.sources import SourceData, check_columns

MOST = 800  # observations that a fit after a trial handles in about a second on one core


@dataclass(frozen=True, slots=True, eq=False)
class TaskPosterior:
    """What a multi-task process says about its last task, with the methods of a ``GP``."""

    model: MultiTaskGP

    @property
    def task(self) -> int:
        """Number of the new task, which is the last."""
        return self.model.hyper.t - 1

    @property
    def X(self) -> FloatArray:
        """Training inputs ``(n, d)`` of the new task."""
        return np.asarray(self.model.X[self.model.task == self.task])

    @property
    def y(self) -> FloatArray:
        """Targets ``(n,)`` of the new task."""
        return np.asarray(self.model.y[self.model.task == self.task])

    @property
    def n(self) -> int:
        """Number of training points of the new task."""
        return int(np.count_nonzero(self.model.task == self.task))

    @property
    def shape(self) -> KernelShape:
        """Kinds of columns."""
        return self.model.shape

    @property
    def jitter(self) -> float:
        """What had to be added to the diagonal of the kernel matrix."""
        return self.model.jitter

    @property
    def correlations(self) -> FloatArray:
        """Correlations ``(k,)`` of the new task with the past runs."""
        return self.model.hyper.correlations[self.task, : self.task]

    def mean(self, X: npt.ArrayLike) -> FloatArray:
        """Posterior mean ``(m,)``."""
        return self.model.mean(X, task=self.task)

    def predict(self, X: npt.ArrayLike, *, include_noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance ``(m,)`` of the latent function, or of an observation with ``include_noise``."""
        return self.model.predict(X, task=self.task, include_noise=include_noise)

    def joint(self, X: npt.ArrayLike, *, include_noise: bool = False) -> tuple[FloatArray, FloatArray]:
        """Posterior mean ``(m,)`` and covariance ``(m, m)``."""
        return self.model.joint(X, task=self.task, include_noise=include_noise)

    def covariance(self, A: npt.ArrayLike, B: npt.ArrayLike) -> FloatArray:
        """Posterior covariance ``(a, b)`` of the latent function between points A and B."""
        return self.model.covariance(A, B, task=self.task)

    def condition(self, X_new: npt.ArrayLike, y_new: npt.ArrayLike) -> TaskPosterior:
        """The posterior after more data of the new task, with the same hyperparameters."""
        return TaskPosterior(self.model.condition(X_new, y_new, task=self.task))


@dataclass(frozen=True, slots=True, eq=False)
class PastTasks:
    """Past runs, and the hyperparameters that explain them best; None when there are no past runs."""

    data: tuple[SourceData, ...]
    shape: KernelShape
    settings: MultiTaskSettings
    hyper: TaskHyperparameters | None

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, *, start: object | None, rng: np.random.Generator
    ) -> TaskPosterior:
        """Fit past runs and new task together.

        From an earlier ``TaskPosterior`` of the same runs the search goes on where it ended; anything else as ``start``
        is passed over, and the search begins at what the past runs say and at random points.
        """
        first, settings = self._first(), self.settings
        if isinstance(start, TaskPosterior) and start.model.hyper.shared.shape == (first.t, settings.columns(first.t)):
            first, settings = start.model.hyper, replace(settings, restarts=0)
        Xs, ys = [*(run.X for run in self.data), X], [*(run.y for run in self.data), y]
        return TaskPosterior(fit_multitask(Xs, ys, shape=self.shape, settings=settings, start=first, rng=rng))

    def _first(self) -> TaskHyperparameters:
        """Starting point with a new task that is an average of the past ones."""
        t = len(self.data) + 1
        start = TaskHyperparameters.default(self.shape.d, t, self.settings.columns(t))
        if self.hyper is None:
            return start
        past, shared = self.hyper, start.shared.copy()
        # One or two past runs have fewer columns of W than they have together with the new task.
        shared[:, : past.shared.shape[1]] = np.vstack((past.shared, past.shared.mean(axis=0)))
        own, noise = (np.append(v, np.exp(np.log(v).mean())) for v in (past.own, past.noise))
        return TaskHyperparameters(past.lengthscales, shared, own, noise)


@dataclass(frozen=True, slots=True)
class MultiTask:
    """How past runs and new task are modelled together: columns of W, random starts, prior, and the size guard.

    ``restarts`` are made when the past runs are learned and when the new task is fitted for the first time; ``most`` is
    how many observations the past runs may have in all.
    """

    rank: int = 1
    restarts: int = 0
    prior: Prior = TARGET_PRIOR
    most: int = MOST

    def __post_init__(self) -> None:
        """Check the numbers."""
        MultiTaskSettings(self.prior, self.rank, self.restarts)
        if self.most < 0:
            raise InputError(f"MultiTask: expected most >= 0, got {self.most}")

    def check(self, past: Sequence[SourceData]) -> None:
        """Refuse past runs with more than ``most`` observations in all."""
        rows = sum(run.y.size for run in past)
        if rows > self.most:
            seconds = max((rows / MOST) ** 3, 0.1)
            raise InputError(
                f"MultiTask: expected at most {self.most} observations of past runs in all, got {rows} from "
                f"{len(past)} runs. One Gaussian process on all of them takes time cubic in their number, here about "
                f"{seconds:.1f} seconds per suggestion. Give fewer past runs, or choose the method rgpe-taf, which "
                "fits every past run once and by itself"
            )

    def learn(
        self,
        past: Sequence[SourceData],
        *,
        shape: KernelShape,
        sizes: IntArray,  # noqa: ARG002 (interface)
        rng: np.random.Generator,
    ) -> PastTasks:
        """Fit the past runs together; refuse when they have more than ``most`` observations."""
        check_columns(past, shape)
        self.check(past)
        settings = MultiTaskSettings(self.prior, self.rank, self.restarts)
        if not past:
            return PastTasks((), shape, settings, None)
        Xs, ys = [run.X for run in past], [run.y for run in past]
        model = fit_multitask(Xs, ys, shape=shape, settings=settings, start=None, rng=rng)
        return PastTasks(tuple(past), shape, settings, model.hyper)
