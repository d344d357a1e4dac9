"""Tables of results, as data and as text: Markdown, LaTeX (packages booktabs and graphicx) and CSV (a line per cell).

Regrets are shown as 100 x ADTM. The value of a cell is the mean over the tasks that its method has; methods are
compared on the runs that they share (`bench.analysis.statistics`). A method that was not run has an empty cell, and a
note names it.

Besides the paper's tables (`bench.paper.paper_tables`), each benchmark has a table of all methods and a summary. The
summary shows for each method: 100 x ADTM at the end; its mean over all evaluations, i.e. the area under the curve; the
mean rank at the end among methods without a suffix that have all runs, with the critical difference; and the task on
which it is worst compared with ``gp``. These do not depend on when and where the runs took place. The time per
suggestion does, so it has a table of its own, which is created only on request.

Marks are those of the paper's tables: the lowest value of a column is underlined and bold; values that are not
significantly different from it are bold. Equal tables give equal bytes.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from math import isnan
from typing import NamedTuple

import numpy as np

from recollect._text import plural
from recollect.bench.analysis import aggregate
from recollect.bench.analysis.aggregate import REFERENCE, BenchmarkResults, ExperimentResults, MethodResult
from recollect.bench.analysis.figure_data import differences_from_reference
from recollect.bench.analysis.statistics import Mark, compare_with_best, critical_difference
from recollect.bench.paper import published as paper
from recollect.errors import InputError

METHODS, SUMMARY, SECONDS, ALL = "methods", "summary", "seconds", "all"
MARKS_NOTE = (
    "100 x ADTM. Underlined and bold: the lowest value of its column{where}; bold: not significantly different from it "
    "(exact paired two-sided Wilcoxon signed-rank test over tasks, alpha = 0.05)."
)
PUBLISHED_NOTE = "In parentheses: the value published in the paper."
COMPARISON_NOTE = (
    "The lowest value is determined among the methods with the most runs; other methods are compared with it on the "
    "tasks and repetitions that both have."
)
EMPTY = "-"
CSV_POSITION = ("table", "block", "row", "method", "benchmark", "column")
CSV_FIELDS = (*CSV_POSITION, "value", "mark", "word", "paper", "paper_mark")
_LIMIT_HEIGHT = r"\resizebox*{!}{\ifdim\totalheight>.75\textheight .75\textheight\else\totalheight\fi}{%"
_LIMIT_WIDTH = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of numbers about a benchmark, with the format specification of its numbers."""

    benchmark: str
    heading: str
    number_format: str = ".2f"

    def format(self, value: float) -> str:
        """Return a number as text, without a sign if it rounds to 0."""
        text = format(value, self.number_format)
        return text.lstrip("-") if float(text) == 0 else text


@dataclass(frozen=True, slots=True)
class ResultCell:
    """A number, or None; its mark; the paper's value; and a text that belongs to the number."""

    value: float | None = None
    mark: Mark = ""
    published: paper.PublishedValue | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class ResultTableRow:
    """A row: its label, its method, and a cell for every column."""

    label: str
    method: str
    cells: tuple[ResultCell, ...]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table with its rows in blocks, and notes below it."""

    name: str
    title: str
    columns: tuple[ResultColumn, ...]
    blocks: tuple[tuple[ResultTableRow, ...], ...]
    notes: tuple[str, ...]


def checkpoints(horizon: int) -> tuple[int, ...]:
    """Return the evaluation counts to report: 10, 20, ... 50 up to the horizon, and the horizon."""
    return tuple(sorted({count for count in paper.EVALUATIONS if count <= horizon} | {horizon}))


def compared_cells(results: Sequence[MethodResult | None], evaluations: int) -> list[ResultCell]:
    """Return a column: each method's mean regret after this many evaluations, compared with the best."""
    tasks = {str(index): result.task_regrets(evaluations) for index, result in enumerate(results) if result}
    runs = {str(i): result.run_regrets(evaluations) for i, result in enumerate(results) if result and tasks[str(i)]}
    compared = compare_with_best(runs) if runs else {}
    return [
        ResultCell(100 * float(np.mean(list(tasks[key].values()))), compared[key].mark) if key in runs else ResultCell()
        for key in map(str, range(len(results)))
    ]


