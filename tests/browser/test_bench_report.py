"""The report on benchmarks in a real browser: made of results in the repository, and of runs with hostile names.

Each page is opened once, since loading plotly takes a second of a processor; tests put back what they change.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.browser.pages import (
    HEBREW,
    HOSTILE,
    IN_SCHEME,
    LINK,
    MOST_SECONDS,
    QUOTES,
    SCRIPT,
    Opened,
    column,
    fastest_opening,
    figure,
    hover,
    loads_nothing,
    narrow,
    press,
    text_is_seen_first,
    unreadable,
)

from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.bench.experiment.results import read_results

pytest.importorskip("plotly", reason="pages embed plotly's script")

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "grids.csv.gz"


def write(runs: list[CompletedRun], path: Path) -> Path:
    from recollect.report.benchmark.benchmark_page import bench_page
    from recollect.report.page import render, write_page

    write_page(render(bench_page(runs, source=path.name)), path)
    return path


def hostile_runs() -> list[CompletedRun]:
    rng = np.random.default_rng(0)
    runs = []
    for method in ("gp", *HOSTILE):
        for task in HOSTILE:
            key = RunKey(SCRIPT + QUOTES, method, task, 0)
            runs.append(CompletedRun(key, 0, 0.0, 1.0, np.sort(rng.random(12))[::-1].copy(), None, 0.1, "0"))
    return runs


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = [run for run in read_results(RESULTS) if run.key.benchmark == "adaboost-grid"]
    return write(runs, tmp_path_factory.mktemp("report") / "grids.html")


@pytest.fixture(scope="module")
def hostile(open_file: Callable[[Path], Opened], tmp_path_factory: pytest.TempPathFactory) -> Opened:
    return open_file(write(hostile_runs(), tmp_path_factory.mktemp("report") / "hostile.html"))


def test_the_page_opens_without_a_message_and_without_asking_anybody(opened: Opened, file: Path) -> None:
    assert opened.messages == []
    assert opened.requests == [file.as_uri()]


def test_the_page_opens_quickly(opened: Opened, browser: BrowserContext, file: Path) -> None:
    assert text_is_seen_first(opened.page)
    assert 0.3 < fastest_opening(browser, file).processor < MOST_SECONDS


def test_plotly_is_read_once_and_nothing_else_is_changed() -> None:
    from plotly.offline import get_plotlyjs

    from recollect.report.page import parsed_once

    plain, changed = str(get_plotlyjs()), parsed_once(str(get_plotlyjs()))
    assert changed != plain, "plotly.js begins or ends differently from what parsed_once expects"
    assert changed.replace("this, (() => {", "this, () => {", 1).replace("})));\n", "}));", 1) == plain.rstrip()
    assert parsed_once("(() => {})();") == "(() => {})();"


def test_all_figures_have_data_that_are_drawn(opened: Opened) -> None:
    found: list[dict[str, Any]] = opened.page.locator(".plot").evaluate_all(
        """plots => plots.map((plot) => ({
            points: plot._fullData.filter((trace) => trace.x && trace.x.length > 1).length,
            shapes: plot.querySelectorAll('.scatterlayer path, .heatmaplayer image').length,
            label: plot.getAttribute('aria-label'),
        }))"""
    )
    assert len(found) == 8
    for entry in found:
        assert entry["points"] > 0, entry
        assert entry["shapes"] > 0, entry
        assert len(entry["label"]) > 60, entry


def test_pointing_at_a_point_tells_its_numbers(opened: Opened) -> None:
    plot = figure(opened.page, "Which method is good all the way?").locator(".plot")
    regrets: dict[str, list[float]] = {}
    for run in (run for run in read_results(RESULTS) if run.key.benchmark == "adaboost-grid"):
        regrets.setdefault(run.key.method, []).append(float(run.regret[:50].mean()))
    means = {method: float(np.mean(found)) for method, found in regrets.items()}
    best = min(means, key=lambda method: means[method])
    assert hover(opened.page, plot, 0, 0).startswith(f"{best}mean regret {100 * means[best]:.2f}%")


@pytest.mark.parametrize("with_keyboard", [False, True], ids=["by clicks", "with the keyboard"])
def test_tables_are_sorted_up_down_and_back(opened: Opened, with_keyboard: bool) -> None:
    table = opened.page.locator(".tables table").first
    heading = table.locator("thead th").nth(3)
    before = column(table, 3)

    def pressed() -> list[float | None]:
        press(opened.page, heading.locator("button"), with_keyboard=with_keyboard)
        return column(table, 3)

    known = sorted(value for value in before if value is not None)
    empty = [None] * (len(before) - len(known))
    assert len(empty) > 0
    assert pressed() == [*known, *empty]
    assert heading.get_attribute("aria-sort") == "ascending"
    assert pressed() == [*reversed(known), *empty]
    assert heading.get_attribute("aria-sort") == "descending"
    assert pressed() == before
    assert heading.get_attribute("aria-sort") == "none"


def test_text_columns_are_sorted_as_readers_expect(opened: Opened) -> None:
    table = opened.page.locator(".tables table").first
    button = table.locator("thead button").first
    button.click()
    names = table.locator("tbody th").all_text_contents()
    assert names == sorted(names, key=lambda name: name.replace("-", " ").replace("+", " "))
    button.click()
    button.click()


def test_figures_and_text_follow_the_scheme_of_the_reader_while_the_page_is_open(opened: Opened) -> None:
    page = opened.page
    seen = {}
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IN_SCHEME, arg=scheme)
        plot = figure(page, "RGPE?").locator(".plot")
        seen[scheme] = (
            page.evaluate("() => getComputedStyle(document.body).backgroundColor"),
            plot.locator(".xtick text").first.evaluate("text => getComputedStyle(text).fill"),
            plot.evaluate("plot => plot._fullData.find((t) => t.customdata && t.customdata[0][0] === 'gp').line.color"),
        )
    assert seen["light"] == ("rgb(244, 245, 248)", "rgb(18, 21, 28)", "#12151c")
    assert seen["dark"] == ("rgb(14, 16, 21)", "rgb(242, 243, 245)", "#f2f3f5")


def test_a_key_switches_its_line_and_the_bands_with_the_keyboard(opened: Opened) -> None:
    part = figure(opened.page, "RGPE?")
    shown = "plot => plot._fullData.map((trace) => trace.visible === true)"
    plot, key, bands = part.locator(".plot"), part.locator(".keys button").nth(1), part.locator(".keys button").last
    traces = [int(place) for place in (key.get_attribute("data-traces") or "").split()]
    before = plot.evaluate(shown)
    assert [before[place] for place in traces] == [False, True], "its band is off, its line is on"

    def switched(button: Locator) -> list[bool]:
        button.focus()
        opened.page.keyboard.press("Space")
        return [plot.evaluate(shown)[place] for place in traces]

    assert switched(bands) == [True, True]
    assert switched(key) == [False, False]
    assert key.get_attribute("aria-pressed") == "false"
    assert switched(bands) == [False, False]
    assert switched(key) == [False, True]
    assert plot.evaluate(shown) == before


def test_the_first_key_leads_past_the_head_and_focus_is_seen(opened: Opened) -> None:
    page = opened.page
    page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    page.locator("h1").click()
    page.keyboard.press("Shift+Tab")
    skip = page.locator(":focus")
    assert skip.text_content() == "Skip to the content"
    assert skip.evaluate("link => link.getBoundingClientRect().top") >= 0
    assert skip.evaluate("link => getComputedStyle(link).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "main"


@pytest.mark.parametrize("which", ["opened", "hostile"])
def test_all_can_be_read_on_any_screen(which: str, request: pytest.FixtureRequest) -> None:
    assert unreadable(request.getfixturevalue(which).page) == []


def test_on_a_narrow_screen_a_wide_table_scrolls_in_its_frame(opened: Opened) -> None:
    with narrow(opened.page):
        frame = opened.page.locator(".tables .frame").first
        assert frame.evaluate("frame => frame.scrollWidth > frame.clientWidth")


def test_hostile_names_are_only_names(hostile: Opened) -> None:
    page = hostile.page
    assert hostile.messages == []
    assert len(hostile.requests) == 1
    assert loads_nothing(page)
    assert page.locator("nav a").evaluate_all("links => links.map((a) => a.hash)") == ["#section-1", "#section-2"]
    assert page.locator("h2").first.text_content() == SCRIPT + QUOTES


def test_hostile_names_are_shown_as_they_are_written(hostile: Opened) -> None:
    part = figure(hostile.page, "Which method is good all the way?")
    ticks = part.locator(".ytick text").all_text_contents()
    assert any(tick.startswith("<script>aler") for tick in ticks)
    assert any(HEBREW in tick for tick in ticks)
    plot = part.locator(".plot")
    labels = [hover(hostile.page, plot, 0, point) for point in range(len(ticks))]
    for name in (SCRIPT, QUOTES, LINK):
        assert any(label.startswith(name) for label in labels), name
    assert hostile.messages == []
