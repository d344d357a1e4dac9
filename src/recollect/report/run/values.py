"""Values of trials on an axis: its scale, its ends, and the place of trials that have no value.

A logarithmic scale where all values are positive and some are far larger than others. Trials that failed are drawn
beyond the worst value, so that they are seen where good values are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.bench.statistics import best_so_far
from recollect.history.run import Run, sign_of
from recollect.numerics.arrays import FloatArray
from recollect.report.figure import decimals

FAR = 20.0  # times the smallest value: from here on a logarithmic scale shows more
LARGEST = 1e300  # beyond, differences overflow
MANY_DECADES, MOST_TICKS = 3.0, 8  # on a logarithmic axis: labels at 1, 2 and 5 up to there, of powers of 10 beyond
PADDING, BEYOND = 0.05, 0.1  # parts of the axis around the values, and beyond the worst one to failed trials


@dataclass(frozen=True, slots=True)
class ValueAxis:
    """An axis for values; low and high are its ends, failed the place of trials without a value, in its units."""

    log: bool
    low: float
    high: float
    failed: float

    def layout(self, title: str = "value") -> dict[str, Any]:
        """Return the axis as plotly wants it."""
        ends = np.log10([self.low, self.high]) if self.log else np.array([self.low, self.high])
        decades = float(ends[1] - ends[0])
        step: str | int = "D2" if decades < MANY_DECADES else math.ceil(decades / MOST_TICKS)
        scale = {"type": "log", "dtick": step, "tickformat": "~g"} if self.log else {}
        return {"title": {"text": title}, "range": decimals(ends, 6), "zeroline": False, **scale}


def value_axis(run: Run, others: FloatArray | None = None) -> ValueAxis:
    """Return an axis for the values of a run with at least one, and for others that are drawn beside them."""
    values = numbers(run)
    every = values[np.isfinite(values)]
    if others is not None:
        every = np.concatenate([every, others[np.isfinite(others)]])
    log = bool(every.min() > 0 and every.max() > FAR * every.min())
    scaled = np.log10(every) if log else every
    low, high = float(scaled.min()), float(scaled.max())
    span = (high - low) or abs(high) * 0.1 or 1.0
    some_failed = bool(np.isnan(values).any())
    worst, sign = (high, 1.0) if run.direction == "minimize" else (low, -1.0)
    failed = worst + sign * BEYOND * span
    ends = [low - PADDING * span, high + PADDING * span]
    if some_failed:
        ends[sign > 0] = failed + sign * PADDING * span
    low, high, failed = (float(10.0 ** min(max(place, -307.0), 307.0)) if log else place for place in (*ends, failed))
    return ValueAxis(log, low, high, failed)


def numbers(run: Run) -> FloatArray:
    """Return the values of all trials (n,) in the user's units, nan where one failed."""
    values = np.array([np.nan if value is None else value for value in run.values], dtype=np.float64)
    return np.clip(values, -LARGEST, LARGEST)


def best_values(run: Run) -> FloatArray:
    """Return the best value up to each trial (n,) in the user's units, nan before the first."""
    sign = sign_of(run.direction)
    best = sign * best_so_far(sign * numbers(run))
    return np.where(np.isfinite(best), best, np.nan)


def places(run: Run) -> FloatArray:
    """Return the place of each trial (n,) among those that succeeded, 1 is best, equal ones share it; nan if failed."""
    from scipy.stats import rankdata

    found = np.full(len(run), np.nan)
    ok = np.array([trial.ok for trial in run.trials], dtype=np.bool_)
    if ok.any():
        found[ok] = rankdata(run.y)
    return found


def shown(value: float | None) -> str:
    """Return a value as sentences and tables show it."""
    return "none" if value is None else f"{value:.4g}"


def compact(value: float) -> str:
    """Return a number in few signs, for the labels of an axis."""
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 1e5:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    return f"{value:.0f}" if size >= 1000 else f"{value:.3g}"


def percent(part: float) -> str:
    """Return a part of 1 in percent."""
    return f"{100.0 * part:.0f} %"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def thinned(count: int, most: int, *, keep: Sequence[int] = ()) -> list[int]:
    """Return at most so many of the places 0 ... count - 1, in order: those to keep, the others evenly spread."""
    if count <= most:
        return list(range(count))
    kept = sorted(set(keep))[:most]
    others = [place for place in range(count) if place not in set(kept)]
    steps = np.unique(np.linspace(0, len(others) - 1, max(most - len(kept), 0)).astype(int))
    return sorted([*kept, *(others[step] for step in steps)])
