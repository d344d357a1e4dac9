"""The task prior: a Gaussian process whose prior mean and covariance are estimated from all past runs.

An ensemble picks or averages past runs one by one. A prior over tasks also knows how they vary: where past runs that
disagree here agree there, and which hyperparameters trade off differently on every task. `empirical_prior` estimates
the mean m and the covariance C of a task's function on the common scale of `past_functions`.

The values ``t (n,)`` of the new task, compressed like those of past runs, are t = a + (g(x) + e) / u with
e ~ N(0, noise^2), a flat offset a (`FLAT` is added to the covariance of u t), and g by one of three hypotheses:

    alike      g ~ GP(m, C + deviation^2 K)      the new task is one more of the past tasks
    reversed   g ~ GP(-m, C + deviation^2 K)     what was good in past runs is bad now
    unrelated  g ~ GP(0, K)                      past runs say how smooth the function is, and nothing else

K is the kernel of all models with unit amplitude and the past runs' median length scales. From five results on there is
a second K for 'alike', with the length scales that the plain process found in the new results: a task may deviate in
fewer columns than past tasks vary in. Deviation and noise are on a grid; `prior_process` has the scale and the evidence
of each process.

Offset and scale are free in shape, but past runs say which are usual. Each process infers a level, the value at g = 0,
and a spread, the value of one unit of g. Its evidence is multiplied by their density among past runs, over that of a
typical past run (`past_functions.TaskLevels`). As long as a search stays where past runs promise good values, values
that are all bad do not look bad; they imply a level, though, that no past run had.

The process of plain Bayesian optimization is the fourth hypothesis. Its evidence is its marginal likelihood, less
(d + 2)/4 log n for the hyperparameters that were fitted to the same data. All are averaged by prior probability and
evidence. Under the reversed hypothesis the rest of the space promises so much that even with a small probability it is
looked at, once the first hypothesis promises little more.

Values that are all bad in one region still fit any offset. If all trials so far lie where past runs promise much, one
trial therefore tests them elsewhere (`TaskPriorPosterior.is_untested`). Nor does anything speak for a choice, such as a
kernel, that was bad in past runs and that no trial had. While a search does not get better, untried choices therefore
get one trial each (`TaskPriorPosterior.has_time_for_choice`).

Past runs that have nothing in common say nothing about the next one, either (`PreparedTaskPrior.has_agreement`). They
are left out before the first trial.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.numerics.linalg import append_cholesky, single_threaded, solve_lower, solve_posdef
from recollect.surrogate.gp import GP, VARIANCE_FLOOR
from recollect.surrogate.kernels import Hyperparameters, cross_covariance
from recollect.surrogate.scaling import compress_tail, standardize, tail_constants
from recollect.transfer.empirical_prior import EmpiricalPrior
from recollect.transfer.past_functions import PastFunctions, raw_units
from recollect.transfer.prior_process import FLAT, SIGNS, Factor, Hypothesis, Process, Structure, fit_process
from recollect.transfer.sources import Sources

MIN_PLAIN_OBSERVATIONS = 3  # from which on the plain process takes part
MIN_FITTED_OBSERVATIONS = 5  # from which on its length scales serve the hypothesis 'alike', too
NOISE_FREE = 1e-4  # standard deviation that stands for "no noise"
LEAST_STANDARD_ERRORS = -2.0  # of the agreement of past runs; with less they have nothing in common
MIN_WEIGHT = 1e-4  # relative to the largest; a process with less is left out of predictions


@dataclass(frozen=True, slots=True)
class TaskPrior:
    """Settings of the task prior."""

    plain_probability: float = 0.5  # of the hypotheses, before the first trial; 0 leaves one out
    reversed_probability: float = 0.03  # of what is left
    unrelated_probability: float = 0.05
    deviations: tuple[float, ...] = (0.1, 0.3, 0.8)  # of the new task from what past runs span
    noises: tuple[float, ...] = (0.01, 0.1, 0.3, 1.0)  # standard deviations of the observation noise
    fitted_scales: bool = True  # whether the deviation may have the length scales of the plain process
    levels: bool = True  # whether past runs say what values to expect
    reference_points: int = 512  # in a continuous space
    test_after: int | None = 7  # results after which past runs are tested where they promise little; None: never
    choice_every: int = 5  # so many trials without a better result make time for an untried choice; 0: never
    needs_agreement: bool = True  # whether past runs that have nothing in common are left out

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not self.deviations or not self.noises or min(*self.deviations, *self.noises) <= 0:
            got = f"{self.deviations} and {self.noises}"
            raise InputError(f"TaskPrior: expected positive deviations and noises, got {got}")
        if min(self.probabilities.values()) < 0 or self.probabilities["alike"] <= 0:
            raise InputError(f"TaskPrior: expected probabilities that leave some for 'alike', got {self.probabilities}")
        if self.choice_every < 0:
            raise InputError(f"TaskPrior: expected choice_every >= 0, got {self.choice_every}")
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
    """The prior of a task's function, and what levels tasks have; immutable."""

    def __init__(self, settings: TaskPrior, sources: Sources, reference: FloatArray, *, finite: bool) -> None:
        """Estimate both from the past runs, which are brought to one scale at the reference points."""
        self.settings, self.sources, self.shape = settings, sources, sources.shape
        self.reference, self.finite = reference, finite
        self.hyper = Hyperparameters(1.0, np.exp(np.median(sources.theta[:, 1:-1], axis=0)), 1.0)
        self._past = past = PastFunctions(sources, reference)
        self.levels = past.levels()
        self._empirical = EmpiricalPrior(past, shape=sources.shape, hyper=self.hyper)
        self.functions, self.moments = self._empirical.functions, self._empirical.moments
        self.middle = float(np.median(self.moments(reference)[0]))  # the prior mean is below it in half of the space

    def has_agreement(self) -> bool:
        """Whether past runs may have something in common, so that a prior can be estimated from them."""
        return not self.settings.needs_agreement or self._past.agreement() >= LEAST_STANDARD_ERRORS

    def fit(self, X: FloatArray, y: FloatArray, plain: GP | None) -> TaskPriorPosterior:
        """Condition on the values ``y (n,)`` at ``X (n, d)``.

        Args:
            X: The evaluated points.
            y: Their values.
            plain: The process of plain Bayesian optimization, fitted to `scaled_values`; None if it takes no part.
        """
        t, settings = scaled_values(y), self.settings
        mean, features = self.moments(X)
        hypers: tuple[Hyperparameters, ...] = (self.hyper,)
        if settings.fitted_scales and plain is not None and len(t) >= MIN_FITTED_OBSERVATIONS:
            hypers = (self.hyper, Hyperparameters(1.0, plain.lengthscales, 1.0))
        grid: list[tuple[tuple[Hypothesis, ...], Structure]] = [
            (("alike",) if kernel else ("alike", "reversed"), Structure(True, deviation, kernel))
            for kernel in range(len(hypers))
            for deviation in settings.deviations
        ]
        grid.append((("unrelated",), Structure(False, 1.0)))
        factors: list[Factor] = []
        processes: list[Process] = []
        with single_threaded():
            C, K = features.T @ features, self.kernels(X, X, hypers)
            for hypotheses, structure in grid:
                possible = [name for name in hypotheses if settings.probabilities[name] > 0.0]
                for noise in settings.noises if possible else ():
                    factor = Factor.of(C, K, structure, noise)
                    processes += [fit_process(len(factors), factor, name, t, mean) for name in possible]
                    factors.append(factor)
        weights = self._weights(processes, self._log_levels(processes, factors, y), plain)
        functions = self.functions(X)
        return TaskPriorPosterior(
            self, hypers, X, t, mean, features, functions, tuple(factors), tuple(processes), plain, weights
        )

    def kernels(self, A: FloatArray, B: FloatArray, hypers: tuple[Hyperparameters, ...]) -> tuple[FloatArray, ...]:
        """Return the kernel ``(a, b)`` between two sets of points with each of the hyperparameters."""
        return tuple(cross_covariance(A, B, shape=self.shape, hyper=hyper) for hyper in hypers)

    def _log_levels(self, processes: list[Process], factors: list[Factor], y: FloatArray) -> FloatArray:
        """Return how much more probable the level is that each process infers than that of a typical past run."""
        n = len(y)
        if n < 2 or not self.settings.levels:
            return np.zeros(len(processes))
        middle, scale, compresses = (*standardize(y)[1:], False) if n == 2 else tail_constants(y)
        halves = [solve_lower(factor.L, np.ones((n, 1))) for factor in factors]
        variances = [max(FLAT - FLAT**2 * float(np.sum(half * half)), VARIANCE_FLOOR) for half in halves]
        units = np.array([1.0 / process.u for process in processes])
        offsets = np.array([FLAT * float(process.alpha.sum()) for process in processes]) * units
        errors = np.sqrt([variances[process.factor] for process in processes]) * units
        with np.errstate(over="ignore", invalid="ignore"):
            centres, spreads = raw_units(offsets, units, middle, scale, compresses)
            _, errors = raw_units(offsets, errors, middle, scale, compresses)
            logs = self.levels.log_density(centres, np.log(spreads), errors, 1.0 / math.sqrt(2.0 * (n - 1)))
        return np.where(np.isfinite(logs), logs - self.levels.typical, 0.0)

    def _weights(self, processes: list[Process], levels: FloatArray, plain: GP | None) -> FloatArray:
        """Return the posterior probability of every process and, last, of the plain one."""
        probabilities = self.settings.probabilities
        names = [process.hypothesis for process in processes]
        logs = [
            process.log_evidence + level + math.log(probabilities[process.hypothesis] / names.count(process.hypothesis))
            for process, level in zip(processes, levels, strict=True)
        ]
        takes_part = plain is not None and probabilities["plain"] > 0.0
        logs.append(plain_log_evidence(plain) + math.log(probabilities["plain"]) if plain and takes_part else -math.inf)
        weights = np.exp(np.array(logs) - max(logs))
        return np.asarray(weights / weights.sum())


