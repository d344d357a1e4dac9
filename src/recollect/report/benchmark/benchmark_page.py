"""The page of finished runs: for each benchmark a summary, figures and tables; then the paper's tables.

In tables, the lowest value of a column is underlined and bold; values that are not significantly different from it are
bold. Screen readers get these marks in words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from recollect._text import plural
from recollect.bench.analysis import result_tables
from recollect.bench.analysis.aggregate import REFERENCE, BenchmarkResults, aggregate_runs
from recollect.bench.analysis.figure_data import differences_from_reference
from recollect.bench.analysis.result_tables import ResultCell, ResultColumn, ResultTable, compared_cells, headings
from recollect.bench.analysis.statistics import Mark
from recollect.bench.experiment.experiment_run import CompletedRun
from recollect.bench.paper.published import TABLE_NAMES
from recollect.report.benchmark import benchmark_figures as figures
from recollect.report.benchmark.benchmark_figures import PERCENT, method_label, worst_case_extremes
from recollect.report.formatting import join_names, printable
from recollect.report.html import Child, joined, tag
from recollect.report.page import Page, Part, Section
from recollect.report.table import EMPTY, Cell, Column, Table, text_cell

KICKER = "Benchmark report"
LEAD = (
    "Regret is the distance of a method's best configuration from the best one of the task, in percent of the range "
    "from the best to the worst error: 0 is the best possible. Curves and tables average over repetitions, then over "
    "tasks (ADTM). Lower is better everywhere."
)
MARK_TEXT: dict[Mark, str] = {"best": "lowest", "even": "not significantly different from the lowest"}
HINTS = {
    "area": "100 x ADTM, mean over all evaluations",
    "rank": "mean rank at the end, 1 is best",
    "seconds": "per suggestion",
}
PAPER_TABLES = "The paper's tables"
FIGURES = (
    *(figures.rank_figure, figures.difference_figure),
    *(figures.mean_regret_figure, figures.difference_from_reference_figure),
)


def bench_page(runs: Sequence[CompletedRun], *, benchmarks: Collection[str] = (), source: str = "") -> Page:
    """Return the page of these runs; benchmarks: all if empty; source: where the runs come from, for the footer."""
    experiment = aggregate_runs(runs)
    tables = result_tables.make_tables(experiment, benchmarks=benchmarks)
    shown = [name for name in experiment.benchmarks if not benchmarks or name in benchmarks]
    sections = [_section(experiment.benchmarks[name], tables) for name in shown]
    paper = [_page_table(table) for table in tables if table.name in TABLE_NAMES and _has_numbers(table)]
    if paper:
        sections.append(Section(PAPER_TABLES, tuple(paper)))
    count = sum(run.key.benchmark in shown for run in runs)
    footer = f"{count} runs" + (f" in {printable(source)}" if source else "")
    return Page(join_names(shown, most=3), LEAD, tuple(sections), footer, KICKER)


def _section(results: BenchmarkResults, tables: Sequence[ResultTable]) -> Section:
    parts: list[Part] = [
        tag("ul", {"class": "facts"}, *(tag("li", {}, sentence) for sentence in summary_sentences(results)))
    ]
    parts += figures.regret_figures(results)
    parts += [figure for draw in FIGURES if (figure := draw(results)) is not None]
    by_name = {table.name: table for table in tables if table.columns[0].benchmark == results.benchmark}
    parts += [_page_table(by_name[name]) for name in (result_tables.SUMMARY, result_tables.METHODS)]
    return Section(printable(results.benchmark), tuple(parts))


def _has_numbers(table: ResultTable) -> bool:
    return any(cell.value is not None for block in table.blocks for row in block for cell in row.cells)


def _page_table(table: ResultTable) -> Table:
    """Return a result table as a table of the page."""
    columns = [Column("method", numeric=False)]
    for column, heading in zip(table.columns, headings(table.columns), strict=True):
        shown = f"after {heading}" if heading.isdigit() else printable(heading)
        after = f"100 x ADTM after {column.heading} evaluations" if column.heading.isdecimal() else ""
        columns.append(Column(shown, hint=HINTS.get(column.heading, after)))
    blocks = tuple(
        tuple((text_cell(printable(row.label)), *map(_cell, row.cells, table.columns)) for row in block)
        for block in table.blocks
    )
    return Table(printable(table.title), tuple(columns), blocks, tuple(printable(note, 4000) for note in table.notes))


def _cell(cell: ResultCell, column: ResultColumn) -> Cell:
    if cell.value is None and cell.published is None:
        return Cell(EMPTY, None)
    own: Child = EMPTY if cell.value is None else _marked(cell.value, cell.mark, column)
    beside: list[Child] = []
    if cell.published is not None:
        value = _marked(cell.published.value, cell.published.mark, column)
        beside = [" ", tag("span", {"class": "beside"}, tag("span", {"class": "unseen"}, "paper: "), "(", value, ")")]
    elif cell.text:
        beside = [" ", tag("span", {"class": "beside"}, f"({printable(cell.text)})")]
    return Cell(joined([own, *beside]), cell.value)


def _marked(value: float, mark: Mark, column: ResultColumn) -> Child:
    text = column.format(value)
    if not mark:
        return text
    return tag("span", {"class": mark}, text, tag("span", {"class": "unseen"}, f" ({MARK_TEXT[mark]})"))


def summary_sentences(results: BenchmarkResults) -> list[str]:
    """Return what was run, and which methods are lowest at the end, lowest on average, fastest and safest."""
    parts = (_size, _lowest_at_the_end, _lowest_on_average, _speed, _worst_cases, _incomplete)
    return [sentence for part in parts if (sentence := part(results))]


def _size(results: BenchmarkResults) -> str:
    ranges = [result.repetition_range for result in results.methods.values()]
    fewest, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    repetitions = str(most) if fewest == most else f"{fewest} to {most}"
    return (
        f"{plural(len(results.methods), 'method')}, {plural(results.tasks, 'task')}, {repetitions} "
        f"repetition{'s' * (most > 1)} of each, {plural(results.horizon, 'evaluation')}."
    )


def _lowest_at_the_end(results: BenchmarkResults) -> str:
    """Use the marks of the tables, so that both agree."""
    methods = results.ordered
    cells = list(zip(methods, compared_cells(methods, results.horizon), strict=True))
    best = [(result, cell.value) for result, cell in cells if cell.mark == "best"]
    if not best:
        return ""
    even = sum(cell.mark == "even" for _, cell in cells)
    worse = sum(cell.value is not None for _, cell in cells) - len(best) - even
    remark = f" ({best[0][0].remark})" if len(best) == 1 and best[0][0].remark else ""
    others = f" Not significantly different from it: {plural(even, 'method')}; worse: {worse or 'none'}."
    return (
        f"After {results.horizon} evaluations, {join_names([result.method for result, _ in best])}{remark} "
        f"{'have' if len(best) > 1 else 'has'} the lowest regret, {best[0][1]:.2f}%.{others if even or worse else ''}"
    )


def _lowest_on_average(results: BenchmarkResults) -> str:
    comparable = [result for result in results.same_budget if np.isfinite(result.area)]
    if len(comparable) < 2:
        return ""
    best = min(comparable, key=lambda result: result.area)
    return (
        f"Averaged over all evaluations, {printable(best.method)} has the lowest regret of the methods with the same "
        f"number of evaluations, {PERCENT * best.area:.2f}%."
    )


def _speed(results: BenchmarkResults) -> str:
    """Say how many evaluations the fastest method needs for the final regret of ``gp``."""
    reference, horizon = results.reference, results.horizon
    if reference is None or reference not in results.complete:
        return ""
    level = float(reference.adtm[-1])
    others = [result for result in results.same_budget if result is not reference]
    reached = {result.method: np.flatnonzero(result.adtm[:-1] <= level) for result in others}
    needed = {method: int(steps[0]) + 1 for method, steps in reached.items() if len(steps)}
    if not needed:
        return f"No method reaches the regret of {REFERENCE} after {horizon} evaluations with fewer evaluations."
    fewest = min(needed.values())
    fastest = [method for method, count in needed.items() if count == fewest]
    return (
        f"{join_names(fastest)} reach{'es' * (len(fastest) == 1)} after {fewest} evaluations what {REFERENCE} reaches "
        f"after {horizon} ({PERCENT * level:.2f}%)."
    )


def _worst_cases(results: BenchmarkResults) -> str:
    if results.reference is None or sum(result is not results.reference for result in results.same_budget) < 2:
        return ""
    extremes = worst_case_extremes(results, differences_from_reference(results, unit=PERCENT))
    if extremes is None:
        return ""
    return f"In the worst case, compared with {REFERENCE}, {extremes[0]}, the least; {extremes[1]}, the most."


def _incomplete(results: BenchmarkResults) -> str:
    complete = results.complete
    names = [method_label(results, result) for result in results.ordered if result not in complete]
    if not names:
        return ""
    return f"Methods with missing tasks or repetitions, compared only on those that they have: {join_names(names, 10)}."