def coverage_note(benchmark: str, results: Sequence[tuple[str, MethodResult | None]]) -> str:
    """Return how many tasks and repetitions most methods have, and which labelled methods have others or none."""
    labels: dict[str, list[str]] = {}
    for label, result in results:
        count = f"{plural(len(result.tasks), 'task')}, {result.repetitions_text}" if result else "no runs"
        labels.setdefault(count, []).append(label)
    usual = max((count for count in labels if count != "no runs"), key=lambda count: len(labels[count]))
    exceptions = [f"{', '.join(dict.fromkeys(own))}: {count}" for count, own in labels.items() if count != usual]
    return f"{benchmark}: {'; '.join([usual, *exceptions])}."


def comparison_notes(*columns: Sequence[MethodResult | None]) -> tuple[str, ...]:
    """Return which runs methods are compared on, if the methods of a column do not all have the same runs."""
    same_runs = all(len({frozenset(result.curves) for result in results if result}) < 2 for results in columns)
    return () if same_runs else (COMPARISON_NOTE,)


def make_tables(experiment: ExperimentResults, which: str = ALL, benchmarks: Collection[str] = ()) -> list[ResultTable]:
    """Return the tables of one name, or all except seconds; of some benchmarks, or of all if none is named."""
    from recollect.bench.paper.paper_tables import paper_tables  # builds on this module

    names = (*paper.TABLE_NAMES, METHODS, SUMMARY, SECONDS)
    if which not in (*names, ALL):
        raise InputError(f"table: expected {', '.join(names)} or {ALL}, got {which!r}")
    for name in (name for name in benchmarks if name not in experiment.benchmarks):
        available = ", ".join(experiment.benchmarks)
        raise InputError(f"table: no run on benchmark {name!r}; there are runs on {available}")
    shown = [name for name in experiment.benchmarks if not benchmarks or name in benchmarks]
    tables = paper_tables(experiment, shown, paper.TABLE_NAMES if which == ALL else (which,))
    for name, make in ((METHODS, _methods_table), (SUMMARY, _summary_table), (SECONDS, _seconds_table)):
        if which == name or (which == ALL and name != SECONDS):
            tables += [make(experiment.benchmarks[benchmark]) for benchmark in shown]
    if not tables:
        needed = dict.fromkeys(row.method for layout in paper.LAYOUTS if layout.name == which for row in layout.rows)
        raise InputError(
            f"table: nothing to compare in table {which!r} on {', '.join(shown)}; it needs runs of {', '.join(needed)}"
        )
    return tables


def _in_paper_order(results: BenchmarkResults) -> list[MethodResult]:
    """Return methods in the order in which they first occur in the paper's tables, then by name."""
    names = dict.fromkeys([row.method for layout in paper.LAYOUTS for row in layout.rows] + sorted(results.methods))
    return [results.methods[name] for name in names if name in results.methods]


def _methods_table(results: BenchmarkResults) -> ResultTable:
    benchmark, methods = results.benchmark, _in_paper_order(results)
    ranges = [method.repetition_range for method in methods]
    repetitions = [ResultCell(fewest, text="" if fewest == most else f"to {most}") for fewest, most in ranges]
    columns = {
        ResultColumn(benchmark, "tasks", ".0f"): [ResultCell(len(method.tasks)) for method in methods],
        ResultColumn(benchmark, "repetitions", ".0f"): repetitions,
    }
    for count in checkpoints(results.horizon):
        columns[ResultColumn(benchmark, str(count))] = [
            replace(cell, published=paper.published_value(method.method, benchmark, count))
            for cell, method in zip(compared_cells(methods, count), methods, strict=True)
        ]
    in_paper = benchmark in paper.BENCHMARKS
    first_note = MARKS_NOTE.format(where="") + (f" {PUBLISHED_NOTE}" if in_paper else "")
    bandwidth = (paper.BANDWIDTH_NOTE,) if in_paper and results.methods.keys() & set(paper.TST_METHODS) else ()
    notes = (first_note, *comparison_notes(methods), *bandwidth)
    blocks = (_block(methods, columns.values()),)
    return ResultTable(METHODS, f"All methods on {benchmark}", tuple(columns), blocks, notes)


