"""What the tasks of a problem amount to, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.report.names import IN_TEXT, listed, named
from recollect.report.overview.cells import MINUTE
from recollect.report.overview.models import Models
from recollect.report.overview.reading import Told

CHANGED = 5  # tasks of other spaces of which it is said what was done to them
SENTENCE = 4 * IN_TEXT


def count(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def at_a_glance(tasks: Sequence[Told], models: Models | None, several: int) -> list[str]:
    """Return sentences: how much there is, from when, in which space, and what was left out."""
    return [*_amount(tasks), *_space(tasks, models), *_left_out(tasks, models), *_several(several)]


def _amount(tasks: Sequence[Told]) -> list[str]:
    trials, failed = sum(len(told.run) for told in tasks), sum(told.failed for told in tasks)
    sentence = f"{count(len(tasks), 'task')} with {count(trials, 'trial')}"
    sentence += f", of which {failed:,} failed" if failed else ", none of which failed" if trials else ""
    first = min((told.first for told in tasks if told.first is not None), default=None)
    last = max((told.last for told in tasks if told.last is not None), default=None)
    if first is not None and last is not None:
        sentence += f", from {first.strftime(MINUTE)} to {last.strftime(MINUTE)}"
    directions = sorted({told.run.direction for told in tasks})
    said = [f"{sentence}."]
    if len(directions) > 1:
        said.append("Some tasks are to minimize, some to maximize their value; all are compared by what is better.")
    elif directions == ["maximize"]:
        said.append("Higher values are better.")
    return said


def _space(tasks: Sequence[Told], models: Models | None) -> list[str]:
    if models is None:
        return []
    common, names = models.common, listed(models.space.names)
    if common.inferred:
        said = f"No task has a search space of its own; it is taken to hold all that was tried: {names}."
    elif common.own == len(tasks):
        said = f"{'All tasks share' if len(tasks) > 1 else 'The task has'} one search space: {names}."
    else:
        said = (
            f"Tasks differ in their search spaces. All are compared in the one that most have, {common.own} of "
            f"{len(tasks)}, of equals the newest: {names}. Trials of the other tasks were carried over by value."
        )
    return [said, *_changes(models)]


def _changes(models: Models) -> list[str]:
    """Say what was done to tasks whose trials are not all of the common space."""
    changed = [(task, alignment) for task, alignment in models.alignments.items() if not alignment.identical]
    said = [f"{named(task)}: {named(str(alignment), SENTENCE)}" for task, alignment in changed[:CHANGED]]
    if len(changed) > CHANGED:
        said.append(f"So it was with {count(len(changed) - CHANGED, 'more task')}.")
    return said


def _left_out(tasks: Sequence[Told], models: Models | None) -> list[str]:
    known = set() if models is None else set(models.tasks)
    left = [told.task for told in tasks if told.task not in known]
    if not left:
        return []
    return [f"Without a model, as fewer than two of its trials succeeded and can be compared: {listed(left)}."]


def _several(number: int) -> list[str]:
    return (
        [f"{count(number, 'study').replace('studys', 'studies')} with several objectives left out."] if number else []
    )
