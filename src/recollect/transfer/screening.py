"""Screening: of many past runs, a few hundred take part in a suggestion.

Up to `Screening.limit` past runs all take part, and nothing here is used. Beyond it, which ones take part depends on
the past runs, the seed and the results so far, never on time, on the cache or on what has been fitted:

    results       past runs that take part
    none          the first of a random order, as many as are fitted in about `Screening.first_seconds`
    1 to 8        ``limit``: three quarters at random, one quarter by diversity
    9 to 16       ``limit``: half by agreement with the first 8 results, one quarter by diversity, the others at random
    17 to 32      the same with the first 16 results; and so on with 32, 64, ...

*Random* ones are the first of a random order, so those of one stage stay in the next. They represent the past runs as
they are, which is what a prior or a portfolio needs. *Diverse* ones are added one by one, each the one whose function
is least like all that take part already, among the first `MAX_DIVERSE` of the random order.

*Agreement* is how well a past run orders the results. All past runs are compared, so they are not fitted for it: each
is a Gaussian process with the median hyperparameters of the first stage and noise. When past runs together order the
results no better than chance, the best of thousands would be the luckiest, and only those that are clearly better by
themselves are chosen for their agreement.

A choice takes effect one result after the results on which it is based. Meanwhile, what it needs can be fitted in the
background.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.transfer.source_fitting import fit_seconds, reduced
from recollect.transfer.source_library import SourceLibrary
from recollect.transfer.sources import SourceData, Sources
from recollect.transfer.weighting.ranking import misranked_counts, order_scores, tied_pairs

FIRST_RESULTS = 8  # with which agreement is measured for the first time
MIN_FIRST = 8  # past runs of the first suggestion, however long they are
MAX_DIVERSE = 4096  # past runs among which diverse ones are sought
MAX_ROUGH_OBSERVATIONS = 50  # a longer past run is represented by this many when it is compared
MAX_COMPARED = 256  # results with which past runs are compared, the latest
MIN_ROUGH_NOISE = 1e-3  # variance of the noise of standardized values, when past runs are compared
FALSE_POSITIVE_RATE = 0.05  # probability that any past run is clearly better than chance if none is informative


@dataclass(frozen=True, slots=True)
class Screening:
    """How many past runs take part."""

    limit: int = 256  # in one suggestion
    first_seconds: float = 1.0  # estimated, of the fits for the first suggestion

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.limit < 4 or not self.first_seconds > 0:
            got = f"{self.limit} and {self.first_seconds}"
            raise InputError(f"Screening: expected limit >= 4 and first_seconds > 0, got {got}")


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The past runs that take part, and why."""

    rows: IntArray  # (k',) their numbers among all, ascending
    of: int  # number of all past runs
    by_agreement: int = 0
    by_diversity: int = 0
    results: int = 0  # of the new task, with which agreement was measured

    def __str__(self) -> str:
        """Return how many take part and how they were chosen."""
        parts = []
        if self.results:
            parts.append(f"{self.by_agreement} by agreement with the first {self.results} results")
        if self.by_diversity:
            parts.append(f"{self.by_diversity} by diversity")
        parts.append(f"{len(self.rows) - self.by_agreement - self.by_diversity} at random")
        return f"{len(self.rows)} of {self.of} past runs take part: {', '.join(parts)}"


def deciding_results(n: int) -> int | None:
    """Return how many results decide which past runs take part once there are n; None for the first suggestion."""
    if n == 0:
        return None
    if n <= FIRST_RESULTS:
        return 0
    return int(FIRST_RESULTS * 2 ** math.floor(math.log2((n - 1) / FIRST_RESULTS)))


