"""What would have been without transfer? A run of the same task without it says so; otherwise past runs give an idea.

Values of different tasks have no common scale. So all runs are cut to the same number of first trials, that of this run
or, if past runs are shorter, of half of them; and the best value so far of each past run is brought to
r(t) = (best so far - best) / (worst - best), both ends being those of its own first trials: from 1 at worst to 0 when
its best was found. This shows how fast past runs came down to what they found, not how good that was, and it is drawn
between the best and the worst of the first values of this run. A run with transfer rarely tries anything really bad, so
that its range is small: the comparison flatters past runs rather than this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect.bench.statistics import best_so_far
from recollect.history.run import Run, sign_of
from recollect.numerics.arrays import FloatArray
from recollect.report.run.values import best_values, counted, numbers
from recollect.report.story import Paired, Story

CLOSE = 0.01  # of the range: so close to its best a run has as good as found it
FEWEST = 3  # past runs made without transfer, from which on the others are not needed
QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True, slots=True, eq=False)
class Expectation:
    """Past runs on the scale of a run: quartiles (t,) of their best values so far, in the user's units.

    length: of how many first trials; alone: all were made without transfer; runs: how many they are, as a phrase; made:
    how they were made, as a sentence; own: after how many trials this run was close to its best, needed (k,): each of
    them.
    """

    better: FloatArray
    middle: FloatArray
    worse: FloatArray
    length: int
    alone: bool
    runs: str
    made: str
    own: int
    needed: FloatArray


def expect(story: Story) -> Expectation | None:
    """Return how past runs came down; None if there is nothing to compare."""
    if not story.past:
        return None
    length = min(len(story.run), int(np.median([len(run) for run in story.past])))
    usable = [run for run in story.past if 2 * len(run) >= length and _descent(run, length) is not None]
    ends, descent = _range(story.run, length), _descent(story.run, length)
    if not usable or ends is None or descent is None:
        return None
    alone = [run for run in usable if story.origins.get(run.task) == "alone"]
    chosen = alone if len(alone) >= FEWEST else usable
    curves = [curve for run in chosen if (curve := _descent(run, length)) is not None]
    shortest = sorted(map(len, curves))[(len(curves) - 1) // 2]  # where at least half of them have a value
    padded = np.array([np.append(curve, np.full(length - len(curve), np.nan)) for curve in curves])[:, :shortest]
    quartiles = sign_of(story.run.direction) * (
        ends[0] + np.nanquantile(padded, QUARTILES, axis=0) * (ends[1] - ends[0])
    )
    better, middle, worse = quartiles
    return Expectation(
        better,
        middle,
        worse,
        length=length,
        alone=len(alone) == len(chosen),
        runs=counted(len(chosen), "past run"),
        made=_made(story, chosen),
        own=_needed(descent),
        needed=np.array([_needed(curve) for curve in curves]),
    )


def reached(run: Run, value: float) -> int | None:
    """Return after how many trials a run had a value as good as this one, None if it never had."""
    sign = sign_of(run.direction)
    found = np.flatnonzero(sign * best_values(run) <= sign * value)
    return int(found[0]) + 1 if len(found) else None


def paired_values(paired: Paired, length: int) -> FloatArray:
    """Return the best values so far of a paired run, at most so many."""
    return best_values(paired.run)[:length]


def _range(run: Run, length: int) -> tuple[float, float] | None:
    """Return the best and the worst value of the first trials, lower is better; None without a difference."""
    known = sign_of(run.direction) * numbers(run)[:length]
    known = known[np.isfinite(known)]
    return (float(known.min()), float(known.max())) if len(known) and known.min() < known.max() else None


def _descent(run: Run, length: int) -> FloatArray | None:
    """Return r (t,) of the first trials; 1 while all have failed."""
    ends = _range(run, length)
    if ends is None:
        return None
    best = best_so_far(sign_of(run.direction) * numbers(run)[:length])
    return np.asarray(np.clip((best - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0))


def _needed(curve: FloatArray) -> int:
    return int(np.flatnonzero(curve <= CLOSE)[0]) + 1


def _made(story: Story, chosen: Sequence[Run]) -> str:
    origins = [story.origins.get(run.task, "unknown") for run in chosen]
    if set(origins) == {"alone"}:
        return "They were made without transfer."
    if set(origins) == {"unknown"}:
        return "It is not known whether they were made with transfer."
    counts = ((origins.count("taught"), "with transfer"), (origins.count("alone"), "without"))
    parts = [f"{count} {'were' if count != 1 else 'was'} made {how}" for count, how in counts if count]
    if unknown := origins.count("unknown"):
        parts.append(f"of {unknown} it is not known")
    return f"{', '.join(parts)}, so that this is no pure expectation without transfer.".capitalize()
