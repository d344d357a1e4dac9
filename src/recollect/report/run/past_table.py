"""The table of past runs: what each brought along, how well it fits, how much it said, what became of its best."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.report.names import named
from recollect.report.run.teachers import Place, Teacher
from recollect.report.run.values import counted, percent
from recollect.report.table import EMPTY, Cell, Column, Table, number, word

TITLE = "Which past runs were of use?"
DONE = 240  # signs of what had to be done to a past run
COLUMNS = (
    Column("past run", numeric=False),
    Column("trials", hint="Trials of the past run, failed ones included."),
    Column("weight now in %", hint="Its weight in the last suggestion of this run."),
    Column("mean weight in %", hint="Its weight averaged over all suggestions that weighed past runs."),
    Column("rank agreement now in %", hint="Pairs of this run's trials that its model puts in the right order."),
    Column("now", numeric=False, hint="Whether it took part in the last suggestion, or was dropped from it."),
    Column("dropped", hint="How often it was dropped, of how many suggestions."),
    Column("place of its best here", hint="Its best configuration's place among the trials of this run."),
    Column("overlap of spaces in %", hint="Values of its trials that could be taken over as they are."),
    Column("what had to be changed", numeric=False, hint="To carry its trials over to this search space."),
)
NOTES = (
    "Rank agreement: of all pairs of this run's trials with different values, those that the past run's model puts in "
    "the right order. A coin has 50 %; with few trials chance decides much.",
    "Place of its best: found where it was tried here; otherwise predicted (\N{ALMOST EQUAL TO}) by a model of this "
    "run's trials, and no better than that model.",
    "Dropped: by chance the more often, the worse a past run orders the trials and the closer the end comes.",
)


def past_table(found: Sequence[Teacher], trials: int) -> Table:
    """Return the table of past runs; trials: how many of this run succeeded."""
    return Table(TITLE, COLUMNS, (tuple(_row(teacher, trials) for teacher in found),), NOTES)


def past_words(found: Sequence[Teacher], trials: int) -> str:
    """Say in a few sentences what the table shows."""
    changed = [teacher for teacher in found if teacher.overlap is not None and teacher.overlap < 1.0]
    able = [teacher for teacher in found if teacher.agreement is not None]
    sentences = [f"This run could learn from {counted(len(found), 'past run')}."]
    if able and trials > 2:
        best = max(able, key=lambda teacher: teacher.agreement or 0.0)
        worst = min(able, key=lambda teacher: teacher.agreement or 0.0)
        sentences.append(
            f"{named(best.task)} orders its trials best, with {percent(best.agreement or 0)} of the pairs in the right "
            + (
                f"order; {named(worst.task)} worst, with {percent(worst.agreement or 0)}."
                if worst is not best
                else "order."
            )
        )
    if any(teacher.dropped for teacher in found):
        dropped = sum(teacher.state == "dropped" for teacher in found)
        kept = len(found) - dropped
        sentences.append(f"In the last suggestion {kept or 'none'} took part, {dropped or 'none'} had been dropped.")
    first = [teacher for teacher in found if teacher.best is not None and teacher.best.tried]
    if first:
        sentences.append(f"Of {counted(len(first), 'past run')} the best configuration was tried.")
    if changed:
        spaces = f"{counted(len(changed), 'past run')} had other hyperparameters or ranges"
        sentences.append(f"{spaces}; the last column says what was made of that.")
    return " ".join(sentences)


def _row(teacher: Teacher, trials: int) -> tuple[Cell, ...]:
    return (
        word(named(teacher.task)),
        number(teacher.trials, ",.0f"),
        _percent(teacher.weight),
        _percent(teacher.mean),
        _percent(teacher.agreement, ".0f"),
        word(teacher.state) if teacher.state else Cell(EMPTY, None),
        _dropped(teacher.dropped),
        _place(teacher.best, trials),
        _percent(teacher.overlap, ".0f"),
        word(named(teacher.done, DONE)),
    )


def _percent(part: float | None, form: str = ".1f") -> Cell:
    return number(None if part is None else 100.0 * part, form)


def _dropped(times: tuple[int, int] | None) -> Cell:
    if times is None or times[1] == 0:
        return Cell(EMPTY, None)
    return Cell(f"{times[0]} of {times[1]}", times[0] / times[1])


def _place(best: Place | None, trials: int) -> Cell:
    if best is None:
        return Cell(EMPTY, None)
    if best.place is None:
        return Cell("tried, failed", trials + 2)
    if best.tried:
        return Cell(f"{best.place} of {trials}", best.place)
    return Cell(f"\N{ALMOST EQUAL TO} {best.place} of {trials + 1}", best.place + 0.5)
