"""The model behind a suggestion: the target's posterior, the sources' predictions and the weights.

A `FittedModel` is computed after every successful trial and used until the next one, so several suggestions in a row
(for parallel evaluation) share it. The previous model provides the hyperparameters from which the fit starts, and the
sources' predictions at all points but the new ones.

Sources are combined with a target model on the method's scale. When no source has a weight there is nothing to combine,
and the target's model is fitted on the scale of plain Bayesian optimization: without sources every method is `gp`.

The negative-transfer guard drops past runs that do not help, beyond what the weighting itself drops. It acts only where
the weighting drops sources at all (`Weighting.allows_guard`), and does two things:

1. When all past runs together order the observations no better than chance, those that are not clearly better by
   themselves are dropped, whatever the weighting drew.
2. When the acquisition function is a mixture, all sources are dropped with the probability that the target ranks best,
   which is its weight. The target's expected improvement shrinks from trial to trial, while a source's predicted
   improvement never does, so even a source with a tiny weight would outvote it.

Notation: ``X (n, d)`` evaluated points, ``y (n,)`` their values, lower is better; ``F (k, n)`` the sources' means at X.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.optimizer.method import Method, TargetModel
from recollect.optimizer.past_runs import PastRun, fit_past_runs, source_data
from recollect.optimizer.search_region import SearchRegion
from recollect.space.space import Space
from recollect.surrogate.fit import FitSettings, extend_to_all, fit_gp, rows_to_fit
from recollect.surrogate.gp import GP, Posterior, make_gp
from recollect.surrogate.scaling import Scaling, in_units_of_y, transform
from recollect.transfer.ensemble import Ensemble
from recollect.transfer.joint import PreparedJointModel
from recollect.transfer.past_functions import reference_points
from recollect.transfer.screening import Choice
from recollect.transfer.sources import Sources
from recollect.transfer.task_prior import MIN_PLAIN_OBSERVATIONS, PreparedTaskPrior, TaskPriorPosterior, scaled_values
from recollect.transfer.weighting.base import Weigher, Weights
from recollect.transfer.weighting.ranking import misranked_counts, order_scores, tied_pairs

MIN_ORDERED_PAIRS = 20  # of different values, needed to judge past runs: five observations without ties
JOINT_STANDARD_ERRORS = 1.0  # how far above chance past runs must be together; otherwise each one is tested
MIN_WEIGHT_FOR_RESTARTS = 0.1  # of the target, from which on its plain process is fitted with random restarts
FALSE_POSITIVE_RATE = 0.05  # probability that any of the tested past runs passes by luck if none is informative


@dataclass(frozen=True, slots=True, eq=False)
class TransferContext:
    """What stays the same during a run; at most one of ``weigher``, ``joint`` and ``prior`` is not None."""

    space: Space  # the one searched
    sources: Sources | None
    weigher: Weigher | None  # weighs the sources
    joint: PreparedJointModel | None  # models all tasks together
    horizon: int
    prior: PreparedTaskPrior | None = None  # of the new task's function
    choice: Choice | None = None  # which past runs the sources are; None: all
    nothing_in_common: bool = False  # whether past runs are left out because they do not agree


def make_transfer_context(
    method: Method, region: SearchRegion, past: tuple[PastRun, ...],
    *, chosen: tuple[Choice, Sources] | None, horizon: int, rng: np.random.Generator,
) -> TransferContext:  # fmt: skip
    """Fit the past runs as far as the method uses them, unless some are ``chosen`` and fitted already."""
    space, candidates = region.space, region.candidates
    choice, sources = (None, fit_past_runs(past, space, method)) if chosen is None else chosen
    weigher = joint = prior = None
    if sources is not None and method.weighting is not None:
        weigher = method.weighting.prepare(sources, rng)
    if sources is not None and method.joint is not None:
        joint = method.joint.prepare(source_data(past), shape=space.kernel_shape, sizes=space.sizes, rng=rng)
    if sources is not None and method.prior is not None:
        reference = reference_points(space, candidates, count=method.prior.reference_points, rng=rng)
        prior = method.prior.prepare(sources, reference, finite=candidates is not None)
        if choice is None and not prior.has_agreement():
            return TransferContext(space, None, None, None, horizon, nothing_in_common=True)
    return TransferContext(space, sources, weigher, joint, horizon, prior, choice)


@dataclass(frozen=True, slots=True, eq=False)
class FittedModel:
    """The target's posterior, the sources and their weights."""

    target: Posterior
    sources: Sources | None  # None if there are none, or a joint model or a prior is used
    weights: Weights
    F: FloatArray
    y: FloatArray
    scaling: Scaling  # on which ``target`` models ``y``
    fits: Mapping[Scaling, GP]  # the latest fit on each scale, from which the next one starts
    no_useful_source: bool = False  # whether no source is above chance, by the guard or under the prior
    choice: Choice | None = None  # which past runs the weights are of; None: all

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the fit."""
        jitter = self.target.jitter if isinstance(self.target, GP) else 0.0
        return (f"the kernel matrix needed a jitter of {jitter:.1e}",) if jitter > 0 else ()

    def in_units_of_y(self, mean: float, std: float) -> tuple[float, float] | None:
        """Convert a prediction of the target's model to the units of y; None where ranks have no units."""
        return in_units_of_y(mean, std, y=self.y, scaling=self.scaling)

    def ensemble(self, pending: FloatArray) -> Ensemble:
        """Return the ensemble as acquisition functions see it."""
        if self.sources is None:  # there are no models to combine, whatever ``weights`` says about past runs
            return Ensemble(self.target, None, Weights.uniform(0), self.target.X, np.empty((0, len(self.y))), pending)
        return Ensemble(self.target, self.sources, self.weights, self.target.X, self.F, pending)


