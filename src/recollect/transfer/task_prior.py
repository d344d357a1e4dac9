"""The task prior: a Gaussian process whose prior mean and covariance are estimated from all past runs.

An ensemble picks or averages past runs one by one. A prior over tasks also knows how they vary: where past runs that
disagree here agree there, and which hyperparameters trade off differently on every task.

Past run i of k takes part by its *mean function*, not by its observations, which crowd where it searched. At reference
points ``R (r, d)`` all over the space, values above the median are compressed (`scaling.compress_tail`), and the
function is standardized; z_i is the result, at any point. Then ::

    m(x) = mean_i z_i(x),     C(x, x') = sum_i phi_i(x) phi_i(x'),     phi_i = (z_i - m) / sqrt(k - 1)

The values ``t (n,)`` of the new task, compressed in the same way, are t = a + (g(x) + e) / u with e ~ N(0, noise^2), an
offset a that is flat (`FLAT` is added to the covariance of u t), and g by one of three hypotheses:

    alike      g ~ GP(m, C + deviation^2 K)      the new task is one more of the past tasks
    reversed   g ~ GP(-m, C + deviation^2 K)     what was good in past runs is bad now
    unrelated  g ~ GP(0, K)                      past runs say how smooth the function is, and nothing else

K is the kernel of all models with unit amplitude and the past runs' median length scales. Deviation and noise are on a
grid. The scale is where the evidence is highest; with A = t' S^-1 t and B = t' S^-1 m, where S is the covariance of u t
and m its prior mean, ::

    u = (B + sqrt(B^2 + 4 A (n - 1))) / (2 A)
    log evidence = -1/2 (u t - m)' S^-1 (u t - m) - 1/2 log|S| + (n - 1) log u - (n - 1)/2 log 2 pi + 1/2 log FLAT

The process of plain Bayesian optimization is the fourth hypothesis. Its evidence is its marginal likelihood, less
(d + 2)/4 log n for the hyperparameters that were fitted to the same data. All are averaged by prior probability and
evidence. The second and the third are there because offset and scale are free: as long as a search stays where past
runs promise good values, values that are all bad do not look bad. Under the reversed hypothesis the rest of the space
promises so much that even with a small probability it is looked at, once the first hypothesis promises little more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, row_keys
from recollect.numerics.linalg import append_cholesky, cholesky, single_threaded, solve_lower, solve_posdef
from recollect.space.sampling import latin_hypercube
from recollect.space.space import Space
from recollect.surrogate.gp import GP, VARIANCE_FLOOR
from recollect.surrogate.kernels import Hyperparameters, covariance, cross_covariance
from recollect.surrogate.scaling import compress_tail, standardize, tail_constants
from recollect.transfer.sources import Sources

Hypothesis = Literal["alike", "reversed", "unrelated", "plain"]

FLAT = 100.0  # prior variance of the new task's offset, in units of the past runs' functions
MIN_PLAIN_OBSERVATIONS = 3  # from which on the plain process takes part
NOISE_FREE = 1e-4  # standard deviation that stands for "no noise"
MAX_REFERENCE = 4096  # candidates that are reference points
MIN_WEIGHT = 1e-4  # relative to the largest; a process with less is left out of predictions
SIGNS: dict[Hypothesis, float] = {"alike": 1.0, "reversed": -1.0, "unrelated": 0.0}  # of the prior mean


@dataclass(frozen=True, slots=True)
class TaskPrior:
    """Settings of the task prior."""

    deviations: tuple[float, ...] = (0.1, 0.3, 0.8)  # of the new task from what past runs span
    noises: tuple[float, ...] = (0.01, 0.1, 0.3)  # standard deviations of the observation noise
    reversed_probability: float = 0.05  # of the hypotheses, before the first trial; 0 leaves one out
    unrelated_probability: float = 0.05
    plain_probability: float = 0.5
    reference_points: int = 512  # in a continuous space

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.deviations or not self.noises or min(*self.deviations, *self.noises) <= 0:
            got = f"{self.deviations} and {self.noises}"
            raise InputError(f"TaskPrior: expected positive deviations and noises, got {got}")
        if min(self.probabilities.values()) < 0 or self.probabilities["alike"] <= 0:
            raise InputError(f"TaskPrior: expected probabilities that leave some for 'alike', got {self.probabilities}")
        if self.reference_points < 2:
            raise InputError(f"TaskPrior: expected reference_points >= 2, got {self.reference_points}")

    @property
    def probabilities(self) -> dict[Hypothesis, float]:
        """Probability of each hypothesis before the first trial."""
        rest = 1.0 - self.plain_probability
        reverse, unrelated = rest * self.reversed_probability, rest * self.unrelated_probability
        alike = rest - reverse - unrelated
        return {"alike": alike, "reversed": reverse, "unrelated": unrelated, "plain": self.plain_probability}

    def prepare(self, sources: Sources, reference: FloatArray, *, finite: bool) -> PreparedTaskPrior:
        """Standardize the sources' mean functions over ``reference (r, d)``; ``finite`` if there are candidates."""
        return PreparedTaskPrior(self, sources, reference, finite=finite)


