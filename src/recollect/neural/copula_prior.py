"""A prior learned from past runs for a Gaussian process on copula scores (GCP+Prior; paper section 5.3).

A network with mean m(x) and standard deviation s(x) is trained on the scores of all past runs together; a Gaussian
process on the new task's residuals corrects it::

    r = (z - m(x)) / s(x),   r ~ GP,   mean(x) = m(x) + s(x) mu_r(x),   variance(x) = s(x)^2 sigma_r^2(x)

The likelihood compares every score with the mean and standard deviation at its own point; dropout is for training
only; the network sees the one-hot encoding, the process the original columns of its kernel.

Notation: ``z (n,)`` copula scores, computed by the caller; ``X (n, d)`` encoded points, nan = inactive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax

from recollect.errors import InputError, NumericalError
from recollect.neural.network import OneHot, Widths, draw_parameters, hidden, layers, parameter_count
from recollect.numerics.arrays import FloatArray, IntArray, KernelShape
from recollect.numerics.linalg import single_threaded
from recollect.surrogate.fit import FitSettings, fit_gp
from recollect.surrogate.gp import GP, checked_data, checked_inputs
from recollect.surrogate.prior import TARGET_PRIOR, Prior
from recollect.transfer.sources import SourceData, check_columns

STD_FLOOR = 1e-11
REBUILDS = 10  # networks redrawn if training ends in numbers that are not finite


@dataclass(frozen=True, slots=True)
class Training:
    """How the network is trained with Adam."""

    hidden: tuple[int, ...] = (50, 50, 50)  # widths of the hidden layers
    dropout: float = 0.1  # share of the units that are dropped in training
    steps: int = 3000
    batch: int = 64  # observations per step
    rate: float = 0.01  # initial learning rate
    decay: float = 0.2  # factor of the learning rate after every ``decay_every`` steps
    decay_every: int = 1000

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.hidden or min(*self.hidden, self.steps, self.batch, self.decay_every) < 1:
            got = f"{self.hidden}, {self.steps}, {self.batch} and {self.decay_every}"
            raise InputError(f"Training: expected hidden layers, steps, batch and decay_every of at least 1, got {got}")
        if not (0.0 <= self.dropout < 1.0 and self.rate > 0.0 and 0.0 < self.decay <= 1.0):
            got = f"{self.dropout}, {self.rate} and {self.decay}"
            raise InputError(f"Training: expected 0 <= dropout < 1, rate > 0 and 0 < decay <= 1, got {got}")


def negative_log_likelihood(z: jax.Array, *, mean: jax.Array, std: jax.Array) -> jax.Array:
    """``-ln N(z; mean, std^2)`` of each score at its own point: all ``(n,)``."""
    return 0.5 * jnp.square((z - mean) / std) + jnp.log(std) + 0.5 * math.log(2.0 * math.pi)


def learning_rate(training: Training) -> optax.Schedule:
    """Return the function from the number of finished steps to the learning rate."""
    boundaries = range(training.decay_every, training.steps, training.decay_every)
    return optax.piecewise_constant_schedule(training.rate, dict.fromkeys(boundaries, training.decay))


class Batches(NamedTuple):
    """The random part of training: rows ``(steps, batch)``, drawn with replacement, and keys ``(steps, 4)``."""

    rows: jax.Array
    keys: jax.Array


def draw_batches(training: Training, rows: int, *, rng: np.random.Generator) -> Batches:
    """Draw the random numbers for training on this many rows."""
    chosen = rng.integers(rows, size=(training.steps, training.batch), dtype=np.int32)
    return Batches(jnp.asarray(chosen), jnp.asarray(rng.integers(2**32, size=(training.steps, 4), dtype=np.uint32)))


@partial(jax.jit, static_argnames=("widths", "training"))
def train(
    flat: jax.Array, batches: Batches, *, X: jax.Array, z: jax.Array, widths: Widths, training: Training
) -> jax.Array:
    """Return trained parameters for inputs ``X (n, w)`` and scores ``z (n,)``; all steps are one compiled loop."""
    adam = optax.adam(learning_rate(training))
    ends = list(accumulate(widths[1:-1], initial=0))

    def loss(flat: jax.Array, batch: Batches) -> jax.Array:
        # The generator built into XLA: its loop compiles in a fraction of the time of JAX's own.
        key = jax.random.wrap_key_data(batch.keys, impl="unsafe_rbg")
        kept = jax.random.bernoulli(key, jnp.float32(1.0 - training.dropout), (training.batch, ends[-1]))
        kept = kept.astype(jnp.float32) / (1.0 - training.dropout)
        *stack, last = layers(flat, widths)
        x = X[batch.rows]
        for layer, (begin, end) in zip(stack, pairwise(ends), strict=True):
            x = hidden(x, [layer], activation=jax.nn.relu) * kept[:, begin:end]
        output = x @ last[0] + last[1]
        std = jax.nn.softplus(output[:, 1]) + STD_FLOOR
        return jnp.mean(negative_log_likelihood(z[batch.rows], mean=output[:, 0], std=std))

    def step(state: tuple[jax.Array, optax.OptState], batch: Batches) -> tuple[tuple[jax.Array, optax.OptState], None]:
        flat, memory = state
        change, memory = adam.update(jax.grad(loss)(flat, batch), memory)
        return (optax.apply_updates(flat, change), memory), None

    (flat, _), _ = jax.lax.scan(step, (flat, adam.init(flat)), batches)
    return flat


@dataclass(frozen=True, slots=True, eq=False)
class PriorNetwork:
    """The prior learned from past runs; ``flat`` are the parameters of the network."""

    encoding: OneHot
    widths: Widths
    flat: FloatArray

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return mean and standard deviation ``(n,)`` of the score at ``X (n, d)``, without dropout."""
        *stack, (W, b) = layers(self.flat, self.widths)
        with single_threaded():
            output = hidden(self.encoding.encode(X), stack, activation=lambda x: np.maximum(x, 0.0)) @ W + b
        return output[:, 0], np.logaddexp(0.0, output[:, 1]) + STD_FLOOR

    def residuals(self, X: FloatArray, z: FloatArray) -> FloatArray:
        """Return ``(z - m(x)) / s(x)``."""
        mean, std = self.moments(X)
        return (z - mean) / std


