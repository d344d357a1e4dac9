"""What a run says first: how far it is, its best value and configuration, and what past runs brought.

The gain is counted in trials. If the same task was also tuned without past runs (`PairedRun`), it compares when the two
runs first had the best value of the other one. Otherwise it compares when this run came within one percent of its best
with when past runs did (`recollect.analysis.run_progress.Expectation`). Its uncertainty is that of the median over past
runs, by the bootstrap; that the run itself is one of many possible ones is not part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from recollect._text import plural
from recollect.analysis.run_data import PairedRun, RunData
from recollect.analysis.run_progress import CLOSE, Expectation, best_values, expectation, trials_to_reach
from recollect.analysis.source_usefulness import RankAgreement, verdict, weight_history
from recollect.analysis.trial_records import RecordState, state_counts
from recollect.numerics.arrays import FloatArray
from recollect.runs.run import Config, Run

RunState: TypeAlias = Literal["not started", "running", "complete", "stopped", "recorded"]
PastUse: TypeAlias = Literal["unknown", "ignored", "none", "used"]
Comparison: TypeAlias = Literal["the same task", "without transfer", "past runs"]
BOOTSTRAP_SAMPLES, COVERAGE = 2000, 0.9


@dataclass(frozen=True, slots=True)
class TransferGain:
    """As good after ``own`` trials as without past runs after ``without``.

    own: None if the run never was as good; interval: of ``without``, at 90 %, None with fewer than two runs to compare;
    runs: with how many it is compared; compared: with what; length: number of first trials that are compared.
    """

    own: int | None
    without: int
    interval: tuple[int, int] | None
    runs: int
    compared: Comparison
    length: int

    @property
    def helped(self) -> bool:
        """Whether the run was faster than what it is compared with, beyond the interval if there is one."""
        return self.own is not None and self.own < (self.without if self.interval is None else self.interval[0])

    @property
    def sentence(self) -> str:
        """The gain as one sentence."""
        other = {
            "the same task": "the same task without past runs",
            "without transfer": "without past runs",
            "past runs": "past runs were",
        }[self.compared]
        if self.own is None:
            after = plural(self.length, "trial")
            return f"Not as good in {after} as {other} after {self.without}"
        return f"As good after {plural(self.own, 'trial')} as {other} after {self.without}"

    @property
    def uncertainty(self) -> str:
        """How certain that is, as a phrase."""
        if self.compared == "the same task":
            return "one run of each, so chance plays a part"
        runs = plural(self.runs, "past run")
        if self.interval is None:
            return f"from {runs}, too few for an interval"
        return f"{COVERAGE:.0%} interval {self.interval[0]} to {self.interval[1]}, from {runs}"

    @property
    def explanation(self) -> str:
        """How it was computed, in a few sentences."""
        if self.compared == "the same task":
            return (
                "Compares when each of the two runs first had the best value that the run without past runs found in "
                f"its first {plural(self.length, 'trial')}."
            )
        how = {
            "without transfer": "These past runs were tuned without past runs of their own.",
            "past runs": "Some of these past runs may have learned from others themselves.",
        }[self.compared]
        return (
            f"Counts the trials until a run is within {CLOSE:.0%} of the best of its first {self.length} trials, "
            f"relative to its own range of values; for past runs, the median. {how} The interval is the bootstrap's "
            "for that median; that this run is one of many possible ones comes on top."
        )


@dataclass(frozen=True, slots=True, eq=False)
class Headline:
    """What a run says first; best_number: the number of the best trial; past_runs: how many it could learn from.

    past_use: whether it learned from past runs; "ignored": its method does not, "none": there were none.
    verdict: whether past runs helped, in the sentence of `recollect.Explanation.summary`; empty if that is unknown.
    """

    task: str
    problem: str | None
    state: RunState
    counts: Mapping[RecordState, int]
    planned: int | None
    best_value: float | None
    best_number: int | None
    best_config: Config | None
    past_runs: int
    past_use: PastUse
    gain: TransferGain | None
    verdict: str = ""

    @property
    def status(self) -> str:
        """The state with the number of trials, such as "stopped after 12 of 50 trials"."""
        ended = self.counts["finished"] + self.counts["failed"] + self.counts["pruned"]
        of = f"{ended:,} of {self.planned:,} trials" if self.planned not in (None, ended) else plural(ended, "trial")
        if self.state == "running":
            return f"running, {of} done"
        return {"stopped": f"stopped after {of}", "not started": "not started"}.get(self.state, f"{self.state}, {of}")


def headline(data: RunData, agreement: RankAgreement | None = None) -> Headline:
    """Return what a run says first; agreement: how well past runs rank its trials, if it could learn from any."""
    run, best = data.run, data.run.best
    number = None if best is None else data.numbers[run.trials.index(best)]
    return Headline(
        run.task, data.problem, _state(data), state_counts(data.records), data.horizon,
        None if best is None else best.value, number, None if best is None else dict(best.config),
        past_runs=len(data.source_names), past_use=_past_use(data), gain=transfer_gain(data),
        verdict="" if agreement is None else verdict(data, agreement, weight_history(data)),
    )  # fmt: skip


def _past_use(data: RunData) -> PastUse:
    if data.method is not None and not data.method.transfers:
        return "ignored"
    if data.source_names:
        return "used"
    return "none" if data.settings else "unknown"


def _state(data: RunData) -> RunState:
    counts = state_counts(data.records)
    if counts["running"]:
        return "running"
    if not data.records:
        return "not started"
    if data.horizon is None:
        return "recorded"
    return "complete" if len(data.run) >= data.horizon else "stopped"


def transfer_gain(data: RunData) -> TransferGain | None:
    """Return what past runs brought; None for a run that could not learn from any, or without values to compare."""
    learned = data.method is not None and data.method.transfers and bool(data.source_names)
    if not learned or data.run.best is None:
        return None
    if data.paired is not None:
        return _paired_gain(data.run, data.paired)
    expected = expectation(data)
    return None if expected is None else _expected_gain(expected)


def _paired_gain(run: Run, paired: PairedRun) -> TransferGain | None:
    values = best_values(paired.run)[: len(run)]
    if not np.isfinite(values[-1]):
        return None
    target = float(values[-1])
    own, without = trials_to_reach(run, target), trials_to_reach(paired.run, target)
    assert without is not None
    return TransferGain(own, without, None, 1, "the same task", len(values))


def _expected_gain(expected: Expectation) -> TransferGain:
    needed, compared = expected.needed, "without transfer" if expected.without_transfer else "past runs"
    return TransferGain(
        expected.own_needed, median_trials(needed), _bootstrap_interval(needed), len(needed),
        compared, expected.length,  # type: ignore[arg-type]
    )  # fmt: skip


def median_trials(needed: FloatArray) -> int:
    """Return the median of numbers of trials, rounded up: half of the runs needed this many or more."""
    return int(np.ceil(np.median(needed)))


def _bootstrap_interval(needed: FloatArray) -> tuple[int, int] | None:
    """Return the interval of the median over past runs; the same one every time."""
    if len(needed) < 2:
        return None
    rng = np.random.default_rng(0)
    medians = np.median(needed[rng.integers(len(needed), size=(BOOTSTRAP_SAMPLES, len(needed)))], axis=1)
    low, high = np.quantile(medians, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    return int(np.floor(low)), int(np.ceil(high))
