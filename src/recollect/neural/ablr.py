"""Adaptive Bayesian linear regression: one network for all tasks, a linear head for each (ABLR; paper section 5.3).

The network and all heads, those of the past runs and that of the new task, are found together by maximizing the sum of
the tasks' evidences. The evidence has the norm of e, and the biases are trained. One head, on features Phi::

    y = Phi v + eps,   v ~ N(0, I / alpha),   eps ~ N(0, I / beta),   r = beta / alpha
    K = I + r Phi^T Phi = L L^T,   e = L^-1 Phi^T y
    -ln p(y) = -n/2 ln beta + beta/2 (|y|^2 - r |e|^2) + sum ln L_jj + n/2 ln 2 pi
    mean(x) = r e^T L^-1 phi(x),   variance(x) = |L^-1 phi(x)|^2 / alpha

``|y|^2 - r |e|^2`` is a small difference of large numbers where the fit is good. It equals the sum of squares
``|y - Phi m|^2 + |m|^2 / r``, which is minimal at m: rounding errors of m count in second order only, and the
derivatives are those with m held fixed::

    by Phi       -beta (y - Phi m) m^T + r Phi K^-1
    by ln alpha   alpha/2 |m|^2 - (D - tr K^-1)/2
    by ln beta    beta/2 |y - Phi m|^2 + (D - tr K^-1)/2 - n/2

The network is JAX in single precision. The heads are NumPy in double: in single precision K, whose eigenvalues start at
1 while r goes up to 1e9, could not be factorized. And in JAX a batched factorization waits for the thread pool it runs
on: two at a time, from two batches of tasks or from two Python threads, deadlock on a machine with two cores.

Notation: ``Phi (n, D)`` features, ``y (n,)``; ``m = r K^-1 Phi^T y (D,)`` the posterior mean of v; t tasks at once have
one more axis in front. ``theta (p + 2 t,)`` the p parameters of the network, then ln alpha (t,), then ln beta (t,), for
t tasks, the new one last. Tasks of similar length form a batch: ``y (t', n')`` and one-hot encoded inputs
``(t' n', w)``, padded by zeros; ``rows (t',)`` of each are real. The new task is a batch of its own, padded to 64, 128,
... rows, so that nothing is recompiled from trial to trial.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

from recollect.errors import InputError, NumericalError
from recollect.neural.network import OneHot, Widths, draw_parameters, hidden, layers, parameter_count
from recollect.numerics.arrays import FloatArray, IntArray, KernelShape
from recollect.numerics.bfgs import NOT_FINITE, minimize_multistart
from recollect.numerics.linalg import single_threaded, solve_lower
from recollect.surrogate.gp import VARIANCE_FLOOR, checked_data, checked_inputs
from recollect.transfer.sources import SourceData, check_columns

SingleArray: TypeAlias = npt.NDArray[np.float32]

ALPHA_START, ALPHA_BOUNDS = 1.0, (1e-3, 1e3)
BETA_START, BETA_BOUNDS = 1e3, (1.0, 1e6)
MIN_PADDED_ROWS = 64  # of the new task's batch: one compilation for up to 64 trials


class Evidence(NamedTuple):
    """Sum of ``-ln p(y)`` over t tasks, and its derivatives: ``(t, n, D)``, ``(t,)`` and ``(t,)``."""

    value: float
    by_features: FloatArray
    by_log_alpha: FloatArray
    by_log_beta: FloatArray


def negative_log_evidence(
    Phi: FloatArray, y: FloatArray, *, rows: IntArray, log_alpha: FloatArray, log_beta: FloatArray
) -> Evidence:
    """Return the evidence of ``Phi (t, n, D)`` and ``y (t, n)``; both are zero after the first ``rows (t,)`` rows.

    Where numbers overflow, the value is not finite or `NumericalError` is raised.
    """
    D = Phi.shape[2]
    alpha, beta = np.exp(log_alpha), np.exp(log_beta)
    r = (beta / alpha)[:, None, None]
    transposed = Phi.transpose(0, 2, 1)
    K = np.eye(D) + r * (transposed @ Phi)
    half_log_determinant, inverse = _factorized(K)
    m = r * (inverse @ (transposed @ y[:, :, None]))
    residual = y[:, :, None] - Phi @ m
    by_features = r * (Phi @ inverse) - (beta[:, None, None] * residual) * m.transpose(0, 2, 1)
    misfit, size = 0.5 * beta * _squares(residual), 0.5 * alpha * _squares(m)
    explained = 0.5 * (D - np.trace(inverse, axis1=1, axis2=2))
    value = misfit + size + half_log_determinant - 0.5 * rows * (log_beta - math.log(2.0 * math.pi))
    return Evidence(float(value.sum()), by_features, size - explained, misfit + explained - 0.5 * rows)


def _factorized(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``sum ln L_jj (t,)`` and the inverses ``(t, D, D)`` of t matrices.

    A loop, because it takes a third of the time of NumPy's batched functions, which do not use the symmetry.
    """
    inverse, diagonal = np.empty_like(K), np.empty(K.shape[:2])
    for i, matrix in enumerate(K):
        L, info = dpotrf(matrix.T, lower=1, clean=1)
        if info != 0:
            raise NumericalError("negative_log_evidence: I + r Phi^T Phi could not be factorized; is Phi finite?")
        diagonal[i] = L.diagonal()
        inverse[i], _ = dpotri(L, lower=1, overwrite_c=1)  # the lower triangle; the upper one stays zero
    inverse[:, np.arange(K.shape[1]), np.arange(K.shape[1])] *= 0.5
    return np.log(diagonal).sum(axis=1), inverse + inverse.transpose(0, 2, 1)


