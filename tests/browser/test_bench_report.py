"""The report on benchmarks in a real browser: made of results in the repository, and of runs with hostile names.

Each page is opened once, since loading plotly takes a second of a processor; tests put back what they change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recollect.bench.results import Finished, Key, read_runs

pytest.importorskip("plotly", reason="pages embed plotly's script")

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

    from conftest import Opened

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "grids.csv.gz"
SCRIPT, QUOTES = "<script>alert(1)</script>", "\"><img src=x onerror='alert(2)'>"
LINK = "<a href='https://example.org'>x</a> & <b>y</b> %{x}"
HEBREW = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}\N{HEBREW LETTER GIMEL}"
HOSTILE = (SCRIPT, QUOTES, LINK, HEBREW, "\u202eedisni tuo", "long-" * 400)
DRAWN = "count => document.querySelectorAll('.plot[data-drawn]').length === count"
IN_SCHEME = "scheme => [...document.querySelectorAll('.plot')].every((plot) => plot.dataset.drawn === scheme)"
TEXTS = """plot => {
    const frame = plot.getBoundingClientRect();
    return [...plot.querySelectorAll('svg text')].filter((text) => text.textContent.trim()).map((text) => {
        const { left, top, right, bottom } = text.getBoundingClientRect();
        return [text.textContent, left - frame.left, top - frame.top, right - frame.left, bottom - frame.top];
    }).concat([['', 0, 0, frame.width, frame.height]]);
}"""


def write(runs: list[Finished], path: Path) -> Path:
    from recollect.report.benchmark.page import bench_page
    from recollect.report.page import render, write_page

    write_page(render(bench_page(runs, source=path.name)), path)
    return path


def hostile_runs() -> list[Finished]:
    rng = np.random.default_rng(0)
    runs = []
    for method in ("gp", *HOSTILE):
        for task in HOSTILE:
            key = Key(SCRIPT + QUOTES, method, task, 0)
            runs.append(Finished(key, 0, 0.0, 1.0, np.sort(rng.random(12))[::-1].copy(), None, 0.1, "0"))
    return runs


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = [run for run in read_runs(RESULTS) if run.key.benchmark == "adaboost-grid"]
    return write(runs, tmp_path_factory.mktemp("report") / "grids.html")


@pytest.fixture(scope="module")
def processor_seconds() -> dict[str, float]:
    return {}


@pytest.fixture(scope="module")
def opened(
    open_file: Callable[[Path], Opened], browser: BrowserContext, file: Path, processor_seconds: dict[str, float]
) -> Opened:
    found = open_file(file)
    session = browser.new_cdp_session(found.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    found.page.locator(".plot[data-drawn]").nth(1).wait_for()  # the two figures that are in view
    metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    processor_seconds["opened"] = metrics["ThreadTime"]
    wait_until_drawn(found.page)
    return found


@pytest.fixture(scope="module")
def hostile(open_file: Callable[[Path], Opened], tmp_path_factory: pytest.TempPathFactory) -> Opened:
    found = open_file(write(hostile_runs(), tmp_path_factory.mktemp("report") / "hostile.html"))
    wait_until_drawn(found.page)
    return found


def wait_until_drawn(page: Page) -> None:
    page.wait_for_function(DRAWN, arg=page.locator(".plot").count())


def figure(page: Page, question: str) -> Locator:
    return page.locator("figure", has=page.locator("h3", has_text=question)).first


@contextmanager
def narrow(page: Page) -> Iterator[None]:
    """Show the page 400 pixels wide."""
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_function("() => [...document.querySelectorAll('.plot')].every((p) => p._fullLayout.width <= 400)")
    try:
        yield
    finally:
        page.set_viewport_size({"width": 1600, "height": 1000})
        page.wait_for_function("() => [...document.querySelectorAll('.plot')].every((p) => p._fullLayout.width > 400)")


def overlaps(page: Page) -> list[str]:
    """Texts of figures that are written over another one or cut off."""
    wrong = []
    for plot in page.locator(".plot").all():
        *boxes, (_, _, _, width, height) = plot.evaluate(TEXTS)
        for number, (text, left, top, right, bottom) in enumerate(boxes):
            if left < -1 or top < -1 or right > width + 1 or bottom > height + 1:
                wrong.append(f"{text!r} is cut off")
            for other, a, b, c, d in boxes[:number]:
                if min(right, c) - max(left, a) > 1 and min(bottom, d) - max(top, b) > 2:
                    wrong.append(f"{text!r} is written over {other!r}")
    return wrong


def cells_cut_off(page: Page) -> list[str]:
    cells = page.locator(".tables th, .tables td")
    return cells.evaluate_all(
        "cells => cells.filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.textContent)"
    )


def hover(page: Page, plot: Locator, trace: int, point: int) -> str:
    """Point at a point of a figure and return the label that appears."""
    plot.scroll_into_view_if_needed()
    x, y = plot.evaluate(
        """(plot, [trace, point]) => {
            const { xaxis, yaxis } = plot._fullLayout, { x, y } = plot._fullData[trace];
            const frame = plot.getBoundingClientRect();
            return [frame.left + xaxis._offset + xaxis.d2p(x[point]), frame.top + yaxis._offset + yaxis.d2p(y[point])];
        }""",
        [trace, point],
    )
    page.mouse.move(x + 1, y + 1)
    page.mouse.move(x, y)
    label = plot.locator(".hoverlayer .hovertext")
    label.wait_for()
    text = label.first.text_content() or ""
    page.mouse.move(1, 1)
    label.first.wait_for(state="detached")
    return text


def column(table: Locator, place: int) -> list[float | None]:
    orders = table.locator("tbody tr").evaluate_all(
        "(rows, place) => rows.map((row) => row.cells[place].dataset.order ?? null)", place
    )
    return [None if order is None else float(order) for order in orders]


def test_the_page_opens_without_a_message_and_without_asking_anybody(opened: Opened, file: Path) -> None:
    assert opened.said == []
    assert opened.asked == [file.as_uri()]


def test_the_page_opens_quickly(opened: Opened, processor_seconds: dict[str, float]) -> None:
    paint = opened.page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
    loaded = opened.page.evaluate("() => performance.getEntriesByType('navigation')[0].domInteractive")
    assert paint < loaded, "the text is seen before plotly has been loaded"
    assert 0.1 < processor_seconds["opened"] < 3  # the clock would measure what else the machine does


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
    assert hover(opened.page, plot, 0, 0).startswith("random-2xmean regret 2.17 %")


@pytest.mark.parametrize("with_keyboard", [False, True], ids=["by clicks", "with the keyboard"])
def test_tables_are_sorted_up_down_and_back(opened: Opened, with_keyboard: bool) -> None:
    table = opened.page.locator(".tables table").first
    heading = table.locator("thead th").nth(3)
    button = heading.locator("button")
    before = column(table, 3)

    def press() -> list[float | None]:
        if with_keyboard:
            button.focus()
            opened.page.keyboard.press("Enter")
        else:
            button.click()
        return column(table, 3)

    known = sorted(value for value in before if value is not None)
    empty = [None] * (len(before) - len(known))
    assert len(empty) > 0
    assert press() == [*known, *empty]
    assert heading.get_attribute("aria-sort") == "ascending"
    assert press() == [*reversed(known), *empty]
    assert heading.get_attribute("aria-sort") == "descending"
    assert press() == before
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
    assert seen["light"] == ("rgb(255, 255, 255)", "rgb(17, 17, 17)", "#111111")
    assert seen["dark"] == ("rgb(21, 23, 28)", "rgb(244, 244, 244)", "#f4f4f4")


def test_a_key_switches_its_line_and_the_bands_with_the_keyboard(opened: Opened) -> None:
    part = figure(opened.page, "RGPE?")
    shown = "plot => plot._fullData.map((trace) => trace.visible === true)"
    plot, key, bands = part.locator(".plot"), part.locator(".keys button").nth(1), part.locator(".keys button").last
    traces = [int(place) for place in (key.get_attribute("data-traces") or "").split()]
    before = plot.evaluate(shown)
    assert [before[place] for place in traces] == [False, True], "its band is off, its line is on"

    def press(button: Locator) -> list[bool]:
        button.focus()
        opened.page.keyboard.press("Space")
        return [plot.evaluate(shown)[place] for place in traces]

    assert press(bands) == [True, True]
    assert press(key) == [False, False]
    assert key.get_attribute("aria-pressed") == "false"
    assert press(bands) == [False, False]
    assert press(key) == [False, True]
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


def test_no_text_is_cut_off_or_written_over_another(opened: Opened) -> None:
    assert overlaps(opened.page) == []
    assert cells_cut_off(opened.page) == []


def test_on_a_narrow_screen_nothing_sticks_out_and_all_can_be_read(opened: Opened) -> None:
    with narrow(opened.page):
        assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= 400
        assert overlaps(opened.page) == []
        assert cells_cut_off(opened.page) == []
        frame = opened.page.locator(".tables .frame").first
        assert frame.evaluate("frame => frame.scrollWidth > frame.clientWidth"), "a wide table scrolls in its frame"


def test_hostile_names_are_only_names(hostile: Opened) -> None:
    page = hostile.page
    assert hostile.said == []
    assert len(hostile.asked) == 1
    assert page.locator("img, iframe, object, embed, base, form").count() == 0
    assert page.locator("script:not([type])").count() == 3
    assert page.evaluate(
        "() => [...document.querySelectorAll('a, use')].map((a) => a.getAttribute('href')).join(' ')"
    ) == ("#main #section-1 #section-2")
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
    assert hostile.said == []


def test_hostile_names_do_not_widen_the_page(hostile: Opened) -> None:
    assert overlaps(hostile.page) == []
    assert hostile.page.evaluate("() => document.documentElement.scrollWidth") <= 1600
    with narrow(hostile.page):
        assert hostile.page.evaluate("() => document.documentElement.scrollWidth") <= 400
