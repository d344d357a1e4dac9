"""Hand-made runs with constant regrets, for tests of tables."""

from __future__ import annotations

import numpy as np

from recollect.bench.analysis.aggregate import aggregate_runs
from recollect.bench.analysis.result_tables import ResultTable, ResultTableRow, make_tables
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey

TASKS = tuple(f"t{number}" for number in range(8))
Levels = dict[str, float]  # method: regret from the first to the last evaluation, on task 0; a little more on others


def runs_of(levels: Levels, benchmark: str = "svm-grid", *, length: int = 50, tasks: int = 8) -> list[CompletedRun]:
    return [
        CompletedRun(
            RunKey(benchmark, method, task, 0),
            0,
            *(0.0, 1.0),
            np.full(10 * length if method == "random" else length, level + 0.01 * place),
            None,
            0.25,
            "0",
        )
        for method, level in levels.items()
        for place, task in enumerate(TASKS[:tasks])
    ]


def tables_of(runs: list[CompletedRun], which: str = "all", benchmarks: tuple[str, ...] = ()) -> list[ResultTable]:
    return make_tables(aggregate_runs(runs), which, benchmarks)


def row_of(table: ResultTable, label: str) -> ResultTableRow:
    (row,) = (row for block in table.blocks for row in block if row.label == label)
    return row
