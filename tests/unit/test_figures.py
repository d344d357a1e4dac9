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
from typer.testing import CliRunner

from recollect.bench import figure_style
from recollect.bench.figure_ranks import difference_figure, line_up_ranks, rank_figure
from recollect.bench.figure_regret import bootstrap_band, grouped, regret_figure, regret_limits
from recollect.bench.figure_style import BLACK, GREY, house_style, in_order, lines_for, save, spread
from recollect.bench.figure_weights import stacked_weights, weight_figure
from recollect.bench.figures import draw_figures
from recollect.bench.results import Finished, Key, pack
from recollect.bench.significance import RankTest, rank_test
from recollect.bench.statistics import Place
from recollect.bench.study import Outcome, make_study
from recollect.cli.bench_figure import figure as figure_command
from recollect.errors import InputError, MissingExtraError, StorageError

FOURTEEN = (
    *("gp", "random", "gcp", "gp-box", "random-box", "smfo", "wac", "tstr-ei", "tstr-taf", "rgpe-mean", "rgpe-ei"),
    *("rgpe-nei", "rgpe-mogp", "rgpe-taf+copula"),
)
SHORT = ("gp", "random", "tstr-ei", "rgpe-mean")


def fake_runs(methods: Sequence[str], *, tasks: int = 4, t: int = 12, benchmark: str = "toy") -> list[Finished]:
    rng = np.random.default_rng(0)
    runs = []
    for method in methods:
        for task in range(tasks):
            steps = np.exp(-0.2 * np.arange(2 * t if method == "random" else t))
            weights = None
            if method.startswith("rgpe"):
                weights = np.full((t, 5), np.nan)
                weights[2:] = [0.4, 0.3, 0.2, 0.1, 6]
            key = Key(benchmark, method, f"task {task}", 0)
            runs.append(Finished(key, 0, 0.0, 1.0, rng.random(len(steps)) * steps, weights, 0.1, "0"))
    return runs


def outcomes_of(runs: Sequence[Finished]) -> list[Outcome]:
    (found,) = make_study(runs).outcomes.values()
    return list(found.values())


def fake_test() -> RankTest:
    rng = np.random.default_rng(3)
    return rank_test({name: shifted(rng, shift) for shift, name in enumerate(FOURTEEN)})


def shifted(rng: np.random.Generator, shift: float) -> dict[Place, float]:
    return {(str(task), 0): shift + 4 * rng.random() for task in range(20)}


def many_methods() -> RankTest:
    rng = np.random.default_rng(3)
    return rank_test({f"method {number}": shifted(rng, number / 8) for number in range(60)})


