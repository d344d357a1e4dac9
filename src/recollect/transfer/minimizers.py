"""Where the minimum of a Gaussian process may be: minimizers of functions drawn from its posterior.

A draw is a prior function made of random Fourier features plus a correction that makes it fit the observations
(Matheron's rule), with the exact kernel in the correction::

    f(x) = f0(x) + sum_i v_i k(x, x_i),      v = (K + noise I)^-1 (z - f0(X) - e),  e ~ N(0, noise I)
    f0(x) = sqrt(a / M) sum_m r_m cos(omega_m.(x / l) + b_m),      omega = q / sqrt(g)

q ~ N(0, I), g ~ Gamma(5/2, scale 2/5), so that omega has the spectral density of Matern-5/2; b uniform on the circle,
r Rayleigh. A wave of random amplitude and phase is a cosine and a sine with independent normal weights, hence M waves
are 2 M features. Every draw has frequencies of its own, which makes mean and covariance over draws those of the process
itself; and unlike with the weights' posterior, the few features never have to hold the data as well.

All draws are minimised in lock-step by Newton's method in a trust region, from one random point each. Steps are in
units of the length scales, u = x / l, because in these the functions are equally rough in all directions. A step ends
at the walls of the unit cube and of the region |p_j| <= radius, so that minimizers on the boundary are there exactly.

Notation: ``X (n, d)`` inputs, numerical columns only; ``z (n,)`` standardised targets; s draws; ``x (s, d)`` one point
for each draw, with value ``f (s,)``, gradient ``g (s, d)`` and Hessian ``H (s, d, d)`` by u there; ``p (s, d)`` steps
in u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from recollect.errors import InputError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.numerics.linalg import cholesky, solve_posdef
from recollect.numerics.threads import single_threaded
from recollect.surrogate.kernels import Hyperparameters, KernelShape, covariance
from recollect.transfer.weights import as_count, as_finite, as_generator

STEPS = 200  # trust-region steps at most; 10 to 30 are usual
SLOPE = 1e-7  # largest projected slope (by u, of standardised values) of a minimum
FIRST_RADIUS = 2.0  # of the trust region, in length scales
SMALLEST_RADIUS = 1e-10
ACCEPT, POOR, GOOD = 1e-4, 0.25, 0.75  # decrease relative to that of the quadratic model
WAVES_HELD = 1 << 16  # cosines over the training inputs computed at a time: half a megabyte stays in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """s functions drawn from one posterior: waves (frequencies (s, d, M), phases and weights (s, M)) and correction.

    U (n, d) are the inputs in length scales, V (s, n) the coefficients v, the amplitude multiplied in.
    """

    frequencies: FloatArray
    phases: FloatArray
    weights: FloatArray
    U: FloatArray
    V: FloatArray
    lengthscales: FloatArray

    def take(self, rows: IntArray | BoolArray) -> Draws:
        """Return some of the functions."""
        return replace(
            self,
            frequencies=self.frequencies[rows],
            phases=self.phases[rows],
            weights=self.weights[rows],
            V=self.V[rows],
        )

    def waves(self, x: FloatArray) -> FloatArray:
        """Values (s, m) of the prior functions at points ``x (m, d)``."""
        s, _, M = self.frequencies.shape
        values, u = np.empty((s, len(x))), x / self.lengthscales
        size = max(1, WAVES_HELD // max(1, M * len(x)))
        for start in range(0, s, size):
            part = slice(start, start + size)
            angles = u @ self.frequencies[part]
            angles += self.phases[part, None]
            values[part] = (np.cos(angles, out=angles) @ self.weights[part, :, None])[:, :, 0]
        return values

    def values(self, x: FloatArray) -> FloatArray:
        """Values (s, m) of all functions at points ``x (m, d)``."""
        r = np.linalg.norm((x / self.lengthscales)[:, None] - self.U, axis=2)
        t = math.sqrt(5.0) * r
        return np.asarray(self.waves(x) + self.V @ ((1.0 + t + t * t / 3.0) * np.exp(-t)).T)

    def expand(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, gradient and Hessian by u of each function at its own point ``x (s, d)``."""
        u = x / self.lengthscales
        f, g, H = self._expand_waves(u)
        gap = u[:, None] - self.U
        t = np.sqrt(5.0 * np.einsum("snd,snd->sn", gap, gap))
        decay = self.V * np.exp(-t)
        f += np.einsum("sn,sn->s", decay, 1.0 + t + t * t / 3.0)
        slope = decay * (1.0 + t) * (5.0 / 3.0)  # k' = -5/3 a (1 + t) exp(-t) (u - u_i)
        g -= (slope[:, None] @ gap)[:, 0]
        H += (gap * decay[:, :, None]).transpose(0, 2, 1) @ gap * (25.0 / 3.0)
        H[:, np.arange(x.shape[1]), np.arange(x.shape[1])] -= slope.sum(axis=1)[:, None]
        return f, g, H

    def _expand_waves(self, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same of the prior functions."""
        angles = (u[:, None] @ self.frequencies)[:, 0] + self.phases
        even, odd = self.weights * np.cos(angles), self.weights * np.sin(angles)
        g = -(self.frequencies @ odd[:, :, None])[:, :, 0]
        H = -(self.frequencies * even[:, None]) @ self.frequencies.transpose(0, 2, 1)
        return even.sum(axis=1), g, H


def sample_minimizers(
    X: npt.ArrayLike,
    z: npt.ArrayLike,
    *,
    hyper: Hyperparameters,
    count: int = 100,
    features: int = 500,
    rng: np.random.Generator,
) -> FloatArray:
    """Minimizers ``(count, d)`` in the unit cube of as many functions drawn from the posterior given X and z.

    X         (n, d)  inputs, all columns numerical and active, n >= 1
    z         (n,)    standardised targets
    features  random Fourier features of each function: cosines and sines of half as many frequencies

    Each is the local minimum that a descent from one uniformly random point finds.
    """
    draws = draw_posterior(X, z, hyper=hyper, count=count, features=features, rng=rng)
    return minimize_draws(draws, rng.random((len(draws.V), draws.U.shape[1])))


def draw_posterior(
    X: npt.ArrayLike,
    z: npt.ArrayLike,
    *,
    hyper: Hyperparameters,
    count: int,
    features: int = 500,
    rng: np.random.Generator,
) -> Draws:
    """Draw ``count`` functions; arguments as of ``sample_minimizers``."""
    z = as_finite("z", z, shape=(None,))
    d = hyper.lengthscales.size
    X = as_finite("X", X, shape=(z.size, d))
    if z.size == 0 or d == 0:
        raise InputError(f"X must have at least one row and one column, got {X.shape}")
    s, waves = as_count("count", count, least=1), as_count("features", features, least=2) // 2
    rng = as_generator("rng", rng)
    stretch = rng.gamma(2.5, 0.4, size=(s, 1, waves))
    prior = Draws(
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


def minimize_draws(draws: Draws, starts: FloatArray) -> FloatArray:
    """Local minimizers ``(s, d)`` in the unit cube of the functions, each from its own row of ``starts (s, d)``."""
    running = np.arange(len(starts))
    with single_threaded():
        found = _leap(draws, np.clip(starts, 0.0, 1.0))
        state = _State.at(draws, found)
        for _ in range(STEPS):
            going = ~state.finished
            if not going.any():
                break
            if np.count_nonzero(going) <= 0.8 * len(going):  # copying what is left costs as much as a step or so
                found[running] = state.x
                running, state = running[going], state.take(going)
            state = state.advanced()
    found[running] = state.x
    return found


def _leap(draws: Draws, x: FloatArray) -> FloatArray:
    """Move down the slope by up to an edge of the cube where that is lower: past small valleys, as L-BFGS-B begins."""
    f, g, _ = draws.expand(x)
    slope = g / draws.lengthscales
    far = np.clip(x - slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1.0), 0.0, 1.0)
    return np.where((draws.expand(far)[0] < f)[:, None], far, x)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Where the descent of each function has come to, and how far the quadratic model is trusted there."""

    draws: Draws
    x: FloatArray
    f: FloatArray
    g: FloatArray
    H: FloatArray
    radius: FloatArray

    @classmethod
    def at(cls, draws: Draws, x: FloatArray) -> _State:
        return cls(draws, x.copy(), *draws.expand(x), np.full(len(x), FIRST_RADIUS))

    def take(self, rows: BoolArray) -> _State:
        here = (self.x, self.f, self.g, self.H, self.radius)
        return _State(self.draws.take(rows), *(array[rows] for array in here))

    @property
    def finished(self) -> BoolArray:
        """Functions at a point that no slope leads away from, or whose steps have become too small to matter."""
        low, high = self._walls()
        slope = np.abs(np.clip(-self.g, low, high)).max(axis=1)
        return np.asarray((slope <= SLOPE) | (self.radius <= SMALLEST_RADIUS))

    def advanced(self) -> _State:
        """Try one step for every function, and keep those that lower its value about as much as predicted."""
        low, high = self._walls()
        p = best_step(self.g, self.H, low=low, high=high, radius=self.radius)
        x = np.where(p <= low, 0.0, np.where(p >= high, 1.0, self.x + self.draws.lengthscales * p))
        f, g, H = self.draws.expand(x)
        predicted = model_change(self.g, self.H, p)
        # Close to a minimum both differences drown in rounding errors: the step is good if nothing got worse by more.
        slack = 1e-14 * (1.0 + np.abs(self.f))
        ratio = (f - self.f - slack) / (predicted - slack)
        length = np.abs(p).max(axis=1)
        grown = np.where((ratio > GOOD) & (length > 0.9 * self.radius), 2.0 * self.radius, self.radius)
        radius = np.where(ratio < POOR, 0.25 * length, grown)
        better = ratio > ACCEPT
        pick = better[:, None]
        return _State(
            self.draws,
            np.where(pick, x, self.x),
            np.where(better, f, self.f),
            np.where(pick, g, self.g),
            np.where(pick[:, :, None], H, self.H),
            radius,
        )

    def _walls(self) -> tuple[FloatArray, FloatArray]:
        """How far each coordinate may go down and up, in length scales."""
        scales = self.draws.lengthscales
        return -self.x / scales, (1.0 - self.x) / scales


def model_change(g: FloatArray, H: FloatArray, p: FloatArray) -> FloatArray:
    """Change of the quadratic model: g.p + p.H p / 2, for each function (s,)."""
    return np.asarray(np.einsum("sd,sd->s", g + 0.5 * (H @ p[:, :, None])[:, :, 0], p))


def best_step(g: FloatArray, H: FloatArray, *, low: FloatArray, high: FloatArray, radius: FloatArray) -> FloatArray:
    """Return the step (s, d) with the lowest quadratic model among a few between the walls and within ``radius (s,)``.

    Newton's steps are quick; the one along the projected gradient makes sure that a minimum is reached.
    """
    reach = radius[:, None]
    below, above = np.maximum(low, -reach), np.minimum(high, reach)
    pushed = ((g > 0.0) & (low >= 0.0)) | ((g < 0.0) & (high <= 0.0))
    step = _newton_step(g, H, held=pushed, p=np.zeros_like(g))
    # Where it runs into walls of the cube, it had better slide along them.
    stopped = pushed | ((step <= low) & (low > -reach)) | ((step >= high) & (high < reach))
    sliding = _newton_step(g, H, held=stopped, p=np.where(pushed, 0.0, np.clip(step, low, high)))
    chosen = _projected_step(g, H, below, above)
    for other in (_cut(sliding, below, above), _cut(step, below, above)):
        better = model_change(g, H, other) < model_change(g, H, chosen)
        chosen = np.where(better[:, None], other, chosen)
    return chosen


def _newton_step(g: FloatArray, H: FloatArray, *, held: BoolArray, p: FloatArray) -> FloatArray:
    """Newton's step of the coordinates that are not held at p, with all curvatures positive: away from saddles."""
    loose = ~held
    slope = np.where(loose, g + (H @ np.where(held, p, 0.0)[:, :, None])[:, :, 0], 0.0)
    inner = np.where(loose[:, :, None] & loose[:, None, :], H, np.eye(g.shape[1]))
    curvature, axes = np.linalg.eigh(inner)
    size = np.abs(curvature)
    size = np.maximum(size, 1e-8 * size.max(axis=1, keepdims=True))
    along = (axes.transpose(0, 2, 1) @ slope[:, :, None])[:, :, 0] / size
    return np.where(loose, -(axes @ along[:, :, None])[:, :, 0], p)


def _projected_step(g: FloatArray, H: FloatArray, below: FloatArray, above: FloatArray) -> FloatArray:
    """Step down the gradient, cut off at each wall by itself, as far as the model falls."""
    steepest = np.maximum(np.abs(g).max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    p = np.clip(-g / steepest * (above - below).max(axis=1, keepdims=True), below, above)
    falls, bends = -np.einsum("sd,sd->s", g, p), np.einsum("sd,sde,se->s", p, H, p)
    far = bends > falls
    return np.asarray(p * np.where(far, falls / np.where(far, bends, 1.0), 1.0)[:, None])


def _cut(p: FloatArray, below: FloatArray, above: FloatArray) -> FloatArray:
    """The same direction until the first wall, which the coordinate that meets it reaches exactly."""
    wall = np.where(p < 0.0, below, above)
    shares = np.divide(wall, p, out=np.ones_like(p), where=np.abs(p) > np.abs(wall))
    share = shares.min(axis=1, keepdims=True)
    return np.where((shares == share) & (share < 1.0), wall, np.clip(share * p, below, above))
