"""When trials ran and where, what they reported on the way, and how values are distributed.

A trial is put into the first lane of its worker that is free when it starts, so that lanes never overlap; where workers
are unknown, all lanes are shared. Runs that were added to a memory have no timeline: their trials all end when the run
was added (`recollect.storage.run_writing`), so their times only tell how long each took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from recollect.analysis.run_progress import trial_values
from recollect.analysis.trial_records import TrialRecord
from recollect.numerics.arrays import FloatArray
from recollect.runs.run import Run

MAX_LANES = 40  # rows that a timeline has room for


@dataclass(frozen=True, slots=True, eq=False)
class TrialSpan:
    """A trial in its lane; start and end in seconds since the first trial started."""

    record: TrialRecord
    lane: int
    start: float
    end: float


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """All trials with known times; lanes are workers, or as many as ran at once; left_out: trials that have no lane."""

    began: datetime
    lanes: tuple[str, ...]
    spans: tuple[TrialSpan, ...]
    by_worker: bool
    left_out: int

    @property
    def busy(self) -> float:
        """The share of the time from the first start to the last end in which a lane was busy, averaged over lanes."""
        total = max((span.end for span in self.spans), default=0.0)
        used = sum(span.end - span.start for span in self.spans)
        return min(1.0, used / (total * len(self.lanes))) if total > 0 else 1.0


def timeline(records: Sequence[TrialRecord]) -> Timeline | None:
    """Return when and where trials ran; None if fewer than two have times, or all have the same end."""
    timed = [(record, *ends) for record in records if (ends := _ends(record)) is not None]
    timed.sort(key=lambda entry: (entry[1], entry[0].number))
    if len({end for _, _, end in timed}) < 2:
        return None
    began = timed[0][1]
    known = {record.worker for record, _, _ in timed}
    by_worker = None not in known and len(known) <= MAX_LANES
    lanes: list[tuple[str, datetime]] = []  # the worker and when it is free again
    spans = []
    for record, start, end in timed:
        name = str(record.worker) if by_worker else ""
        free = (place for place, (worker, until) in enumerate(lanes) if worker == name and until <= start)
        lane = next(free, len(lanes))
        lanes[lane : lane + 1] = [(name, end)]
        if lane < MAX_LANES:
            spans.append(TrialSpan(record, lane, (start - began).total_seconds(), (end - began).total_seconds()))
    names = tuple(_lane_name(lanes, place) for place in range(min(len(lanes), MAX_LANES)))
    return Timeline(began, names, tuple(spans), by_worker, len(timed) - len(spans))


def _lane_name(lanes: Sequence[tuple[str, datetime]], place: int) -> str:
    """Return the name of a lane; a worker that runs several trials at once has several lanes."""
    worker = lanes[place][0]
    if not worker:
        return f"lane {place}"
    before = sum(other == worker for other, _ in lanes[:place])
    return f"{worker} ({before})" if before else worker


def _ends(record: TrialRecord) -> tuple[datetime, datetime] | None:
    """Return when a trial started and ended; a running one has no end."""
    if record.started is None:
        return None
    end = record.ended
    if end is None and record.seconds is not None:
        end = record.started + timedelta(seconds=record.seconds)
    return None if end is None or end < record.started else (record.started, end)


def value_distribution(run: Run, first: int = 0, last: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the empirical distribution of the values of some trials: sorted values (m,), shares up to each (m,)."""
    values = trial_values(run)[first:last]
    values = np.sort(values[np.isfinite(values)])
    return values, np.arange(1.0, len(values) + 1.0) / max(len(values), 1)