def scaled_values(y: FloatArray) -> FloatArray:
    """Return t: values above the median compressed; two values have no tail and are standardized."""
    return standardize(y)[0] if len(y) == 2 else compress_tail(y)[0]


def plain_log_evidence(plain: GP) -> float:
    """Return the log evidence of the plain process in units of its targets, less what its fit is worth."""
    fitted = (plain.shape.d + 2) / 4 * math.log(plain.n)
    return plain.log_marginal_likelihood - plain.n * math.log(plain.s) - fitted


@dataclass(frozen=True, slots=True, eq=False)
class TaskPriorPosterior:
    """The new task's function as a mixture of Gaussian processes, in units of t."""

    prior: PreparedTaskPrior
    hypers: tuple[Hyperparameters, ...]  # of the kernels that the deviation may have
    X: FloatArray  # (n, d) evaluated points
    t: FloatArray  # (n,) their scaled values
    prior_mean: FloatArray  # m (n,) there
    features: FloatArray  # phi (r, n) there
    functions: FloatArray  # (k, n) of the past tasks there
    factors: tuple[Factor, ...]
    processes: tuple[Process, ...]
    plain: GP | None
    weights: FloatArray  # of the processes and, last, of the plain one; they sum to 1

    def probability(self, hypothesis: Hypothesis) -> float:
        """Return the posterior probability of a hypothesis."""
        if hypothesis == "plain":
            return float(self.weights[-1])
        chosen = [process.hypothesis == hypothesis for process in self.processes]
        return float(self.weights[:-1][chosen].sum())

    def is_untested(self, tried: FloatArray) -> bool:
        """Whether it is time to test past runs: all ``tried (m, d)`` points lie in the half that they call better."""
        after = self.prior.settings.test_after
        return after is not None and len(self.t) >= after and bool((self._promise(tried) < self.prior.middle).all())

    def best_test(self, options: FloatArray) -> int | None:
        """Return the row of ``options (m, d)`` about which least is known in the other half; None if there is none."""
        other = np.flatnonzero(self._promise(options) >= self.prior.middle)
        return int(other[self.predict(options[other])[1].argmax()]) if other.size else None

    def has_time_for_choice(self, tried: int) -> bool:
        """Whether it is time for a choice that no trial had: every few trials since the best result, of ``tried``."""
        every, since = self.prior.settings.choice_every, tried - 1 - int(self.t.argmin())
        return every > 0 and since > 0 and since % every == 0

    def _promise(self, X: FloatArray) -> FloatArray:
        return self.prior.moments(X)[0]

    def components(
        self, X: FloatArray, visited: ReinterpolatedPosterior | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return weights ``(h,)``, means and variances ``(h, m)`` of the processes whose weights matter."""
        chosen = self._that_matter()
        weights = self.weights[chosen]
        return np.asarray(weights / weights.sum()), *self._predictions(X, chosen, visited)

    def noise_variances(self) -> FloatArray:
        """Return the variances ``(h,)`` of the noise of the same processes; the plain one decides as `gp` does."""
        chosen = [self.processes[h] for h in self._that_matter() if h < len(self.processes)]
        variances = [(self.factors[process.factor].noise / process.u) ** 2 for process in chosen]
        return np.array(variances + [0.0] * self._plain_matters)

    def incumbents(self, visited: FloatArray) -> FloatArray:
        """Return what a candidate has to improve on ``(h,)``: of a finite set the best value, else the lowest mean."""
        lowest = self.components(visited)[1].min(axis=1)
        if self.prior.finite:
            lowest[: len(lowest) - self._plain_matters] = self.t.min()
        return np.asarray(lowest)

    @property
    def _plain_matters(self) -> bool:
        return self._that_matter()[-1] == len(self.processes)

    def _that_matter(self) -> list[int]:
        return np.flatnonzero(self.weights >= MIN_WEIGHT * self.weights.max()).tolist()

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
        factors: dict[tuple[Structure, float], Factor] = {}
        with single_threaded():
            C, K = features.T @ features, self._kernels(visited, visited)
            for factor in self.factors:
                noises = np.full(len(visited), NOISE_FREE)
                if self.prior.finite:
                    noises[: len(self.X)] = factor.noise
                if (key := self._covariance_given(factor)) not in factors:
                    factors[key] = factor.given(C, K, noises)
        plain = None if self.plain is None else self.plain.condition(pending, self.plain.mean(pending))
        return ReinterpolatedPosterior(self, visited, features, factors, plain)

    def _covariance_given(self, factor: Factor) -> tuple[Structure, float]:
        """Return what the covariance given visited points depends on: in a continuum they have no noise."""
        return factor.structure, factor.noise if self.prior.finite else NOISE_FREE

    def _kernels(self, A: FloatArray, B: FloatArray) -> tuple[FloatArray, ...]:
        return self.prior.kernels(A, B, self.hypers)

    def coefficients(self) -> FloatArray:
        """Return b (k,): the part of the posterior mean that comes from past runs is sum_i b_i z_i.

        They sum to the probability of 'alike' less that of 'reversed'.
        """
        k = len(self.functions)
        b = np.zeros(k)
        for weight, process in zip(self.weights, self.processes, strict=False):
            b += weight * SIGNS[process.hypothesis] / k
            if self.factors[process.factor].structure.uses_past:
                own = self.functions @ process.alpha / (k + 1)
                b += weight * (own - own.mean())
        return b

    def _predictions(
        self, X: FloatArray, chosen: list[int], visited: ReinterpolatedPosterior | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return means and variances ``(h, m)``, given the visited points, of the chosen processes (last: plain)."""
        means, variances = np.zeros((2, len(chosen), len(X)))
        mean, features = self.prior.moments(X)
        processes = [self.processes[h] for h in chosen if h < len(self.processes)]
        with single_threaded():
            C, own = features.T @ self.features, np.einsum("km,km->m", features, features)
            K = self._kernels(X, self.X)
            spread = (C, K, own)
            if visited is not None:
                spread = (features.T @ visited.features, self._kernels(X, visited.X), own)
            left: dict[tuple[Structure, float], FloatArray] = {}
            for row, process in enumerate(processes):
                factor = self.factors[process.factor]
                key = (factor.structure, factor.noise) if visited is None else self._covariance_given(factor)
                if key not in left:
                    left[key] = (factor if visited is None else visited.factors[key]).variance(*spread)
                centre = SIGNS[process.hypothesis] * mean + factor.between(C, K) @ process.alpha
                means[row], variances[row] = centre / process.u, left[key] / process.u**2
        plain = self.plain if visited is None else visited.plain
        if plain is not None and chosen[-1:] == [len(self.processes)]:
            means[-1], variances[-1] = plain.predict(X)
        return means, variances

    def _given(self, X_new: FloatArray, values: FloatArray) -> TaskPriorPosterior:
        """Condition every process on its row of ``values (h, p)``."""
        if len(X_new) == 0:
            return self
        mean, features = self.prior.moments(X_new)
        K, corner = (self._kernels(X_new, X) for X in (self.X, X_new))
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
    """The mixture given its own means at visited points (the plain process: at pending points); the means stay.

    A candidate of a finite set is evaluated once. What a process calls noise is then part of its value, and counts.
    """

    posterior: TaskPriorPosterior
    X: FloatArray  # (v, d) evaluated and pending points
    features: FloatArray  # phi (k, v) there
    factors: dict[tuple[Structure, float], Factor]
    plain: GP | None

    def components(self, X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return weights ``(h,)``, means and variances ``(h, m)`` of the processes whose weights matter."""
        weights, means, variances = self.posterior.components(X, self)
        if self.posterior.prior.finite:
            variances += self.posterior.noise_variances()[:, None]
        return weights, means, variances
