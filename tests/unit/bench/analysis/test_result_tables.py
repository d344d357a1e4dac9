"""Tables of results: values, marks and notes of hand-made runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.result_tables import TASKS, row_of, runs_of, tables_of

from recollect import InputError
from recollect.bench.analysis.result_tables import ResultCell, checkpoints
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.bench.paper.published import LAYOUTS, MAIN_TABLES, PublishedValue

(ABLATION,) = (layout for layout in LAYOUTS if layout.name == "ablation")


def test_the_main_table_has_both_benchmarks_of_the_paper_with_its_numbers_beside_ours() -> None:
    runs = runs_of({"gp": 0.4, "rgpe-taf": 0.1}) + runs_of({"gp": 0.2, "rgpe-taf": 0.3}, "adaboost-grid")
    (main,) = tables_of(runs, "main")
    assert [(column.benchmark, column.heading) for column in main.columns] == [
        (benchmark, str(count)) for benchmark in ("adaboost-grid", "svm-grid") for count in (10, 20, 30, 40, 50)
    ]
    assert [len(block) for block in main.blocks] == [len(block) for block in MAIN_TABLES[2].blocks]
    gp, taf = row_of(main, "GP"), row_of(main, "RGPE(TAF)")
    assert gp.cells[4].value == pytest.approx(100 * 0.235)
    assert [cell.mark for cell in gp.cells] == ["best"] * 5 + [""] * 5
    assert [cell.mark for cell in taf.cells] == [""] * 5 + ["best"] * 5
    assert taf.cells[-1].published == PublishedValue(0.45, "even")
    assert row_of(main, "SMFO").cells[0] == ResultCell(None, "", PublishedValue(4.03, "even"))
    assert row_of(main, "KL-weighting").cells[-1] == ResultCell()
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
    assert all(cell.published is None for block in ours.blocks for row in block for cell in row.cells)
    assert row_of(ours, "Random(10x)").cells[0].value == pytest.approx(53.5)
    assert not any("paper" in note for note in ours.notes)


def test_blocks_of_an_ablation_are_tested_apart() -> None:
    levels = {"rgpe-mean": 0.1, "rgpe-nei": 0.2, "rgpe-taf": 0.5, "rgpe-taf+none": 0.4, "rgpe-mogp": 0.6}
    (ablation,) = tables_of(runs_of(levels, "own-svm") + runs_of(levels, "svm"), "ablation")
    assert [column.benchmark for column in ablation.columns] == ["svm", "own-svm"]
    marks = [[row.cells[0].mark for row in block] for block in ablation.blocks]
    assert marks == [["best", "", "", ""], ["", "best", "", ""], ["", "best", "", ""]]
    assert [row.cells[1].mark for row in ablation.blocks[0]] == ["best", "", "", ""]
    assert row_of(ablation, "RGPE(MoGP,S=1000)*").cells[0] == ResultCell(
        pytest.approx(63.5), "best", PublishedValue(0.30, "best")
    )
    assert len(ablation.blocks) == len(ABLATION.blocks)


def test_rows_without_values_and_blocks_with_nothing_to_compare_are_left_out() -> None:
    levels = {"rgpe-mean": 0.1, "rgpe-nei": 0.2, "rgpe-taf": 0.5}
    (ours,) = tables_of(runs_of(levels, "own-svm"), "ablation")
    assert [[row.label for row in block] for block in ours.blocks] == [["RGPE(mean)", "RGPE(NEI)"]]
    assert not any("no runs" in note for note in ours.notes)
    (theirs,) = tables_of(runs_of(levels), "ablation")
    assert [len(block) for block in theirs.blocks] == [len(block) for block in ABLATION.blocks]
    with pytest.raises(
        InputError, match="nothing to compare in table 'dilution' on own-svm; it needs runs of tstr-ei, tstr-ei"
    ):
        tables_of(runs_of(levels | {"tstr-ei": 0.3}, "own-svm"), "dilution")


def test_the_note_on_compared_runs_occurs_once_for_all_benchmarks() -> None:
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
    ablr = row_of(main, "ABLR").cells[-1]
    assert (ablr.value, ablr.mark) == (pytest.approx(0.5), "even")
    assert row_of(main, "RGPE(TAF)").cells[-1].mark == "best"
    (note,) = (note for note in main.notes if note.startswith("svm-grid"))
    assert "8 tasks, 1 repetition" in note
    assert "ABLR: 2 tasks" in note
    assert sum("on the tasks and repetitions that both have" in note for note in main.notes) == 1


def test_short_experiments_are_shown_up_to_their_horizon() -> None:
    assert checkpoints(50) == (10, 20, 30, 40, 50)
    assert checkpoints(25) == (10, 20, 25)
    assert checkpoints(6) == (6,)
    assert checkpoints(100) == (10, 20, 30, 40, 50, 100)
    tables = tables_of(runs_of({"rgpe-mean": 0.2, "gp": 0.1}, length=25))
    by_name = {table.name: table for table in tables}
    assert [column.heading for column in by_name["main"].columns] == ["10", "20", "25"]
    assert [column.heading for column in by_name["ablation"].columns] == ["25"]
    assert row_of(by_name["ablation"], "RGPE(mean)").cells[0].published is None
    assert row_of(by_name["main"], "GP").cells[0].published == PublishedValue(9.66, "")


def test_the_rho_table_is_made_of_runs_with_different_values() -> None:
    runs = []
    for benchmark, (low, high) in {"svm-grid": (0.1, 0.2), "adaboost-grid": (0.4, 0.3)}.items():
        runs += runs_of({"tstr-ei+rho0.1": low, "tstr-ei+rho0.9": high}, benchmark)
    (rho,) = tables_of(runs, "rho", ("svm-grid",))
    values = {row.label: row.cells[0].value for row in rho.blocks[0] if row.cells[0].value is not None}
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
    assert [(row.label, row.cells[1].value) for row in rho.blocks[0]] == [
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
            runs.append(CompletedRun(RunKey("own-svm", method, task, 0), 0, 0.0, 1.0, values, None, 0.1, "0"))
    (rho,) = tables_of(runs, "rho")
    assert row_of(rho, "TST-R(EI,HPO)").cells[0].value == pytest.approx(20.0)


def test_all_methods_are_listed_in_the_papers_order_with_its_values() -> None:
    runs = runs_of({"mtgp": 0.3, "gp": 0.2, "random": 0.5, "rgpe-taf+copula": 0.1, "rgpe-taf": 0.2})
    runs += [CompletedRun(RunKey("svm-grid", "gp", "t0", 1), 0, 0.0, 1.0, np.full(50, 0.1), None, 0.1, "0")]
    (everything,) = tables_of(runs, "methods")
    (block,) = everything.blocks
    assert [row.label for row in block] == [
        *("gp", "random", "random-2x", "random-4x", "random-10x", "rgpe-taf", "rgpe-taf+copula", "mtgp")
    ]
    assert [column.heading for column in everything.columns] == ["tasks", "repetitions", "10", "20", "30", "40", "50"]
    assert block[0].cells[:2] == (ResultCell(8), ResultCell(1, text="to 2"))
    assert row_of(everything, "rgpe-taf+copula").cells[-1].published == PublishedValue(0.35, "best")
    assert row_of(everything, "rgpe-taf+copula").cells[-2].published is None


def test_the_summary_has_area_rank_and_worst_task_and_seconds_have_their_own_table() -> None:
    runs = runs_of({"gp": 0.4, "smfo": 0.2, "smfo+copula": 0.0})
    runs += [
        CompletedRun(RunKey("svm-grid", "kl", task, 0), 0, 0.0, 1.0, np.full(50, 0.44), None, 0.5, "0")
        for task in TASKS
    ]
    runs += runs_of({"wac": 0.9}, tasks=1)
    (summary,) = tables_of(runs, "summary")
    assert [column.heading for column in summary.columns] == ["50", "area", "rank", "worst against gp"]
    cells = {row.label: [(cell.value, cell.text) for cell in row.cells] for row in summary.blocks[0]}
    assert cells["gp"][1] == (pytest.approx(43.5), "")
    assert cells["gp"][3] == (None, "")
    assert cells["kl"][3] == (pytest.approx(4.0), "t0")
    assert cells["smfo"][3] == (pytest.approx(-20.0), cells["smfo"][3][1])
    assert [cells[name][2][0] for name in ("smfo", "smfo+copula", "wac")] == [1.0, None, None]
    assert cells["gp"][2][0] == pytest.approx((4 * 2 + 2.5 + 3 * 3) / 8)  # kl is worse on t0-t3, equal on t4
    (seconds,) = tables_of(runs, "seconds")
    assert {row.label: row.cells[0].value for row in seconds.blocks[0]}["kl"] == 0.5
    packed = [replace(run, seconds=float("nan")) for run in runs]
    with pytest.raises(InputError, match="packed results do not have them"):
        tables_of(packed, "seconds")
    assert any("among 3 methods without suffix, over 8 runs on 8 tasks" in note for note in summary.notes)
    assert any("1.17" in note for note in summary.notes)  # 2.343 sqrt(3 * 4 / (6 * 8)), Demsar (2006)


def test_searches_with_more_evaluations_have_no_rank() -> None:
    (summary,) = tables_of(runs_of({"gp": 0.4, "random": 0.2}), "summary")
    ranks = {row.label: row.cells[2].value for row in summary.blocks[0]}
    assert ranks == {"gp": 2.0, "random": 1.0, "random-2x": None, "random-4x": None, "random-10x": None}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda runs: tables_of(runs, "nonsense"), "expected main, ablation, .* got 'nonsense'"),
        (lambda runs: tables_of(runs, "main", ("nn",)), "no run on benchmark 'nn'; there are runs on svm-grid"),
        (
            lambda runs: tables_of(runs, "versions"),
            "nothing to compare in table 'versions' on svm-grid; it needs runs of rgpe-cf",
        ),
    ],
)
def test_tables_without_results_are_refused(call: Callable[[list[CompletedRun]], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(runs_of({"gp": 0.1}))
