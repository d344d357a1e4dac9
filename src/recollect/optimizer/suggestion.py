"""One suggestion: pure functions, no state.

Rows are identified by the bytes of their encoding, so a configuration that was evaluated, is pending or has failed is
never suggested again.

Pending points are treated as if they had returned their predicted mean: the mean stays, the uncertainty around them
vanishes, and so does the reason to go there again. Failed points never enter a model; the acquisition value of a
candidate is multiplied by its probability of feasibility (`acquisition.feasibility`).
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from recollect.acquisition.feasibility import weigh_by_feasibility
from recollect.acquisition.functions import Acquisition, PreparedAcquisition
from recollect.acquisition.gradient_search import GradientSearch, maximize_by_gradient
from recollect.acquisition.maximize import LocalSearch, best_candidate, maximize_score
from recollect.errors import ExhaustedError
from recollect.numerics.arrays import FloatArray, row_key
from recollect.space.sampling import uniform
from recollect.space.space import Space
from recollect.transfer.ensemble import Ensemble
from recollect.transfer.task_prior import TaskPriorPosterior

Search: TypeAlias = LocalSearch | GradientSearch
RANDOM_BATCHES = 64
DRAWS_PER_BATCH = 256


@dataclass(frozen=True, slots=True, eq=False)
class Untried:
    """What may still be suggested."""

    space: Space  # the one searched
    taken: Set[bytes]  # row keys of what was evaluated or is pending
    candidates: FloatArray | None  # the free ones (m, d); None for a continuum
    failed: FloatArray  # the points (f, d) that failed


@dataclass(frozen=True, slots=True, eq=False)
class Suggestion:
    """A chosen point and why it was chosen."""

    x: FloatArray  # (d,), encoded
    reason: str  # in words
    mean: float | None = None  # what the target's model predicts there, in the model's units
    std: float | None = None  # standard deviation of that prediction
    shares: FloatArray | None = None  # parts (k + 1,) of the acquisition value: of the sources and, last, of the target
    notes: tuple[str, ...] = ()  # what the user should know about it


def suggest_at_random(untried: Untried, reason: str, rng: np.random.Generator) -> Suggestion:
    """Draw uniformly among what has not been tried."""
    if untried.candidates is not None:
        return Suggestion(untried.candidates[rng.integers(len(untried.candidates))], reason)
    for _ in range(RANDOM_BATCHES):
        for x in uniform(untried.space, DRAWS_PER_BATCH, rng):
            if row_key(x) in untried.taken:  # decoding is slow, and changes no row that a configuration has
                continue
            point = round_trip(untried.space, x)
            if row_key(point) not in untried.taken:
                return Suggestion(point, reason)
    raise ExhaustedError(
        f"{RANDOM_BATCHES * DRAWS_PER_BATCH} random draws gave only configurations that were suggested before: "
        f"after {len(untried.taken)} of them the search space is practically exhausted"
    )


def suggest_by_model(
    acquisition: Acquisition, ensemble: Ensemble, untried: Untried, *, search: Search, rng: np.random.Generator
) -> Suggestion:
    """Maximize the acquisition function over what has not been tried, unless past runs are to be tested."""
    if (x := _test_of_prior(ensemble, untried)) is not None:
        mean, variance = ensemble.target.predict(x[None, :])
        reason = "testing past runs: everything so far was tried where they promise much"
        return Suggestion(x, reason, float(mean[0]), float(np.sqrt(variance[0])))
    prepared = acquisition.prepare(ensemble, rng)
    prepared = weigh_by_feasibility(prepared, ensemble.X, untried.failed, shape=untried.space.kernel_shape)
    reason, x = "trying a choice that no trial had", _best_untried_choice(prepared, ensemble, untried, rng)
    if x is None:
        reason, x = "highest acquisition value", _best_untried(prepared, ensemble, untried, search=search, rng=rng)
    if x is None:
        return suggest_at_random(untried, "drawn at random: the model proposed only what was tried before", rng)
    mean, variance = ensemble.target.predict(x[None, :])
    shares = np.zeros(len(ensemble.weights.values))
    shares[np.append(ensemble.active_sources, -1)] = prepared.shares(x)
    return Suggestion(x, reason, float(mean[0]), float(np.sqrt(variance[0])), shares)


def _test_of_prior(ensemble: Ensemble, untried: Untried) -> FloatArray | None:
    """Return an untried point where past runs promise little, if it is time to look there."""
    target = ensemble.target
    if not isinstance(target, TaskPriorPosterior):
        return None
    if not target.is_untested(np.concatenate((ensemble.visited, untried.failed))):
        return None
    options = _free(untried, _all_over(untried, target))
    row = target.best_test(options)
    return None if row is None else np.asarray(options[row])


def _best_untried_choice(
    prepared: PreparedAcquisition, ensemble: Ensemble, untried: Untried, rng: np.random.Generator
) -> FloatArray | None:
    """Return the best point with a choice that nothing tried so far has, if it is time to try one."""
    target, tried = ensemble.target, np.concatenate((ensemble.visited, untried.failed))
    if not isinstance(target, TaskPriorPosterior) or not target.has_time_for_choice(len(tried)):
        return None
    points, columns = _all_over(untried, target), np.flatnonzero(untried.space.categorical)
    known = [np.isnan(points[:, column]) | np.isin(points[:, column], tried[:, column]) for column in columns]
    options = _free(untried, points[~np.all(known, axis=0)] if known else points[:0])
    return np.asarray(options[best_candidate(prepared.score, options, rng)[0]]) if len(options) else None


def _all_over(untried: Untried, target: TaskPriorPosterior) -> FloatArray:
    """Return points (m, d) all over the space; in a continuum some of them may have been tried."""
    return target.prior.reference if untried.candidates is None else untried.candidates


def _free(untried: Untried, points: FloatArray) -> FloatArray:
    """Return what can be suggested of the points, as the encodings of configurations."""
    if untried.candidates is not None:
        return points
    seen = (round_trip(untried.space, x) for x in points)
    return np.array([x for x in seen if row_key(x) not in untried.taken]).reshape(-1, points.shape[1])


def round_trip(space: Space, x: FloatArray) -> FloatArray:
    """Return the encoding of the configuration that the user will see for ``x``."""
    return np.asarray(space.encode(space.decode(x[None, :]))[0])


def _best_untried(
    prepared: PreparedAcquisition, ensemble: Ensemble, untried: Untried, *, search: Search, rng: np.random.Generator
) -> FloatArray | None:
    score, smooth = prepared.score, prepared.smooth
    if untried.candidates is not None:
        return np.asarray(untried.candidates[best_candidate(score, untried.candidates, rng)[0]])
    means = ensemble.model_weights @ ensemble.means_evaluated()
    if isinstance(search, GradientSearch) and smooth is not None:
        points, _ = maximize_by_gradient(untried.space, smooth, ensemble.X, means=means, settings=search, rng=rng)
    else:
        settings = search if isinstance(search, LocalSearch) else LocalSearch()
        points, _ = maximize_score(untried.space, score, ensemble.X, means=means, settings=settings, rng=rng)
    seen = (round_trip(untried.space, x) for x in points)
    return next((point for point in seen if row_key(point) not in untried.taken), None)