FIGURES: dict[str, Callable[[], Figure]] = {
    "regret of many": lambda: regret_figure(outcomes_of(fake_runs(FOURTEEN))),
    "regret of few": lambda: regret_figure(outcomes_of(fake_runs(SHORT))),
    "tiny regrets": lambda: regret_figure(outcomes_of([replace(run, worst=1000) for run in fake_runs(SHORT)])),
    "ranks": lambda: rank_figure(make_study(fake_runs(SHORT))),
    "weights": lambda: weight_figure(fake_runs(["rgpe-nei"])),
    "difference": lambda: difference_figure("toy", fake_test(), evaluations=50, left_out=["kl", "mtgp"] * 12),
    "difference of many": lambda: difference_figure("toy", many_methods(), evaluations=50, variants=12),
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


def test_no_two_lines_look_alike() -> None:
    lines = lines_for([*FOURTEEN, "random-2x", "random-4x", "random-10x"])
    assert len({(line.colour, line.dash) for line in lines.values()}) == 17
    assert lines["gp"].colour == BLACK
    assert {lines[name].colour for name in ("random", "random-2x", "random-4x")} == {GREY}
    assert lines["random-box"].colour != GREY


def test_methods_are_in_the_order_of_the_catalog_with_variants_after_what_they_vary() -> None:
    names = ["rgpe-taf+none", "own-idea", "random-10x", "rgpe-taf", "gp", "random-2x", "random", "rgpe-mean"]
    runs = fake_runs([name for name in names if not name.startswith("random-")])
    made = {outcome.method: outcome for outcome in outcomes_of(runs)}
    made |= {name: Outcome("toy", name, (), np.empty((0, 1)), {}, 0.0, "") for name in ("random-2x", "random-10x")}
    ordered = [outcome.method for outcome in in_order(made[name] for name in names)]
    expected = ["random", "random-2x", "random-10x", "gp", "rgpe-mean", "rgpe-taf", "rgpe-taf+none", "own-idea"]
    assert ordered == expected


def test_few_methods_share_a_panel_and_many_come_in_families() -> None:
    assert grouped(SHORT) == [("", list(SHORT))]
    groups = grouped([*FOURTEEN, "rgpe-cfnei", "rgpe-taf", "gcp-prior"])
    titles = [title for title, _ in groups]
    assert titles == [
        "without models of past runs",
        "other models of past runs",
        "TST-R",
        "RGPE (1 of 2)",
        "RGPE (2 of 2)",
    ]
    assert groups[1][1] == ["gp", "random", "wac", "gcp-prior"]
    own = [name for _, names in groups for name in names[2:]]
    assert sorted(own) == sorted({*FOURTEEN, "rgpe-cfnei", "rgpe-taf", "gcp-prior"} - {"gp", "random"})
    assert all(names[:2] == ["gp", "random"] and len(names) <= 8 for _, names in groups)


def test_the_band_is_that_of_normal_theory_for_many_tasks() -> None:
    regrets = np.random.default_rng(1).normal(0.5, [0.1, 0.02], (400, 2))
    low, high = bootstrap_band(regrets)
    half = 1.96 * regrets.std(axis=0) / 20
    np.testing.assert_allclose((high - low) / 2, half, rtol=0.08)
    np.testing.assert_allclose((high + low) / 2, regrets.mean(axis=0), atol=0.1 * half.max())


def test_the_band_has_no_width_where_all_tasks_agree() -> None:
    low, high = bootstrap_band(np.tile([0.5, 0.25], (7, 1)))
    np.testing.assert_allclose([low, high], [[0.5, 0.25]] * 2)


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([0.5, 0.1], (0.0, 0.525)),  # less than a decade
        ([0.5, 0.01, 0.0, np.nan], (0.008, 0.6)),
        ([1.0, 1e-9], (1e-4, 1.2)),  # four decades at most
        ([0.0, 0.0], (0.0, 1.05)),
        ([np.nan], (0.0, 1.05)),
    ],
)
def test_the_axis_is_logarithmic_where_regrets_span_a_decade(values: list[float], limits: tuple[float, float]) -> None:
    np.testing.assert_allclose(regret_limits([np.array(values)]), limits, rtol=1e-12)


def test_regret_curves_are_means_over_tasks_from_the_first_evaluation_on() -> None:
    outcomes = outcomes_of(fake_runs(SHORT))
    (axes,) = regret_figure(outcomes).axes
    drawn = {tuple(line.get_ydata()): line for line in axes.lines}
    for outcome in outcomes:
        assert drawn[tuple(outcome.regrets.mean(axis=0))].get_xdata().tolist() == list(range(1, 13))
    assert axes.get_title(loc="left") == "toy"


def test_a_method_with_fewer_tasks_says_so_and_a_line_at_zero_is_explained() -> None:
    runs = [*fake_runs(["gp", "random"], tasks=5), *fake_runs(["mtgp"], tasks=3), *fake_runs(["kl"], tasks=1)]
    found = [Finished(run.key, 0, 0.0, 1.0, run.values * (run.key.method != "kl"), None, 0, "0") for run in runs]
    texts = all_texts(regret_figure(outcomes_of(found)))
    assert {"gp", "mtgp (3 tasks)", "kl (1 task)"} <= texts
    assert any("leaves the panel at the bottom" in text for text in texts)
    assert not any("leaves the panel" in text for text in all_texts(regret_figure(outcomes_of(fake_runs(SHORT)))))


def test_a_curve_of_runs_that_ended_early_is_named_where_it_ends() -> None:
    (short,) = outcomes_of(fake_runs(["mtgp"], t=6))
    longer = np.pad(short.regrets, ((0, 0), (0, 6)), constant_values=np.nan)
    cut = Outcome("toy", "mtgp", short.tasks, longer, short.curves, 0.0, "")
    assert "mtgp" in all_texts(regret_figure([*outcomes_of(fake_runs(SHORT)), cut]))


def test_a_figure_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least one method"):
        regret_figure([])
    with pytest.raises(InputError, match="at least three of"):
        rank_figure(make_study(fake_runs(["gp", "random"])))


def test_line_ups_are_ranked_where_three_of_their_methods_are() -> None:
    order = {"gp": 2.0, "random": 3.0, "rgpe-mean": 1.0}
    runs = [
        Finished(Key("toy", name, task, 0), 0, 0.0, 4.0, np.full(3, value), None, 0.0, "0")
        for name, value in order.items()
        for task in ("a", "b")
    ]
    first, second = line_up_ranks(make_study(runs), "toy")
    assert second is None
    assert first is not None
    assert dict(zip(first.methods, first.ranks[:, -1], strict=True)) == order
    (axes,) = rank_figure(make_study(runs)).axes
    assert axes.get_title(loc="left") == "toy (2 runs)"
    curves = sorted(tuple(line.get_ydata()) for line in axes.lines if list(line.get_xdata()) == [1, 2, 3])
    assert curves == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]


