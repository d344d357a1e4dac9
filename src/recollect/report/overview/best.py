"""The best configuration of each task, with what was spent on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from recollect.report.html import Child, tag
from recollect.report.names import named
from recollect.report.overview.cells import column_for, date_cell, value_cell
from recollect.report.overview.reading import Told
from recollect.report.table import Cell, Column, Table, number, word

Link = Callable[[Told], str | None]
"""Where the report of a task is; None if there is none."""


def best_table(tasks: Sequence[Told], names: Sequence[str], link: Link) -> Table:
    """Return all tasks; names: hyperparameters in the order of the columns, others follow."""
    found = [told.run.best for told in tasks]
    configs = [{} if best is None else best.config for best in found]
    shown = [name for name in names if any(name in config for config in configs)]
    shown += dict.fromkeys(name for config in configs for name in config if name not in names)
    mixed = len({told.run.direction for told in tasks}) > 1
    columns = (
        Column("task", numeric=False),
        Column("best value"),
        *((Column("direction", numeric=False),) if mixed else ()),
        *(column_for(name, [config.get(name) for config in configs]) for name in shown),
        Column("trials"),
        Column("failed"),
        Column("first trial"),
        Column("last trial"),
    )
    rows = tuple(
        (
            task_cell(told, link),
            number(None if best is None else best.value, ".6g"),
            *((word(told.run.direction),) if mixed else ()),
            *(value_cell(config.get(name)) for name in shown),
            number(len(told.run), "d"),
            number(told.failed, "d"),
            date_cell(told.first),
            date_cell(told.last),
        )
        for told, best, config in zip(tasks, found, configs, strict=True)
    )
    return Table("Which configuration was best on each task?", columns, (rows,))


def task_cell(told: Told, link: Link) -> Cell:
    """Return the name of a task, with a link to its report if there is one."""
    where, shown = link(told), named(told.task)
    cell: Child = shown if where is None else tag("a", {"href": where}, shown)
    return Cell(cell, told.task)
