"""When trials ran and where, what they reported on the way, and how values are distributed.

A trial is put into the first lane of its worker that is free when it starts, so that lanes never overlap; where workers
are unknown, all lanes are shared. Runs that were added to a memory have no timeline: their trials all end when the run
was added (`recollect.storage.run_writing`), so their times only tell how long each took. A running trial is drawn until
the last moment of which anything is known.
"""

from __future__ import annotations

from collections import Counter
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
    """All trials with known times, in lanes; left_out: trials that have no lane.

    by_worker: whether workers are known. A worker that ran several trials at once has several lanes.
    """

    began: datetime
    lanes: tuple[str, ...]
    spans: tuple[TrialSpan, ...]
    by_worker: bool
    left_out: int
    workers: int  # 0 if they are unknown

    @property
    def busy(self) -> float:
        """The share of the time from the first start to the last end in which a lane was busy, averaged over lanes."""
        total = max((span.end for span in self.spans), default=0.0)
        used = sum(span.end - span.start for span in self.spans)
        return min(1.0, used / (total * len(self.lanes))) if total > 0 else 1.0


def timeline(records: Sequence[TrialRecord]) -> Timeline | None:
    """Return when and where trials ran; None if fewer than two have times, or all have the same end."""
    latest = _latest(records)
    timed = [(record, *ends) for record in records if (ends := _ends(record, latest)) is not None]
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
        lanes[lane : lane + 1] = [(name, datetime.max if record.state == "running" else end)]
        if lane < MAX_LANES:
            spans.append(TrialSpan(record, lane, (start - began).total_seconds(), (end - began).total_seconds()))
    names = lane_names([worker for worker, _ in lanes])[:MAX_LANES]
    return Timeline(began, names, tuple(spans), by_worker, len(timed) - len(spans), len(known) if by_worker else 0)


def lane_names(workers: Sequence[str]) -> tuple[str, ...]:
    """Return the names of lanes, given the worker of each; several lanes of one worker are numbered as its slots."""
    counts, seen = Counter(workers), Counter[str]()
    names = []
    for worker in workers:
        seen[worker] += 1
        slot = f"slot {seen[worker]}"
        names.append(slot if not worker else worker if counts[worker] == 1 else f"{worker}, {slot}")
    return tuple(names)


def _latest(records: Sequence[TrialRecord]) -> datetime | None:
    """Return the last moment of which anything is known: until then, running trials were running."""
    moments = [moment for record in records for moment in (record.started, record.ended) if moment is not None]
    return max(moments, default=None)


def _ends(record: TrialRecord, latest: datetime | None) -> tuple[datetime, datetime] | None:
    """Return when a trial started, and when it ended or was last known to run."""
    if record.started is None:
        return None
    end = latest if record.state == "running" else record.ended
    if end is None and record.seconds is not None:
        end = record.started + timedelta(seconds=record.seconds)
    return None if end is None or end < record.started else (record.started, end)


def value_distribution(run: Run, first: int = 0, last: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the empirical distribution of the values of some trials: sorted values (m,), shares up to each (m,)."""
    values = trial_values(run)[first:last]
    values = np.sort(values[np.isfinite(values)])
    return values, np.arange(1.0, len(values) + 1.0) / max(len(values), 1)
