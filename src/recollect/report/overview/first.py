"""What to try first on a new task: the portfolio that past tasks recommend together (SMFO, paper section 5.3)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.history.run import Config
from recollect.numerics.arrays import FloatArray, IntArray
from recollect.optimizer.design import learned_design
from recollect.report.html import Html, tag
from recollect.report.overview.cells import column_for, value_cell
from recollect.report.overview.models import Models
from recollect.report.table import Column, Table, number
from recollect.transfer.portfolio import predicted_costs

SIZE = 8
WIDEST = 100  # signs in a line of the text to copy


@dataclass(frozen=True, slots=True, eq=False)
class Portfolio:
    """Configurations in the order to try them.

    gaps (c,): predicted gap after so many, on average over tasks, from 0 (the best that a task has seen) to 1 (its
    worst); served (c,): on how many tasks each is predicted to be the best of all.
    """

    configs: tuple[Config, ...]
    gaps: FloatArray
    served: IntArray
    tasks: int


def make_portfolio(models: Models, size: int = SIZE) -> Portfolio:
    """Return the configurations that all modelled tasks recommend; the same for the same trials."""
    rng = np.random.default_rng(0)
    rows = learned_design(models.method, models.space, None, sources=models.sources, size=size, rng=rng)
    if len(rows) == 0:
        return Portfolio((), np.empty(0), np.empty(0, dtype=np.intp), models.sources.k)
    data = tuple(models.sources.data(place) for place in range(models.sources.k))
    costs = predicted_costs(models.sources, data, rows, by_range=True)
    reached = np.clip(np.minimum.accumulate(costs, axis=1), 0.0, 1.0)
    served = np.bincount(np.argmin(costs, axis=1), minlength=len(rows))
    return Portfolio(tuple(models.space.decode(rows)), reached.mean(axis=0), served.astype(np.intp), len(data))


def portfolio_table(portfolio: Portfolio, names: Sequence[str]) -> Table:
    """Return the configurations as a table; names: hyperparameters in the order of the columns."""
    shown = [name for name in names if any(name in config for config in portfolio.configs)]
    columns = (
        Column("try"),
        *(column_for(name, [config.get(name) for config in portfolio.configs]) for name in shown),
        Column("gap after it, %", hint="predicted mean gap to the best of each task once it has been tried"),
        Column("best for", hint="number of tasks on which it is predicted to be the best of these"),
    )
    rows = tuple(
        (
            number(place, "d"),
            *(value_cell(config.get(name)) for name in shown),
            number(100 * float(gap), ".1f"),
            number(int(served), "d"),
        )
        for place, (config, gap, served) in enumerate(
            zip(portfolio.configs, portfolio.gaps, portfolio.served, strict=True), start=1
        )
    )
    tasks = f"the {portfolio.tasks} tasks" if portfolio.tasks > 1 else "the only task"
    notes = (
        "Gap after it: how far the best one tried so far is from the best that each task has seen, in percent of the "
        f"range from its best to its worst value, on average over {tasks}, as their models predict it.",
        "Best for: on how many tasks it is predicted to be the best of these.",
    )
    return Table("Good on these tasks together", columns, (rows,), notes)


def to_copy(portfolio: Portfolio) -> Html:
    """Return the configurations as JSON in a field whose content can be selected at once."""
    text = as_json(portfolio.configs)
    lines = text.splitlines()
    return tag(
        "textarea",
        {
            "class": "frame",
            "readonly": True,
            "rows": len(lines),
            "cols": min(max(map(len, lines)) + 2, WIDEST),
            "wrap": "off",
            "spellcheck": "false",
            "aria-label": "Configurations to try first, as JSON",
        },
        text,
    )


def as_json(configs: Sequence[Config]) -> str:
    """Return configurations as a JSON list, one in a line."""
    return (
        "[\n" + ",\n".join(f"  {json.dumps(config, ensure_ascii=False, default=_plain)}" for config in configs) + "\n]"
    )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)
