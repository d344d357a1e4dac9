"""Which past runs a new run can learn from: one rule for the optimizer, memories, the Optuna sampler and reports."""

from __future__ import annotations

from collections.abc import Sequence, Set
from enum import Enum

from recollect._text import name_list
from recollect.runs.run import Direction, Run

MIN_TRIALS = 2  # a past run with fewer usable trials has no ranking to learn from
MAX_NAMED = 5  # of the runs that are left out, in a message


class Unusable(Enum):
    """Why a new run cannot learn from a past run; the value continues "not used because ..."."""

    OTHER_DIRECTION = "the direction differs"
    NO_SHARED_PARAMETER = "they have no hyperparameter in common"
    TOO_FEW_TRIALS = f"they have fewer than {MIN_TRIALS} usable trials"
    COPY = "they have the same results as another past run"
    NO_AGREEMENT = "they have nothing in common (none is ordered by the others)"


def why_unusable(run: Run, names: Set[str], direction: Direction | None = None) -> Unusable | None:
    """Return why a new run with these hyperparameters cannot learn from ``run``, or None if it can.

    A run whose trials have none of the hyperparameters would be aligned to a row of defaults. Alignment to the new
    space may drop further trials; `optimizer.past_runs` checks `MIN_TRIALS` again after it. ``direction`` is that of
    the new run; None does not compare directions.
    """
    if direction is not None and run.direction != direction:
        return Unusable.OTHER_DIRECTION
    if len(run) and names.isdisjoint(run.hyperparameters):
        return Unusable.NO_SHARED_PARAMETER
    usable = len(run) - run.learned_values.count(None)
    return Unusable.TOO_FEW_TRIALS if usable < MIN_TRIALS else None


def left_out_message(tasks: Sequence[str], reason: str) -> str:
    """Return the warning that names past runs that are left out, at most `MAX_NAMED` of them."""
    return f"not used as past runs because {reason}: {name_list(tasks, MAX_NAMED)}"
