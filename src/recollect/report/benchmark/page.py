"""A page from finished runs: for each benchmark an overview in words, figures and tables; then the paper's tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from recollect.bench.overview import METHODS, PAPER, SUMMARY, make_tables
from recollect.bench.results import Finished
from recollect.bench.study import Study, make_study
from recollect.bench.tables import Table as BenchTable
from recollect.report.benchmark.contest import make_contest
from recollect.report.benchmark.ranks import difference_figure, rank_figure
from recollect.report.benchmark.regret import regret_figures
from recollect.report.benchmark.rows import area_figure, gap_figure
from recollect.report.benchmark.tables import sortable
from recollect.report.benchmark.words import at_a_glance
from recollect.report.html import tag
from recollect.report.names import listed, named
from recollect.report.page import Page, Part, Section

LEAD = (
    "Regret is how far a method's best configuration is from the best of the task, in percent of the range from the "
    "best to the worst error: 0 is the best that there is. Curves and tables average over repetitions, then over tasks "
    "(ADTM). Lower is better everywhere."
)
TABLES = "The paper's tables"


def bench_page(runs: Sequence[Finished], *, benchmarks: Collection[str] = (), source: str = "") -> Page:
    """Return the page of these runs. benchmarks: only these, empty for all; source: where the runs come from."""
    study = make_study(runs)
    tables = make_tables(study, benchmarks=benchmarks)
    shown = [name for name in study.outcomes if not benchmarks or name in benchmarks]
    sections = [_section(study, name, tables) for name in shown]
    paper = [sortable(table) for table in tables if table.name in PAPER and _has_numbers(table)]
    if paper:
        sections.append(Section(TABLES, tuple(paper)))
    count = len([run for run in runs if run.key.benchmark in shown])
    made_from = f"{count} runs" + (f" in {named(source)}" if source else "")
    return Page(f"Benchmark report: {listed(shown, most=3)}", LEAD, tuple(sections), made_from)


def _section(study: Study, benchmark: str, tables: Sequence[BenchTable]) -> Section:
    contest = make_contest(study, benchmark)
    figures = [rank_figure(contest), difference_figure(contest), area_figure(contest), gap_figure(contest)]
    parts: list[Part] = [tag("ul", {}, *(tag("li", {}, sentence) for sentence in at_a_glance(contest)))]
    parts += regret_figures(contest)
    parts += [figure for figure in figures if figure is not None]
    own = [table for table in tables if table.name in (SUMMARY, METHODS) and table.columns[0].benchmark == benchmark]
    parts += [sortable(table) for table in sorted(own, key=lambda table: table.name != SUMMARY)]
    return Section(named(benchmark), tuple(parts))


def _has_numbers(table: BenchTable) -> bool:
    return any(cell.value is not None for block in table.blocks for line in block for cell in line.cells)
