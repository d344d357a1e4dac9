"""Tables of what a memory holds: problems, the tasks that were worked on last, and studies of other tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from recollect.report.html import Child, tag
from recollect.report.names import named
from recollect.report.overview.best import Link, task_cell
from recollect.report.overview.cells import date_cell
from recollect.report.overview.reading import Holdings, Told
from recollect.report.table import Cell, Column, Row, Table, number, word

LATEST = 50
TASK_COLUMNS = (
    Column("trials"),
    Column("failed"),
    Column("best value"),
    Column("direction", numeric=False),
    Column("first trial"),
    Column("last trial"),
)


def problem_table(holdings: Holdings, link: Callable[[str], str | None]) -> Table:
    """Return all problems; link: where a problem is told of, None for nowhere."""
    columns = (
        Column("problem", numeric=False),
        Column("tasks"),
        Column("trials"),
        Column("failed"),
        Column("first trial"),
        Column("last trial"),
    )
    rows = tuple(_problem_row(name, holdings.of(name), link(name)) for name in holdings.problems)
    return Table("Problems in this memory", columns, (rows,))


def latest_table(holdings: Holdings, link: Link) -> Table:
    """Return the tasks whose last trials ended last."""
    tasks = sorted(
        (told for told in holdings.tasks if told.problem is not None),
        key=lambda told: told.last or datetime.min,
        reverse=True,
    )
    columns = (Column("task", numeric=False), Column("problem", numeric=False), *TASK_COLUMNS)
    rows = tuple((task_cell(told, link), word(named(told.problem or "")), *_facts(told)) for told in tasks[:LATEST])
    notes = (f"The {LATEST} of {len(tasks)} tasks that were worked on last.",) if len(tasks) > LATEST else ()
    return Table("Tasks, the latest first", columns, (rows,), notes)


def foreign_table(studies: Sequence[Told], link: Link) -> Table:
    """Return studies that recollect did not make."""
    columns = (Column("study", numeric=False), *TASK_COLUMNS)
    rows = tuple((task_cell(told, link), *_facts(told)) for told in studies[:LATEST])
    notes = (f"The first {LATEST} of {len(studies)}.",) if len(studies) > LATEST else ()
    return Table("Studies that recollect did not make", columns, (rows,), notes)


def _problem_row(name: str, tasks: Sequence[Told], where: str | None) -> Row:
    shown: Child = named(name) if where is None else tag("a", {"href": where}, named(name))
    return (
        Cell(shown, name),
        number(len(tasks), "d"),
        number(sum(len(told.run) for told in tasks), "d"),
        number(sum(told.failed for told in tasks), "d"),
        date_cell(min((told.first for told in tasks if told.first is not None), default=None)),
        date_cell(max((told.last for told in tasks if told.last is not None), default=None)),
    )


def _facts(told: Told) -> Row:
    best = told.run.best
    return (
        number(len(told.run), "d"),
        number(told.failed, "d"),
        number(None if best is None else best.value, ".6g"),
        word(told.run.direction),
        date_cell(told.first),
        date_cell(told.last),
    )