def _summary_table(results: BenchmarkResults) -> ResultTable:
    benchmark, methods, horizon = results.benchmark, _in_paper_order(results), results.horizon
    ranks = aggregate.plain_method_ranks(results)
    final_ranks = dict(zip(ranks.methods, ranks.ranks[:, -1].tolist(), strict=True)) if ranks else {}
    differences = differences_from_reference(results)
    worst = {row.result: ResultCell(100 * row.worst, text=row.worst_task) for row in differences}
    areas = [method.area for method in methods]
    columns = {
        ResultColumn(benchmark, str(horizon)): compared_cells(methods, horizon),
        ResultColumn(benchmark, "area"): [ResultCell(None if isnan(area) else 100 * area) for area in areas],
        ResultColumn(benchmark, "rank"): [ResultCell(final_ranks.get(method.method)) for method in methods],
        ResultColumn(benchmark, f"worst against {REFERENCE}"): [worst.get(method, ResultCell()) for method in methods],
    }
    notes = (
        f"{horizon}: 100 x ADTM after {horizon} evaluations, marked as in the other tables; area: its mean over all "
        f"evaluations; worst against {REFERENCE}: the largest difference of a task's mean regret, x 100, and the task.",
        *([_rank_note(ranks)] if ranks else ()),
        coverage_note(benchmark, [(method.method, method) for method in methods]),
        *comparison_notes(methods),
    )
    return ResultTable(SUMMARY, f"Summary of {benchmark}", tuple(columns), (_block(methods, columns.values()),), notes)


def _rank_note(ranks: aggregate.AverageRanks) -> str:
    count, tasks = len(ranks.methods), ranks.tasks
    note = f"rank: mean among {count} methods without suffix, over {ranks.runs} runs on {tasks} tasks"
    if count < 2 or tasks < 2:
        return f"{note}."
    difference = critical_difference(count, tasks)
    return f"{note}; ranks that differ by less than {difference:.2f} are not significantly different (Nemenyi)."


def _seconds_table(results: BenchmarkResults) -> ResultTable:
    benchmark = results.benchmark
    methods = [method for method in _in_paper_order(results) if not isnan(method.seconds)]
    if not methods:
        raise InputError(
            f"table: expected runs on {benchmark} with times, got none; packed results do not have them, so use the "
            "folder of the experiment"
        )
    column, cells = ResultColumn(benchmark, "seconds", ".3g"), [ResultCell(method.seconds) for method in methods]
    notes = ("Per suggestion; mean over all evaluations, tasks and repetitions.",)
    return ResultTable(SECONDS, f"Seconds on {benchmark}", (column,), (_block(methods, [cells]),), notes)


def _block(methods: Sequence[MethodResult], columns: Iterable[Sequence[ResultCell]]) -> tuple[ResultTableRow, ...]:
    rows = zip(methods, zip(*columns, strict=True), strict=True)
    return tuple(ResultTableRow(method.method, method.method, cells) for method, cells in rows)


class _Markup(NamedTuple):
    """How a format marks numbers and escapes text."""

    marks: dict[Mark, str]
    escapes: dict[int, str]

    def text(self, text: str) -> str:
        """Return text as the format writes it."""
        return text.translate(self.escapes)

    def row(self, table: ResultTable, row: ResultTableRow) -> list[str]:
        """Return the label and the cells of a row."""
        return [self.text(row.label), *map(self._cell, row.cells, table.columns)]

    def _cell(self, cell: ResultCell, column: ResultColumn) -> str:
        """Return a number, and in parentheses the paper's value or a text."""
        own = EMPTY if cell.value is None else self.marks[cell.mark].format(column.format(cell.value))
        beside = self.text(cell.text)
        if cell.published is not None:
            beside = self.marks[cell.published.mark].format(column.format(cell.published.value))
        return f"{own} ({beside})" if beside else own


