"""Adaptive Bayesian linear regression: one network for all tasks, a linear head for each (ABLR; paper section 5.3).

Network and heads, those of the past runs and that of the new task, are found together by maximising the sum of the
tasks' evidences.  The evidence has the norm of e and the biases are trained.

Notation: ``theta (p + 2 t,)`` the p parameters of the network, then ln alpha (t,), then ln beta (t,), for t tasks, the
new one last.  Tasks of similar length are stacked: ``y (t', n')`` and one-hot encoded inputs ``(t' n', w)``, padded
with zeros; ``rows (t',)`` of each are real.  The new task is a stack of its own, padded to 64, 128, ... rows, so that
nothing is compiled anew from trial to trial.

The network is JAX in single precision, the heads are NumPy in double (see ``linear``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from recollect.errors import InputError, NumericalError
from recollect.neural.encoding import OneHot
from recollect.neural.linear import Head, make_head, negative_log_evidence
from recollect.neural.network import Widths, draw_parameters, hidden, layers, parameter_count
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.numerics.descent import REFUSED, minimize_multistart
from recollect.numerics.threads import single_threaded
from recollect.surrogate.gp import checked_data, checked_inputs
from recollect.surrogate.kernels import KernelShape
from recollect.transfer.sources import SourceData, check_columns

SingleArray: TypeAlias = npt.NDArray[np.float32]

ALPHA_START, ALPHA_BOUNDS = 1.0, (1e-3, 1e3)
BETA_START, BETA_BOUNDS = 1e3, (1.0, 1e6)
LEAST_ROWS = 64  # of the new task's stack: one compilation for up to 64 trials


class Stack(NamedTuple):
    """Tasks of similar length, padded with zeros."""

    X: SingleArray
    y: FloatArray
    rows: IntArray


@partial(jax.jit, static_argnames="widths")
def features(flat: jax.Array, X: jax.Array, *, widths: Widths) -> jax.Array:
    """Output of the network ``(n, D)`` at encoded inputs ``(n, w)``."""
    return hidden(X, layers(flat, widths), activation=jnp.tanh)


@partial(jax.jit, static_argnames="widths")
def pulled_back(flat: jax.Array, X: jax.Array, slope: jax.Array, *, widths: Widths) -> jax.Array:
    """Derivative by the parameters ``(p,)`` from that by the features ``(n, D)``."""
    _, pull = jax.vjp(lambda parameters: features(parameters, X, widths=widths), flat)
    by_parameters: jax.Array = pull(slope)[0]
    return by_parameters


@dataclass(frozen=True, slots=True, eq=False)
class JointEvidence:
    """What is minimised: the sum over tasks of ``-ln p(y)``, for all their inputs ``X`` one after the other."""

    stacks: tuple[Stack, ...]
    X: jax.Array
    widths: Widths

    @classmethod
    def of(cls, stacks: tuple[Stack, ...], widths: Widths) -> JointEvidence:
        """Make it from the stacks, the new task's last."""
        return cls(stacks, jnp.asarray(np.concatenate([stack.X for stack in stacks])), widths)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient ``(p + 2 t,)``; the value is not finite where numbers overflow."""
        p = parameter_count(self.widths)
        flat = jnp.asarray(theta[:p].astype(np.float32))
        Phi = np.asarray(features(flat, self.X, widths=self.widths))
        try:
            value, slope, by_heads = self._of_heads(Phi, *np.split(theta[p:], 2))
        except NumericalError:
            return math.inf, np.zeros(theta.size)
        by_network = pulled_back(flat, self.X, jnp.asarray(slope), widths=self.widths)
        return value, np.concatenate((np.asarray(by_network, dtype=np.float64), by_heads.ravel()))

    def _of_heads(
        self, Phi: SingleArray, log_alpha: FloatArray, log_beta: FloatArray
    ) -> tuple[float, SingleArray, FloatArray]:
        """Value, its derivative by the features and that by ln alpha and ln beta ``(2, t)``."""
        slope, by_heads = np.empty_like(Phi), np.empty((2, log_alpha.size))
        total, row, task = 0.0, 0, 0
        for _, y, rows in self.stacks:
            here, tasks = slice(row, row + y.size), slice(task, task + len(y))
            stacked = Phi[here].astype(np.float64).reshape(*y.shape, -1)
            stacked *= (np.arange(y.shape[1]) < rows[:, None])[:, :, None]
            found = negative_log_evidence(stacked, y, rows=rows, log_alpha=log_alpha[tasks], log_beta=log_beta[tasks])
            total += found.value
            slope[here] = found.by_features.reshape(y.size, -1)
            by_heads[:, tasks] = found.by_log_alpha, found.by_log_beta
            row, task = here.stop, tasks.stop
        return total, slope, by_heads


@dataclass(frozen=True, slots=True)
class AdaptiveRegression:
    """Settings: ``hidden`` layers of tanh units, and how long to train.

    The first fit starts from random weights and may take ``cold_evaluations`` of the objective; later ones start from
    the fit before and may take ``warm_evaluations``.  After a numerical failure the network is drawn anew, up to
    ``rebuilds`` times.
    """

    hidden: tuple[int, ...] = (50, 50, 50)
    cold_evaluations: int = 500
    warm_evaluations: int = 15
    rebuilds: int = 10

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"AdaptiveRegression: expected hidden layers of at least one unit, got {self.hidden}")
        if min(self.cold_evaluations, self.warm_evaluations) < 1 or self.rebuilds < 0:
            raise InputError(
                "AdaptiveRegression: expected cold_evaluations >= 1, warm_evaluations >= 1 and rebuilds >= 0, "
                f"got {self.cold_evaluations}, {self.warm_evaluations} and {self.rebuilds}"
            )

    def check(self, past: Sequence[SourceData]) -> None:
        """Refuse nothing: any past runs will do."""

    def learn(
        self,
        past: Sequence[SourceData],
        *,
        shape: KernelShape,
        sizes: IntArray,
        rng: np.random.Generator,  # noqa: ARG002  (the network is drawn at the first fit, with the new task's data)
    ) -> AdaptiveTasks:
        """Encode and stack the past runs; there is nothing to train before the new task has data."""
        check_columns(past, shape)
        encoding = OneHot(shape.categorical, sizes)
        groups: dict[int, list[SourceData]] = {}
        for run in past:
            groups.setdefault(math.ceil(math.log2(run.y.size)), []).append(run)
        stacks = []
        for _, runs in sorted(groups.items()):
            longest = max(run.y.size for run in runs)
            stacks.append(make_stack([(encoding.encode(run.X), run.y) for run in runs], longest))
        return AdaptiveTasks(self, encoding, tuple(stacks), len(past))


def make_stack(tasks: Sequence[tuple[FloatArray, FloatArray]], length: int) -> Stack:
    """One-hot encoded inputs and targets of tasks, padded to so many rows."""
    X = np.zeros((len(tasks), length, tasks[0][0].shape[1]), dtype=np.float32)
    y = np.zeros((len(tasks), length))
    for i, (inputs, targets) in enumerate(tasks):
        X[i, : len(inputs)], y[i, : len(targets)] = inputs, targets
    return Stack(X.reshape(-1, X.shape[2]), y, np.array([targets.size for _, targets in tasks], dtype=np.intp))


@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveTasks:
    """The past runs, ready to be trained on together with the new task."""

    settings: AdaptiveRegression
    encoding: OneHot
    stacks: tuple[Stack, ...]
    k: int

    @property
    def widths(self) -> Widths:
        """Widths of the network's layers."""
        return (self.encoding.width, *self.settings.hidden)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, *, start: object, rng: np.random.Generator) -> AdaptivePosterior:
        """Train network and heads; ``start`` is the posterior of the previous trial, or None."""
        X, y = checked_data(X, y)
        length = max(LEAST_ROWS, 2 ** math.ceil(math.log2(y.size)))
        own = make_stack([(self.encoding.encode(X), y)], length)
        evidence = JointEvidence.of((*self.stacks, own), self.widths)
        size = parameter_count(self.widths) + 2 * (self.k + 1)
        warm = start.theta if isinstance(start, AdaptivePosterior) and start.theta.size == size else None
        for _ in range(1 + self.settings.rebuilds):
            if warm is None:
                posterior = self._attempt(
                    X, y, evidence=evidence, start=self._draw(rng), evaluations=self.settings.cold_evaluations
                )
            else:
                posterior = self._attempt(
                    X, y, evidence=evidence, start=warm, evaluations=self.settings.warm_evaluations
                )
            if posterior is not None:
                return posterior
            warm = None  # from scratch
        raise NumericalError(
            f"AdaptiveRegression: no finite evidence for {self.k} past runs and {y.size} observations, "
            f"even after {self.settings.rebuilds} new networks"
        )

    def _draw(self, rng: np.random.Generator) -> FloatArray:
        heads = np.repeat(np.log([ALPHA_START, BETA_START]), self.k + 1)
        return np.concatenate((draw_parameters(self.widths, rng), heads))

    def _attempt(
        self, X: FloatArray, y: FloatArray, *, evidence: JointEvidence, start: FloatArray, evaluations: int
    ) -> AdaptivePosterior | None:
        """One descent; None if it met no finite value or ended where the posterior is not finite."""
        bounds = np.full((start.size, 2), (-np.inf, np.inf))
        heads = np.repeat(np.log([ALPHA_BOUNDS, BETA_BOUNDS]), self.k + 1, axis=0)
        bounds[-len(heads) :] = heads
        with single_threaded(), np.errstate(over="ignore", invalid="ignore"):
            theta, value, _ = minimize_multistart(evidence, start[None], bounds, evaluations=evaluations)
            try:
                return None if value >= REFUSED else make_posterior(X, y, tasks=self, theta=theta)
            except NumericalError:
                return None


