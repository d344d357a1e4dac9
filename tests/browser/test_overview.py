"""The overview of a memory in a real browser: of runs that learned from each other, of many tasks, of hostile names.

Each page is opened once, since loading plotly takes a second of a processor; tests put back what they change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
import pytest

from recollect import FAILED, Memory, Run, minimize

pytest.importorskip("plotly", reason="pages embed plotly's script")

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from conftest import Opened

SPACE: dict[str, Any] = {"c": (0.01, 100.0, "log"), "depth": (1, 8), "kernel": ["rbf", "poly", "linear"]}
SCRIPT, QUOTES = "<script>alert(1)</script>", "\"><img src=x onerror='alert(2)'>"
HEBREW = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}\N{HEBREW LETTER GIMEL}"
HOSTILE = (SCRIPT, QUOTES, "<a href='https://example.org'>x</a> & %{x}", HEBREW, "\u202eedisni tuo", "long-" * 80)
TEXTS = """plot => {
    const frame = plot.getBoundingClientRect();
    return [...plot.querySelectorAll('svg text')].filter((text) => text.textContent.trim()).map((text) => {
        const { left, top, right, bottom } = text.getBoundingClientRect();
        return [text.textContent, left - frame.left, top - frame.top, right - frame.left, bottom - frame.top];
    }).concat([['', 0, 0, frame.width, frame.height]]);
}"""


def configs(count: int, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    drawn = zip(rng.uniform(-2, 2, count), rng.integers(1, 9, count), rng.choice(SPACE["kernel"], count), strict=True)
    return [{"c": float(10**c), "depth": int(depth), "kernel": str(kernel)} for c, depth, kernel in drawn]


def error(config: dict[str, Any], shift: float = 0.0) -> float:
    return float((np.log10(config["c"]) - shift) ** 2 + 0.1 * config["depth"] + (config["kernel"] == "poly"))


def write(memory: Memory, path: Path, problem: str | None = None) -> Path:
    from recollect.report.overview import overview_page
    from recollect.report.page import render, write_page

    write_page(render(overview_page(memory, problem)), path)
    return path


def wait_until_drawn(page: Page) -> None:
    count = page.locator(".plot").count()
    page.wait_for_function("count => document.querySelectorAll('.plot[data-drawn]').length === count", arg=count)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("overview")


@pytest.fixture(scope="module")
def file(folder: Path) -> Path:
    """Three runs, one after the other, so that the later ones learn; and two problems beside theirs."""
    memory = Memory(optuna.storages.InMemoryStorage())
    memory.add(Run("covertype", configs(15, 0), [error(config) for config in configs(15, 0)], space=SPACE), "svm")
    for number, task in enumerate(("adult", "digits"), start=1):
        given: dict[str, Any] = {"memory": memory, "problem": "svm", "task": task, "method": "rgpe-mean"}
        minimize(lambda config, n=number: error(config, 0.3 * n), SPACE, trials=12, progress=False, **given)
    memory.add(Run("failed", configs(3, 1), [FAILED] * 3, space=SPACE), "forest")
    memory.add(Run("some", configs(3, 2), [1.0, 2.0, FAILED], space=SPACE), "trees")
    return write(memory, folder / "overview.html")


@pytest.fixture(scope="module")
def opened(open_file: Callable[[Path], Opened], file: Path) -> Opened:
    found = open_file(file)
    wait_until_drawn(found.page)
    return found


@pytest.fixture(scope="module")
def hundred(open_file: Callable[[Path], Opened], folder: Path) -> Opened:
    memory = Memory(optuna.storages.InMemoryStorage())
    trials = [Run("", configs(6, seed), [error(c, 0.2 * seed) for c in configs(6, seed)]).trials for seed in range(8)]
    for number in range(100):
        memory.add(Run(f"a data set with a long name {number}", trials=trials[number % 8], space=SPACE), "svm")
    found = open_file(write(memory, folder / "hundred.html"))
    wait_until_drawn(found.page)
    return found


@pytest.fixture(scope="module")
def hostile(open_file: Callable[[Path], Opened], folder: Path) -> Opened:
    memory = Memory(optuna.storages.InMemoryStorage())
    space = {SCRIPT: (0.0, 1.0), QUOTES: [SCRIPT, QUOTES]}
    rng = np.random.default_rng(0)
    for name in HOSTILE:
        tried = [{SCRIPT: float(x), QUOTES: SCRIPT if x > 0.5 else QUOTES} for x in rng.random(4)]
        memory.add(Run(name, tried, [float(x) for x in rng.random(4)], space=space), SCRIPT + QUOTES)
    study = optuna.load_study(
        storage=memory.store.optuna, study_name=memory.store.optuna.get_all_studies()[-1].study_name
    )
    trial = study.ask()
    weights = dict.fromkeys(HOSTILE[:-1], 0.1)
    trial.set_user_attr("recollect:influence", {"reason": SCRIPT, "target": 0.5, "past": weights, "dropped": []})
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    found = open_file(write(memory, folder / "hostile.html"))
    wait_until_drawn(found.page)
    return found


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


def figure(page: Page, question: str) -> Locator:
    return page.locator("figure", has=page.locator("h3", has_text=question)).first


def table(page: Page, title: str) -> Locator:
    return page.locator(".table", has=page.locator("h3", has_text=title)).first.locator("table")


def hover(page: Page, plot: Locator, column: int, row: int) -> str:
    """Point at a cell of a heat map and return the label that appears."""
    plot.scroll_into_view_if_needed()
    x, y = plot.evaluate(
        """(plot, [column, row]) => {
            const { xaxis, yaxis } = plot._fullLayout, frame = plot.getBoundingClientRect();
            return [frame.left + xaxis._offset + xaxis.c2p(column), frame.top + yaxis._offset + yaxis.c2p(row)];
        }""",
        [column, row],
    )
    page.mouse.move(x + 1, y + 1)
    page.mouse.move(x, y)
    label = plot.locator(".hoverlayer .hovertext")
    label.wait_for()
    text = label.first.text_content() or ""
    page.mouse.move(1, 1)
    label.first.wait_for(state="detached")
    return text


def test_the_page_opens_without_a_message_and_without_asking_anybody(opened: Opened, file: Path) -> None:
    assert opened.said == []
    assert opened.asked == [file.as_uri()]


def test_figures_have_data_that_are_drawn_and_a_text_alternative(opened: Opened) -> None:
    plots = opened.page.locator(".plot")
    assert plots.count() == 2
    for plot in plots.all():
        cells = plot.evaluate("plot => plot._fullData[0].z.flat().filter((value) => value !== null).length")
        assert cells >= 4
        assert plot.locator(".heatmaplayer image").count() == 1
        assert len(plot.get_attribute("aria-label") or "") > 60


def test_pointing_at_a_cell_tells_both_tasks_and_the_number(opened: Opened) -> None:
    page = opened.page
    alike = figure(page, "Which tasks are alike?").locator(".plot")
    names, z = alike.evaluate("plot => [plot._fullData[0].y, plot._fullData[0].z]")
    assert hover(page, alike, 2, 0) == f"{names[0]}{names[2]}rank correlation {z[0][2]:.2f}"
    taught = figure(page, "Which tasks taught which?").locator(".plot")
    assert "learned from " in hover(page, taught, 0, 0)
    assert opened.said == []


@pytest.mark.parametrize("with_keyboard", [False, True], ids=["by clicks", "with the keyboard"])
def test_best_configurations_are_sorted_up_down_and_back(opened: Opened, with_keyboard: bool) -> None:
    best = table(opened.page, "Which configuration was best on each task?")
    button = best.locator("thead button", has_text="best value")
    column = "rows => rows.map((row) => Number(row.cells[1].dataset.order))"
    before = best.locator("tbody tr").evaluate_all(column)

    def press() -> list[float]:
        if with_keyboard:
            button.focus()
            opened.page.keyboard.press("Enter")
        else:
            button.click()
        return list(best.locator("tbody tr").evaluate_all(column))

    assert press() == sorted(before)
    assert press() == sorted(before, reverse=True)
    assert press() == before


def test_what_to_try_first_can_be_copied_with_the_keyboard(opened: Opened) -> None:
    field = opened.page.locator("textarea").first
    field.focus()
    opened.page.keyboard.press("Control+A")
    selected = field.evaluate("field => field.value.slice(field.selectionStart, field.selectionEnd)")
    found = json.loads(selected)
    assert len(found) == 8
    assert set(found[0]) == set(SPACE)
    opened.page.keyboard.press("x")
    assert field.input_value() == selected, "it cannot be changed"


def test_the_list_of_problems_leads_to_their_sections(opened: Opened) -> None:
    page = opened.page
    link = table(page, "Problems in this memory").locator("a", has_text="trees")
    link.click()
    target = page.locator(link.get_attribute("href") or "")
    assert target.text_content() == "trees"
    assert 0 <= target.evaluate("title => title.getBoundingClientRect().top") < 1000


def test_figures_follow_the_scheme_of_the_reader(opened: Opened) -> None:
    page = opened.page
    seen = {}
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(
            "scheme => [...document.querySelectorAll('.plot')].every((plot) => plot.dataset.drawn === scheme)",
            arg=scheme,
        )
        seen[scheme] = figure(page, "alike?").locator(".plot").evaluate("plot => plot._fullData[0].colorscale[1][1]")
    assert seen == {"dark": "#15171c", "light": "#ffffff"}, "what says nothing has the colour of the page"


def test_on_a_narrow_screen_nothing_sticks_out_and_all_can_be_read(opened: Opened) -> None:
    assert overlaps(opened.page) == []
    with narrow(opened.page):
        assert opened.page.evaluate("() => document.documentElement.scrollWidth") <= 400
        assert overlaps(opened.page) == []


def test_a_hundred_tasks_stay_readable(hundred: Opened) -> None:
    page = hundred.page
    assert hundred.said == []
    plot = figure(page, "alike?").locator(".plot")
    assert plot.locator(".ytick text").count() == 100
    assert plot.evaluate("plot => plot._fullData[0].z.flat().length") == 10_000
    assert overlaps(page) == []
    assert "a data set with a long name" in hover(page, plot, 42, 17)
    with narrow(page):
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
        assert overlaps(page) == []


def test_hostile_names_are_only_names(hostile: Opened) -> None:
    page = hostile.page
    assert hostile.said == []
    assert len(hostile.asked) == 1
    assert page.locator("img, iframe, object, embed, base, form").count() == 0
    assert page.locator("script:not([type])").count() == 3
    links = page.evaluate("() => [...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    names = page.locator("tbody th").all_text_contents()
    assert {SCRIPT, QUOTES} <= set(names)
    plot = figure(page, "taught").locator(".plot")
    labels = [hover(page, plot, column, 0) for column in range(len(HOSTILE) - 1)]
    assert any(f"learned from {SCRIPT}" in label for label in labels)
    assert any(QUOTES in label for label in labels)
    assert SCRIPT in json.loads(page.locator("textarea").input_value())[0]
    assert hostile.said == []


def test_hostile_names_do_not_widen_the_page(hostile: Opened) -> None:
    assert overlaps(hostile.page) == []
    assert hostile.page.evaluate("() => document.documentElement.scrollWidth") <= 1600
    with narrow(hostile.page):
        assert hostile.page.evaluate("() => document.documentElement.scrollWidth") <= 400
