"""Tables as text: Markdown, LaTeX (packages booktabs and graphicx), CSV. The same table gives the same bytes.

The marks are those of the paper's tables: the lowest of a column underlined and bold, what is not significantly
different from it bold. CSV has a line for every cell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from itertools import groupby

from recollect.bench.layout import Mark
from recollect.bench.published import LAST
from recollect.bench.tables import Cell, Column, Line, Table
from recollect.errors import InputError

EMPTY = "-"
CSV_FIELDS = (
    *("table", "block", "row", "method", "benchmark", "column", "value", "mark", "word"),
    *("paper", "paper_mark"),
)
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}

_AT_MOST_HIGH = r"\resizebox*{!}{\ifdim\totalheight>.75\textheight .75\textheight\else\totalheight\fi}{%"
_AT_MOST_WIDE = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def typeset(tables: Sequence[Table], form: str) -> str:
    """Return tables as text; form: markdown, latex or csv."""
    if form not in FORMS:
        raise InputError(f"format: expected {', '.join(FORMS)}, got {form!r}")
    return FORMS[form](tables)


def markdown(tables: Sequence[Table]) -> str:
    """Return pipe tables with headings; blocks of rows are apart by an empty row."""
    return "\n".join(_markdown_table(table) for table in tables)


def latex(tables: Sequence[Table]) -> str:
    """Return table environments to be included in a document."""
    return "\n".join(["% \\usepackage{booktabs,graphicx}", *(_latex_table(table) for table in tables)])


def comma_separated(tables: Sequence[Table]) -> str:
    """Return one line a cell, with a header."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_FIELDS)
    for table in tables:
        for number, block in enumerate(table.blocks, start=1):
            for line in block:
                for column, cell in zip(table.columns, line.cells, strict=True):
                    place = [table.name, number, line.label, line.method, column.benchmark, column.heading]
                    writer.writerow([*place, *_csv_cells(cell, column)])
    return buffer.getvalue()


FORMS: dict[str, Callable[[Sequence[Table]], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
}


def headings(columns: Sequence[Column]) -> list[str]:
    """Return one heading a column, as short as can be."""
    benchmarks = {column.benchmark for column in columns}
    if len(benchmarks) == len(columns):  # as in the paper, after 50 evaluations if nothing else is said
        return [
            column.benchmark if column.heading == str(LAST) else f"{column.benchmark} {column.heading}"
            for column in columns
        ]
    if len(benchmarks) == 1:
        return [column.heading for column in columns]
    return [f"{column.benchmark} {column.heading}" for column in columns]


def number(value: float, form: str) -> str:
    """Return a number in this form, and nothing as 0 rather than -0."""
    text = format(value, form)
    return text.lstrip("-") if float(text) == 0 else text


def _csv_cells(cell: Cell, column: Column) -> list[str]:
    own = "" if cell.value is None else number(cell.value, column.form)
    paper = ("", "") if cell.printed is None else (number(cell.printed.value, column.form), cell.printed.mark)
    return [own, cell.mark, cell.word, *paper]


def _cell(cell: Cell, column: Column, marked: Callable[[str, Mark], str], plain: Callable[[str], str]) -> str:
    """A number, and in parentheses the paper's or a word."""
    own = EMPTY if cell.value is None else marked(number(cell.value, column.form), cell.mark)
    beside = plain(cell.word)
    if cell.printed is not None:
        beside = marked(number(cell.printed.value, column.form), cell.printed.mark)
    return f"{own} ({beside})" if beside else own


def _markdown_table(table: Table) -> str:
    rows = [["method", *map(_markdown_text, headings(table.columns))], ["---", *["---:"] * len(table.columns)]]
    for number_, block in enumerate(table.blocks):
        if number_ > 0:
            rows.append([""] * (len(table.columns) + 1))
        rows += [[_markdown_text(line.label), *_cells(table, line, _markdown_mark, _markdown_text)] for line in block]
    body = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    notes = "\n".join(f"- {_markdown_text(note)}" for note in table.notes)
    return f"### {_markdown_text(table.title)}\n\n{body}\n\n{notes}\n"


def _markdown_mark(text: str, mark: Mark) -> str:
    return {"best": f"<ins>**{text}**</ins>", "even": f"**{text}**", "": text}[mark]


def _markdown_text(text: str) -> str:
    for sign in "*|_<":
        text = text.replace(sign, f"\\{sign}")
    return text


def _latex_table(table: Table) -> str:
    rules = [f"\\cmidrule(lr){{{first}-{last}}}" for _, first, last in _groups(table.columns)]
    head = [f"method & {' & '.join(map(_latex_text, headings(table.columns)))} \\\\"]
    if len(rules) > 1 and len(rules) < len(table.columns):
        spans = [f"\\multicolumn{{{z - a + 1}}}{{c}}{{{_latex_text(name)}}}" for name, a, z in _groups(table.columns)]
        under = [_latex_text(column.heading) for column in table.columns]
        head = [f" & {' & '.join(spans)} \\\\", *rules, f"method & {' & '.join(under)} \\\\"]
    body = []
    for block in table.blocks:
        body.append("\\midrule")
        body += [
            f"{_latex_text(line.label)} & {' & '.join(_cells(table, line, _latex_mark, _latex_text))} \\\\"
            for line in block
        ]
    return "\n".join(
        [
            *("\\begin{table}[tb]", "\\centering", "\\small", f"\\caption{{{_latex_text(table.title)}}}"),
            *(_AT_MOST_HIGH, _AT_MOST_WIDE),
            f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            *("\\toprule", *head, *body, "\\bottomrule"),
            "\\end{tabular}}}",
            f"\\par\\smallskip\\parbox{{\\linewidth}}{{\\footnotesize {_latex_text(' '.join(table.notes))}}}",
            "\\end{table}\n",
        ]
    )


def _groups(columns: Sequence[Column]) -> list[tuple[str, int, int]]:
    """Benchmarks with the numbers of their first and last column; the first column of a table holds the labels."""
    found, first = [], 2
    for name, group in groupby(columns, key=lambda column: column.benchmark):
        last = first + len(list(group)) - 1
        found.append((name, first, last))
        first = last + 1
    return found


def _latex_mark(text: str, mark: Mark) -> str:
    return {"best": f"\\underline{{\\textbf{{{text}}}}}", "even": f"\\textbf{{{text}}}", "": text}[mark]


def _latex_text(text: str) -> str:
    return "".join(_SPECIAL.get(sign, sign) for sign in text)


def _cells(table: Table, line: Line, marked: Callable[[str, Mark], str], plain: Callable[[str], str]) -> list[str]:
    return [_cell(cell, column, marked, plain) for column, cell in zip(table.columns, line.cells, strict=True)]
