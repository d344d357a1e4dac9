"""The report of a run in a real browser: of a run that was tuned, of one with hostile names, of a very long one.

Each page is opened once, since loading plotly takes a second of a processor; tests put back what they change.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from tests.browser.pages import (
    HEBREW,
    HOSTILE,
    IN_SCHEME,
    LINK,
    MOST_SECONDS,
    QUOTES,
    SCRIPT,
    Opened,
    Opening,
    column,
    fastest_opening,
    figure,
    hover,
    loads_nothing,
    press,
    table,
    text_is_seen_first,
    unreadable,
)

from recollect import FAILED, Memory, Run, minimize
from recollect.analysis.run_data import RunData
from recollect.errors import FailedTrialWarning
from recollect.runs.run import Trial
from recollect.space.space import compile_space
from recollect.tuning.suggestion_notes import SuggestionNote

pytest.importorskip("plotly", reason="pages embed plotly's script")

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

PROGRESS, WEIGHTS = "Did it find good values sooner", "Who decided what was tried?"
PRIOR, COUNTED = "How much did the past count?", "Which past runs counted?"
BEST, IMPORTANCE = "What do the best trials have in common?", "Which hyperparameters set the best trials apart?"
SLICES, CHOICES = "Where along each hyperparameter", "Which choices gave good values?"
PAST = "Which past runs were useful?"
MOST_BYTES = 6_500_000
# Where the first two layers are thick: at the edge of a layer of no thickness, it is unclear which one is meant.
THICK = """plot => {
  const [own, next] = plot._fullData.map((layer) => [...layer.y]);
  const least = own.map((height, place) => Math.min(height, next[place]));
  return least.indexOf(Math.max(...least));
}"""
SHAPES = ".scatterlayer path, .barlayer path, .heatmaplayer image"


def learner() -> ConfigurationSpace:
    source = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "polynomial", "radial"])
    gamma, degree = Float("gamma", (1e-3, 1e3), log=True), Integer("degree", (2, 5))
    source.add(Float("cost", (1e-3, 1e3), log=True), kernel, gamma, degree)
    source.add(EqualsCondition(gamma, kernel, "radial"), EqualsCondition(degree, kernel, "polynomial"))
    return source


def error(config: dict[str, Any]) -> float:
    if config["cost"] > 300:
        raise MemoryError("the kernel matrix does not fit")
    right = {"linear": 0.3, "polynomial": 0.2, "radial": abs(np.log10(config.get("gamma", 1.0) / 0.1)) / 10}
    return float(right[config["kernel"]] + abs(np.log10(config["cost"] / 3.0)) / 10)


def write(data: RunData, path: Path) -> Path:
    from recollect.report.page import render, write_page
    from recollect.report.run.run_page import page_of_run

    write_page(render(page_of_run(data)), path)
    return path


def drawn(name: str, values: dict[str, list[Any]], *, count: int, seed: int) -> Run:
    """A run of configurations drawn from lists of values, every ninth trial failed."""
    rng = np.random.default_rng(seed)
    trials = []
    for number in range(count):
        config = {key: choices[int(rng.integers(len(choices)))] for key, choices in values.items()}
        result = FAILED if number % 9 == 8 else float(rng.random() ** 2)
        trials.append(replace(Trial.of(config, result), notes=HOSTILE if result is FAILED else ()))
    return Run(name, trials=trials)


def weighed(names: tuple[str, ...], count: int) -> tuple[SuggestionNote, ...]:
    rng = np.random.default_rng(1)
    notes = [SuggestionNote("point 1 of the portfolio learned from past runs")]
    for weights in rng.dirichlet(np.full(len(names) + 1, 0.3), size=count - 1).tolist():
        past = {name: weight for name, weight in zip(names, weights, strict=False) if weight >= 0.005}
        notes.append(SuggestionNote("highest acquisition value", weights[-1], past, frozenset(set(names) - set(past))))
    return tuple(notes)


def made_up(own: str, names: tuple[str, ...], values: dict[str, list[Any]], *, count: int) -> RunData:
    """A run with past runs of these names; they are copies of two, which saves fits."""
    space = compile_space({key: (0.0, 1.0) if isinstance(each[0], float) else each for key, each in values.items()})
    two = [drawn("", values, count=12, seed=seed) for seed in (1, 2)]
    past = tuple(Run(name, trials=two[number % 2].trials) for number, name in enumerate(names))
    run = replace_space(drawn(own, values, count=count, seed=3), space)
    settings = {"method": "rgpe-taf", "trials": count, "seed": 0, "versions": {SCRIPT: QUOTES}}
    return RunData(run, own, space, past, weighed(names, count), settings, storage=own)


def replace_space(run: Run, space: Any) -> Run:
    return Run(run.task, trials=run.trials, space=space)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def file(folder: Path) -> Path:
    """The report of a run that was really tuned, after three others."""
    from recollect.report.page import render, write_page
    from recollect.report.run.run_page import run_page

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedTrialWarning)
        for number, task in enumerate(("adult", "bank", "crx")):
            minimize(
                error, learner(), trials=14, memory=folder / "m.db", problem="svm", task=task, method="random",
                seed=number, progress=False,
            )  # fmt: skip
        minimize(error, learner(), trials=24, memory=folder / "m.db", problem="svm", task="covertype", progress=False)
    write_page(render(run_page(Memory(folder / "m.db"), "svm", "covertype")), folder / "run.html")
    return folder / "run.html"


@pytest.fixture(scope="module")
def hostile(open_file: Callable[[Path], Opened], folder: Path) -> Opened:
    tenths = [number / 10 for number in range(11)]
    values: dict[str, list[Any]] = {name[:500]: tenths for name in HOSTILE[:4]} | {"choice": list(HOSTILE)}
    return open_file(write(made_up(SCRIPT + QUOTES, HOSTILE, values, count=30), folder / "hostile.html"))


@pytest.fixture(scope="module")
def long_file(folder: Path) -> Path:
    """The report of a run of 1,000 trials in a space of 12 hyperparameters, after 100 past runs."""
    tenths = [number / 10 for number in range(11)]
    values: dict[str, list[Any]] = {f"hyperparameter {number}": tenths for number in range(10)}
    values |= {"optimizer": ["adam", "sgd", "lamb"], "activation": ["relu", "gelu"]}
    names = tuple(f"dataset {number} of a long list with long names" for number in range(100))
    return write(made_up("covertype", names, values, count=1000), folder / "long.html")


@pytest.fixture(scope="module")
def opening(browser: BrowserContext, long_file: Path) -> Opening:
    return fastest_opening(browser, long_file)


@pytest.fixture(scope="module")
def long(open_file: Callable[[Path], Opened], long_file: Path) -> Opened:
    return open_file(long_file)


def test_the_page_opens_without_a_message_and_without_asking_anybody(opened: Opened, file: Path) -> None:
    assert opened.messages == []
    assert opened.requests == [file.as_uri()]


def test_all_figures_have_data_that_are_drawn_and_a_text_alternative(opened: Opened) -> None:
    found: list[dict[str, Any]] = opened.page.locator(".plot").evaluate_all(
        f"""plots => plots.map((plot) => ({{
            points: Math.max(...plot._fullData.map((trace) => trace.x.length)),
            shapes: plot.querySelectorAll('{SHAPES}').length,
            label: plot.getAttribute('aria-label'),
        }}))"""
    )
    assert len(found) == 10
    for entry in found:
        assert entry["points"] > 1, entry
        assert entry["shapes"] > 0, entry
        assert len(entry["label"]) > 60, entry


def test_pointing_tells_the_trial_and_its_numbers(opened: Opened) -> None:
    page = opened.page
    progress = figure(page, PROGRESS).locator(".plot")
    last = progress.evaluate("plot => plot._fullData.length - 1")
    assert "best value" in hover(page, progress, last, 0)
    for question, label in ((PRIOR, "past runs say nothing"), (COUNTED, "this task")):
        layers = figure(page, question).locator(".plot")
        layer = hover(page, layers, 0, layers.evaluate(THICK))
        assert layer.startswith(label)
        assert "%" in layer
    assert "cost: " in hover(page, figure(page, SLICES).locator(".plot"), 0, 0)
    assert "kernel: " in hover(page, figure(page, CHOICES).locator(".plot"), 0, 0)
    lines = figure(page, BEST).locator(".plot")
    assert "cost: " in hover(page, lines, lines.evaluate("plot => plot._fullData.length - 1"), 0)
    bars = figure(page, IMPORTANCE).locator(".plot")
    bars.scroll_into_view_if_needed()
    box = bars.locator(".barlayer path").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    label = bars.locator(".hoverlayer .hovertext").first
    label.wait_for()
    assert "importance" in (label.text_content() or "")
    page.mouse.move(1, 1)


@pytest.mark.parametrize("with_keyboard", [False, True], ids=["by clicks", "with the keyboard"])
def test_past_runs_are_sorted_by_any_column(opened: Opened, with_keyboard: bool) -> None:
    past = table(opened.page, PAST)
    assert past.locator("tbody tr").count() == 3
    for place in (3, 4, 6):
        button = past.locator("thead button").nth(place)
        before = column(past, place)
        for wanted in (sorted(before), sorted(before, reverse=True), before):  # type: ignore[type-var]
            press(opened.page, button, with_keyboard=with_keyboard)
            assert column(past, place) == wanted


def test_figures_follow_the_scheme_of_the_reader_while_the_page_is_open(opened: Opened) -> None:
    page = opened.page
    seen = {}
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IN_SCHEME, arg=scheme)
        area = figure(page, COUNTED).locator(".plot")
        labels = figure(page, BEST).locator(".plot .annotation .bg").first
        seen[scheme] = (
            area.evaluate("plot => plot._fullData[1].fillcolor"),
            area.locator(".xtick text").first.evaluate("text => getComputedStyle(text).fill"),
            labels.evaluate("rect => getComputedStyle(rect).fill"),
        )
    assert seen["light"] == ("#1b52a9", "rgb(18, 21, 28)", "rgb(255, 255, 255)")
    assert seen["dark"] == ("#247cc7", "rgb(242, 243, 245)", "rgb(23, 26, 33)")


def test_a_key_takes_a_past_run_out_of_the_figure(opened: Opened) -> None:
    part = figure(opened.page, COUNTED)
    key = part.locator(".keys button").nth(1)
    shown = "plot => plot._fullData[1].visible === true"
    for wanted in (False, True):
        key.focus()
        opened.page.keyboard.press("Space")
        assert part.locator(".plot").evaluate(shown) is wanted


def test_failed_and_inactive_trials_are_marked(opened: Opened) -> None:
    crosses = (
        figure(opened.page, PROGRESS)
        .locator(".plot")
        .evaluate("plot => plot._fullData.filter((trace) => trace.marker?.symbol === 'x-thin-open')[0].x.length")
    )
    assert crosses > 0
    assert opened.page.locator("h2", has_text="Failed trials").count() == 1
    assert opened.page.get_by_text("MemoryError: the kernel matrix does not fit").count() >= crosses
    assert "off" in figure(opened.page, SLICES).locator(".xtick text, .x3tick text, .x2tick text").all_text_contents()


@pytest.mark.parametrize("which", ["opened", "hostile", "long"])
def test_all_can_be_read_on_any_screen(which: str, request: pytest.FixtureRequest) -> None:
    assert unreadable(request.getfixturevalue(which).page) == []


def test_hostile_names_are_only_names(hostile: Opened) -> None:
    page = hostile.page
    assert hostile.messages == []
    assert len(hostile.requests) == 1
    assert loads_nothing(page)
    assert page.locator("h1").text_content() == SCRIPT + QUOTES


def test_hostile_names_are_shown_as_they_are_written(hostile: Opened) -> None:
    page = hostile.page
    rows = table(page, PAST).locator("tbody th").all_text_contents()
    for name in (SCRIPT, QUOTES, LINK):
        assert name in rows
    assert any(HEBREW in row for row in rows)
    part = figure(page, SLICES)
    assert hover(page, part.locator(".plot"), 0, 0).split("trial ")[1].lstrip("0123456789").startswith(QUOTES)
    assert any(key.startswith("<script>") for key in figure(page, WEIGHTS).locator(".keys button").all_text_contents())
    assert hostile.messages == []


def test_a_thousand_trials_and_a_hundred_past_runs_make_a_small_page(long: Opened, long_file: Path) -> None:
    assert long_file.stat().st_size < MOST_BYTES
    assert long.messages == []
    assert text_is_seen_first(long.page)


def test_a_thousand_trials_and_a_hundred_past_runs_open_with_little_work(opening: Opening) -> None:
    assert 0.3 < opening.processor < MOST_SECONDS


def test_a_thousand_trials_and_a_hundred_past_runs_open_within_three_seconds(opening: Opening) -> None:
    if opening.clock >= MOST_SECONDS and opening.load > 1.0:
        pytest.skip(f"{opening.clock:.1f} s on a machine with {opening.load:.1f} processes for each of its cores")
    assert opening.clock < MOST_SECONDS


def test_a_long_run_is_thinned_out_and_says_so(long: Opened) -> None:
    page = long.page
    assert "Neighbouring trials are averaged" in (figure(page, WEIGHTS).locator(".more").text_content() or "")
    assert "are not drawn" in (figure(page, BEST).locator(".more").text_content() or "")
    assert figure(page, WEIGHTS).locator(".keys li").count() == 8
    past = page.locator(".table", has=page.locator("h3", has_text=PAST)).first
    assert past.locator(".bar output").text_content() == "100 rows"
    assert past.locator("tbody tr").count() == 25
