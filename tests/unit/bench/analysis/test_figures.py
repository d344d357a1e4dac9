"""Figures of finished runs: what they show, that it can be read, and that drawing leaves no traces."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from tests.helpers.figure_runs import FOURTEEN, SHORT, fake_runs, results_of
from typer.testing import CliRunner

from recollect.bench.analysis import figure_style as style
from recollect.bench.analysis.aggregate import aggregate_runs
from recollect.bench.analysis.figure_data import (
    CriticalDifferences,
    line_up_ranks,
    regret_curves,
    weight_evolution,
)
from recollect.bench.analysis.figure_style import house_style, save, spread
from recollect.bench.analysis.figures import (
    difference_figure,
    draw_figures,
    rank_figure,
    regret_figure,
    weight_figure,
)
from recollect.bench.analysis.statistics import RankTest, Repetition, rank_test
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.bench.experiment.results import pack_results
from recollect.cli.bench import figure as figure_command
from recollect.errors import InputError, MissingExtraError, StorageError


def draw_regret(runs: Sequence[CompletedRun]) -> Figure:
    return regret_figure(regret_curves(results_of(runs)))


def fake_test() -> RankTest:
    rng = np.random.default_rng(3)
    return rank_test({name: shifted(rng, shift) for shift, name in enumerate(FOURTEEN)})


def shifted(rng: np.random.Generator, shift: float) -> dict[Repetition, float]:
    return {(str(task), 0): shift + 4 * rng.random() for task in range(20)}


def many_methods() -> RankTest:
    rng = np.random.default_rng(3)
    return rank_test({f"method {number}": shifted(rng, number / 8) for number in range(60)})


FIGURES: dict[str, Callable[[], Figure]] = {
    "regret of many": lambda: draw_regret(fake_runs(FOURTEEN)),
    "regret of few": lambda: draw_regret(fake_runs(SHORT)),
    "tiny regrets": lambda: draw_regret([replace(run, worst=1000) for run in fake_runs(SHORT)]),
    "ranks": lambda: rank_figure(line_up_ranks(aggregate_runs(fake_runs(SHORT)))),
    "weights": lambda: weight_figure(weight_evolution(fake_runs(["rgpe-nei"]))),
    "difference": lambda: difference_figure(CriticalDifferences("toy", fake_test(), 50, ("kl", "mtgp") * 12, 0)),
    "difference of many": lambda: difference_figure(CriticalDifferences("toy", many_methods(), 50, (), 12)),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES.keys())
def test_no_text_overlaps_another_or_leaves_the_figure(draw: Callable[[], Figure]) -> None:
    figure = draw()
    with house_style():
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        beyond = labels_beyond_the_axes(figure)
        texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible() and text not in beyond]
        shown = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in texts]
    assert len(shown) > 3
    for name, box in shown:
        assert box.x0 >= 0, name
        assert box.y0 >= 0, name
        assert box.x1 <= figure.bbox.x1, name
        assert box.y1 <= figure.bbox.y1, name
    for (one, first), (other, second) in combinations(shown, 2):
        width = min(first.x1, second.x1) - max(first.x0, second.x0)
        height = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert width <= 1 or height <= 1, f"{one!r} is written over {other!r}"


@pytest.mark.parametrize(
    ("wanted", "gap", "places"),
    [
        ([0.5, 0.5], 0.2, [0.4, 0.6]),
        ([0.1, 0.5, 0.52, 0.9], 0.1, [0.1, 0.46, 0.56, 0.9]),
        ([0.2, 0.2, 0.2, 0.4], 0.1, [0.1, 0.2, 0.3, 0.4]),
        ([1.0, 1.0], 0.2, [0.8, 1.0]),
        ([0.0, 0.0], 0.2, [0.0, 0.2]),
        ([0.3], 0.2, [0.3]),
        ([], 0.2, []),
    ],
)
def test_names_are_moved_apart_no_further_than_needed(wanted: list[float], gap: float, places: list[float]) -> None:
    np.testing.assert_allclose(spread(np.array(wanted), gap), places, atol=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_names_keep_their_order_their_distance_and_the_panel(values: list[float]) -> None:
    places = spread(np.sort(values), 0.12)
    assert (np.diff(places) >= 0.12 - 1e-12).all()
    assert places[0] >= -1e-12
    assert places[-1] <= 1 + 1e-12


def test_names_too_many_for_the_panel_are_still_apart_and_centred() -> None:
    places = spread(np.zeros(5), 0.5)
    np.testing.assert_allclose(places, [-0.5, 0.0, 0.5, 1.0, 1.5])


def test_regret_curves_are_means_over_tasks_from_the_first_evaluation_on() -> None:
    results = results_of(fake_runs(SHORT))
    (axes,) = regret_figure(regret_curves(results)).axes
    drawn = {tuple(line.get_ydata()): line for line in axes.lines}
    for result in results.methods.values():
        assert drawn[tuple(result.regrets.mean(axis=0))].get_xdata().tolist() == list(range(1, 13))
    assert axes.get_title(loc="left") == "toy"


def test_a_method_with_fewer_tasks_says_so_and_a_line_at_zero_is_explained() -> None:
    runs = [*fake_runs(["gp", "random"], tasks=5), *fake_runs(["mtgp"], tasks=3), *fake_runs(["kl"], tasks=1)]
    changed = [CompletedRun(run.key, 0, 0.0, 1.0, run.values * (run.key.method != "kl"), None, 0, "0") for run in runs]
    texts = all_texts(draw_regret(changed))
    assert {"gp", "mtgp (3 tasks)", "kl (1 task)"} <= texts
    assert any("leaves the panel at the bottom" in text for text in texts)
    assert not any("leaves the panel" in text for text in all_texts(draw_regret(fake_runs(SHORT))))


def test_a_curve_of_runs_that_ended_early_is_named_where_it_ends() -> None:
    assert "mtgp" in all_texts(draw_regret([*fake_runs(SHORT), *fake_runs(["mtgp"], t=6)]))


def test_ranks_of_two_methods_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least three of"):
        draw_figures(fake_runs(["gp", "random"]), tmp_path, kinds=["ranks"])


def test_line_ups_are_ranked_where_three_of_their_methods_are() -> None:
    order = {"gp": 2.0, "random": 3.0, "rgpe-mean": 1.0}
    runs = [
        CompletedRun(RunKey("toy", name, task, 0), 0, 0.0, 4.0, np.full(3, value), None, 0.0, "0")
        for name, value in order.items()
        for task in ("a", "b")
    ]
    ((benchmark, (first, second)),) = line_up_ranks(aggregate_runs(runs))
    assert benchmark == "toy"
    assert second is None
    assert first is not None
    assert dict(zip(first.methods, first.ranks[:, -1], strict=True)) == order
    (axes,) = rank_figure(line_up_ranks(aggregate_runs(runs))).axes
    assert axes.get_title(loc="left") == "toy (2 runs)"
    curves = sorted(tuple(line.get_ydata()) for line in axes.lines if list(line.get_xdata()) == [1, 2, 3])
    assert curves == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]


def test_four_benchmarks_fill_two_bands_of_two() -> None:
    experiment = aggregate_runs([run for name in "abcd" for run in fake_runs(SHORT, benchmark=name)])
    figure = rank_figure(line_up_ranks(experiment))
    assert [axes.get_title(loc="left")[0] for axes in figure.axes] == ["a", "b", "c", "d"]
    heights = [round(axes.get_position().y0, 6) for axes in figure.axes]
    assert heights[0] == heights[1] > heights[2] == heights[3]


def test_bars_join_the_methods_that_do_not_differ() -> None:
    ranks = np.array([1.0, 1.5, 3.0, 4.5])
    test = RankTest(("a", "b", "c", "d"), ranks, 30, 0.01, 1.6, (("a", "b"), ("b", "c"), ("c", "d")))
    (axes,) = difference_figure(CriticalDifferences("toy", test, 50, (), 0)).axes
    bars = sorted(tuple(line.get_xdata()) for line in axes.lines if line.get_linewidth() == 3.0)
    np.testing.assert_allclose(bars, [(1.0, 1.5), (1.5, 3.0), (3.0, 4.5)], atol=0.05)
    texts = all_texts(axes.figure)
    assert {"critical difference 1.60", "a  1.00", "4.50  d"} <= texts
    assert any("after 50 evaluations, over 30 tasks" in text for text in texts)


def test_weights_begin_where_a_model_was_first_used_and_runs_may_differ_in_length() -> None:
    first, second = fake_runs(["rgpe-nei"], tasks=2, t=5)
    assert first.weights is not None
    assert second.weights is not None
    second = CompletedRun(second.key, 0, 0.0, 1.0, second.values, second.weights[:4], 0.1, "0")
    weights = weight_evolution([first, second])
    assert (weights.benchmark, weights.method, weights.runs) == ("toy", "rgpe-nei", 2)
    assert weights.observations.tolist() == [2, 3, 4]
    np.testing.assert_allclose(weights.means, np.tile([0.4, 0.3, 0.2, 0.1], (3, 1)))
    assert weights.median_count.tolist() == [6, 6, 6]
    above, below = weight_figure(weights).axes
    np.testing.assert_allclose([line.get_ydata() for line in above.lines[:4]], np.tile([[0.4], [0.3], [0.2], [0.1]], 3))
    assert [6.0, 6.0, 6.0] in [list(line.get_ydata()) for line in below.lines]


def test_the_same_data_give_the_same_bytes_without_date_and_version(tmp_path: Path) -> None:
    once, twice = (save(FIGURES["ranks"](), tmp_path / name) for name in ("a", "b"))
    for first, second in zip(once, twice, strict=True):
        assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in once] == ["a.png", "a.svg"]
    assert once[0].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert b"Matplotlib" not in once[0].read_bytes()
    svg = once[1].read_text()
    assert "<svg" in svg
    assert "date" not in svg


def test_settings_of_the_user_neither_matter_nor_change(tmp_path: Path) -> None:
    (before, _) = save(FIGURES["weights"](), tmp_path / "before")
    with matplotlib.rc_context({"font.size": 30.0, "lines.linewidth": 9.0, "savefig.dpi": 10, "figure.dpi": 50}):
        settings = dict(matplotlib.rcParams)
        (after, _) = save(FIGURES["weights"](), tmp_path / "after")
        assert dict(matplotlib.rcParams) == settings
    assert after.read_bytes() == before.read_bytes()


def test_pyplot_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # now importing it fails
    assert len(draw_figures(fake_runs(SHORT, t=3), tmp_path, kinds=["difference"])) == 2


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "find_spec", {"matplotlib": None}.get)
    for draw in FIGURES.values():
        with pytest.raises(MissingExtraError, match=r"pip install 'recollect\[bench\]'"):
            draw()


def test_all_figures_that_the_runs_allow_are_drawn(tmp_path: Path) -> None:
    runs = [*fake_runs(SHORT, benchmark="one/two"), *fake_runs(["gp"], benchmark="alone")]
    files = draw_figures(runs, tmp_path / "deep" / "folder")
    assert sorted(path.name for path in files if path.suffix == ".png") == [
        "difference-one_two.png",
        "ranks.png",
        "regret-alone.png",
        "regret-one_two.png",
        "weights-one_two-rgpe-mean.png",
    ]
    assert all(path.stat().st_size > 1000 for path in files)


def test_a_benchmark_whose_methods_have_no_run_in_common_is_passed_over(tmp_path: Path) -> None:
    runs = fake_runs(["gp", "random", "tstr-ei"])
    apart = [run for run in runs if (run.key.method == "gp") == (run.key.task < "task 2")]
    runs = [*apart, *fake_runs(SHORT, benchmark="whole")]
    files = draw_figures(runs, tmp_path, kinds=["ranks", "difference"])
    assert {path.stem for path in files} == {"ranks", "difference-whole"}


def test_names_are_not_parsed_as_formulas(tmp_path: Path) -> None:
    files = draw_figures(fake_runs(["gp", "wac", "$a_{b$"], benchmark="c^$"), tmp_path, kinds=["regret", "difference"])
    assert "$a_{b$" in files[1].read_text()


def test_a_run_of_one_evaluation_is_visible(tmp_path: Path) -> None:
    figure = draw_regret(fake_runs(["gp", "wac"], t=1))
    with house_style():
        FigureCanvasAgg(figure).draw()
        (axes,) = figure.axes
        assert [line.get_marker() for line in axes.lines if len(line.get_xdata()) == 1].count("o") == 2
        assert [tick for tick in axes.get_xticks() if tick % 1] == []


def test_a_diagram_of_many_methods_leaves_variants_out_and_says_so(tmp_path: Path) -> None:
    many = fake_runs(["gp", "smfo", *(f"gp+{number}" for number in range(30))])
    assert draw_figures([*many, *fake_runs(["kl"], tasks=2)], tmp_path, kinds=["difference"])
    svg = (tmp_path / "difference-toy.svg").read_text()
    assert "Not shown: 30 variants" in svg
    assert "runs are missing: kl" in svg


def test_a_method_with_empty_weights_is_skipped(tmp_path: Path) -> None:
    silent = [replace(run, weights=np.full((12, 5), np.nan)) for run in fake_runs(["smfo"])]
    files = draw_figures([*silent, *fake_runs(["rgpe-mean"])], tmp_path, kinds=["weights", "difference"])
    assert {path.stem for path in files} == {"weights-toy-rgpe-mean", "difference-toy"}


def test_figures_without_their_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected runs that recorded their weights"):
        draw_figures(fake_runs(["gp"]), tmp_path, kinds=["weights"])
    with pytest.raises(InputError, match="no results on the benchmark 'toi'; did you mean 'toy'"):
        draw_figures(fake_runs(["gp"]), tmp_path, benchmark="toi")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file: the folder cannot be created"):
        draw_figures(fake_runs(["gp"]), tmp_path / "file")


def test_the_command_reads_results_and_names_the_files_it_wrote(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(figure_command)
    pack_results([*fake_runs(SHORT), *fake_runs(["gp"], benchmark="other")], tmp_path / "results.csv.gz")
    arguments = [str(tmp_path / "results.csv.gz"), "--figure", "regret", "--benchmark", "other", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    written = [tmp_path / "regret-other.png", tmp_path / "regret-other.svg"]
    assert [Path(line) for line in done.stdout.split()] == written
    assert all(path.exists() for path in written)


def all_texts(figure: Figure) -> set[str]:
    return {text.get_text() for text in figure.findobj(Text)}


def labels_beyond_the_axes(figure: Figure) -> set[Text]:
    """Labels of ticks that exist but are not drawn."""
    found = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = axis.get_view_interval()
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            found |= {tick.label1 for tick in ticks if not low <= tick.get_loc() <= high}
            found |= {text for text in axis.findobj(Text) if not axes.axison}
    return found
