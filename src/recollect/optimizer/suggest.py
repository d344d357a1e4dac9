"""One suggestion from one situation: pure functions, no state.

Rows are identified by the bytes of their encoding, so a configuration that was told, is pending or has failed is never
suggested again.

Pending points are treated as if they had returned their predicted mean: the mean stays, the uncertainty around them
vanishes, and so does the reason to go there again. Failed points never enter a model; the acquisition value of a
candidate is multiplied by its probability of success (`acquisition.success`).
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

import numpy as np

from recollect.acquisition.finite import best_of
from recollect.acquisition.improvement import Acquisition, Score
from recollect.acquisition.local import LocalSearch, maximize
from recollect.acquisition.success import weigh_by_success
from recollect.errors import ExhaustedError
from recollect.numerics.arrays import FloatArray
from recollect.space.identity import row_key
from recollect.space.sampling import uniform
from recollect.space.space import Space
from recollect.surrogate.kernels import KernelShape
from recollect.transfer.ensemble import Ensemble

TRIES = 64
DRAWS_PER_TRY = 256


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """What may be chosen: the space, the keys of what is taken, the free candidates if they are finitely many.

    ``failed (f, d)`` are the points that failed.
    """

    space: Space
    taken: frozenset[bytes]
    open: FloatArray | None
    failed: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Suggestion:
    """The chosen point, why it was chosen, and what the target's model expects there (in the model's units).

    ``shares (k + 1,)`` is the part each past run and, last, the target have in the acquisition value.
    """

    x: FloatArray
    reason: str
    mean: float | None = None
    std: float | None = None
    shares: FloatArray | None = None
    notes: tuple[str, ...] = ()


def suggest_at_random(choice: Choice, reason: str, rng: np.random.Generator) -> Suggestion:
    """Draw uniformly among what has not been tried."""
    if choice.open is not None:
        return Suggestion(choice.open[rng.integers(len(choice.open))], reason)
    for _ in range(TRIES):
        for x in uniform(choice.space, DRAWS_PER_TRY, rng):
            point = settle(choice.space, x)
            if row_key(point) not in choice.taken:
                return Suggestion(point, reason)
    raise ExhaustedError(
        f"{TRIES * DRAWS_PER_TRY} random draws gave only configurations that were suggested before: "
        f"the search space is as good as used up after {len(choice.taken)} of them"
    )


def suggest_by_model(
    acquisition: Acquisition, ensemble: Ensemble, choice: Choice, *, search: LocalSearch, rng: np.random.Generator
) -> Suggestion:
    """Maximize the acquisition function over what has not been tried."""
    prepared = acquisition.prepare(ensemble, rng)
    shape = KernelShape(choice.space.categorical, choice.space.conditional)
    score = weigh_by_success(prepared.score, ensemble.X, choice.failed, shape=shape)
    x = _best_untried(score, ensemble, choice, search=search, rng=rng)
    if x is None:
        return suggest_at_random(choice, "drawn at random: the model proposed only what was tried before", rng)
    mean, variance = ensemble.target.predict(x[None, :])
    shares = np.zeros(len(ensemble.weights.values))
    shares[np.append(ensemble.members, -1)] = prepared.shares(x)
    return Suggestion(x, "highest acquisition value", float(mean[0]), float(np.sqrt(variance[0])), shares)


def first_free(rows: Iterable[FloatArray], taken: Set[bytes], reason: str) -> Suggestion | None:
    """Return the first row that is not taken, None if all are; ``{}`` in the reason becomes its number."""
    for number, x in enumerate(rows, start=1):
        if row_key(x) not in taken:
            return Suggestion(x, reason.format(number))
    return None


def settle(space: Space, x: FloatArray) -> FloatArray:
    """Return the encoding of what the user will see for ``x``."""
    return np.asarray(space.encode(space.decode(x[None, :]))[0])


def _best_untried(
    score: Score, ensemble: Ensemble, choice: Choice, *, search: LocalSearch, rng: np.random.Generator
) -> FloatArray | None:
    if choice.open is not None:
        return np.asarray(choice.open[best_of(score, choice.open, rng)[0]])
    means = ensemble.member_weights @ ensemble.means_evaluated()
    found, _ = maximize(choice.space, score, ensemble.X, means=means, settings=search, rng=rng)
    for x in found:
        point = settle(choice.space, x)
        if row_key(point) not in choice.taken:
            return point
    return None
