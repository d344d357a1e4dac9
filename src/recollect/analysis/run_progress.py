"""Values of a run's trials as arrays (n,), in the user's units, and what to expect of them without transfer.

The expectation comes from past runs. Values of different tasks have no common scale. All runs are therefore cut to the
same number of first trials: that of this run or, if past runs are shorter, their median length. The best value so far
of each past run is then scaled to r(t) = (best so far - best) / (worst - best), both ends taken from its own first
trials: it falls from 1 to 0, which it reaches when its best is found. This shows how fast past runs improved, not how
good their results were. The curves are mapped to the range between the best and the worst of the first values of this
run. A run with transfer rarely tries anything really bad, so its range is small: the comparison flatters past runs
rather than this one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.analysis.run_data import Origin, RunData
from recollect.numerics.arrays import FloatArray, best_so_far
from recollect.runs.run import Run, sign_of

LARGEST_VALUE = 1e300  # beyond it, differences overflow
BEST_SHARE, MOST_BEST_TRIALS = 0.1, 20  # of the trials that succeeded, these are "the best"


def trial_values(run: Run) -> FloatArray:
    """Return the value of each trial (n,), nan where it failed or was pruned."""
    values = np.array([np.nan if value is None else value for value in run.values], dtype=np.float64)
    return np.clip(values, -LARGEST_VALUE, LARGEST_VALUE)


def best_values(run: Run) -> FloatArray:
    """Return the best value up to each trial (n,), nan before the first success."""
    sign = sign_of(run.direction)
    best = sign * best_so_far(sign * trial_values(run))
    return np.where(np.isfinite(best), best, np.nan)


def value_ranks(run: Run) -> FloatArray:
    """Return the rank of each trial (n,) among those that succeeded: 1 is best, ties share it, nan for all others."""
    from scipy.stats import rankdata

    ranks = np.full(len(run), np.nan)
    ok = np.array([trial.ok for trial in run.trials], dtype=np.bool_)
    if ok.any():
        ranks[ok] = rankdata(sign_of(run.direction) * trial_values(run)[ok])
    return ranks


def best_trials(run: Run) -> list[int]:
    """Return the indices of the best tenth of the trials that succeeded, at least one."""
    ranks = value_ranks(run)
    ok = np.flatnonzero(np.isfinite(ranks))
    count = min(max(1, round(BEST_SHARE * len(ok))), MOST_BEST_TRIALS)
    return sorted(ok[np.argsort(ranks[ok], kind="stable")[:count]].tolist())


CLOSE = 0.01  # of the range: this close to its best, a run counts as having found it
ENOUGH_WITHOUT_TRANSFER = 3  # past runs without transfer, from which on the others are not needed
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """k past runs on the scale of a run: quartiles (t,) of their best values so far, in the user's units."""

    better: FloatArray
    median: FloatArray
    worse: FloatArray
    length: int  # number of first trials that are compared
    origins: tuple[Origin, ...]
    needed: FloatArray  # (k,): number of trials after which each past run was close to its best
    own_needed: int  # the same of this run

    @property
    def without_transfer(self) -> bool:
        """Whether all of the past runs are known to have been tuned without transfer."""
        return set(self.origins) == {"without transfer"}


def expectation(data: RunData) -> Expectation | None:
    """Return how fast past runs improved; None if there is nothing to compare."""
    if not data.past:
        return None
    length = min(len(data.run), int(np.median([len(run) for run in data.past])))
    usable = [run for run in data.past if 2 * len(run) >= length and _descent(run, length) is not None]
    ends, descent = _range(data.run, length), _descent(data.run, length)
    if not usable or ends is None or descent is None:
        return None
    plain = [run for run in usable if data.origins.get(run.task) == "without transfer"]
    chosen = plain if len(plain) >= ENOUGH_WITHOUT_TRANSFER else usable
    curves = [curve for run in chosen if (curve := _descent(run, length)) is not None]
    shortest = sorted(map(len, curves))[(len(curves) - 1) // 2]  # where at least half of them have a value
    padded = np.array([np.append(curve, np.full(length - len(curve), np.nan)) for curve in curves])[:, :shortest]
    scaled = ends[0] + np.nanquantile(padded, QUARTILES, axis=0) * (ends[1] - ends[0])
    better, median, worse = sign_of(data.run.direction) * scaled
    origins = tuple(data.origins.get(run.task, "unknown") for run in chosen)
    needed = np.array([_trials_needed(curve) for curve in curves])
    return Expectation(better, median, worse, length, origins, needed, _trials_needed(descent))


def trials_to_reach(run: Run, value: float) -> int | None:
    """Return the number of trials after which a run had a value as good as this one, None if it never had."""
    sign = sign_of(run.direction)
    reached = np.flatnonzero(sign * best_values(run) <= sign * value)
    return int(reached[0]) + 1 if len(reached) else None


def _range(run: Run, length: int) -> tuple[float, float] | None:
    """Return the best and the worst value of the first trials, lower is better; None if they do not differ."""
    values = sign_of(run.direction) * trial_values(run)[:length]
    values = values[np.isfinite(values)]
    return (float(values.min()), float(values.max())) if len(values) and values.min() < values.max() else None


def _descent(run: Run, length: int) -> FloatArray | None:
    """Return r (t,) of the first trials; 1 while all have failed."""
    ends = _range(run, length)
    if ends is None:
        return None
    best = best_so_far(sign_of(run.direction) * trial_values(run)[:length])
    return np.asarray(np.clip((best - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0))


def _trials_needed(curve: FloatArray) -> int:
    return int(np.flatnonzero(curve <= CLOSE)[0]) + 1