def _squares(columns: FloatArray) -> FloatArray:
    """Return the sum of squares of each of ``(t, n, 1)``."""
    return np.asarray(np.einsum("tni,tni->t", columns, columns))


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """Posterior of one task: ``weights (D,)`` is m, ``root (D, D)`` the lower factor of Phi^T Phi + I / r."""

    alpha: float
    beta: float
    weights: FloatArray
    root: FloatArray

    def mean(self, Phi: FloatArray) -> FloatArray:
        """Posterior mean ``(n,)`` at features ``(n, D)``."""
        return np.asarray(Phi @ self.weights)

    def variance(self, Phi: FloatArray) -> FloatArray:
        """Variance of the latent function ``(n,)``; the noise 1 / beta is not part of it."""
        V = solve_lower(self.root, Phi.T)  # L = sqrt(r) root, hence |L^-1 phi|^2 / alpha = |root^-1 phi|^2 / beta
        return np.asarray(np.maximum(np.einsum("ij,ij->j", V, V) / self.beta, VARIANCE_FLOOR))


def make_head(Phi: FloatArray, y: FloatArray, *, alpha: float, beta: float) -> Head:
    """Return the posterior given features ``(n, D)`` and targets ``(n,)``.

    It uses the QR factors of Phi on top of I / sqrt(r): K itself would square a condition number that may be 1e6.
    """
    tall = np.vstack((Phi, math.sqrt(alpha / beta) * np.eye(Phi.shape[1])))
    if not (np.isfinite(tall).all() and np.isfinite(y).all()):
        raise NumericalError(f"make_head: expected finite features {Phi.shape} and targets {y.shape}, got nan or inf")
    Q, R = np.linalg.qr(tall)
    signs = np.where(R.diagonal() < 0.0, -1.0, 1.0)
    root = np.asfortranarray((signs[:, None] * R).T)
    weights = np.asarray(dtrtrs(root, signs * (Q[: len(y)].T @ y), lower=1, trans=1)[0])  # root^-T b
    if not np.isfinite(weights).all():
        raise NumericalError(f"make_head: the weights are not finite (alpha {alpha:.3g}, beta {beta:.3g}, n {len(y)})")
    return Head(alpha, beta, weights, root)


class TaskBatch(NamedTuple):
    """Tasks of similar length, padded with zeros."""

    X: SingleArray
    y: FloatArray
    rows: IntArray


@partial(jax.jit, static_argnames="widths")
def features(flat: jax.Array, X: jax.Array, *, widths: Widths) -> jax.Array:
    """Return the output of the network ``(n, D)`` at encoded inputs ``(n, w)``."""
    return hidden(X, layers(flat, widths), activation=jnp.tanh)


@partial(jax.jit, static_argnames="widths")
def pulled_back(flat: jax.Array, X: jax.Array, slope: jax.Array, *, widths: Widths) -> jax.Array:
    """Return the derivative by the parameters ``(p,)``, given that by the features ``(n, D)``."""
    _, pull = jax.vjp(lambda parameters: features(parameters, X, widths=widths), flat)
    return cast(jax.Array, pull(slope)[0])


