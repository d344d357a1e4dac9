"""The dashboard in a real browser while another process writes to its file: what is new is shown by itself."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest
from tests.browser.pages import IN_SCHEME, WIDE, Opened, figure, hover_cell, new_page, wait_until_drawn
from tests.browser.servers import best_table, only_from, runs

from recollect import Memory

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")
pytest.importorskip("uvicorn", reason="the dashboard needs it")

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

WITHIN = 3.0  # seconds in which the page shows a new trial
GLANCE = "#section-1 ~ .hero details li:first-child"
OTHERS = 6 + 8  # trials of tasks that nobody works on
TIMES = 3  # that a trial is added; most of them are to be shown in time, since the machine may stop for a moment
WRITER = """
import sys, time
import recollect

told = []

def objective(config):
    told.append(time.time())
    return (config["x"] - 0.3) ** 2 + config["y"]

space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
for line in sys.stdin:
    given = dict(memory=sys.argv[1], problem="svm", task="running", method="rgpe-mean", progress=False)
    recollect.minimize(objective, space, trials=int(line), **given)
    print(told[-1], flush=True)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dashboard") / "tuning.db"
    with Memory(path) as memory:
        memory.add(runs("covertype"), "svm")
        memory.add(runs("adult", 8), "svm")
    return path


@pytest.fixture(scope="module")
def writer(file: Path) -> Iterator[Callable[[int], float]]:
    """Another process that tunes until the task has so many trials, and says when the last was about to be told."""
    command = [sys.executable, "-c", WRITER, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def write(trials: int) -> float:
            print(trials, file=process.stdin, flush=True)
            assert process.stdout is not None
            return float(process.stdout.readline())

        write(3)  # enough for a figure
        yield write
        process.stdin.close()


@pytest.fixture(scope="module")
def problem(server: str, show: Callable[[str], Opened], writer: Callable[[int], float]) -> Opened:
    """The page of a problem whose last task is still running, since somebody tunes on it."""
    found = show(f"{server}/problem?name=svm")
    found.page.locator("h3", has_text="Which tasks are alike?").wait_for()
    wait_until_drawn(found.page)
    return found


def trials_of(page: Page, task: str) -> int:
    row = best_table(page).locator("tbody tr", has=page.locator("th", has_text=task))
    headings = best_table(page).locator("thead th").all_text_contents()
    return int(row.locator("th, td").nth(headings.index("trials")).text_content() or "")


COUNTED = """count => {
    const title = [...document.querySelectorAll('.table h3')].find((own) => own.textContent.startsWith('Which config'));
    const table = title.closest('.table').querySelector('table'), headings = [...table.tHead.rows[0].cells];
    const place = headings.findIndex((cell) => cell.textContent === 'trials');
    return [...table.tBodies[0].rows].reduce((sum, row) => sum + Number(row.cells[place].dataset.order), 0) === count;
}"""


def wait_for_trials(page: Page, count: int) -> None:
    """Wait until the tasks have this many trials together."""
    page.wait_for_function(COUNTED, arg=count)


def test_a_new_trial_is_shown_within_three_seconds(problem: Opened, writer: Callable[[int], float]) -> None:
    page = problem.page
    before = trials_of(page, "running")
    wait_for_trials(page, OTHERS + before)
    taken = []
    for count in range(before + 1, before + 1 + TIMES):
        written = writer(count)
        wait_for_trials(page, OTHERS + count)
        taken.append(time.time() - written)
        assert trials_of(page, "running") == count
    assert median(taken) < WITHIN, taken
    assert page.locator("main").count() == 1
    assert "Live, updated" in (page.locator("#live").text_content() or "")
    assert problem.messages == []


def test_a_page_hears_of_news_by_one_stream_and_asks_nothing_meanwhile(
    server: str, show: Callable[[str], Opened], writer: Callable[[int], float], problem: Opened
) -> None:
    before = trials_of(problem.page, "running")
    shown = show(f"{server}/problem?name=svm")
    page = shown.page
    wait_for_trials(page, OTHERS + before)
    page.wait_for_timeout(500)
    asked = len(shown.requests)
    page.wait_for_timeout(2500)
    assert shown.requests[asked:] == [], "the page is current and asks nothing"
    writer(before + 1)
    wait_for_trials(page, OTHERS + before + 1)
    assert [url for url in shown.requests if "/events/" in url] == [f"{server}/events/problem?name=svm"]
    assert shown.messages == []
    page.close()


def test_without_a_stream_the_page_asks_every_second(
    server: str, browser: BrowserContext, writer: Callable[[int], float], problem: Opened
) -> None:
    before = trials_of(problem.page, "running")
    shown = new_page(browser)
    page = shown.page
    page.route("**/events/**", lambda route: route.fulfill(status=503))
    page.goto(f"{server}/problem?name=svm")
    wait_for_trials(page, OTHERS + before)
    writer(before + 1)
    wait_for_trials(page, OTHERS + before + 1)
    asked = len(shown.requests)
    page.wait_for_timeout(2500)
    assert shown.requests[asked:], "it goes on asking"
    page.close()


def test_new_figures_have_data_and_answer_to_pointing(problem: Opened, writer: Callable[[int], float]) -> None:
    page = problem.page
    before = trials_of(page, "running")
    page.evaluate("() => { document.querySelector('.plot').dataset.old = 'yes'; }")
    writer(before + 1)
    wait_for_trials(page, OTHERS + before + 1)
    wait_until_drawn(page)
    plot = figure(page, "Which tasks are alike?").locator(".plot")
    assert plot.get_attribute("data-old") is None, "the figure is new"
    names, cells = plot.evaluate("plot => [plot._fullData[0].y, plot._fullData[0].z]")
    assert set(names) == {"covertype", "adult", "running"}
    assert hover_cell(page, plot, 1, 0) == f"{names[0]}{names[1]}rank correlation {cells[0][1]:.2f}"
    assert problem.messages == []


def test_a_new_trial_leaves_everything_as_the_reader_had_it(problem: Opened, writer: Callable[[int], float]) -> None:
    page = problem.page
    page.set_viewport_size({"width": 1600, "height": 500})
    before = trials_of(page, "running")
    heading = best_table(page).locator("thead th", has_text="best value")
    heading.locator("button").click()
    heading.locator("button").click()
    page.locator("summary").first.click()
    page.evaluate("() => document.querySelector('main figure').scrollIntoView()")
    page.locator("summary").first.focus()
    place = page.locator("main figure").first.evaluate("figure => figure.getBoundingClientRect().top")
    page.evaluate("() => { document.querySelector('main').dataset.old = 'yes'; }")
    writer(before + 1)
    wait_for_trials(page, OTHERS + before + 1)
    assert page.locator("main").get_attribute("data-old") is None, "the content is new"
    assert heading.get_attribute("aria-sort") == "descending"
    values = (
        best_table(page)
        .locator("tbody tr")
        .evaluate_all("rows => rows.map((row) => Number(row.cells[1].dataset.order))")
    )
    assert values == sorted(values, reverse=True)
    assert page.locator("details").first.evaluate("details => details.open")
    assert page.evaluate("() => document.activeElement.tagName") == "SUMMARY"
    assert page.locator("main figure").first.evaluate("figure => figure.getBoundingClientRect().top") == pytest.approx(
        place, abs=2
    )
    wait_until_drawn(page)
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(IN_SCHEME, arg="dark")
    page.emulate_media(color_scheme="light")
    assert problem.messages == []


def test_pausing_keeps_the_page_until_it_is_to_go_on(problem: Opened, writer: Callable[[int], float]) -> None:
    page = problem.page
    before = trials_of(page, "running")
    button = page.locator("#live-pause")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    asked = len(problem.requests)
    writer(before + 1)
    page.wait_for_timeout(1500)
    assert len(problem.requests) <= asked + 1, "at most the request that was under way"
    assert trials_of(page, "running") == before
    page.keyboard.press("Enter")
    wait_for_trials(page, OTHERS + before + 1)


def test_the_report_of_a_run_grows_with_it_within_three_seconds(
    server: str, show: Callable[[str], Opened], writer: Callable[[int], float]
) -> None:
    shown = show(f"{server}/run?problem=svm&task=running")
    page = shown.page
    page.locator(".plot[data-drawn]").first.wait_for()
    before = int((page.locator(GLANCE).text_content() or "").split(" trial")[0])
    taken = []
    for count in range(before + 1, before + 1 + TIMES):
        written = writer(count)
        page.wait_for_function(
            "([glance, count]) => document.querySelector(glance).textContent.startsWith(`${count} trials`)",
            arg=[GLANCE, count],
        )
        taken.append(time.time() - written)
    assert median(taken) < WITHIN, taken
    page.locator(".plot[data-drawn]").first.wait_for()
    assert shown.messages == []
    assert only_from(shown, server)
    page.close()