@dataclass(frozen=True, slots=True, eq=False)
class AdaptivePosterior:
    """What the new task's head says about its function; ``theta`` is where the next fit starts from."""

    X: FloatArray
    y: FloatArray
    theta: FloatArray
    tasks: AdaptiveTasks
    head: Head

    def features(self, X: npt.ArrayLike) -> FloatArray:
        """Output of the network ``(m, D)``, in double precision."""
        return network_features(checked_inputs(X, self.X.shape[1]), self.theta, tasks=self.tasks)

    def mean(self, X: npt.ArrayLike) -> FloatArray:
        """Posterior mean ``(m,)``."""
        with single_threaded():
            return self.head.mean(self.features(X))

    def predict(self, X: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance ``(m,)`` of the latent function."""
        with single_threaded():
            Phi = self.features(X)
            return self.head.mean(Phi), self.head.variance(Phi)

    def condition(self, X_new: npt.ArrayLike, y_new: npt.ArrayLike) -> AdaptivePosterior:
        """The posterior after seeing more data, with the same network, alpha and beta."""
        if np.size(y_new) == 0:
            return self
        X_new, y_new = checked_data(X_new, y_new)
        X_new = checked_inputs(X_new, self.X.shape[1])
        X, y = np.concatenate((self.X, X_new)), np.concatenate((self.y, y_new))
        with single_threaded():
            return make_posterior(X, y, tasks=self.tasks, theta=self.theta)


def network_features(X: FloatArray, theta: FloatArray, *, tasks: AdaptiveTasks) -> FloatArray:
    """Features ``(n, D)`` at ``X (n, d)``."""
    network = layers(theta[: parameter_count(tasks.widths)], tasks.widths)
    return hidden(tasks.encoding.encode(X), network, activation=np.tanh)


def make_posterior(X: FloatArray, y: FloatArray, *, tasks: AdaptiveTasks, theta: FloatArray) -> AdaptivePosterior:
    """Posterior for given network and heads."""
    log_alpha, log_beta = theta[-tasks.k - 2], theta[-1]
    head = make_head(network_features(X, theta, tasks=tasks), y, alpha=math.exp(log_alpha), beta=math.exp(log_beta))
    return AdaptivePosterior(X, y, theta, tasks, head)
