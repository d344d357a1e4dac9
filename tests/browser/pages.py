"""What all tests of pages do: listen to a page, find its figures and tables, point at things, take the time.

Names that are to do no harm are here, too: markup, quotes, right to left, very long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

SCRIPT, QUOTES = "<script>alert(1)</script>", "\"><img src=x onerror='alert(2)'>"
LINK = "<a href='https://example.org'>x</a> & <b>y</b> %{x}"
HEBREW = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}\N{HEBREW LETTER GIMEL}"
REVERSED = "\u202eedisni tuo"
HOSTILE = (SCRIPT, QUOTES, LINK, HEBREW, REVERSED, "long-" * 400)

WIDE, NARROW = {"width": 1600, "height": 1000}, {"width": 400, "height": 800}
MOST_SECONDS = 3.0  # in which a page is to be open
TIMES = 3  # that a page is opened: whatever else the machine does makes it only slower
DRAWN = "() => [...document.querySelectorAll('.plot')].every((plot) => plot.dataset.drawn)"
IN_SCHEME = "scheme => [...document.querySelectorAll('.plot')].every((plot) => plot.dataset.drawn === scheme)"
FITS = "fits => [...document.querySelectorAll('.plot')].every((plot) => plot._fullLayout.width <= 400 === fits)"
TEXTS = """plot => {
    const frame = plot.getBoundingClientRect();
    return [...plot.querySelectorAll('svg text')].filter((text) => text.textContent.trim()).map((text) => {
        const { left, top, right, bottom } = text.getBoundingClientRect();
        return [text.textContent, left - frame.left, top - frame.top, right - frame.left, bottom - frame.top];
    }).concat([['', 0, 0, frame.width, frame.height]]);
}"""
AT_POINT = """(plot, [trace, point]) => {
    const { xaxis, yaxis } = plot._fullLayout, { x, y } = plot._fullData[trace], frame = plot.getBoundingClientRect();
    return [frame.left + xaxis._offset + xaxis.d2p(x[point]), frame.top + yaxis._offset + yaxis.d2p(y[point])];
}"""
AT_CELL = """(plot, [column, row]) => {
    const { xaxis, yaxis } = plot._fullLayout, frame = plot.getBoundingClientRect();
    return [frame.left + xaxis._offset + xaxis.c2p(column), frame.top + yaxis._offset + yaxis.c2p(row)];
}"""


@dataclass
class Opened:
    """An open page, its console messages and its requests."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def new_page(browser: BrowserContext) -> Opened:
    """Return an empty page, wide and light, of which it is recorded from the first moment on what happens."""
    page = browser.new_page()
    found = Opened(page)
    page.on("console", lambda message: found.messages.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: found.messages.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (found.messages.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: found.requests.append(request.url))
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    return found


@dataclass(frozen=True)
class Opening:
    """How long it took to open a page, in seconds, by the clock and of the processor.

    load: processes that wanted a core just before, for each core of the machine; above one, the clock says little.
    """

    clock: float
    processor: float
    load: float


def fastest_opening(browser: BrowserContext, path: Path) -> Opening:
    """Open a page several times; return the shortest of each time, from before it is asked for to the figures in view.

    A page that has been open before is no faster: nothing of a file is kept.
    """
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    taken = np.array([_opening(browser, path) for _ in range(TIMES)])
    clock, processor = taken.min(axis=0).tolist()
    return Opening(clock, processor, load)


def _opening(browser: BrowserContext, path: Path) -> tuple[float, float]:
    page = browser.new_page()
    page.set_viewport_size(WIDE)
    session = browser.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # counts from here
    begun = time.perf_counter()
    page.goto(path.as_uri(), wait_until="commit")
    page.locator(".plot[data-drawn]").nth(1).wait_for()
    taken = time.perf_counter() - begun
    metrics = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    page.close()
    return taken, float(metrics["ThreadTime"])


def text_is_seen_first(page: Page) -> bool:
    """Whether there was something to read before plotly had been loaded."""
    paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return bool(paint < page.evaluate("() => performance.getEntriesByType('navigation')[0].domInteractive"))


def wait_until_drawn(page: Page) -> None:
    page.wait_for_function(DRAWN)


def figure(page: Page, question: str) -> Locator:
    return page.locator("figure", has=page.locator("h3", has_text=question)).first


def table(page: Page, title: str) -> Locator:
    return page.locator(".table", has=page.locator("h3", has_text=title)).first.locator("table")


def column(found: Locator, place: int) -> list[float | None]:
    """Return the numbers by which a column is sorted; None in empty cells."""
    orders = found.locator("tbody tr").evaluate_all(
        "(rows, place) => rows.map((row) => row.cells[place].dataset.order ?? null)", place
    )
    return [None if order is None else float(order) for order in orders]


def texts(found: Locator, heading: str) -> list[str]:
    """Return what is written in a column."""
    place = [text.strip() for text in found.locator("thead th").all_text_contents()].index(heading)
    rows = found.locator("tbody tr").evaluate_all(
        "(rows, place) => rows.map((row) => row.cells[place].textContent)", place
    )
    return [str(row) for row in rows]


def press(page: Page, button: Locator, *, with_keyboard: bool) -> None:
    if with_keyboard:
        button.focus()
        page.keyboard.press("Enter")
    else:
        button.click()


@contextmanager
def narrow(page: Page) -> Iterator[None]:
    """Show the page 400 pixels wide."""
    page.set_viewport_size(NARROW)
    page.wait_for_function(FITS, arg=True)
    try:
        yield
    finally:
        page.set_viewport_size(WIDE)
        page.wait_for_function(FITS, arg=False)


def unreadable(page: Page) -> list[str]:
    """Return what sticks out of the page, is cut off or is written over another text, wide and narrow."""
    wrong = _unreadable(page, WIDE["width"])
    with narrow(page):
        return wrong + _unreadable(page, NARROW["width"])


def _unreadable(page: Page, most: int) -> list[str]:
    wrong = [wrong for plot in page.locator(".plot").all() for wrong in _overlaps(plot.evaluate(TEXTS))]
    wrong += [f"the cell {text!r} is cut off" for text in _cells_cut_off(page)]
    width = page.evaluate("() => document.documentElement.scrollWidth")
    if width > most:
        wrong.append(f"the page is {width} pixels wide")
    return [f"{text} at {most} pixels" for text in wrong]


def _overlaps(found: Sequence[Sequence[Any]]) -> list[str]:
    *boxes, (_, _, _, wide, high) = found
    wrong = []
    for number, (text, left, top, right, bottom) in enumerate(boxes):
        if left < -1 or top < -1 or right > wide + 1 or bottom > high + 1:
            wrong.append(f"{text!r} is cut off")
        for other, a, b, c, d in boxes[:number]:
            if min(right, c) - max(left, a) > 1 and min(bottom, d) - max(top, b) > 2:
                wrong.append(f"{text!r} is written over {other!r}")
    return wrong


def _cells_cut_off(page: Page) -> list[str]:
    cells = page.locator(".tables th, .tables td")
    return list(
        cells.evaluate_all("cells => cells.filter((c) => c.scrollWidth > c.clientWidth + 1).map((c) => c.textContent)")
    )


def hover(page: Page, plot: Locator, trace: int, point: int) -> str:
    """Point at a point of a figure and return the label that appears."""
    return _label(page, plot, AT_POINT, (trace, point))


def hover_cell(page: Page, plot: Locator, column: int, row: int) -> str:
    """Point at a cell of a heat map and return the label that appears."""
    return _label(page, plot, AT_CELL, (column, row))


def _label(page: Page, plot: Locator, where: str, place: tuple[int, int]) -> str:
    plot.scroll_into_view_if_needed()
    x, y = plot.evaluate(where, list(place))
    page.mouse.move(x + 1, y + 1)
    page.mouse.move(x, y)
    label = plot.locator(".hoverlayer .hovertext")
    label.wait_for()
    text = label.first.text_content() or ""
    page.mouse.move(1, 1)
    label.first.wait_for(state="detached")
    return text


def loads_nothing(page: Page) -> bool:
    """Whether a static page has only the elements that it needs, its own scripts, and links to places in it."""
    links = page.evaluate("() => [...document.querySelectorAll('a, use')].map((a) => a.getAttribute('href'))")
    return (
        page.locator("img, iframe, object, embed, base, form").count() == 0
        and page.locator("script:not([type])").count() == 4
        and all(link.startswith("#") for link in links)
    )
