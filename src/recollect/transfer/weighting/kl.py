"""KL weights: how close the predicted optima of a past run and of the target are (paper section 5.3).

Every model is represented by samples of its minimizer. The Kullback-Leibler divergence from a base model's distribution
to the target's is estimated from nearest-neighbour distances, and weights decrease exponentially with it::

    KL(P || Q) = d/N sum_i ln(nu_i / rho_i) + ln(M / (N - 1))

``P (N, d)`` and ``Q (M, d)`` are samples of two distributions, rho_i the distance of row i of P to the nearest other
row of P, nu_i that to the nearest row of Q. Both are taken from the rows of P; this makes it a divergence of P from Q.

Samples of where the minimum of a Gaussian process may be are the minimizers of draws from its posterior. A draw is a
prior function of random Fourier features plus a correction that makes it fit the observations (Matheron's rule), with
the exact kernel in the correction::

    f(x) = f0(x) + sum_i v_i k(x, x_i),      v = (K + noise I)^-1 (z - f0(X) - e),  e ~ N(0, noise I)
    f0(x) = sqrt(a / M) sum_m r_m cos(omega_m.(x / l) + b_m),      omega = q / sqrt(g)

q ~ N(0, I), g ~ Gamma(5/2, scale 2/5), so that omega has the spectral density of Matern-5/2; b uniform on the circle,
r Rayleigh. A wave of random amplitude and phase is a cosine and a sine with independent normal weights, hence M waves
are 2 M features. Every draw has its own frequencies, which makes mean and covariance over draws those of the process
itself; and unlike with the posterior of the weights, the few features never have to represent the data as well.

All draws are minimized in one batch by Newton's method in a trust region, from one random point each. Steps are in
units of the length scales, u = x / l, because in these the functions are equally rough in all directions. A step ends
at the walls of the unit cube and of the region |p_j| <= radius, so minimizers on the boundary are exact.

Notation: ``X (n, d)`` inputs, numerical columns only; ``z (n,)`` standardized targets; s draws; ``x (s, d)`` one point
for each draw, with value ``f (s,)``, gradient ``g (s, d)`` and Hessian ``H (s, d, d)`` by u there; ``p (s, d)`` steps
in u.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, KernelShape
from recollect.numerics.linalg import cholesky, single_threaded, solve_posdef
from recollect.surrogate.gp import GP
from recollect.surrogate.kernels import MATERN52_SLOPE, SQRT5, Hyperparameters, covariance, matern52_polynomial
from recollect.surrogate.scaling import standardize
from recollect.transfer.sources import Sources
from recollect.transfer.weighting.base import Weigher, Weights
from recollect.validation import as_count, as_finite, as_generator, as_positive

TINY = 1e-14  # added to distances: samples may coincide, above all in corners of the cube
MAX_DISTANCES = 1 << 20  # in memory at a time
MAX_NEWTON_STEPS = 200  # of the trust region; 10 to 30 are usual
SLOPE_TOLERANCE = 1e-7  # largest projected slope (by u, of standardized values) at a minimum
FIRST_RADIUS = 2.0  # of the trust region, in length scales
MIN_RADIUS = 1e-10
ACCEPT, POOR, GOOD = 1e-4, 0.25, 0.75  # decrease relative to that of the quadratic model
MAX_COSINES = 1 << 16  # computed at a time over the training inputs: half a megabyte stays in the cache


def kl_weights(base_samples: ArrayLike, target_samples: ArrayLike, *, eta: float = 10.0) -> Weights:
    """Weigh base models by exp(-KL(base || target) / eta) and the target by exp(0) = 1, then divide by the sum.

    ``base_samples (k, N, d)``, N >= 2, and ``target_samples (M, d)`` are minimizers of functions drawn from each model.
    A larger ``eta`` makes the weights more alike. Nothing is dropped. The estimate may be negative, and then a base
    model weighs more than the target. ``losses`` are the divergences, 0 for the target; nothing is ranked.
    """
    target_samples = as_finite("target_samples", target_samples, shape=(None, None))
    base_samples = as_finite("base_samples", base_samples, shape=(None, None, target_samples.shape[1]))
    eta = as_positive("eta", eta)
    k = len(base_samples)
    divergence = np.zeros(k + 1)
    divergence[:k] = [nearest_neighbour_kl(samples, target_samples) for samples in base_samples]
    with np.errstate(over="ignore"):  # a tiny eta leaves only the nearest: exp(-inf) is 0
        v = np.exp((divergence.min() - divergence) / eta)
    return Weights(v / v.sum(), divergence, np.full(k + 1, np.nan), np.zeros(k, dtype=np.bool_), np.ones(k))


def nearest_neighbour_kl(P: ArrayLike, Q: ArrayLike) -> float:
    """Estimate KL(P || Q) from samples ``P (N, d)``, N >= 2, and ``Q (M, d)``, M >= 1; may be negative."""
    P = as_finite("P", P, shape=(None, None))
    Q = as_finite("Q", Q, shape=(None, P.shape[1]))
    N, M = as_count("number of samples in P", len(P), minimum=2), as_count("number of samples in Q", len(Q), minimum=1)
    d = as_count("number of dimensions", P.shape[1], minimum=1)
    rho, nu = _nearest(P, P, others=True), _nearest(P, Q, others=False)
    return d * float(np.mean(np.log((nu + TINY) / (rho + TINY)))) + math.log(M / (N - 1))


def refuse_unless_continuous(categorical: ArrayLike, names: Sequence[str], *, conditional: bool) -> None:
    """Refuse a space in which minimizers cannot be sampled: with categories (integers have an order) or conditions."""
    mask = np.asarray(categorical, dtype=np.bool_)
    if mask.shape != (len(names),):
        raise InputError(f"categorical must have shape ({len(names)},), one entry for each name, got {mask.shape}")
    rule = "kl needs a search space of floats and integers without conditions"
    unordered = [repr(name) for name, is_categorical in zip(names, mask, strict=True) if is_categorical]
    if unordered:
        raise InputError(f"{rule}; {', '.join(unordered)} {'is' if len(unordered) == 1 else 'are'} categorical")
    if conditional:
        raise InputError(f"{rule}; some hyperparameters of this one are active only when others have certain values")


def _nearest(P: FloatArray, Q: FloatArray, *, others: bool) -> FloatArray:
    """Distance (N,) of every row of P to the nearest row of Q, or to any but itself when Q is P and ``others``."""
    from scipy.spatial.distance import cdist

    nearest = np.empty(len(P))
    rows = max(1, MAX_DISTANCES // len(Q))
    for start in range(0, len(P), rows):
        distances = cdist(P[start : start + rows], Q)
        if others:
            own = np.arange(len(distances))
            distances[own, start + own] = np.inf
        nearest[start : start + rows] = distances.min(axis=1)
    return nearest


@dataclass(frozen=True, slots=True)
class DivergenceWeighting:
    """KL: divergence of the predicted minimizers, from ``draws`` of them for each model."""

    eta: float = 10.0
    draws: int = 100

    allows_guard: ClassVar[bool] = False  # no source is dropped

    def __post_init__(self) -> None:
        """Check the settings."""
        as_positive("eta", self.eta)
        as_count("draws", self.draws, minimum=2)

    def prepare(self, sources: Sources, rng: np.random.Generator) -> Weigher:
        """Sample the minimizers of the past runs, once."""
        samples = []
        for i, own_rng in enumerate(rng.spawn(len(sources))):
            data = sources.data(i)
            z, hyper = standardize(data.y)[0], sources.hyper(i)
            samples.append(self.sample_minimizers(data.X, z, shape=sources.shape, hyper=hyper, rng=own_rng))
        return _DivergenceWeigher(self, np.stack(samples))

    def sample_minimizers(
        self, X: FloatArray, z: FloatArray, *, shape: KernelShape, hyper: Hyperparameters, rng: np.random.Generator
    ) -> FloatArray:
        """Sample minimizers (draws, d') over the numerical columns; the others are constants, or were refused."""
        columns = ~shape.categorical
        numerical = Hyperparameters(hyper.amplitude, hyper.lengthscales[columns], hyper.noise)
        return sample_minimizers(X[:, columns], z, hyper=numerical, count=self.draws, rng=rng)


@dataclass(frozen=True, slots=True, eq=False)
class _DivergenceWeigher:
    settings: DivergenceWeighting
    base_samples: FloatArray

    def weigh(self, target: GP, F: FloatArray, *, horizon: int, rng: np.random.Generator) -> Weights:  # noqa: ARG002
        """Sample the target's minimizer and weigh by divergence."""
        own = self.settings.sample_minimizers(target.X, target.z, shape=target.shape, hyper=target.hyper, rng=rng)
        return kl_weights(self.base_samples, own, eta=self.settings.eta)


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorDraws:
    """s functions drawn from one posterior: waves and correction."""

    frequencies: FloatArray  # (s, d, M)
    phases: FloatArray  # (s, M)
    weights: FloatArray  # (s, M)
    U: FloatArray  # (n, d), the inputs in length scales
    V: FloatArray  # (s, n), the coefficients v times the amplitude
    lengthscales: FloatArray

    def take(self, rows: IntArray | BoolArray) -> PosteriorDraws:
        """Return some of the functions."""
        waves = (self.frequencies[rows], self.phases[rows], self.weights[rows])
        return PosteriorDraws(*waves, self.U, self.V[rows], self.lengthscales)

    def waves(self, x: FloatArray) -> FloatArray:
        """Return the values (s, m) of the prior functions at points ``x (m, d)``."""
        s, _, M = self.frequencies.shape
        values, u = np.empty((s, len(x))), x / self.lengthscales
        size = max(1, MAX_COSINES // max(1, M * len(x)))
        for start in range(0, s, size):
            part = slice(start, start + size)
            angles = u @ self.frequencies[part]
            angles += self.phases[part, None]
            values[part] = (np.cos(angles, out=angles) @ self.weights[part, :, None])[:, :, 0]
        return values

    def values(self, x: FloatArray) -> FloatArray:
        """Return the values (s, m) of all functions at points ``x (m, d)``."""
        r = np.linalg.norm((x / self.lengthscales)[:, None] - self.U, axis=2)
        t = SQRT5 * r
        return np.asarray(self.waves(x) + self.V @ (matern52_polynomial(t) * np.exp(-t)).T)

    def expand(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, gradient and Hessian by u of each function at its own point ``x (s, d)``."""
        u = x / self.lengthscales
        f, g, H = self._expand_waves(u)
        gap = u[:, None] - self.U
        t = np.sqrt(5.0 * np.einsum("snd,snd->sn", gap, gap))
        decay = self.V * np.exp(-t)
        f += np.einsum("sn,sn->s", decay, matern52_polynomial(t))
        slope = decay * (1.0 + t) * MATERN52_SLOPE  # k' = -5/3 a (1 + t) exp(-t) (u - u_i)
        g -= (slope[:, None] @ gap)[:, 0]
        H += (gap * decay[:, :, None]).transpose(0, 2, 1) @ gap * (5.0 * MATERN52_SLOPE)
        H[:, np.arange(x.shape[1]), np.arange(x.shape[1])] -= slope.sum(axis=1)[:, None]
        return f, g, H

    def _expand_waves(self, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Do the same for the prior functions."""
        angles = (u[:, None] @ self.frequencies)[:, 0] + self.phases
        even, odd = self.weights * np.cos(angles), self.weights * np.sin(angles)
        g = -(self.frequencies @ odd[:, :, None])[:, :, 0]
        H = -(self.frequencies * even[:, None]) @ self.frequencies.transpose(0, 2, 1)
        return even.sum(axis=1), g, H


def sample_minimizers(
    X: ArrayLike, z: ArrayLike, *, hyper: Hyperparameters, count: int, features: int = 500, rng: np.random.Generator
) -> FloatArray:
    """Return minimizers ``(count, d)`` in the unit cube of functions drawn from the posterior given X and z.

    Each is the local minimum that a descent from one uniformly random point reaches. All columns of X must be numerical
    and active, n >= 1. ``features`` of each function are cosines and sines of half as many frequencies.
    """
    draws = draw_posterior(X, z, hyper=hyper, count=count, features=features, rng=rng)
    return minimize_draws(draws, rng.random((len(draws.V), draws.U.shape[1])))


def draw_posterior(
    X: ArrayLike, z: ArrayLike, *, hyper: Hyperparameters, count: int, features: int = 500, rng: np.random.Generator
) -> PosteriorDraws:
    """Draw ``count`` functions; arguments as for ``sample_minimizers``."""
    z = as_finite("z", z, shape=(None,))
    d = hyper.lengthscales.size
    X = as_finite("X", X, shape=(z.size, d))
    if z.size == 0 or d == 0:
        raise InputError(f"X must have at least one row and one column, got {X.shape}")
    s, waves = as_count("count", count, minimum=1), as_count("features", features, minimum=2) // 2
    rng = as_generator("rng", rng)
    stretch = rng.gamma(2.5, 0.4, size=(s, 1, waves))
    prior = PosteriorDraws(
        frequencies=rng.standard_normal((s, d, waves)) / np.sqrt(stretch),
        phases=rng.uniform(0.0, 2.0 * math.pi, size=(s, waves)),
        weights=rng.rayleigh(math.sqrt(hyper.amplitude / waves), size=(s, waves)),
        U=X / hyper.lengthscales,
        V=np.zeros((s, z.size)),
        lengthscales=hyper.lengthscales,
    )
    noise = math.sqrt(hyper.noise) * rng.standard_normal((s, z.size))
    with single_threaded():
        K = covariance(X, X, shape=KernelShape(np.zeros(d, dtype=np.bool_), False), hyper=hyper)
        K.flat[:: z.size + 1] += hyper.noise
        L, _ = cholesky(K, hyper.amplitude)
        V = solve_posdef(L, (z - prior.waves(X) - noise).T).T * hyper.amplitude
    return replace(prior, V=np.ascontiguousarray(V))


def minimize_draws(draws: PosteriorDraws, starts: FloatArray) -> FloatArray:
    """Return local minimizers ``(s, d)`` in the unit cube, each from its own row of ``starts (s, d)``."""
    running = np.arange(len(starts))
    with single_threaded():
        ends = _leap(draws, np.clip(starts, 0.0, 1.0))
        state = _Descent(draws, ends.copy(), *draws.expand(ends), np.full(len(ends), FIRST_RADIUS))
        for _ in range(MAX_NEWTON_STEPS):
            unfinished = ~state.finished
            if not unfinished.any():
                break
            if np.count_nonzero(unfinished) <= 0.8 * len(unfinished):  # copying costs about as much as a step
                ends[running] = state.x
                running, state = running[unfinished], state.take(unfinished)
            state = state.advanced()
    ends[running] = state.x
    return ends


def _leap(draws: PosteriorDraws, x: FloatArray) -> FloatArray:
    """Move down the slope by up to an edge of the cube where that is lower: past small valleys, as L-BFGS-B starts."""
    f, g, _ = draws.expand(x)
    slope = g / draws.lengthscales
    far = np.clip(x - slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1.0), 0.0, 1.0)
    return np.where((draws.expand(far)[0] < f)[:, None], far, x)


@dataclass(frozen=True, slots=True, eq=False)
class _Descent:
    """The current point of each function, and how far the quadratic model is trusted there."""

    draws: PosteriorDraws
    x: FloatArray
    f: FloatArray
    g: FloatArray
    H: FloatArray
    radius: FloatArray

    def take(self, rows: BoolArray) -> _Descent:
        here = (self.x, self.f, self.g, self.H, self.radius)
        return _Descent(self.draws.take(rows), *(array[rows] for array in here))

    @property
    def finished(self) -> BoolArray:
        """Which functions are at a point without a descending slope, or have steps too small to matter."""
        low, high = self._walls()
        slope = np.abs(np.clip(-self.g, low, high)).max(axis=1)
        return np.asarray((slope <= SLOPE_TOLERANCE) | (self.radius <= MIN_RADIUS))

    def advanced(self) -> _Descent:
        """Try one step for every function, and accept those that lower its value about as much as predicted."""
        low, high = self._walls()
        p = best_step(self.g, self.H, low=low, high=high, radius=self.radius)
        x = np.where(p <= low, 0.0, np.where(p >= high, 1.0, self.x + self.draws.lengthscales * p))
        f, g, H = self.draws.expand(x)
        predicted = model_change(self.g, self.H, p)
        # Close to a minimum both differences are rounding errors: a step is good if it makes nothing worse than that.
        slack = 1e-14 * (1.0 + np.abs(self.f))
        ratio = (f - self.f - slack) / (predicted - slack)
        length = np.abs(p).max(axis=1)
        grown = np.where((ratio > GOOD) & (length > 0.9 * self.radius), 2.0 * self.radius, self.radius)
        radius = np.where(ratio < POOR, 0.25 * length, grown)
        better = ratio > ACCEPT
        pick = better[:, None]
        x, f, g = np.where(pick, x, self.x), np.where(better, f, self.f), np.where(pick, g, self.g)
        return _Descent(self.draws, x, f, g, np.where(pick[:, :, None], H, self.H), radius)

    def _walls(self) -> tuple[FloatArray, FloatArray]:
        """Return how far each coordinate may go down and up, in length scales."""
        scales = self.draws.lengthscales
        return -self.x / scales, (1.0 - self.x) / scales


def model_change(g: FloatArray, H: FloatArray, p: FloatArray) -> FloatArray:
    """Return the change of the quadratic model, g.p + p.H p / 2, for each function (s,)."""
    return np.asarray(np.einsum("sd,sd->s", g + 0.5 * (H @ p[:, :, None])[:, :, 0], p))


def best_step(g: FloatArray, H: FloatArray, *, low: FloatArray, high: FloatArray, radius: FloatArray) -> FloatArray:
    """Return the step (s, d) with the lowest quadratic model among a few between the walls and within ``radius (s,)``.

    Newton's steps are fast; the step along the projected gradient guarantees that a minimum is reached.
    """
    reach = radius[:, None]
    below, above = np.maximum(low, -reach), np.minimum(high, reach)
    pushed = ((g > 0.0) & (low >= 0.0)) | ((g < 0.0) & (high <= 0.0))
    step = _newton_step(g, H, held=pushed, p=np.zeros_like(g))
    # Where it runs into walls of the cube, it slides along them.
    stopped = pushed | ((step <= low) & (low > -reach)) | ((step >= high) & (high < reach))
    sliding = _newton_step(g, H, held=stopped, p=np.where(pushed, 0.0, np.clip(step, low, high)))
    chosen = _projected_step(g, H, below, above)
    for other in (_cut(sliding, below, above), _cut(step, below, above)):
        better = model_change(g, H, other) < model_change(g, H, chosen)
        chosen = np.where(better[:, None], other, chosen)
    return chosen


def _newton_step(g: FloatArray, H: FloatArray, *, held: BoolArray, p: FloatArray) -> FloatArray:
    """Return Newton's step of the coordinates that are not held at p, with positive curvatures: away from saddles."""
    free = ~held
    slope = np.where(free, g + (H @ np.where(held, p, 0.0)[:, :, None])[:, :, 0], 0.0)
    inner = np.where(free[:, :, None] & free[:, None, :], H, np.eye(g.shape[1]))
    curvature, axes = np.linalg.eigh(inner)
    size = np.abs(curvature)
    size = np.maximum(size, 1e-8 * size.max(axis=1, keepdims=True))
    along = (axes.transpose(0, 2, 1) @ slope[:, :, None])[:, :, 0] / size
    return np.where(free, -(axes @ along[:, :, None])[:, :, 0], p)


def _projected_step(g: FloatArray, H: FloatArray, below: FloatArray, above: FloatArray) -> FloatArray:
    """Return the step down the gradient, cut off at each wall separately, as far as the model decreases."""
    steepest = np.maximum(np.abs(g).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    p = np.clip(-g / steepest * (above - below).max(axis=1, keepdims=True), below, above)
    falls, bends = -np.einsum("sd,sd->s", g, p), np.einsum("sd,sde,se->s", p, H, p)
    far = bends > falls
    return np.asarray(p * np.where(far, falls / np.where(far, bends, 1.0), 1.0)[:, None])


def _cut(p: FloatArray, below: FloatArray, above: FloatArray) -> FloatArray:
    """Shorten the step to the first wall, which the coordinate that meets it reaches exactly."""
    wall = np.where(p < 0.0, below, above)
    shares = np.divide(wall, p, out=np.ones_like(p), where=np.abs(p) > np.abs(wall))
    share = shares.min(axis=1, keepdims=True)
    return np.where((shares == share) & (share < 1.0), wall, np.clip(share * p, below, above))