def test_four_benchmarks_fill_two_bands_of_two() -> None:
    study = make_study([run for name in "abcd" for run in fake_runs(SHORT, benchmark=name)])
    figure = rank_figure(study)
    assert [axes.get_title(loc="left")[0] for axes in figure.axes] == ["a", "b", "c", "d"]
    heights = [round(axes.get_position().y0, 6) for axes in figure.axes]
    assert heights[0] == heights[1] > heights[2] == heights[3]


def test_bars_join_the_methods_that_do_not_differ() -> None:
    ranks = np.array([1.0, 1.5, 3.0, 4.5])
    test = RankTest(("a", "b", "c", "d"), ranks, 30, 0.01, 1.6, (("a", "b"), ("b", "c"), ("c", "d")))
    (axes,) = difference_figure("toy", test, evaluations=50).axes
    bars = sorted(tuple(line.get_xdata()) for line in axes.lines if line.get_linewidth() == 3.0)
    np.testing.assert_allclose(bars, [(1.0, 1.5), (1.5, 3.0), (3.0, 4.5)], atol=0.05)
    texts = all_texts(axes.figure)
    assert {"critical difference 1.60", "a  1.00", "4.50  d"} <= texts
    assert any("after 50 evaluations, over 30 tasks" in text for text in texts)


def test_weights_begin_where_a_model_was_asked_first_and_runs_may_differ_in_length() -> None:
    first, second = fake_runs(["rgpe-nei"], tasks=2, t=5)
    assert first.weights is not None
    assert second.weights is not None
    second = Finished(second.key, 0, 0.0, 1.0, second.values, second.weights[:4], 0.1, "0")
    n, weights = stacked_weights([first, second])
    assert n.tolist() == [2, 3, 4]
    assert weights.shape == (2, 3, 5)
    assert np.isnan(weights[1, 2]).all()
    above, below = weight_figure([first, second]).axes
    np.testing.assert_allclose([line.get_ydata() for line in above.lines[:4]], np.tile([[0.4], [0.3], [0.2], [0.1]], 3))
    assert [6.0, 6.0, 6.0] in [list(line.get_ydata()) for line in below.lines]


def test_weights_of_two_methods_or_of_none_are_refused() -> None:
    for runs in (fake_runs(["rgpe-nei", "rgpe-taf"]), fake_runs(["gp"])):
        with pytest.raises(InputError, match="one method on one benchmark with weights"):
            weight_figure(runs)


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
    monkeypatch.setattr(figure_style, "find_spec", {"matplotlib": None}.get)
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


def test_names_are_no_formulas(tmp_path: Path) -> None:
    files = draw_figures(fake_runs(["gp", "wac", "$a_{b$"], benchmark="c^$"), tmp_path, kinds=["regret", "difference"])
    assert "$a_{b$" in files[1].read_text()


def test_a_run_of_one_evaluation_is_seen(tmp_path: Path) -> None:
    figure = regret_figure(outcomes_of(fake_runs(["gp", "wac"], t=1)))
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
    assert "without all tasks or repetitions: kl" in svg


def test_a_method_whose_weights_were_kept_but_never_asked_for_is_passed_over(tmp_path: Path) -> None:
    silent = [replace(run, weights=np.full((12, 5), np.nan)) for run in fake_runs(["smfo"])]
    files = draw_figures([*silent, *fake_runs(["rgpe-mean"])], tmp_path, kinds=["weights", "difference"])
    assert {path.stem for path in files} == {"weights-toy-rgpe-mean", "difference-toy"}


def test_what_cannot_be_drawn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected runs that kept their weights"):
        draw_figures(fake_runs(["gp"]), tmp_path, kinds=["weights"])
    with pytest.raises(InputError, match="no results on the benchmark 'toi'; did you mean 'toy'"):
        draw_figures(fake_runs(["gp"]), tmp_path, benchmark="toi")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file: the folder cannot be made"):
        draw_figures(fake_runs(["gp"]), tmp_path / "file")


def test_the_command_reads_results_and_names_the_files_it_wrote(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(figure_command)
    pack([*fake_runs(SHORT), *fake_runs(["gp"], benchmark="other")], tmp_path / "results.csv.gz")
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
