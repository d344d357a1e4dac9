"""The paper's tables with our results, and the published values beside them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from recollect.bench.analysis import result_tables
from recollect.bench.analysis.aggregate import ExperimentResults
from recollect.bench.analysis.result_tables import ResultCell, ResultColumn, ResultTable, ResultTableRow
from recollect.bench.paper import published as paper
from recollect.bench.paper.published import BENCHMARKS, LAST_EVALUATION, MAIN_TABLES, PaperRow, PaperTableLayout
from recollect.bench.paper.tst_bandwidth import RHO_PREFIX, RHO_TASKS, with_chosen_rho


def paper_tables(experiment: ExperimentResults, benchmarks: Sequence[str], names: Collection[str]) -> list[ResultTable]:
    """Return the paper's tables of these names for these benchmarks, as far as there are runs.

    Benchmarks that are not in the paper follow those that are; each of them has a main table of its own. Methods that
    are in none of the paper's tables are a block at the end of the main tables.
    """
    experiment = with_chosen_rho(experiment)
    new = [name for name in benchmarks if name not in BENCHMARKS]
    main_tables = [_with_new_methods(layout, experiment) for layout in (*MAIN_TABLES, *map(_main_table_for, new))]
    others = [layout for layout in paper.LAYOUTS if layout not in MAIN_TABLES]
    tables = []
    for layout in (layout for layout in (*main_tables, *others) if layout.name in names):
        possible = [name for name in layout.benchmarks if name in benchmarks] + ([] if layout in main_tables else new)
        columns = [name for name in possible if any(experiment.find(name, row.method) for row in layout.rows)]
        shown = _shown(experiment, _with_new_rho_rows(layout, columns) if layout.name == "rho" else layout, columns)
        if columns and shown.blocks:
            tables.append(_paper_table(experiment, shown, columns))
    return tables


def _shown(experiment: ExperimentResults, layout: PaperTableLayout, benchmarks: Sequence[str]) -> PaperTableLayout:
    """Drop rows for which neither we nor the paper have a value, and blocks with nothing to compare."""

    def has_value(row: PaperRow, name: str) -> bool:
        return bool(experiment.find(name, row.method) or layout.published(row, name, LAST_EVALUATION))

    blocks = [tuple(row for row in rows if any(has_value(row, name) for name in benchmarks)) for rows in layout.blocks]
    fewest_rows = 2 if layout.separate_blocks else 1
    return replace(layout, blocks=tuple(block for block in blocks if len(block) >= fewest_rows))


def _main_table_for(benchmark: str) -> PaperTableLayout:
    """Return the rows of the main table for a benchmark that is not in the paper."""
    first = MAIN_TABLES[0]
    no_values = " ".join("-" * len(paper.EVALUATIONS))
    blocks = tuple(tuple(replace(row, values=no_values) for row in block) for block in first.blocks)
    return replace(first, benchmarks=(benchmark,), blocks=blocks, notes=())


def _with_new_methods(layout: PaperTableLayout, experiment: ExperimentResults) -> PaperTableLayout:
    """Add a block of the methods that were run on its benchmarks and are in none of the paper's tables."""
    known = {row.method for other in paper.LAYOUTS for row in other.rows}
    run = [
        result.method
        for name in layout.benchmarks
        if name in experiment.benchmarks
        for result in experiment.benchmarks[name].ordered
        if not result.is_variant and not result.remark and result.method not in known
    ]
    no_values = " ".join("-" * (len(layout.benchmarks) * len(layout.evaluations)))
    block = tuple(PaperRow(name, name, no_values) for name in dict.fromkeys(run))
    return replace(layout, blocks=(*layout.blocks, *([block] if block else [])))


def _with_new_rho_rows(layout: PaperTableLayout, benchmarks: Sequence[str]) -> PaperTableLayout:
    """Add rows for benchmarks that are not in the paper; drop the paper's rows if none of its benchmarks is shown."""
    new = [name for name in benchmarks if name not in BENCHMARKS]
    no_values = " ".join("-" * len(BENCHMARKS))
    blocks = []
    for others, tasks, *published in layout.blocks:
        label, family = tasks.label.removesuffix(")"), tasks.method.removesuffix(RHO_TASKS)
        added = [PaperRow(f"{label},{name})", f"{family}{RHO_PREFIX}{name}", no_values) for name in new]
        blocks.append((others, tasks, *(published if len(new) < len(benchmarks) else ()), *added))
    return replace(layout, blocks=tuple(blocks))


def _paper_table(experiment: ExperimentResults, layout: PaperTableLayout, benchmarks: Sequence[str]) -> ResultTable:
    columns: dict[ResultColumn, list[ResultCell]] = {}
    for benchmark in benchmarks:
        horizon = experiment.benchmarks[benchmark].horizon
        all_counts = layout.evaluations == paper.EVALUATIONS
        for count in result_tables.checkpoints(horizon) if all_counts else (min(LAST_EVALUATION, horizon),):
            columns[ResultColumn(benchmark, str(count))] = _column(experiment, layout, benchmark, count)
    row_cells = iter(zip(*columns.values(), strict=True))
    blocks = [tuple(ResultTableRow(row.label, row.method, next(row_cells)) for row in own) for own in layout.blocks]
    title = layout.title + (f" on {' and '.join(benchmarks)}" if layout.name == MAIN_TABLES[0].name else "")
    return ResultTable(layout.name, title, tuple(columns), tuple(blocks), _notes(experiment, layout, benchmarks))


def _column(experiment: ExperimentResults, layout: PaperTableLayout, benchmark: str, count: int) -> list[ResultCell]:
    """Return the cells of all rows, compared with each other in the whole column or block by block."""
    cells: list[ResultCell] = []
    for rows in layout.blocks if layout.separate_blocks else (layout.rows,):
        compared = result_tables.compared_cells([experiment.find(benchmark, row.method) for row in rows], count)
        published = [layout.published(row, benchmark, count) for row in rows]
        cells += [replace(cell, published=value) for cell, value in zip(compared, published, strict=True)]
    return cells


def _notes(experiment: ExperimentResults, layout: PaperTableLayout, benchmarks: Sequence[str]) -> tuple[str, ...]:
    """Say how values are compared, which runs there are, and which bandwidths were chosen, row by row."""
    marks = result_tables.MARKS_NOTE.format(where=" and block" if layout.separate_blocks else "")
    published = f" {result_tables.PUBLISHED_NOTE}" if set(benchmarks) & set(BENCHMARKS) else ""
    rows = {name: [(row.label, experiment.find(name, row.method)) for row in layout.rows] for name in benchmarks}
    coverage = [result_tables.coverage_note(name, own) for name, own in rows.items()]
    comparison = result_tables.comparison_notes(*([result for _, result in own] for own in rows.values()))
    chosen = []
    for row in layout.rows if any(f"+{RHO_PREFIX}" in row.method for row in layout.rows) else ():
        results = [(name, experiment.find(name, row.method)) for name in benchmarks]
        remarks = [f"{result.remark} on {name}" for name, result in results if result and result.remark]
        if remarks:
            chosen.append(f"{row.label}: {'; '.join(remarks)}.")
    return (f"{marks}{published}", *coverage, *comparison, *chosen, *layout.notes)
