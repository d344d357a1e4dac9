"""All methods that were run on one benchmark, and which of them can be compared with which.

Regrets are shown in percent: 0 is the best configuration of a task, 100 its worst.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.bench.figure_style import in_order
from recollect.bench.overview import REFERENCE
from recollect.bench.study import Gap, Outcome, Study, short_of
from recollect.report.names import IN_TEXT, named

PERCENT = 100.0
REGRET_AXIS = "regret (%)"


@dataclass(frozen=True, slots=True, eq=False)
class Contest:
    """A benchmark's outcomes, in the order of the catalog of methods, and its number of evaluations."""

    benchmark: str
    outcomes: tuple[Outcome, ...]
    horizon: int

    @property
    def tasks(self) -> int:
        """The most tasks that a method has."""
        return max(len(outcome.tasks) for outcome in self.outcomes)

    @property
    def complete(self) -> tuple[Outcome, ...]:
        """Outcomes on all tasks in all repetitions, up to the last evaluation."""
        most = max(len(outcome.curves) for outcome in self.outcomes)
        return tuple(outcome for outcome in self.outcomes if len(outcome.runs_at(self.horizon)) == most)

    @property
    def fair(self) -> tuple[Outcome, ...]:
        """Complete outcomes that were run, not computed from longer runs of random search."""
        return tuple(outcome for outcome in self.complete if not outcome.remark)

    @property
    def reference(self) -> Outcome | None:
        """Plain Bayesian optimization, if it was run."""
        return next((outcome for outcome in self.outcomes if outcome.method == REFERENCE), None)

    def label(self, outcome: Outcome, most: int = IN_TEXT) -> str:
        """Return a method's name, and how many tasks or repetitions it has if they are not all."""
        short = short_of(outcome, self.outcomes)
        return named(outcome.method, most) + (f" ({short})" if short else "")


def make_contest(study: Study, benchmark: str) -> Contest:
    """Return the outcomes of a benchmark of a study."""
    return Contest(benchmark, tuple(in_order(study.outcomes[benchmark].values())), study.horizons[benchmark])


def final(outcome: Outcome) -> float:
    """Return the regret in percent after the last evaluation, nan where it is not known."""
    return PERCENT * float(outcome.adtm[-1])


def last_known(outcome: Outcome) -> float:
    """Return the regret in percent after the last evaluation for which it is known."""
    known = outcome.adtm[np.isfinite(outcome.adtm)]
    return PERCENT * float(known[-1]) if len(known) else float("nan")


def loss(outcome: Outcome, gap: Gap) -> str:
    """Return what a method loses in its worst case, as the middle of a sentence."""
    if gap.regret <= 0:
        return f"{named(outcome.method)} never loses"
    return f"{named(outcome.method)} loses {PERCENT * gap.regret:.2f} points on {named(gap.task)}"