class PreparedTaskPrior:
    """The standardized functions of past runs and their moments; immutable."""

    def __init__(self, settings: TaskPrior, sources: Sources, reference: FloatArray, *, finite: bool) -> None:
        """Evaluate the past runs at the reference points, and take the constants of their scales from there."""
        self.settings, self.sources, self.shape = settings, sources, sources.shape
        self.reference, self.finite = reference, finite
        self.hyper = Hyperparameters(1.0, np.exp(np.median(sources.theta[:, 1:-1], axis=0)), 1.0)
        means = sources.means(reference)
        constants = [tail_constants(row) for row in means]
        self._middles, self._scales = np.array([entry[:2] for entry in constants]).T[:, :, None]
        self._compresses = np.array([entry[2] for entry in constants])[:, None]
        standardized = [standardize(row) for row in self._compressed(means)]
        self._centres, self._spreads = np.array([entry[1:] for entry in standardized]).T[:, :, None]
        self._functions = np.array([entry[0] for entry in standardized])
        self._index = {key: number for number, key in enumerate(row_keys(reference))}

    def functions(self, X: FloatArray) -> FloatArray:
        """Return z ``(k, m)`` at ``X (m, d)``; reference points are looked up."""
        places = np.array([self._index.get(key, -1) for key in row_keys(X)], dtype=np.intp)
        z: FloatArray = self._functions[:, places]
        new = np.flatnonzero(places < 0)
        if new.size:
            z[:, new] = (self._compressed(self.sources.means(X[new])) - self._centres) / self._spreads
        return z

    def moments(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the prior mean m ``(m,)`` and phi ``(k, m)``, the products of which are the prior covariance C."""
        z = self.functions(X)
        mean = z.mean(axis=0)
        z -= mean
        z /= math.sqrt(max(len(z) - 1, 1))
        return mean, z

    def fit(self, X: FloatArray, y: FloatArray, plain: GP | None) -> TaskPriorPosterior:
        """Condition on the values ``y (n,)`` at ``X (n, d)``.

        Args:
            X: The evaluated points.
            y: Their values.
            plain: The process of plain Bayesian optimization, fitted to `scaled_values`; None if it takes no part.
        """
        t, settings = scaled_values(y), self.settings
        mean, features = self.moments(X)
        K = covariance(X, X, shape=self.shape, hyper=self.hyper)
        shared: list[Hypothesis] = ["alike", "reversed"]
        grid = [(shared, True, deviation) for deviation in settings.deviations] + [(["unrelated"], False, 1.0)]
        factors: list[Factor] = []
        processes: list[Process] = []
        with single_threaded():
            C = features.T @ features
            for hypotheses, uses_past, deviation in grid:
                possible = [name for name in hypotheses if settings.probabilities[name] > 0.0]
                for noise in settings.noises if possible else ():
                    factor = Factor.of(C, K, uses_past=uses_past, deviation=deviation, noise=noise)
                    processes += [fit_process(len(factors), factor, name, t, mean) for name in possible]
                    factors.append(factor)
        weights = self._weights(processes, plain)
        return TaskPriorPosterior(self, X, t, mean, features, tuple(factors), tuple(processes), plain, weights)

    def _weights(self, processes: list[Process], plain: GP | None) -> FloatArray:
        """Return the posterior probability of every process and, last, of the plain one."""
        probabilities = self.settings.probabilities
        names = [process.hypothesis for process in processes]
        logs = [p.log_evidence + math.log(probabilities[p.hypothesis] / names.count(p.hypothesis)) for p in processes]
        takes_part = plain is not None and probabilities["plain"] > 0.0
        logs.append(plain_log_evidence(plain) + math.log(probabilities["plain"]) if plain and takes_part else -math.inf)
        weights = np.exp(np.array(logs) - max(logs))
        return np.asarray(weights / weights.sum())

    def _compressed(self, means: FloatArray) -> FloatArray:
        """Compress ``means (k, m)`` of the sources with the constants from the reference points."""
        z = (means - self._middles) / self._scales
        return np.asarray(np.where((z > 0.0) & self._compresses, np.log1p(np.maximum(z, 0.0)), z))


def scaled_values(y: FloatArray) -> FloatArray:
    """Return t: values above the median compressed; two values have no tail and are standardized."""
    return standardize(y)[0] if len(y) == 2 else compress_tail(y)[0]


def plain_log_evidence(plain: GP) -> float:
    """Return the log evidence of the plain process in units of its targets, less what its fit is worth."""
    fitted = (plain.shape.d + 2) / 4 * math.log(plain.n)
    return plain.log_marginal_likelihood - plain.n * math.log(plain.s) - fitted


class Factor(NamedTuple):
    """A prior covariance of the scaled observations, S = L L^T, and the settings that it is made of."""

    uses_past: bool  # whether C is part of it
    deviation: float
    noise: float
    L: FloatArray  # (n, n)

    @classmethod
    def of(cls, C: FloatArray, K: FloatArray, *, uses_past: bool, deviation: float, noise: float) -> Factor:
        """Factorize the covariance of observations with C and K ``(n, n)`` among them."""
        self = cls(uses_past, deviation, noise, np.empty((0, 0)))
        return self._replace(L=cholesky(self.observed(C, K), FLAT)[0])

    def given(self, C: FloatArray, K: FloatArray, noises: FloatArray) -> Factor:
        """Factorize the same covariance with C and K ``(v, v)`` among other points, observed with ``noises (v,)``."""
        S = self.between(C, K)
        S.flat[:: len(S) + 1] += np.square(noises)
        return self._replace(L=cholesky(S, FLAT)[0])

    def variance(self, C: FloatArray, K: FloatArray, own: FloatArray) -> FloatArray:
        """Return what the observations leave of the variance (m,), in units of u t.

        ``C`` and ``K (m, n)`` are covariances with the observations, ``own (m,)`` is C of each point with itself.
        """
        V = solve_lower(self.L, self.between(C, K).T, overwrite=True)
        prior = self.deviation**2 + FLAT + (own if self.uses_past else 0.0)
        return np.asarray(np.maximum(prior - np.einsum("nm,nm->m", V, V), VARIANCE_FLOOR))

    def between(self, C: FloatArray, K: FloatArray) -> FloatArray:
        """Return the prior covariance of the function and its offset, from C and K between the same points."""
        S = self.deviation**2 * K
        S += FLAT
        if self.uses_past:
            S += C
        return np.asarray(S)

    def observed(self, C: FloatArray, K: FloatArray) -> FloatArray:
        """Return the same with the noise on the diagonal."""
        S = self.between(C, K)
        S.flat[:: len(S) + 1] += self.noise**2
        return S


class Process(NamedTuple):
    """One Gaussian process of the mixture."""

    factor: int  # number of its covariance
    hypothesis: Hypothesis
    u: float  # the inverse of the scale of t
    alpha: FloatArray  # (n,) S^-1 (u t - m)
    log_evidence: float


def fit_process(number: int, factor: Factor, hypothesis: Hypothesis, t: FloatArray, mean: FloatArray) -> Process:
    """Find the scale of ``t (n,)`` and the evidence, for the prior mean m ``(n,)`` of the hypothesis 'alike'."""
    n, prior = len(t), SIGNS[hypothesis] * mean
    solved = solve_posdef(factor.L, np.column_stack((t, prior)))
    A, B = float(t @ solved[:, 0]), float(prior @ solved[:, 0])
    u = (B + math.sqrt(B * B + 4.0 * A * (n - 1))) / (2.0 * A) if A > 0.0 else 1.0
    alpha = u * solved[:, 0] - solved[:, 1]
    log_evidence = -0.5 * float((u * t - prior) @ alpha) - float(np.log(factor.L.diagonal()).sum())
    log_evidence += (n - 1) * (math.log(u) - 0.5 * math.log(2.0 * math.pi)) + 0.5 * math.log(FLAT)
    return Process(number, hypothesis, u, alpha, log_evidence)


@dataclass(frozen=True, slots=True, eq=False)
class TaskPriorPosterior:
    """The new task's function as a mixture of Gaussian processes, in units of t."""

    prior: PreparedTaskPrior
    X: FloatArray  # (n, d) evaluated points
    t: FloatArray  # (n,) their scaled values
    prior_mean: FloatArray  # m (n,) there
    features: FloatArray  # phi (k, n) there
    factors: tuple[Factor, ...]
    processes: tuple[Process, ...]
    plain: GP | None
    weights: FloatArray  # of the processes and, last, of the plain one; they sum to 1

    @property
    def functions(self) -> FloatArray:
        """z (k, n) of the past runs at the evaluated points."""
        return np.asarray(self.prior_mean + self.features * math.sqrt(max(len(self.features) - 1, 1)))

    def probability(self, hypothesis: Hypothesis) -> float:
        """Return the posterior probability of a hypothesis."""
        if hypothesis == "plain":
            return float(self.weights[-1])
        chosen = [process.hypothesis == hypothesis for process in self.processes]
        return float(self.weights[:-1][chosen].sum())

    def components(
        self, X: FloatArray, visited: ReinterpolatedPosterior | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return weights ``(h,)``, means and variances ``(h, m)`` of the processes whose weights matter."""
        chosen = np.flatnonzero(self.weights >= MIN_WEIGHT * self.weights.max())
        weights = self.weights[chosen]
        return np.asarray(weights / weights.sum()), *self._predictions(X, chosen.tolist(), visited)

    def mean(self, X: FloatArray) -> FloatArray:
        """Return the mean (m,) of the mixture."""
        weights, means, _ = self.components(X)
        return np.asarray(weights @ means)

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the variance (m,) of the mixture."""
        weights, means, variances = self.components(X)
        mean = np.asarray(weights @ means)
        return mean, np.asarray(weights @ (variances + np.square(means - mean)))

    def condition(self, X_new: FloatArray, t_new: FloatArray) -> TaskPriorPosterior:
        """Return the mixture after more values, with the same weights and scales."""
        return self._given(X_new, np.broadcast_to(t_new, (len(self.weights), len(t_new))))

    def reinterpolated(self, pending: FloatArray) -> ReinterpolatedPosterior:
        """Return the mixture given its own means at the ``pending (p, d)`` points, without noise.

        In a continuum the same holds at the evaluated points: under a hypothesis with much noise there would seem to be
        something to gain there. A candidate of a finite set is never suggested twice.
        """
        visited = np.concatenate((self.X, pending))
        features = np.hstack((self.features, self.prior.moments(pending)[1])) if len(pending) else self.features
        K = covariance(visited, visited, shape=self.prior.shape, hyper=self.prior.hyper)
        with single_threaded():
            C = features.T @ features
            noises = np.full((len(self.factors), len(visited)), NOISE_FREE)
            if self.prior.finite:
                noises[:, : len(self.X)] = np.array([[factor.noise] for factor in self.factors])
            factors = tuple(f.given(C, K, row) for f, row in zip(self.factors, noises, strict=True))
        plain = None if self.plain is None else self.plain.condition(pending, self.plain.mean(pending))
        return ReinterpolatedPosterior(self, visited, features, factors, plain)

    def coefficients(self) -> FloatArray:
        """Return b (k,): the part of the posterior mean that comes from past runs is sum_i b_i z_i.

        They sum to the probability of 'alike' less that of 'reversed'.
        """
        b = np.zeros(len(self.features))
        for weight, process in zip(self.weights, self.processes, strict=False):
            b += weight * SIGNS[process.hypothesis] / len(b)
            if self.factors[process.factor].uses_past:
                own = self.features @ process.alpha / math.sqrt(max(len(b) - 1, 1))
                b += weight * (own - own.mean())
        return b

    def _predictions(
        self, X: FloatArray, chosen: list[int], visited: ReinterpolatedPosterior | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return means and variances ``(h, m)``, given the visited points, of the chosen processes (last: plain)."""
        means, variances = np.zeros((2, len(chosen), len(X)))
        mean, features = self.prior.moments(X)
        shape, hyper = self.prior.shape, self.prior.hyper
        with single_threaded():
            C, own = features.T @ self.features, np.einsum("km,km->m", features, features)
            K = cross_covariance(X, self.X, shape=shape, hyper=hyper)
            factors, spread = self.factors, (C, K, own)
            if visited is not None:
                K_visited = cross_covariance(X, visited.X, shape=shape, hyper=hyper)
                factors, spread = visited.factors, (features.T @ visited.features, K_visited, own)
            left: dict[int, FloatArray] = {}
            for row, h in enumerate(chosen):
                if h < len(self.processes):
                    process = self.processes[h]
                    number = process.factor
                    left[number] = left[number] if number in left else factors[number].variance(*spread)
                    centre = SIGNS[process.hypothesis] * mean + self.factors[number].between(C, K) @ process.alpha
                    means[row], variances[row] = centre / process.u, left[number] / process.u**2
        plain = self.plain if visited is None else visited.plain
        if plain is not None and chosen[-1:] == [len(self.processes)]:
            means[-1], variances[-1] = plain.predict(X)
        return means, variances

    def _given(self, X_new: FloatArray, values: FloatArray) -> TaskPriorPosterior:
        """Condition every process on its row of ``values (h, p)``."""
        if len(X_new) == 0:
            return self
        shape, hyper = self.prior.shape, self.prior.hyper
        mean, features = self.prior.moments(X_new)
        K, corner = (covariance(X_new, X, shape=shape, hyper=hyper) for X in (self.X, X_new))
        C, own = features.T @ self.features, features.T @ features
        m = np.concatenate((self.prior_mean, mean))
        factors = tuple(
            f._replace(L=append_cholesky(f.L, f.between(C, K), f.observed(own, corner))[0]) for f in self.factors
        )
        processes = []
        for process, row in zip(self.processes, values, strict=False):
            targets = process.u * np.concatenate((self.t, row)) - SIGNS[process.hypothesis] * m
            processes.append(process._replace(alpha=solve_posdef(factors[process.factor].L, targets)))
        plain = None if self.plain is None else self.plain.condition(X_new, values[-1])
        return replace(
            self, X=np.concatenate((self.X, X_new)), t=np.concatenate((self.t, self.weights @ values)), prior_mean=m,
            features=np.hstack((self.features, features)), factors=factors, processes=tuple(processes), plain=plain,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class ReinterpolatedPosterior:
    """The mixture given its own means at visited points (the plain process: at pending points); the means stay."""

    posterior: TaskPriorPosterior
    X: FloatArray  # (v, d) evaluated and pending points
    features: FloatArray  # phi (k, v) there
    factors: tuple[Factor, ...]
    plain: GP | None

    def components(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return weights ``(h,)``, means and variances ``(h, m)`` of the processes whose weights matter."""
        return self.posterior.components(X, self)


def reference_points(
    settings: TaskPrior, space: Space, candidates: FloatArray | None, rng: np.random.Generator
) -> FloatArray:
    """Return points (r, d) all over the space: the candidates, a sample of them if they are many, or a hypercube."""
    if candidates is None:
        return latin_hypercube(space, settings.reference_points, rng)
    chosen = np.sort(rng.permutation(len(candidates))[:MAX_REFERENCE]) if len(candidates) > MAX_REFERENCE else ...
    return candidates[chosen]