class Screener:
    """Chooses among past runs; immutable but for what it computes when it is first needed."""

    def __init__(
        self, settings: Screening, library: SourceLibrary, *, landmarks: FloatArray, rng: np.random.Generator
    ) -> None:
        """Take all past runs, and ``landmarks (l, d)`` all over the space, at which they are compared for diversity."""
        self.settings, self._library, self._landmarks = settings, library, landmarks
        self._order: IntArray = rng.permutation(len(library.data))

    @cached_property
    def first(self) -> Choice:
        """The past runs of the first suggestion."""
        longest = self._library.settings.max_fit_observations
        ahead = self._order[: self.settings.limit]
        seconds = np.cumsum([fit_seconds(min(self._library.data[i].y.size, longest)) for i in ahead])
        count = max(MIN_FIRST, int(np.searchsorted(seconds, self.settings.first_seconds)))
        return Choice(np.sort(ahead[:count]), len(self._order))

    def choose(self, X: FloatArray, y: FloatArray) -> Choice:
        """Return the past runs that take part, given the results ``y (n,)`` at ``X (n, d)`` that decide; n may be 0."""
        limit, n = self.settings.limit, len(y)
        agreeing = self._agreeing(X, y)[: limit // 2] if n else np.empty(0, dtype=np.intp)
        diverse = self._diverse
        fixed = np.union1d(agreeing, diverse)
        others = self._order[~np.isin(self._order, fixed)][: limit - len(fixed)]
        rows = np.sort(np.concatenate((fixed, others)))
        return Choice(rows, len(self._order), len(agreeing), len(fixed) - len(agreeing), n)

    def _agreeing(self, X: FloatArray, y: FloatArray) -> IntArray:
        """Return the past runs that order the results well, best first."""
        from scipy.special import ndtri

        X, y = X[-MAX_COMPARED:], y[-MAX_COMPARED:]
        if 2 * tied_pairs(y) == len(y) * (len(y) - 1):
            return np.empty(0, dtype=np.intp)
        scores = order_scores(misranked_counts(self._rough.means(X), None, y), y)
        ranked = self._order[np.argsort(-scores[self._order], kind="stable")]  # those tied in random order
        if scores.sum() > math.sqrt(len(scores)):
            return np.asarray(ranked)
        return np.asarray(ranked[scores[ranked] > ndtri(1.0 - FALSE_POSITIVE_RATE / len(scores))])

    @cached_property
    def _diverse(self) -> IntArray:
        """The past runs whose functions are least like those of the others."""
        count, pool = self.settings.limit // 4, self._order[:MAX_DIVERSE]
        functions = self._rough_sources(pool).means(self._landmarks)
        functions -= functions.mean(axis=1, keepdims=True)
        norms = np.sqrt(np.square(functions).sum(axis=1, keepdims=True))
        functions = np.divide(functions, norms, out=np.zeros_like(functions), where=norms > 0)
        at_random = self.settings.limit - count
        likeness = (functions @ functions[:at_random].T).max(axis=1)
        likeness[:at_random] = np.inf
        chosen = []
        for _ in range(min(count, len(pool) - at_random)):
            chosen.append(int(likeness.argmin()))
            np.maximum(likeness, functions @ functions[chosen[-1]], out=likeness)
            likeness[chosen[-1]] = np.inf
        return np.asarray(pool[chosen], dtype=np.intp)

    @cached_property
    def _rough(self) -> Sources:
        """All past runs, without fits of their own."""
        return self._rough_sources(np.arange(len(self._order)))

    def _rough_sources(self, rows: IntArray) -> Sources:
        shape = self._library.shape
        data: Sequence[SourceData] = [
            reduced(self._library.data[i], MAX_ROUGH_OBSERVATIONS, shape) for i in rows.tolist()
        ]
        return Sources(data, shape=shape, theta=np.tile(self._median, (len(data), 1)))

    @cached_property
    def _median(self) -> FloatArray:
        theta = np.median(self._library.sources(self.first.rows).theta, axis=0)
        theta[-1] = max(theta[-1], math.log(MIN_ROUGH_NOISE))
        return theta


class ScreenedSources:
    """The fitted past runs that take part in a suggestion, out of many; the next ones are fitted in the background.

    What it keeps depends on the results it was given, so optimizers with other results may share it.
    """

    def __init__(self, screener: Screener, library: SourceLibrary, *, starts_small: bool) -> None:
        """``starts_small``: whether the first suggestion is made with few past runs, so that it does not wait."""
        self._screener, self._library, self._starts_small = screener, library, starts_small
        self._choices: dict[tuple[int | None, bytes], Choice] = {}  # by the results that decide
        self._latest: tuple[Choice, Sources] | None = None

    @property
    def first(self) -> tuple[Choice, Sources]:
        """The past runs of the first suggestion."""
        return self.given(np.empty((0, self._library.shape.d)), np.empty(0))

    def given(self, X: FloatArray, y: FloatArray) -> tuple[Choice, Sources]:
        """Return the past runs that take part with the results ``y (n,)`` at ``X (n, d)``."""
        stage, latest = self._stage(len(y)), self._latest
        if self._key(stage, X, y) not in self._choices:
            self._library.wait()
        choice = self._choice(stage, X, y)
        if latest is None or latest[0] is not choice:
            self._library.wait()
            self._latest = latest = choice, self._library.sources(choice.rows)
        return latest

    def fit_behind(self, X: FloatArray, y: FloatArray) -> None:
        """Begin to choose and to fit what takes part with one more result than these, if that changes anything."""
        stage, following = self._stage(len(y)), self._stage(len(y) + 1)
        if following != stage and self._key(following, X, y) not in self._choices:
            self._library.do_behind(lambda: self._choice(following, X, y).rows)

    def _stage(self, n: int) -> int | None:
        return deciding_results(n if self._starts_small else max(n, 1))

    def _choice(self, stage: int | None, X: FloatArray, y: FloatArray) -> Choice:
        key, screener = self._key(stage, X, y), self._screener
        if key not in self._choices:
            choice = screener.first if stage is None else screener.choose(X[:stage], y[:stage])
            self._choices = {**self._choices, key: choice}  # a new one: a copy may be made of the old one now
        return self._choices[key]

    def _key(self, stage: int | None, X: FloatArray, y: FloatArray) -> tuple[int | None, bytes]:
        return stage, X[: stage or 0].tobytes() + y[: stage or 0].tobytes()
