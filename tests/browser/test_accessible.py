"""Every kind of page meets axe-core's rules for WCAG 2.1 AA, light and dark, the keyboard reaches all of it, and
nothing moves while it opens.

Figures are drawings with a text alternative; their numbers are in tables, so axe looks at all the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.pages import NARROW, WIDE, Opened, wait_until_drawn
from tests.browser.test_bench_report import hostile_runs
from tests.browser.test_explore import tune
from tests.helpers.example_runs import usual

from recollect import Memory
from recollect.report.memory.memory_page import PageLinks

pytest.importorskip("plotly", reason="pages embed plotly's script")
pytest.importorskip("axe_playwright_python", reason="it brings axe-core")

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
RUN = """async (rules) => {
    const found = await axe.run({ exclude: ['.plot'] }, { runOnly: rules, resultTypes: ['violations'] });
    return found.violations.map(({ id, nodes }) => [id, nodes.length, nodes[0].html, nodes[0].failureSummary]);
}"""
KINDS = ("run", "study", "problem", "problems", "comparison", "benchmark")
MOST_SHIFT = 0.1
SHIFT = """window.shift = 0;
new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.shift += entry.value; })
    .observe({ type: 'layout-shift', buffered: true });"""
LINKS = PageLinks(lambda p: f"/problem?{p}", lambda p, task: f"/run?{p}&{task}", lambda p: f"/compare?problem={p}")
TABBABLE = "button:visible, a:visible, summary:visible, select:visible, input:visible"


def write(path: Path, page: Any) -> Path:
    from recollect.report.page import render, write_page

    write_page(render(page), path)
    return path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run with past runs, a study of Optuna, a problem, all problems, a comparison, and a benchmark."""
    from recollect.report.benchmark.benchmark_page import bench_page
    from recollect.report.memory.compare_page import compare_page
    from recollect.report.memory.memory_page import memory_page
    from recollect.report.run.run_page import page_of_run, run_page

    folder = tmp_path_factory.mktemp("accessible")
    tune(folder / "tuning.db")
    memory, data = Memory(folder / "tuning.db"), usual()
    for past in data.past:
        memory.add(past, "svm")
    return {
        "run": write(folder / "run.html", page_of_run(data)),
        "study": write(folder / "study.html", run_page(memory, None, "mlp")),
        "problem": write(folder / "memory.html", memory_page(memory, links=LINKS, problem="svm")),
        "problems": write(folder / "problems.html", memory_page(memory, links=LINKS)),
        "comparison": write(folder / "compare.html", compare_page(memory, "svm", ["past 0", "past 1", "past 2"])),
        "benchmark": write(folder / "benchmark.html", bench_page(hostile_runs())),
    }


@pytest.fixture(scope="module")
def file(pages: dict[str, Path]) -> Path:
    """The memory behind the pages, which the dashboard serves."""
    return pages["run"].parent / "tuning.db"


def violations(page: Page) -> list[Any]:
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    return list(page.evaluate(RUN, RULES))


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_meets_wcag_aa_in_light_and_dark(
    open_file: Callable[[Path], Opened], pages: dict[str, Path], kind: str
) -> None:
    found = open_file(pages[kind])
    for scheme in ("light", "dark"):
        found.page.emulate_media(color_scheme=scheme)
        assert violations(found.page) == [], scheme
    found.page.set_viewport_size(NARROW)
    assert violations(found.page) == []
    found.page.set_viewport_size(WIDE)
    if kind == "study":
        found.page.locator(".explorer tbody th a").first.click()
        found.page.locator("dialog[open]").wait_for()
        assert violations(found.page) == [], "the panel of a trial"
    found.page.close()


SERVED = ("/", "/problem?name=svm", "/run?task=mlp", "/compare?problem=svm&task=past%200&task=past%201", "/nothing")
READY = "() => ![...document.querySelectorAll('h2')].some((title) => title.textContent === 'Please wait')"


@pytest.mark.parametrize("path", SERVED)
def test_a_page_of_the_dashboard_meets_wcag_aa_and_stays_in_place(
    server: str, show: Callable[[str], Opened], path: str
) -> None:
    page = show("about:blank").page
    page.add_init_script(SHIFT)
    page.goto(f"{server}{path}")
    page.wait_for_function(READY)
    wait_until_drawn(page)
    assert page.evaluate("() => window.shift") < MOST_SHIFT
    assert page.locator("h1").count() == 1
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], scheme
    page.set_viewport_size(NARROW)
    assert violations(page) == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= NARROW["width"]
    page.close()


def test_faint_text_would_be_noticed(open_file: Callable[[Path], Opened], pages: dict[str, Path]) -> None:
    found = open_file(pages["comparison"])
    found.page.evaluate("() => document.documentElement.style.setProperty('--ink', '#cccccc')")
    assert "color-contrast" in [rule for rule, *_ in violations(found.page)]
    found.page.close()


def test_everything_is_reached_with_the_tabulator(open_file: Callable[[Path], Opened], pages: dict[str, Path]) -> None:
    found = open_file(pages["study"])
    page = found.page
    wanted = page.locator(TABBABLE).evaluate_all(
        "all => all.filter((one) => !one.disabled && one.tabIndex >= 0).length"
    )
    page.evaluate(
        "() => { window.reached = new Set(); addEventListener('focusin', ({ target }) => reached.add(target)); }"
    )
    for _ in range(wanted + 40):
        page.keyboard.press("Tab")
    missed = page.locator(TABBABLE).evaluate_all(
        """all => all.filter((one) => !one.disabled && one.tabIndex >= 0 && !reached.has(one))
            .map((one) => one.outerHTML)"""
    )
    assert missed == []
    page.close()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_moves_while_a_page_opens(
    browser: BrowserContext, pages: dict[str, Path], kind: str, size: Any
) -> None:
    page = browser.new_page()
    page.set_viewport_size(size)
    page.add_init_script(SHIFT)
    page.goto(pages[kind].as_uri())
    wait_until_drawn(page)
    assert page.evaluate("() => window.shift") < MOST_SHIFT
    page.close()


def test_a_shift_would_be_noticed(browser: BrowserContext, pages: dict[str, Path]) -> None:
    page = browser.new_page()
    page.set_viewport_size(WIDE)
    page.add_init_script(SHIFT)
    page.goto(pages["problems"].as_uri())
    page.evaluate("() => { document.querySelector('header').style.marginTop = '400px'; }")
    page.wait_for_function("most => window.shift > most", arg=MOST_SHIFT)
    page.close()