def fit_model(
    method: Method, context: TransferContext, X: FloatArray, y: FloatArray,
    *, previous: FittedModel | None, rng: np.random.Generator,
) -> FittedModel:  # fmt: skip
    """Fit the target's model and weigh the sources."""
    if context.joint is not None:
        start = None if previous is None else previous.target
        target = context.joint.fit(X, _scaled(y, method.scaling), start=start, rng=rng)
        return FittedModel(target, None, Weights.uniform(0), np.empty((0, len(X))), y, method.scaling, {})
    if context.prior is not None:
        return _fit_with_prior(method, context, X, y, previous=previous, rng=rng)
    fit_rng, weight_rng, target_only_rng, guard_rng = rng.spawn(4)
    earlier = {} if previous is None else previous.fits
    target_only = method.target_only_scaling

    def fit(scaling: Scaling, own_rng: np.random.Generator, *, settings: TargetModel = method.target) -> GP:
        start = earlier.get(scaling)
        return _fit(X, _scaled(y, scaling), settings=settings, space=context.space, start=start, rng=own_rng)

    if context.sources is None or context.weigher is None:
        gp = fit(target_only, fit_rng)
        return FittedModel(gp, None, Weights.uniform(0), np.empty((0, len(X))), y, target_only, {target_only: gp})
    # If no source had a weight, this model only serves to rank, and continues from its last optimum.
    ranks_only = previous is not None and len(previous.weights.active) == 0
    settings = replace(method.target, warm_restarts=0) if ranks_only else method.target
    gp = fit(method.scaling, fit_rng, settings=settings)
    F = _source_means(context.sources, X, previous)
    weights = context.weigher.weigh(gp, F, horizon=context.horizon, rng=weight_rng)
    weights, no_useful_source = apply_guard(method, weights, y, rng=guard_rng)
    scaling, fits = method.scaling, {**earlier, method.scaling: gp}
    if len(weights.active) == 0 and target_only != method.scaling:
        scaling, gp = target_only, fit(target_only, target_only_rng)
        fits[scaling] = gp
    return FittedModel(gp, context.sources, weights, F, y, scaling, fits, no_useful_source)


def _fit_with_prior(
    method: Method, context: TransferContext, X: FloatArray, y: FloatArray,
    *, previous: FittedModel | None, rng: np.random.Generator,
) -> FittedModel:  # fmt: skip
    """Condition the task prior, with the process of plain Bayesian optimization beside it."""
    assert context.prior is not None
    scaling: Scaling = "meanvar" if len(y) == 2 else "tail"
    fits = {}
    if len(y) >= MIN_PLAIN_OBSERVATIONS and context.prior.settings.plain_probability > 0.0:
        start = None if previous is None else previous.fits.get(scaling)
        # While the plain process does not count, its fit continues from its last optimum.
        counts = previous is None or previous.weights.target > MIN_WEIGHT_FOR_RESTARTS
        settings = method.target if counts else replace(method.target, warm_restarts=0)
        z = scaled_values(y)
        fits[scaling] = _fit(X, z, settings=settings, space=context.space, start=start, rng=rng)
    posterior = context.prior.fit(X, y, fits.get(scaling))
    weights, F = _prior_weights(posterior, y)
    return FittedModel(posterior, None, weights, F, y, scaling, fits, _contradicts(posterior, y))


