"""Tables of results: values, marks and notes of hand-made runs, their text in three formats, and the command."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recollect import InputError, StorageError
from recollect.bench.layout import Printed
from recollect.bench.overview import make_tables
from recollect.bench.published import ABLATION, MAIN_THIRD
from recollect.bench.results import Finished, Key, append_run, open_runs, pack
from recollect.bench.study import make_study
from recollect.bench.tables import Cell, Column, Line, Table, checkpoints
from recollect.bench.typeset import CSV_FIELDS, headings, number, typeset
from recollect.cli.bench_run import pack as pack_command
from recollect.cli.bench_table import table as command

TASKS = tuple(f"t{number}" for number in range(8))
Levels = dict[str, float]  # method: regret from the first to the last evaluation, on task 0; a little more on others


def runs_of(levels: Levels, benchmark: str = "svm-grid", *, length: int = 50, tasks: int = 8) -> list[Finished]:
    return [
        Finished(
            Key(benchmark, method, task, 0),
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


def tables_of(runs: list[Finished], which: str = "all", benchmarks: tuple[str, ...] = ()) -> list[Table]:
    return make_tables(make_study(runs), which, benchmarks)


def line(table: Table, label: str) -> Line:
    (found,) = (line for block in table.blocks for line in block if line.label == label)
    return found


def test_the_main_table_has_both_benchmarks_of_the_paper_with_its_numbers_beside_ours() -> None:
    runs = runs_of({"gp": 0.4, "rgpe-taf": 0.1}) + runs_of({"gp": 0.2, "rgpe-taf": 0.3}, "adaboost-grid")
    (main,) = tables_of(runs, "main")
    assert [(column.benchmark, column.heading) for column in main.columns] == [
        (benchmark, str(count)) for benchmark in ("adaboost-grid", "svm-grid") for count in (10, 20, 30, 40, 50)
    ]
    assert [len(block) for block in main.blocks] == [len(block) for block in MAIN_THIRD.blocks]
    gp, taf = line(main, "GP"), line(main, "RGPE(TAF)")
    assert gp.cells[4].value == pytest.approx(100 * 0.235)
    assert [cell.mark for cell in gp.cells] == ["best"] * 5 + [""] * 5
    assert [cell.mark for cell in taf.cells] == [""] * 5 + ["best"] * 5
    assert taf.cells[-1].printed == Printed(0.45, "even")
    assert line(main, "SMFO").cells[0] == Cell(None, "", Printed(4.03, "even"))
    assert line(main, "KL-weighting").cells[-1] == Cell()
    assert any("SMFO" in note and "no runs" in note for note in main.notes)
    assert main.title.endswith("on adaboost-grid and svm-grid")


def test_a_benchmark_that_was_not_run_has_no_column() -> None:
    (main,) = tables_of(runs_of({"gp": 0.4}), "main")
    assert {column.benchmark for column in main.columns} == {"svm-grid"}
    assert "adaboost" not in main.title


def test_benchmarks_of_our_own_have_a_main_table_without_numbers_of_the_paper() -> None:
    runs = runs_of({"gp": 0.4, "random": 0.5}, "own-svm") + runs_of({"gp": 0.4})
    theirs, ours = tables_of(runs, "main")
    assert {column.benchmark for column in theirs.columns} == {"svm-grid"}
    assert {column.benchmark for column in ours.columns} == {"own-svm"}
    assert all(cell.printed is None for block in ours.blocks for line in block for cell in line.cells)
    assert line(ours, "Random(10x)").cells[0].value == pytest.approx(53.5)
    assert not any("paper" in note for note in ours.notes)


def test_blocks_of_an_ablation_are_tested_apart() -> None:
    levels = {"rgpe-mean": 0.1, "rgpe-nei": 0.2, "rgpe-taf": 0.5, "rgpe-taf+none": 0.4, "rgpe-mogp": 0.6}
    (ablation,) = tables_of(runs_of(levels, "own-svm") + runs_of(levels, "svm"), "ablation")
    assert [column.benchmark for column in ablation.columns] == ["svm", "own-svm"]
    marks = [[line.cells[0].mark for line in block] for block in ablation.blocks]
    assert marks == [["best", "", "", ""], ["", "best", "", ""], ["", "best", "", ""]]
    assert [line.cells[1].mark for line in ablation.blocks[0]] == ["best", "", "", ""]
    assert line(ablation, "RGPE(MoGP,S=1000)*").cells[0] == Cell(pytest.approx(63.5), "best", Printed(0.30, "best"))
    assert len(ablation.blocks) == len(ABLATION.blocks)


def test_rows_of_which_nobody_says_anything_and_blocks_without_a_comparison_are_left_out() -> None:
    levels = {"rgpe-mean": 0.1, "rgpe-nei": 0.2, "rgpe-taf": 0.5}
    (ours,) = tables_of(runs_of(levels, "own-svm"), "ablation")
    assert [[line.label for line in block] for block in ours.blocks] == [["RGPE(mean)", "RGPE(NEI)"]]
    assert not any("no runs" in note for note in ours.notes)
    (theirs,) = tables_of(runs_of(levels), "ablation")
    assert [len(block) for block in theirs.blocks] == [len(block) for block in ABLATION.blocks]
    with pytest.raises(
        InputError, match="nothing to compare in table 'dilution' on own-svm; it needs runs of tstr-ei, tstr-ei"
    ):
        tables_of(runs_of(levels | {"tstr-ei": 0.3}, "own-svm"), "dilution")


def test_what_methods_are_compared_on_is_said_once_for_all_benchmarks() -> None:
    few = {"ablr": 0.0}
    runs = [
        run
        for name in ("svm-grid", "adaboost-grid")
        for run in runs_of({"gp": 0.4}, name) + runs_of(few, name, tasks=2)
    ]
    (main,) = tables_of(runs, "main")
    assert sum(note.count("that both have") for note in main.notes) == 1


def test_a_method_with_fewer_tasks_shows_its_own_mean_and_says_so() -> None:
    runs = runs_of({"gp": 0.4, "rgpe-taf": 0.3}) + runs_of({"ablr": 0.0}, tasks=2)
    (main,) = tables_of(runs, "main")
    ablr = line(main, "ABLR").cells[-1]
    assert (ablr.value, ablr.mark) == (pytest.approx(0.5), "even")
    assert line(main, "RGPE(TAF)").cells[-1].mark == "best"
    (note,) = (note for note in main.notes if note.startswith("svm-grid"))
    assert "8 tasks, 1 repetition" in note
    assert "ABLR: 2 tasks" in note
    assert sum("on the tasks and repetitions that both have" in note for note in main.notes) == 1


def test_short_experiments_are_shown_as_far_as_they_go() -> None:
    assert checkpoints(50) == (10, 20, 30, 40, 50)
    assert checkpoints(25) == (10, 20, 25)
    assert checkpoints(6) == (6,)
    assert checkpoints(100) == (10, 20, 30, 40, 50, 100)
    tables = tables_of(runs_of({"rgpe-mean": 0.2, "gp": 0.1}, length=25))
    by_name = {table.name: table for table in tables}
    assert [column.heading for column in by_name["main"].columns] == ["10", "20", "25"]
    assert [column.heading for column in by_name["ablation"].columns] == ["25"]
    assert line(by_name["ablation"], "RGPE(mean)").cells[0].printed is None
    assert line(by_name["main"], "GP").cells[0].printed == Printed(9.66, "")


def test_the_rho_table_is_made_of_runs_with_different_values() -> None:
    runs = []
    for benchmark, (low, high) in {"svm-grid": (0.1, 0.2), "adaboost-grid": (0.4, 0.3)}.items():
        runs += runs_of({"tstr-ei+rho0.1": low, "tstr-ei+rho0.9": high}, benchmark)
    (rho,) = tables_of(runs, "rho", ("svm-grid",))
    values = {line.label: line.cells[0].value for line in rho.blocks[0] if line.cells[0].value is not None}
    assert values == {
        "TST-R(EI)": pytest.approx(23.5),
        "TST-R(EI,HPO)": pytest.approx(13.5),
        "TST-R(EI,HPO,adaboost-grid)": pytest.approx(23.5),
        "TST-R(EI,HPO,svm-grid)": pytest.approx(13.5),
    }
    assert "TST-R(EI): rho = 0.9 on svm-grid." in rho.notes


def test_the_rho_table_has_rows_for_benchmarks_of_our_own() -> None:
    runs = []
    for benchmark, (low, high) in {"own-svm": (0.1, 0.2), "own-mlp": (0.4, 0.3)}.items():
        runs += runs_of({"tstr-ei+rho0.1": low, "tstr-ei+rho0.9": high}, benchmark)
    (rho,) = tables_of(runs, "rho")
    assert [(line.label, line.cells[1].value) for line in rho.blocks[0]] == [
        ("TST-R(EI)", pytest.approx(23.5)),
        ("TST-R(EI,HPO)", pytest.approx(13.5)),
        ("TST-R(EI,HPO,own-mlp)", pytest.approx(23.5)),
        ("TST-R(EI,HPO,own-svm)", pytest.approx(13.5)),
    ]


def test_the_value_of_rho_is_chosen_by_the_regret_that_the_table_shows() -> None:
    runs = []
    for task in ("a", "b", "c"):
        for method, (middle, end) in {"tstr-ei+rho0.1": (0.2, 0.2), "tstr-ei+rho0.9": (0.3, 0.1)}.items():
            values = np.repeat([middle, end], 50)
            runs.append(Finished(Key("own-svm", method, task, 0), 0, 0.0, 1.0, values, None, 0.1, "0"))
    (rho,) = tables_of(runs, "rho")
    assert line(rho, "TST-R(EI,HPO)").cells[0].value == pytest.approx(20.0)


def test_all_methods_are_listed_in_the_papers_order_with_what_it_says_of_them() -> None:
    runs = runs_of({"mtgp": 0.3, "gp": 0.2, "random": 0.5, "rgpe-taf+copula": 0.1, "rgpe-taf": 0.2})
    runs += [Finished(Key("svm-grid", "gp", "t0", 1), 0, 0.0, 1.0, np.full(50, 0.1), None, 0.1, "0")]
    (everything,) = tables_of(runs, "methods")
    (block,) = everything.blocks
    assert [line.label for line in block] == [
        *("gp", "random", "random-2x", "random-4x", "random-10x", "rgpe-taf", "rgpe-taf+copula", "mtgp")
    ]
    assert [column.heading for column in everything.columns] == ["tasks", "repetitions", "10", "20", "30", "40", "50"]
    assert block[0].cells[:2] == (Cell(8), Cell(1, word="to 2"))
    assert line(everything, "rgpe-taf+copula").cells[-1].printed == Printed(0.35, "best")
    assert line(everything, "rgpe-taf+copula").cells[-2].printed is None


def test_the_summary_has_area_rank_and_worst_task_and_seconds_are_apart() -> None:
    runs = runs_of({"gp": 0.4, "smfo": 0.2, "smfo+copula": 0.0})
    runs += [Finished(Key("svm-grid", "kl", task, 0), 0, 0.0, 1.0, np.full(50, 0.44), None, 0.5, "0") for task in TASKS]
    runs += runs_of({"wac": 0.9}, tasks=1)
    (summary,) = tables_of(runs, "summary")
    assert [column.heading for column in summary.columns] == ["50", "area", "rank", "worst against gp"]
    cells = {line.label: [(cell.value, cell.word) for cell in line.cells] for line in summary.blocks[0]}
    assert cells["gp"][1] == (pytest.approx(43.5), "")
    assert cells["gp"][3] == (None, "")
    assert cells["kl"][3] == (pytest.approx(4.0), "t0")
    assert cells["smfo"][3] == (pytest.approx(-20.0), cells["smfo"][3][1])
    assert [cells[name][2][0] for name in ("smfo", "smfo+copula", "wac")] == [1.0, None, None]
    assert cells["gp"][2][0] == pytest.approx((4 * 2 + 2.5 + 3 * 3) / 8)  # kl is worse on t0-t3, equal on t4
    (seconds,) = tables_of(runs, "seconds")
    assert {line.label: line.cells[0].value for line in seconds.blocks[0]}["kl"] == 0.5
    packed = [replace(run, seconds=float("nan")) for run in runs]
    with pytest.raises(InputError, match="packed results do not have them"):
        tables_of(packed, "seconds")
    assert any("among 3 methods without suffix, over 8 runs on 8 tasks" in note for note in summary.notes)


def test_searches_with_more_evaluations_have_no_rank() -> None:
    (summary,) = tables_of(runs_of({"gp": 0.4, "random": 0.2}), "summary")
    ranks = {line.label: line.cells[2].value for line in summary.blocks[0]}
    assert ranks == {"gp": 2.0, "random": 1.0, "random-2x": None, "random-4x": None, "random-10x": None}


@pytest.mark.parametrize("form", ["markdown", "latex", "csv"])
def test_the_same_runs_in_any_order_and_however_long_they_took_give_the_same_bytes(form: str) -> None:
    rng = np.random.default_rng(0)
    runs = [
        Finished(Key(name, method, task, repetition), 0, 0.0, 1.0, rng.random(50), None, rng.random(), "0")
        for name in ("svm-grid", "own_x")
        for method in ("gp", "random", "tstr-ei+rho0.1", "tstr-ei+rho0.7", "rgpe-taf", "rgpe-nei")
        for task in TASKS
        for repetition in range(3)
    ]
    first = typeset(tables_of(runs), form)
    again = [replace(runs[place], seconds=rng.random()) for place in rng.permutation(len(runs))]
    assert first == typeset(tables_of(again), form)
    assert first.isascii()


CELLS = (
    Cell(0.4567, "best", Printed(0.5, "even")),
    Cell(1.234, "even"),
    Cell(None, "", Printed(2.0, "")),
    Cell(),
    Cell(-0.001, "", None, "a_b & 50%"),
)
SMALL = Table(
    "small",
    "A title_with #1",
    tuple(
        Column(benchmark, heading) for benchmark, heading in zip("aaabb", ("10", "20", "50", "10", "50"), strict=True)
    ),
    ((Line("X(a)*", "x", CELLS),), (Line("Y", "y", (Cell(),) * 5),)),
    ("A note.",),
)


def test_markdown_marks_the_best_with_a_line_and_what_is_even_bold() -> None:
    lines = typeset([SMALL], "markdown").splitlines()
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
    text = typeset([SMALL], "latex")
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
    text = typeset(tables, "latex")
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
    rows = list(csv.DictReader(io.StringIO(typeset([SMALL], "csv"))))
    assert len(rows) == 10
    assert tuple(rows[0]) == CSV_FIELDS
    assert rows[0] == dict(
        zip(CSV_FIELDS, ["small", "1", "X(a)*", "x", "a", "10", "0.46", "best", "", "0.50", "even"], strict=True)
    )
    assert [rows[2][name] for name in ("value", "mark", "paper")] == ["", "", "2.00"]
    assert rows[4]["word"] == "a_b & 50%"
    assert (rows[5]["block"], rows[5]["method"]) == ("2", "y")


def test_headings_are_as_short_as_can_be() -> None:
    def of(*pairs: tuple[str, str]) -> list[str]:
        return headings([Column(benchmark, heading) for benchmark, heading in pairs])

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
    assert number(value, form) == text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda runs: tables_of(runs, "nonsense"), "expected main, ablation, .* got 'nonsense'"),
        (lambda runs: tables_of(runs, "main", ("nn",)), "no run on benchmark 'nn'; there are runs on svm-grid"),
        (
            lambda runs: tables_of(runs, "versions"),
            "nothing to compare in table 'versions' on svm-grid; it needs runs of rgpe-cf",
        ),
        (lambda runs: typeset(tables_of(runs), "html"), "expected markdown, latex, csv, got 'html'"),
    ],
)
def test_what_cannot_be_shown_is_refused(call: Callable[[list[Finished]], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(runs_of({"gp": 0.1}))


def test_the_command_reads_folders_and_files_and_prints_or_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, packed = tmp_path / "one", tmp_path / "two.csv.gz"
    open_runs(folder / "runs.csv")
    for run in runs_of({"gp": 0.4}):
        append_run(folder / "runs.csv", run)
    pack(runs_of({"rgpe-taf": 0.1}), packed)
    command([folder, packed], which="main")
    shown = capsys.readouterr().out
    assert "| GP | 43.50 (9.66) |" in shown
    assert "| RGPE(TAF) | <ins>**13.50**</ins> (<ins>**2.95**</ins>) |" in shown
    out = tmp_path / "new" / "table.md"
    command([folder, packed], which="main", out=out)
    assert out.read_text() == shown
    assert capsys.readouterr().out == f"{out}\n"
    command([folder, packed], which="main", form="csv", benchmark=["svm-grid"])
    assert capsys.readouterr().out.startswith("table,block,row,method,benchmark,column,value")
    alone = runs_of({"gp": 0.9})[0]
    append_run(folder / "runs.csv", replace(alone, key=alone.key._replace(repetition=7)))
    command([folder, packed], which="main")
    assert capsys.readouterr().out != shown
    command([folder, packed], which="main", common=True)
    assert capsys.readouterr().out == shown


def test_results_are_not_written_over_by_what_is_made_of_them(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    pack(runs_of({"gp": 0.2}), file)
    before = file.read_bytes()
    for given in (file, tmp_path):
        with pytest.raises(InputError, match="results are read from there"):
            command([given], out=file)
        with pytest.raises(InputError, match="results are read from there"):
            pack_command([given], out=file)
    with pytest.raises(InputError, match=r"x\.zip: expected a name that ends in \.csv\.gz, or \.csv"):
        pack_command([file], out=tmp_path / "x.zip")
    assert file.read_bytes() == before


def test_names_are_no_markup() -> None:
    runs = [replace(run, key=run.key._replace(task=f"<b>{run.key.task}")) for run in runs_of({"gp": 0.2, "wac": 0.3})]
    assert "(\\<b>t" in typeset(tables_of(runs, "summary"), "markdown")


def test_the_command_says_what_is_wrong_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    pack(runs_of({"gp": 0.4}), tmp_path / "runs.csv.gz")
    with pytest.raises(InputError, match="expected a file of results, but there is none"):
        command([path])
    with pytest.raises(InputError, match="is both in"):
        command([tmp_path / "runs.csv.gz", tmp_path / "runs.csv.gz"])
    with pytest.raises(StorageError, match="the file cannot be written: Is a directory"):
        command([tmp_path / "runs.csv.gz"], out=tmp_path)