_MARKDOWN = _Markup(
    {"best": "<ins>**{}**</ins>", "even": "**{}**", "": "{}"}, str.maketrans({sign: f"\\{sign}" for sign in "*|_<"})
)
_COMMANDS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX = _Markup(
    {"best": r"\underline{{\textbf{{{}}}}}", "even": r"\textbf{{{}}}", "": "{}"},
    str.maketrans(_COMMANDS | {sign: f"\\{sign}" for sign in "&%$#_{}"}),
)


def render_tables(tables: Sequence[ResultTable], output_format: str) -> str:
    """Return tables as text in the format markdown, latex or csv."""
    match output_format:
        case "markdown":
            return "\n".join(map(_markdown_table, tables))
        case "latex":
            return "\n".join(["% \\usepackage{booktabs,graphicx}", *map(_latex_table, tables)])
        case "csv":
            return _csv(tables)
    raise InputError(f"format: expected markdown, latex or csv, got {output_format!r}")


def _csv(tables: Sequence[ResultTable]) -> str:
    """Return one line per cell, with a header."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for table in tables:
        for number, block in enumerate(table.blocks, start=1):
            for row in block:
                for column, cell in zip(table.columns, row.cells, strict=True):
                    position = [table.name, number, row.label, row.method, column.benchmark, column.heading]
                    own = "" if cell.value is None else column.format(cell.value)
                    beside = (column.format(cell.published.value), cell.published.mark) if cell.published else ("", "")
                    writer.writerow([*position, own, cell.mark, cell.text, *beside])
    return buffer.getvalue()


def headings(columns: Sequence[ResultColumn]) -> list[str]:
    """Return a heading per column, as short as possible."""
    benchmarks = {column.benchmark for column in columns}
    if len(benchmarks) == 1 < len(columns):
        return [column.heading for column in columns]
    # As in the paper: one column per benchmark is after 50 evaluations unless stated otherwise.
    implied = f" {paper.LAST_EVALUATION}" if len(benchmarks) == len(columns) else ""
    return [f"{column.benchmark} {column.heading}".removesuffix(implied) for column in columns]


def _markdown_table(table: ResultTable) -> str:
    text = _MARKDOWN.text
    rows = [["method", *map(text, headings(table.columns))], ["---", *["---:"] * len(table.columns)]]
    for index, block in enumerate(table.blocks):
        if index > 0:
            rows.append([""] * (len(table.columns) + 1))
        rows += [_MARKDOWN.row(table, row) for row in block]
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    notes = "\n".join(f"- {text(note)}" for note in table.notes)
    return f"### {text(table.title)}\n\n{body}\n\n{notes}\n"


def _latex_table(table: ResultTable) -> str:
    text = _LATEX.text
    groups = [(name, len(list(own))) for name, own in groupby(column.benchmark for column in table.columns)]
    head = [f"method & {' & '.join(map(text, headings(table.columns)))} \\\\"]
    if 1 < len(groups) < len(table.columns):
        spans = [f"\\multicolumn{{{size}}}{{c}}{{{text(name)}}}" for name, size in groups]
        ends = accumulate((size for _, size in groups), initial=1)  # the first column has labels
        rules = [f"\\cmidrule(lr){{{before + 1}-{last}}}" for before, last in pairwise(ends)]
        under = [text(column.heading) for column in table.columns]
        head = [f" & {' & '.join(spans)} \\\\", *rules, f"method & {' & '.join(under)} \\\\"]
    body = []
    for block in table.blocks:
        body += ["\\midrule", *(f"{' & '.join(_LATEX.row(table, row))} \\\\" for row in block)]
    lines = ["\\begin{table}[tb]", "\\centering", "\\small", f"\\caption{{{text(table.title)}}}"]
    lines += [_LIMIT_HEIGHT, _LIMIT_WIDTH, f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}"]
    lines += ["\\toprule", *head, *body, "\\bottomrule", "\\end{tabular}}}"]
    notes = f"\\par\\smallskip\\parbox{{\\linewidth}}{{\\footnotesize {text(' '.join(table.notes))}}}"
    return "\n".join([*lines, notes, "\\end{table}\n"])