@dataclass(frozen=True, slots=True)
class CopulaPrior:
    """Settings: how the network is trained and how the Gaussian process on the residuals is fitted."""

    training: Training = Training()
    prior: Prior = TARGET_PRIOR
    restarts: int = 10  # random starts of the first fit
    warm_restarts: int = 2  # random starts of later fits, which also start from the previous hyperparameters

    def check(self, past: Sequence[SourceData]) -> None:
        """Accept any past runs."""

    def prepare(
        self, past: Sequence[SourceData], *, shape: KernelShape, sizes: IntArray, rng: np.random.Generator
    ) -> PreparedCopulaPrior:
        """Train the network on all past runs together; without any the prior is standard normal everywhere."""
        check_columns(past, shape)
        encoding = OneHot(shape.categorical, sizes)
        widths = (encoding.width, *self.training.hidden, 2)
        if not past:
            return PreparedCopulaPrior(self, shape, PriorNetwork(encoding, widths, standard_normal(widths)))
        X = np.concatenate([encoding.encode(run.X) for run in past])
        z = np.concatenate([run.y for run in past])
        padding = (0, 2 ** math.ceil(math.log2(len(z))) - len(z))  # few lengths, hence few compilations
        for _ in range(1 + REBUILDS):
            trained = train(
                jnp.asarray(draw_parameters(widths, rng), dtype=jnp.float32),
                draw_batches(self.training, len(z), rng=rng),
                X=jnp.asarray(np.pad(X, (padding, (0, 0))), dtype=jnp.float32),
                z=jnp.asarray(np.pad(z, padding), dtype=jnp.float32),
                widths=widths,
                training=self.training,
            )
            flat = np.asarray(trained, dtype=np.float64)
            if np.isfinite(flat).all():
                return PreparedCopulaPrior(self, shape, PriorNetwork(encoding, widths, flat))
        data = f"{len(past)} past runs ({len(z)} observations)"
        raise NumericalError(
            f"CopulaPrior: training on {data} gave parameters that are not finite, {1 + REBUILDS} times"
        )


def standard_normal(widths: Widths) -> FloatArray:
    """Return the parameters of a network with mean 0 and standard deviation 1 everywhere."""
    flat = np.zeros(parameter_count(widths))
    flat[-1] = math.log(math.expm1(1.0 - STD_FLOOR))  # the last bias is that of the raw standard deviation
    return flat


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCopulaPrior:
    """The trained network and the settings for the process on the residuals."""

    settings: CopulaPrior
    shape: KernelShape
    network: PriorNetwork

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, *, start: object, rng: np.random.Generator) -> CopulaPosterior:
        """Fit the process on the residuals of ``y (n,)``; ``start`` is the posterior of the previous trial, or None."""
        X, y = checked_data(X, y)
        hyper = start.gp.hyper if isinstance(start, CopulaPosterior) and start.gp.shape.d == self.shape.d else None
        restarts = self.settings.restarts if hyper is None else self.settings.warm_restarts
        settings = FitSettings(self.settings.prior, restarts, self.shape.conditional)
        z, categorical = self.network.residuals(X, y), self.shape.categorical
        gp = fit_gp(X, z, categorical=categorical, settings=settings, start=hyper, rng=rng)
        return CopulaPosterior(y, self.network, gp)


@dataclass(frozen=True, slots=True, eq=False)
class CopulaPosterior:
    """Posterior of network and process together, for the scores ``y (n,)`` of the new task."""

    y: FloatArray
    network: PriorNetwork
    gp: GP

    @property
    def X(self) -> FloatArray:
        """Evaluated points ``(n, d)``."""
        return self.gp.X

    def mean(self, X: npt.ArrayLike) -> FloatArray:
        """Posterior mean ``(m,)``."""
        X = checked_inputs(X, self.gp.shape.d)
        mean, std = self.network.moments(X)
        return mean + std * self.gp.mean(X)

    def predict(self, X: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance ``(m,)`` of the latent function."""
        X = checked_inputs(X, self.gp.shape.d)
        mean, std = self.network.moments(X)
        residual, variance = self.gp.predict(X)
        return mean + std * residual, std**2 * variance

    def condition(self, X_new: npt.ArrayLike, y_new: npt.ArrayLike) -> CopulaPosterior:
        """Return the posterior after more scores, with the same network and hyperparameters."""
        if np.size(y_new) == 0:
            return self
        X_new, y_new = checked_data(X_new, y_new)
        residuals = self.network.residuals(checked_inputs(X_new, self.gp.shape.d), y_new)
        return replace(self, y=np.concatenate((self.y, y_new)), gp=self.gp.condition(X_new, residuals))