@dataclass(frozen=True, slots=True, eq=False)
class JointEvidence:
    """The objective: the sum over tasks of ``-ln p(y)``, with the inputs ``X`` of all tasks concatenated."""

    batches: tuple[TaskBatch, ...]
    X: jax.Array
    widths: Widths

    @classmethod
    def of(cls, batches: tuple[TaskBatch, ...], widths: Widths) -> JointEvidence:
        """Create the objective from the batches, the new task's last."""
        return cls(batches, jnp.asarray(np.concatenate([batch.X for batch in batches])), widths)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient ``(p + 2 t,)``; the value is not finite where numbers overflow."""
        p = parameter_count(self.widths)
        flat = jnp.asarray(theta[:p].astype(np.float32))
        Phi = np.asarray(features(flat, self.X, widths=self.widths))
        try:
            value, slope, by_heads = self._evaluate_heads(Phi, *np.split(theta[p:], 2))
        except NumericalError:
            return math.inf, np.zeros(theta.size)
        by_network = pulled_back(flat, self.X, jnp.asarray(slope), widths=self.widths)
        return value, np.concatenate((np.asarray(by_network, dtype=np.float64), by_heads.ravel()))

    def _evaluate_heads(
        self, Phi: SingleArray, log_alpha: FloatArray, log_beta: FloatArray
    ) -> tuple[float, SingleArray, FloatArray]:
        """Return the value, its derivative by the features and that by ln alpha and ln beta ``(2, t)``."""
        slope, by_heads = np.empty_like(Phi), np.empty((2, log_alpha.size))
        total, row, task = 0.0, 0, 0
        for _, y, rows in self.batches:
            here, tasks = slice(row, row + y.size), slice(task, task + len(y))
            padded = Phi[here].astype(np.float64).reshape(*y.shape, -1)
            padded *= (np.arange(y.shape[1]) < rows[:, None])[:, :, None]
            evidence = negative_log_evidence(padded, y, rows=rows, log_alpha=log_alpha[tasks], log_beta=log_beta[tasks])
            total += evidence.value
            slope[here] = evidence.by_features.reshape(y.size, -1)
            by_heads[:, tasks] = evidence.by_log_alpha, evidence.by_log_beta
            row, task = here.stop, tasks.stop
        return total, slope, by_heads


@dataclass(frozen=True, slots=True)
class ABLR:
    """Settings of the network and its training."""

    hidden: tuple[int, ...] = (50, 50, 50)  # widths of the layers of tanh units
    cold_evaluations: int = 500  # evaluations of the objective in the first fit, which starts from random weights
    warm_evaluations: int = 15  # evaluations in later fits, which start from the previous one
    rebuilds: int = 10  # how often the network is redrawn after a numerical failure

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.hidden or min(self.hidden) < 1:
            raise InputError(f"ABLR: expected hidden layers of at least one unit, got {self.hidden}")
        if min(self.cold_evaluations, self.warm_evaluations) < 1 or self.rebuilds < 0:
            got = f"{self.cold_evaluations}, {self.warm_evaluations} and {self.rebuilds}"
            raise InputError(f"ABLR: expected cold_evaluations >= 1, warm_evaluations >= 1, rebuilds >= 0, got {got}")

    def check(self, past: Sequence[SourceData]) -> None:
        """Accept any past runs."""

    def prepare(
        self, past: Sequence[SourceData], *, shape: KernelShape, sizes: IntArray, rng: np.random.Generator
    ) -> PreparedABLR:
        """Encode and batch the past runs; there is nothing to train before the new task has data."""
        del rng  # the network is drawn at the first fit, with the new task's data
        check_columns(past, shape)
        encoding = OneHot(shape.categorical, sizes)
        groups: dict[int, list[SourceData]] = {}
        for run in past:
            groups.setdefault(math.ceil(math.log2(run.y.size)), []).append(run)
        batches = (
            make_batch([(encoding.encode(run.X), run.y) for run in runs], max(run.y.size for run in runs))
            for _, runs in sorted(groups.items())
        )
        return PreparedABLR(self, encoding, tuple(batches), len(past))


def make_batch(tasks: Sequence[tuple[FloatArray, FloatArray]], length: int) -> TaskBatch:
    """Pad one-hot encoded inputs and targets of tasks to ``length`` rows."""
    X = np.zeros((len(tasks), length, tasks[0][0].shape[1]), dtype=np.float32)
    y = np.zeros((len(tasks), length))
    for i, (inputs, targets) in enumerate(tasks):
        X[i, : len(inputs)], y[i, : len(targets)] = inputs, targets
    return TaskBatch(X.reshape(-1, X.shape[2]), y, np.array([targets.size for _, targets in tasks], dtype=np.intp))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedABLR:
    """The past runs, prepared for training together with the new task."""

    settings: ABLR
    encoding: OneHot
    batches: tuple[TaskBatch, ...]
    k: int

    @property
    def widths(self) -> Widths:
        """Widths of the network's layers."""
        return (self.encoding.width, *self.settings.hidden)

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, *, start: object, rng: np.random.Generator) -> ABLRPosterior:
        """Train network and heads; ``start`` is the posterior of the previous trial, or None."""
        X, y = checked_data(X, y)
        length = max(MIN_PADDED_ROWS, 2 ** math.ceil(math.log2(y.size)))
        own = make_batch([(self.encoding.encode(X), y)], length)
        evidence = JointEvidence.of((*self.batches, own), self.widths)
        size = parameter_count(self.widths) + 2 * (self.k + 1)
        warm = start.theta if isinstance(start, ABLRPosterior) and start.theta.size == size else None
        for _ in range(1 + self.settings.rebuilds):
            evaluations = self.settings.warm_evaluations
            if warm is None:  # from scratch
                heads = np.repeat(np.log([ALPHA_START, BETA_START]), self.k + 1)
                warm = np.concatenate((draw_parameters(self.widths, rng), heads))
                evaluations = self.settings.cold_evaluations
            posterior = self._attempt(X, y, evidence=evidence, start=warm, evaluations=evaluations)
            if posterior is not None:
                return posterior
            warm = None
        data, tries = f"{self.k} past runs and {y.size} observations", self.settings.rebuilds
        raise NumericalError(f"ABLR: no finite evidence for {data}, even after {tries} new networks")

    def _attempt(
        self, X: FloatArray, y: FloatArray, *, evidence: JointEvidence, start: FloatArray, evaluations: int
    ) -> ABLRPosterior | None:
        """Run one descent; None if it met no finite value or ended where the posterior is not finite."""
        bounds = np.full((start.size, 2), (-np.inf, np.inf))
        bounds[-2 * (self.k + 1) :] = np.repeat(np.log([ALPHA_BOUNDS, BETA_BOUNDS]), self.k + 1, axis=0)
        with single_threaded(), np.errstate(over="ignore", invalid="ignore"):
            theta, value, _ = minimize_multistart(evidence, start[None], bounds, max_evaluations=evaluations)
            try:
                return None if value >= NOT_FINITE else make_posterior(X, y, tasks=self, theta=theta)
            except NumericalError:
                return None


