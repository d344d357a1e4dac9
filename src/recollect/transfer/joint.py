"""Joint models: models of all tasks together, which take the place of an ensemble.

A joint model is prepared for the past runs once and fitted to the new task after every trial. `NeuralModel` stands for
the models of `recollect.neural`. `MultiTaskModel` is one Gaussian process for the past runs and the new task together
(MTGP; paper, appendix on scaling). `MultiTaskModel.prepare` fits the past runs once. `PreparedMultiTask.fit` fits them
again together with the new task after every trial, with a warm start. Every fit factorizes a matrix of all N
observations some tens of times, in time cubic in N. That is why ``max_observations`` limits the past runs.

Notation: past run i of k has ``X (n_i, d)`` and ``y (n_i,)``, already on the method's scale, and is task i = 0, ...,
k - 1; the new task is task k; ``sizes (d,)`` is the number of distinct values of each column, 0 for a continuum.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, cast

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError, MissingExtraError
from recollect.numerics.arrays import FloatArray, IntArray, KernelShape
from recollect.surrogate.gp import Posterior
from recollect.surrogate.multitask import MultiTaskGP, MultiTaskSettings, TaskHyperparameters, fit_multitask
from recollect.surrogate.prior import TARGET_PRIOR, Prior
from recollect.transfer.sources import SourceData, check_columns

ONE_SECOND_SIZE = 800  # observations that a fit after a trial handles in about a second on one core
_NEURAL_CLASSES = {"ablr": ("ablr", "ABLR"), "gcp-prior": ("copula_prior", "CopulaPrior")}


class PreparedJointModel(Protocol):
    """A joint model prepared for given past runs."""

    def fit(self, X: FloatArray, y: FloatArray, *, start: Posterior | None, rng: np.random.Generator) -> Posterior:
        """Fit the new task's observations; ``start`` is the posterior of the previous trial, for a warm start."""


class JointModel(Protocol):
    """Settings of a joint model."""

    def check(self, past: Sequence[SourceData]) -> None:
        """Refuse past runs that the model cannot handle, or an installation that lacks what it needs."""

    def prepare(
        self, past: Sequence[SourceData], *, shape: KernelShape, sizes: IntArray, rng: np.random.Generator
    ) -> PreparedJointModel:
        """Compute everything that depends on the past runs alone."""


@dataclass(frozen=True, slots=True)
class NeuralModel:
    """A joint model of `recollect.neural` with its default settings; JAX is imported only when it is used."""

    name: Literal["ablr", "gcp-prior"]

    def check(self, past: Sequence[SourceData]) -> None:
        """Refuse an installation without JAX."""
        self._load().check(past)

    def prepare(
        self, past: Sequence[SourceData], *, shape: KernelShape, sizes: IntArray, rng: np.random.Generator
    ) -> PreparedJointModel:
        """Train on the past runs, as far as the model does so before the new task has data."""
        return self._load().prepare(past, shape=shape, sizes=sizes, rng=rng)

    def _load(self) -> JointModel:
        module, name = _NEURAL_CLASSES[self.name]
        try:
            return cast(JointModel, getattr(importlib.import_module(f"recollect.neural.{module}"), name)())
        except ModuleNotFoundError as error:
            hint = "which is not installed: pip install 'recollect[neural]'"
            raise MissingExtraError(f"method {self.name} needs {error.name}, {hint}") from error


@dataclass(frozen=True, slots=True, eq=False)
class TaskPosterior:
    """Posterior of the last task of a multi-task process, which is the new task."""

    model: MultiTaskGP

    @property
    def task(self) -> int:
        """Number of the new task."""
        return self.model.hyper.t - 1

    @property
    def X(self) -> FloatArray:
        """Training inputs ``(n, d)`` of the new task."""
        return np.asarray(self.model.X[self.model.task == self.task])

    def mean(self, X: npt.ArrayLike) -> FloatArray:
        """Posterior mean ``(m,)``."""
        return self.model.mean(X, task=self.task)

    def predict(self, X: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance ``(m,)`` of the latent function."""
        return self.model.predict(X, task=self.task)

    def condition(self, X_new: npt.ArrayLike, y_new: npt.ArrayLike) -> TaskPosterior:
        """The posterior after more data of the new task, with the same hyperparameters."""
        return TaskPosterior(self.model.condition(X_new, y_new, task=self.task))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedMultiTask:
    """Past runs and their most probable hyperparameters; None if there are no past runs."""

    data: tuple[SourceData, ...]
    shape: KernelShape
    settings: MultiTaskSettings
    hyper: TaskHyperparameters | None

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, *, start: object, rng: np.random.Generator) -> TaskPosterior:
        """Fit past runs and new task together, from ``start`` if it is a `TaskPosterior` of the same runs.

        Otherwise the search starts from the optimum of the past runs and from random points.
        """
        first, settings = self._start(), self.settings
        if isinstance(start, TaskPosterior) and start.model.hyper.shared.shape == (first.t, settings.columns(first.t)):
            first, settings = start.model.hyper, replace(settings, restarts=0)
        Xs, ys = [*(run.X for run in self.data), X], [*(run.y for run in self.data), y]
        return TaskPosterior(fit_multitask(Xs, ys, shape=self.shape, settings=settings, start=first, rng=rng))

    def _start(self) -> TaskHyperparameters:
        """Starting point in which the new task is an average of the past ones."""
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
class MultiTaskModel:
    """How past runs and new task are modelled together."""

    rank: int = 1  # columns of W
    restarts: int = 0  # random restarts of the fit of the past runs and of the first fit with the new task
    prior: Prior = TARGET_PRIOR
    max_observations: int = ONE_SECOND_SIZE  # of the past runs in all

    def __post_init__(self) -> None:
        """Check the numbers."""
        MultiTaskSettings(self.prior, self.rank, self.restarts)
        if self.max_observations < 0:
            raise InputError(f"MultiTaskModel: expected max_observations >= 0, got {self.max_observations}")

    def check(self, past: Sequence[SourceData]) -> None:
        """Refuse past runs with more than ``max_observations`` observations in all."""
        rows = sum(run.y.size for run in past)
        if rows > self.max_observations:
            seconds = max((rows / ONE_SECOND_SIZE) ** 3, 0.1)
            raise InputError(
                f"MultiTaskModel: expected at most {self.max_observations} observations of past runs, got {rows} from "
                f"{len(past)} runs. One Gaussian process on all of them takes time cubic in their number, here "
                f"about {seconds:.1f} seconds per suggestion. Pass fewer past runs, or use the method rgpe-taf, which "
                "fits every past run once and separately"
            )

    def prepare(
        self, past: Sequence[SourceData], *, shape: KernelShape, sizes: IntArray, rng: np.random.Generator
    ) -> PreparedMultiTask:
        """Fit the past runs together; refuse more than ``max_observations`` observations."""
        del sizes  # only networks need them
        check_columns(past, shape)
        self.check(past)
        settings = MultiTaskSettings(self.prior, self.rank, self.restarts)
        if not past:
            return PreparedMultiTask((), shape, settings, None)
        Xs, ys = [run.X for run in past], [run.y for run in past]
        model = fit_multitask(Xs, ys, shape=shape, settings=settings, start=None, rng=rng)
        return PreparedMultiTask(tuple(past), shape, settings, model.hyper)
