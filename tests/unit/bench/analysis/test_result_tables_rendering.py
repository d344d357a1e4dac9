"""Tables as text: Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.result_tables import TASKS, runs_of, tables_of

from recollect import InputError
from recollect.bench.analysis.result_tables import (
    CSV_FIELDS,
    ResultCell,
    ResultColumn,
    ResultTable,
    ResultTableRow,
    headings,
    render_tables,
)
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.bench.paper.published import PublishedValue


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_the_same_runs_in_any_order_and_however_long_they_took_give_the_same_bytes(form: str) -> None:
    rng = np.random.default_rng(0)
    runs = [
        CompletedRun(RunKey(name, method, task, repetition), 0, 0.0, 1.0, rng.random(50), None, rng.random(), "0")
        for name in ("svm-grid", "own_x")
        for method in ("gp", "random", "tstr-ei+rho0.1", "tstr-ei+rho0.7", "rgpe-taf", "rgpe-nei")
        for task in TASKS
        for repetition in range(3)
    ]
    first = render_tables(tables_of(runs), form)
    again = [replace(runs[place], seconds=rng.random()) for place in rng.permutation(len(runs))]
    assert first == render_tables(tables_of(again), form)
    assert first.isascii()


CELLS = (
    ResultCell(0.4567, "best", PublishedValue(0.5, "even")),
    ResultCell(1.234, "even"),
    ResultCell(None, "", PublishedValue(2.0, "")),
    ResultCell(),
    ResultCell(-0.001, "", None, "a_b & 50%"),
)
SMALL = ResultTable(
    "small",
    "A title_with #1",
    tuple(
        ResultColumn(benchmark, heading)
        for benchmark, heading in zip("aaabb", ("10", "20", "50", "10", "50"), strict=True)
    ),
    ((ResultTableRow("X(a)*", "x", CELLS),), (ResultTableRow("Y", "y", (ResultCell(),) * 5),)),
    ("A note.",),
)


def test_markdown_marks_the_best_with_a_line_and_what_is_even_bold() -> None:
    lines = render_tables([SMALL], "markdown").splitlines()
    assert lines == [
        *(r"### A title\_with #1", ""),
        "| method | a 10 | a 20 | a 50 | b 10 | b 50 |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        r"| X(a)\* | <ins>**0.46**</ins> (**0.50**) | **1.23** | - (2.00) | - | 0.00 (a\_b & 50%) |",
        "|  |  |  |  |  |  |",
        "| Y | - | - | - | - | - |",
        *("", "- A note."),
    ]


def test_latex_marks_the_best_underlined_and_escapes_what_tex_would_read() -> None:
    text = render_tables([SMALL], "latex")
    assert (
        r"X(a)* & \underline{\textbf{0.46}} (\textbf{0.50}) & \textbf{1.23} & - (2.00) & - & 0.00 (a\_b \& 50\%) \\"
        in text
    )
    assert r"\caption{A title\_with \#1}" in text
    assert r" & \multicolumn{3}{c}{a} & \multicolumn{2}{c}{b} \\" in text
    assert "\\cmidrule(lr){2-4}\n\\cmidrule(lr){5-6}\n" in text
    assert text.count(r"\midrule") == 2


def test_latex_of_all_tables_has_whole_rows_and_closes_what_it_opens() -> None:
    names = ("svm-grid", "adaboost-grid", "own_svm")
    levels = {"gp": 0.3, "random": 0.4, "rgpe-mean": 0.1, "tstr-ei+rho0.1": 0.2, "tstr-ei+wd": 0.3, "rgpe-cfnei": 0.2}
    tables = tables_of([run for name in names for run in runs_of(levels, name)])
    assert {table.name for table in tables} == {
        *("main", "ablation", "transform", "dilution", "rho", "versions", "methods", "summary")
    }
    text = render_tables(tables, "latex")
    plain = re.sub(r"\\[&%$#_{}]", "", text)
    assert plain.count("{") == plain.count("}")
    assert re.findall(r"\\begin{(\w+)}", text).count("tabular") == len(tables) == text.count(r"\end{table}")
    assert not re.search(r"(?<!\\)[_#$^~]", re.sub(r"\\usepackage.*|\\begin.*", "", text))
    for part in plain.split(r"\begin{tabular}")[1:]:
        columns = len(re.match(r"{(lr*)}", part)[1])  # type: ignore[index]
        rows = [row for row in part.split("\n") if row.endswith(r"\\") and "multicolumn" not in row]
        assert rows
        assert {row.count("&") for row in rows} == {columns - 1}


def test_csv_has_a_line_for_every_cell() -> None:
    rows = list(csv.DictReader(io.StringIO(render_tables([SMALL], "csv"))))
    assert len(rows) == 10
    assert tuple(rows[0]) == CSV_FIELDS
    assert rows[0] == dict(
        zip(CSV_FIELDS, ["small", "1", "X(a)*", "x", "a", "10", "0.46", "best", "", "0.50", "even"], strict=True)
    )
    assert [rows[2][name] for name in ("value", "mark", "paper")] == ["", "", "2.00"]
    assert rows[4]["word"] == "a_b & 50%"
    assert (rows[5]["block"], rows[5]["method"]) == ("2", "y")


def test_headings_are_as_short_as_possible() -> None:
    def of(*pairs: tuple[str, str]) -> list[str]:
        return headings([ResultColumn(benchmark, heading) for benchmark, heading in pairs])

    assert of(("a", "50"), ("b", "50")) == ["a", "b"]
    assert of(("a", "50")) == ["a"]
    assert of(("a", "50"), ("b", "8")) == ["a", "b 8"]
    assert of(("a", "10"), ("a", "50")) == ["10", "50"]
    assert of(("a", "10"), ("a", "50"), ("b", "50")) == ["a 10", "a 50", "b 50"]


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [(-0.004, ".2f", "0.00"), (-0.006, ".2f", "-0.01"), (0.02134, ".3g", "0.0213"), (12.0, ".0f", "12")],
)
def test_numbers_have_no_negative_zero(value: float, form: str, text: str) -> None:
    assert ResultColumn("toy", "rank", form).format(value) == text


def test_names_are_escaped() -> None:
    runs = [replace(run, key=run.key._replace(task=f"<b>{run.key.task}")) for run in runs_of({"gp": 0.2, "wac": 0.3})]
    assert "(\\<b>t" in render_tables(tables_of(runs, "summary"), "markdown")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="expected markdown, latex or csv, got 'html'"):
        render_tables([SMALL], "html")
