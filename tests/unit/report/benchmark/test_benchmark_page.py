"""The report on benchmarks: its numbers are those of the runs, its sentences say what they show; few runs suffice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata
from tests.helpers.drawings import check_drawable, figures_of
from typer.testing import CliRunner

from recollect.bench.analysis.aggregate import BenchmarkResults, aggregate_runs
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.bench.experiment.results import pack_results, read_results
from recollect.cli.bench import app
from recollect.errors import InputError
from recollect.report.benchmark.benchmark_figures import (
    ALL_BANDS,
    difference_figure,
    difference_from_reference_figure,
    mean_regret_figure,
    rank_figure,
    regret_figures,
)
from recollect.report.benchmark.benchmark_page import PAPER_TABLES, bench_page, summary_sentences
from recollect.report.figure import Figure
from recollect.report.page import Section, render
from recollect.report.table import Table

pytest.importorskip("plotly.graph_objects", reason="pages embed plotly's script")

RESULTS = Path(__file__).parents[4] / "benchmarks" / "results" / "grids.csv.gz"
MANY = (
    *("gp", "random", "gcp", "gp-box", "random-box", "smfo", "wac", "tstr-ei", "tstr-taf", "rgpe-mean", "rgpe-ei"),
    *("rgpe-nei", "rgpe-mogp", "rgpe-taf", "rgpe-taf+copula"),
)


def run(
    method: str, task: str, values: Sequence[float], *, repetition: int = 0, benchmark: str = "toy"
) -> CompletedRun:
    return CompletedRun(RunKey(benchmark, method, task, repetition), 0, 0.0, 1.0, np.array(values), None, 0.1, "0")


def made_up(methods: Sequence[str], *, tasks: int = 6, t: int = 12, benchmark: str = "toy") -> list[CompletedRun]:
    rng = np.random.default_rng(0)
    return [
        run(method, f"task {task}", rng.random(t) * np.exp(-0.1 * np.arange(t)), benchmark=benchmark)
        for method in methods
        for task in range(tasks)
    ]


def results_of(runs: Sequence[CompletedRun]) -> BenchmarkResults:
    return aggregate_runs(runs).benchmarks[runs[0].key.benchmark]


def three() -> BenchmarkResults:
    """gp, slow and quick on two tasks, three evaluations; quick is lower at once, but worse on task b at the end."""
    values = {
        "gp": {"a": [0.8, 0.4, 0.2], "b": [0.6, 0.4, 0.1]},
        "quick": {"a": [0.3, 0.1, 0.0], "b": [0.3, 0.2, 0.2]},
        "slow": {"a": [0.9, 0.8, 0.8], "b": [0.9, 0.9, 0.6]},
    }
    return results_of([run(method, task, line) for method, tasks in values.items() for task, line in tasks.items()])


def tables_of(section: Section) -> list[Table]:
    return [part for part in section.parts if isinstance(part, Table)]


def test_all_figures_of_many_methods_are_what_plotly_can_draw() -> None:
    names = []
    for figure in figures_of(bench_page(made_up(MANY))):
        check_drawable(figure)
        names += re.findall(r"@(\w+)", str((figure.traces, figure.layout)))
    assert len(set(names)) > 6


def test_each_figure_asks_a_question_answers_it_and_has_numbers() -> None:
    found = list(figures_of(bench_page(made_up(MANY))))
    assert len({figure.question for figure in found}) == len(found) >= 8
    for figure in found:
        assert figure.question.endswith("?")
        assert figure.caption.endswith(".")
        assert figure.table.blocks[0]


def test_lines_of_a_figure_differ_in_more_than_colour_and_the_references_are_always_alike() -> None:
    for figure in regret_figures(results_of(made_up(MANY))):
        looks = [(key.colour, key.dash) for key in figure.keys if key.colour]
        assert len(set(looks)) == len(looks)
        named = {key.label: (key.colour, key.dash) for key in figure.keys}
        assert named["gp"] == ("ink", "")
        assert named["random"][0] == "grey"
        assert figure.keys[-1].label == ALL_BANDS


def test_curves_are_mean_regrets_in_percent() -> None:
    (figure,) = regret_figures(three())
    lines = {trace["customdata"][0][0]: trace["y"] for trace in figure.traces if "customdata" in trace}
    assert lines["gp"] == [70.0, 40.0, 15.0]
    assert lines["quick"] == [30.0, 15.0, 10.0]
    assert [key.label for key in figure.keys] == ["quick", "gp", "slow", ALL_BANDS]
    assert figure.caption.startswith("quick ends lowest, at 10.00% after 3 evaluations (gp 15.00%).")
    shown = {row[0].content: [cell.sort_key for cell in row[1:]] for row in figure.table.blocks[0]}
    assert shown["slow"] == pytest.approx([70.0])


def test_the_lowest_line_has_its_band_and_the_others_have_theirs_on_demand() -> None:
    (figure,) = regret_figures(three())
    bands = [place for place, trace in enumerate(figure.traces) if trace.get("fill") == "toself"]
    of_best = next(key for key in figure.keys if key.label == "quick").traces[0]
    assert len(bands) == 3
    assert set(figure.keys[-1].traces) == set(bands) - {of_best}
    assert not figure.keys[-1].on


def test_a_regret_of_nothing_leaves_a_logarithmic_figure_at_the_bottom() -> None:
    runs = [run("gp", task, [0.9, 0.01, 0.0]) for task in "ab"]
    (figure,) = regret_figures(results_of(runs))
    line = figure.traces[-1]
    assert figure.layout["yaxis"]["type"] == "log"
    assert 0 < line["y"][2] < 10 ** figure.layout["yaxis"]["range"][0]
    assert line["customdata"][2] == ["gp", "0"]


def test_areas_are_means_over_all_evaluations_lowest_first() -> None:
    figure = mean_regret_figure(three())
    assert figure is not None
    assert figure.layout["yaxis"]["ticktext"] == ["quick", "gp", "slow"]
    np.testing.assert_allclose(figure.traces[0]["x"], [110 / 6, 250 / 6, 490 / 6], rtol=1e-3)
    assert "quick has the lowest regret" in figure.caption
    assert "18.33%; gp has 41.67%" in figure.caption


def test_gaps_are_differences_from_gp_on_each_task_and_the_worst_is_marked() -> None:
    figure = difference_from_reference_figure(three())
    assert figure is not None
    dots, worst = figure.traces
    assert figure.layout["yaxis"]["ticktext"] == ["quick", "slow"]
    assert list(zip(dots["y"], [task for _, task in dots["customdata"]], dots["x"], strict=True)) == [
        (0, "a", -20.0),
        (0, "b", 10.0),
        (1, "a", 60.0),
        (1, "b", 50.0),
    ]
    assert worst["x"] == [10.0, 60.0]
    assert "quick loses 10.00 points on b, the least" in figure.caption
    assert "slow loses 60.00 points on a, the most" in figure.caption


def test_ranks_are_averages_over_runs_and_the_best_is_on_top() -> None:
    runs = made_up(["gp", "random", "wac", "gp+paper"], tasks=5)
    results = results_of(runs)
    figure = rank_figure(results)
    assert figure is not None
    curves = {name: results.methods[name].regrets for name in ("gp", "random", "wac")}
    expected = rankdata(np.array(list(curves.values())), axis=0).mean(axis=1)
    order = np.argsort(expected[:, -1], kind="stable")
    assert figure.layout["yaxis"]["ticktext"] == [list(curves)[place] for place in order]
    np.testing.assert_allclose(figure.traces[0]["z"], expected[order], rtol=1e-3)


def test_methods_that_cannot_be_told_apart_are_joined_by_a_bar() -> None:
    rng = np.random.default_rng(1)
    levels = {"gp": 0.1, "wac": 0.1, "random": 0.9}
    runs = [run(name, f"t{i}", [1.0, level + 0.05 * rng.random()]) for name, level in levels.items() for i in range(20)]
    figure = difference_figure(results_of(runs))
    assert figure is not None
    bars = [trace for trace in figure.traces if trace.get("xaxis") == "x2"]
    labels = figure.layout["yaxis"]["ticktext"][1:]
    assert [[labels[row] for row in bar["y"]] for bar in bars] == [["gp", "wac"]]
    assert "1 of 2 others are within the critical difference of 0.74" in figure.caption  # 2.343 sqrt(3 * 4 / (6 * 20))
    assert "random is further behind" in figure.caption


def test_the_summary_says_what_was_run_and_which_method_is_lowest_fastest_and_safest() -> None:
    size, end, average, speed, worst = summary_sentences(three())
    assert re.findall(r"\d+ \w+", size) == ["3 methods", "2 tasks", "1 repetition", "3 evaluations"]
    assert "quick has the lowest regret, 10.00%" in end
    assert "quick has the lowest regret" in average
    assert re.fullmatch(r"quick reaches after 2 evaluations .* gp reaches after 3 \(15.00%\)\.", speed)
    assert "quick loses 10.00 points on b, the least; slow loses 60.00 points on a, the most" in worst


def test_a_method_that_is_never_behind_loses_nothing() -> None:
    lines = {"gp": [0.9, 0.5], "wac": [0.9, 0.4], "kl": [0.9, 0.8]}
    results = results_of([run(method, task, line) for method, line in lines.items() for task in "ab"])
    figure = difference_from_reference_figure(results)
    assert figure is not None
    assert "wac never loses, the least" in figure.caption
    assert summary_sentences(results)[-1].endswith("wac never loses, the least; kl loses 30.00 points on a, the most.")


def test_methods_without_all_tasks_are_named_and_do_not_win() -> None:
    runs = [*made_up(["gp", "wac"], tasks=3), run("kl", "task 0", [0.0] * 12)]
    results = results_of(runs)
    assert "kl (1 task)" in summary_sentences(results)[-1]
    area, gap = mean_regret_figure(results), difference_from_reference_figure(results)
    assert area is not None
    assert area.layout["yaxis"]["ticktext"][-1] == "kl (1 task)"
    assert area.traces[0]["marker"]["symbol"] == ["circle", "circle", "circle-open"]
    assert gap is not None
    assert gap.layout["yaxis"]["ticktext"] == ["wac", "kl (1 task)"]
    difference = difference_figure(results)
    assert difference is not None
    assert "are missing: kl" in difference.more


@pytest.mark.parametrize(
    "runs",
    [
        [run("gp", "a", [0.5])],
        [run("random", "a", [0.5, 0.2])],
        [run("wac", "a", [0.5, 0.2]), run("kl", "b", [0.4, 0.1])],
        [run("wac", task, [0.5, 0.2]) for task in "ab"] + [run("kl", task, [0.4, 0.1]) for task in "cd"],
        [run("gp", "a", [np.nan, np.nan]), run("wac", "a", [np.nan, 0.1])],
        [run("gp", "a", [0.0, 0.0]), run("wac", "a", [0.0, 0.0])],
        [run("gp", "a", [0.5, 0.2, 0.1]), run("wac", "a", [0.4])],
        [run("gp", task, [0.5, 0.2]) for task in "abc"] + [run("wac", "a", [0.1])],
        [run(method, task, [0.5, 0.2][:length]) for method in ("gp", "wac") for task, length in (("a", 2), ("b", 1))],
    ],
    ids=[
        "one evaluation",
        "only random",
        "no common task",
        "two tasks each, none in common",
        "failures",
        "all the same",
        "a run cut short",
        "few tasks",
        "all cut short",
    ],
)
def test_a_page_can_be_made_from_few_runs(runs: list[CompletedRun]) -> None:
    page = bench_page(runs)
    assert [part for section in page.sections for part in section.parts]
    for figure in figures_of(page):
        check_drawable(figure)
        assert "nan" not in figure.caption
    for sentence in summary_sentences(results_of(runs)):
        assert "nan" not in sentence


def test_a_page_has_a_section_for_each_benchmark_and_the_papers_tables() -> None:
    runs = [*made_up(["gp", "random"]), *made_up(["gp", "wac"], benchmark="svm-grid")]
    page = bench_page(runs, source="some.csv")
    assert [section.title for section in page.sections] == ["svm-grid", "toy", PAPER_TABLES]
    assert [table.title for table in tables_of(page.sections[1])] == ["Summary of toy", "All methods on toy"]
    assert page.source == "24 runs in some.csv"
    only = bench_page(runs, benchmarks=["toy"])
    assert only.sections[0].title == "toy"
    assert only.source == "12 runs"
    with pytest.raises(InputError, match="no run on benchmark 'nonsense'"):
        bench_page(runs, benchmarks=["nonsense"])


def test_marks_of_significance_are_visible_and_spoken() -> None:
    runs = [run(name, f"t{i}", [level + 0.01 * i]) for name, level in (("gp", 0.1), ("wac", 0.5)) for i in range(8)]
    (summary, methods) = tables_of(bench_page(runs).sections[0])
    (best, worse) = methods.blocks[0]
    assert '<span class="best">13.50<span class="unseen"> (lowest)</span></span>' in str(best[-1].content)
    assert str(worse[-1].content).count("span") == 0
    assert worse[-1].sort_key == pytest.approx(53.5)
    assert [column.heading for column in summary.columns[:3]] == ["method", "after 1", "area"]


def test_all_results_of_the_repository_make_a_small_page_with_all_methods() -> None:
    page = bench_page([run for run in read_results(RESULTS) if run.key.repetition < 2])
    assert len(render(page).encode()) < 6_000_000
    for section in page.sections[:-1]:
        (summary, _) = tables_of(section)
        area = next(part for part in section.parts if isinstance(part, Figure) and "good all the way" in part.question)
        assert len(area.layout["yaxis"]["ticktext"]) == len(summary.blocks[0]) >= 20
    for figure in figures_of(page):
        assert len(figure.keys) <= 9


def test_the_command_writes_the_page_and_names_it(tmp_path: Path) -> None:
    results, out = tmp_path / "runs.csv.gz", tmp_path / "report.html"
    pack_results(made_up(["gp", "random", "wac"]), results)
    done = CliRunner().invoke(app, ["report", str(results), "--out", str(out), "--benchmark", "toy"])
    assert done.exit_code == 0, done.output
    assert done.output.strip() == str(out)
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "18 runs in runs.csv.gz" in text
