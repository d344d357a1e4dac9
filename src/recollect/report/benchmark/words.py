"""What a benchmark's results say, in sentences computed from them."""

from __future__ import annotations

import numpy as np

from recollect.bench.overview import REFERENCE
from recollect.bench.study import Outcome, worst_gap
from recollect.bench.tables import mark_cells
from recollect.report.benchmark.contest import PERCENT, Contest, loss
from recollect.report.names import listed, named


def at_a_glance(contest: Contest) -> list[str]:
    """Return sentences: what was run, who is lowest at the end, on the way, how fast, and in the worst case."""
    return [
        *_what(contest),
        *_lowest(contest),
        *_on_the_way(contest),
        *_speed(contest),
        *_worst(contest),
        *_partial(contest),
    ]


def _what(contest: Contest) -> list[str]:
    fewest = min(outcome.repetitions[0] for outcome in contest.outcomes)
    most = max(outcome.repetitions[1] for outcome in contest.outcomes)
    times = str(most) if fewest == most else f"{fewest} to {most}"
    return [
        f"{_count(len(contest.outcomes), 'method')}, {_count(contest.tasks, 'task')}, "
        f"{times} repetition{'s' * (most > 1)} of each, {_count(contest.horizon, 'evaluation')}."
    ]


def _lowest(contest: Contest) -> list[str]:
    """Who is lowest at the end: with the marks of the tables, so that both say the same."""
    cells = list(zip(contest.outcomes, mark_cells(contest.outcomes, contest.horizon), strict=True))
    best = [(outcome, cell.value) for outcome, cell in cells if cell.mark == "best"]
    if not best:
        return []
    even = sum(cell.mark == "even" for _, cell in cells)
    worse = sum(cell.value is not None for _, cell in cells) - len(best) - even
    how = f" ({best[0][0].remark})" if len(best) == 1 and best[0][0].remark else ""
    sentence = (
        f"After {contest.horizon} evaluations {listed([outcome.method for outcome, _ in best])}{how} "
        f"{'have' if len(best) > 1 else 'has'} the lowest regret, {best[0][1]:.2f} %."
    )
    if even or worse:
        sentence += f" Not significantly different from it: {_count(even, 'method')}; worse: {worse or 'none'}."
    return [sentence]


def _on_the_way(contest: Contest) -> list[str]:
    known = [outcome for outcome in contest.fair if np.isfinite(outcome.area)]
    if len(known) < 2:
        return []
    best = min(known, key=lambda outcome: outcome.area)
    return [
        f"Averaged over all evaluations, {named(best.method)} has the lowest regret of methods with the same number of "
        f"evaluations, {PERCENT * best.area:.2f} %."
    ]


def _speed(contest: Contest) -> list[str]:
    """How many evaluations the fastest method needs for what ``gp`` reaches at the end."""
    reference = contest.reference
    if reference is None or reference not in contest.complete:
        return []
    level = float(reference.adtm[-1])
    needed = {outcome.method: _evaluations_to(outcome, level) for outcome in contest.fair if outcome is not reference}
    reached = {method: count for method, count in needed.items() if count is not None and count < contest.horizon}
    if not reached:
        return [
            f"No method reaches the regret that {REFERENCE} has after {contest.horizon} evaluations with fewer of them."
        ]
    fewest = min(reached.values())
    fastest = [method for method, count in reached.items() if count == fewest]
    return [
        f"What {REFERENCE} reaches after {contest.horizon} evaluations ({PERCENT * level:.2f} %), {listed(fastest)} "
        f"reach{'es' * (len(fastest) == 1)} after {fewest}."
    ]


def _evaluations_to(outcome: Outcome, level: float) -> int | None:
    below = np.flatnonzero(outcome.adtm <= level)
    return int(below[0]) + 1 if len(below) else None


def _worst(contest: Contest) -> list[str]:
    reference = contest.reference
    others = [outcome for outcome in contest.fair if outcome is not reference]
    if reference is None or len(others) < 2:
        return []
    gaps = [(outcome, worst_gap(outcome, reference, contest.horizon)) for outcome in others]
    found = [(outcome, gap) for outcome, gap in gaps if gap is not None]
    if not found:
        return []
    safest, most = (choose(found, key=lambda pair: pair[1].regret) for choose in (min, max))
    return [f"In its worst case, compared with {REFERENCE}, {loss(*safest)}, the least; {loss(*most)}, the most."]


def _partial(contest: Contest) -> list[str]:
    missing = [outcome for outcome in contest.outcomes if outcome not in contest.complete]
    if not missing:
        return []
    names = listed([contest.label(outcome) for outcome in missing], most=10)
    return [f"Without all tasks or repetitions, and compared only on those that they have: {names}."]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