def _contradicts(posterior: TaskPriorPosterior, y: FloatArray) -> bool:
    """Whether past runs together neither explain the results nor order them better than chance."""
    tied = tied_pairs(y)
    misranked = float(misranked_counts(posterior.prior_mean[None, :], None, y)[0]) - tied
    own = posterior.probability("plain") + posterior.probability("unrelated")
    return own > 0.5 and 2.0 * misranked >= len(y) * (len(y) - 1) - 2 * tied


def _prior_weights(posterior: TaskPriorPosterior, y: FloatArray) -> tuple[Weights, FloatArray]:
    """Return what each past run contributes to the posterior mean, and their functions F at the evaluated points.

    Together they weigh as much as the hypotheses that use past runs are probable, each in proportion to the magnitude
    of its coefficient. The target has the rest.
    """
    F, magnitudes = posterior.functions, np.abs(posterior.coefficients())
    past = posterior.probability("alike") + posterior.probability("reversed")
    total = magnitudes.sum()  # 0 if the past is certainly of no use
    sources = past * magnitudes / (total if total > 0.0 else 1.0)
    misranked = np.append(misranked_counts(F, None, y), np.nan)
    k = len(F)
    values = np.append(sources, 1.0 - sources.sum())
    return Weights(values, np.full(k + 1, np.nan), misranked, np.zeros(k, dtype=np.bool_), np.ones(k)), F


def _fit(
    X: FloatArray, z: FloatArray, *, settings: TargetModel, space: Space, start: GP | None, rng: np.random.Generator
) -> GP:
    """Fit a Gaussian process to scaled values z, from scratch or from an earlier fit on the same scale."""
    if start is not None and not settings.needs_fit(start.n, len(X)):
        return make_gp(X, z, shape=start.shape, hyper=start.hyper, log_prior=start.log_prior)
    restarts, hyper = (settings.restarts, None) if start is None else (settings.warm_restarts, start.hyper)
    fit_settings = FitSettings(settings.prior, restarts, space.conditional)
    if settings.max_fit_points is None or len(X) <= settings.max_fit_points:
        return fit_gp(X, z, categorical=space.categorical, settings=fit_settings, start=hyper, rng=rng)
    rows = rows_to_fit(z, settings.max_fit_points, rng)
    part = fit_gp(X[rows], z[rows], categorical=space.categorical, settings=fit_settings, start=hyper, rng=rng)
    return extend_to_all(part, X, z, fit_settings)


def _scaled(y: FloatArray, scaling: Scaling) -> FloatArray:
    """Return the values on a scale; a single value has no rank and counts as average."""
    if scaling == "copula" and len(y) == 1:
        return np.zeros(1)
    return transform(y, scaling)


def _source_means(sources: Sources, X: FloatArray, previous: FittedModel | None) -> FloatArray:
    """Return F (k, n), predicting only at the points that are new."""
    if previous is None or previous.sources is not sources or previous.F.shape[1] == 0:
        return sources.means(X)
    return np.hstack([previous.F, sources.means(X[previous.F.shape[1] :])])


def apply_guard(method: Method, weights: Weights, y: FloatArray, *, rng: np.random.Generator) -> tuple[Weights, bool]:
    """Return the weights after the guard, and whether no source is useful: none of them is above chance."""
    if not method.negative_transfer_guard or method.weighting is None or not method.weighting.allows_guard:
        return weights, False
    useless = not_above_chance(weights, y)
    weights = weights.without(useless)
    if method.acquisition is not None and method.acquisition.is_mixture:
        weights = weights.drop_all_with(weights.target, rng)
    return weights, bool(useless.all())


def not_above_chance(weights: Weights, y: FloatArray) -> BoolArray:
    """Return which sources (k,) do not order the observations clearly better than chance.

    None is reported while the sources together do. The scale is that of `ranking.order_scores`.
    """
    from scipy.special import ndtri

    n, k = len(y), len(weights.dropped)
    if n * (n - 1) - 2 * tied_pairs(y) < MIN_ORDERED_PAIRS:
        return np.zeros(k, dtype=np.bool_)
    scores = order_scores(weights.misranked[:-1], y)
    if scores.sum() > JOINT_STANDARD_ERRORS * math.sqrt(k):
        return np.zeros(k, dtype=np.bool_)
    return np.asarray(scores < ndtri(1.0 - FALSE_POSITIVE_RATE / k), dtype=np.bool_)