@dataclass(frozen=True, slots=True, eq=False)
class ABLRPosterior:
    """Posterior of the new task's head; ``theta`` is where the next fit starts."""

    X: FloatArray
    y: FloatArray
    theta: FloatArray
    tasks: PreparedABLR
    head: Head

    def features(self, X: npt.ArrayLike) -> FloatArray:
        """Return the output of the network ``(m, D)``, in double precision."""
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

    def condition(self, X_new: npt.ArrayLike, y_new: npt.ArrayLike) -> ABLRPosterior:
        """Return the posterior after more data, with the same network, alpha and beta."""
        if np.size(y_new) == 0:
            return self
        X_new, y_new = checked_data(X_new, y_new)
        X_new = checked_inputs(X_new, self.X.shape[1])
        X, y = np.concatenate((self.X, X_new)), np.concatenate((self.y, y_new))
        with single_threaded():
            return make_posterior(X, y, tasks=self.tasks, theta=self.theta)


def network_features(X: FloatArray, theta: FloatArray, *, tasks: PreparedABLR) -> FloatArray:
    """Return the features ``(n, D)`` at ``X (n, d)``."""
    network = layers(theta[: parameter_count(tasks.widths)], tasks.widths)
    return hidden(tasks.encoding.encode(X), network, activation=np.tanh)


def make_posterior(X: FloatArray, y: FloatArray, *, tasks: PreparedABLR, theta: FloatArray) -> ABLRPosterior:
    """Return the posterior for a given network and heads."""
    log_alpha, log_beta = theta[-tasks.k - 2], theta[-1]
    head = make_head(network_features(X, theta, tasks=tasks), y, alpha=math.exp(log_alpha), beta=math.exp(log_beta))
    return ABLRPosterior(X, y, theta, tasks, head)
