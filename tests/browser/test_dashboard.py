"""The dashboard in a real browser: a server process on a real file, to which another process writes."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from recollect import Memory, Run

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")
pytest.importorskip("uvicorn", reason="the dashboard needs it")

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Locator, Page

SPACE: dict[str, Any] = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
HOSTILE = "a/../b%2F\"'><img src=x onerror=alert(1)><script>alert(2)</script>?task=#\N{HEBREW LETTER ALEF}\U0001f600"
TOKEN = "s3cret/+token"
WITHIN = 3.0  # seconds in which the page shows a new trial, on a machine with nothing else to do
WRITER = """
import sys, time
import recollect

def objective(config):
    return (config["x"] - 0.3) ** 2 + config["y"]

space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
for line in sys.stdin:
    given = dict(memory=sys.argv[1], problem="svm", task="running", method="rgpe-mean", progress=False)
    recollect.minimize(objective, space, trials=int(line), **given)
    print(time.time(), flush=True)
"""


@dataclass
class Shown:
    """An open page, what it said and asked for."""

    page: Page
    said: list[str]
    asked: list[str]


def runs(task: str, count: int = 6) -> Run:
    configs = [{"x": (7 * k % 11) / 10, "y": (3 * k % 11) / 10} for k in range(count)]
    return Run(task, configs, [(c["x"] - 0.3) ** 2 + c["y"] for c in configs], space=SPACE)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dashboard") / "tuning.db"
    with Memory(path) as memory:
        memory.add(runs("covertype"), "svm")
        memory.add(runs("adult", 8), "svm")
        memory.add(runs(HOSTILE, 4), HOSTILE)
    return path


@contextmanager
def served(file: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a memory; yields the address and the process."""
    command = [sys.executable, "-m", "recollect", "dashboard", str(file), "--port", "0", "--no-browser", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.match(r"(http://\S+)/ shows .*tuning\.db; Ctrl-C ends it$", line)
            assert found is not None, line + (process.stderr.read() if process.stderr and not line else "")
            yield found[1], process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[str]:
    with served(file) as (url, process):
        yield url
        assert process.poll() is None, "it is still there"


@pytest.fixture(scope="module")
def writer(file: Path) -> Iterator[Callable[[int], float]]:
    """Another process that tunes until the task has so many trials, and says when it had."""
    command = [sys.executable, "-c", WRITER, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def write(trials: int) -> float:
            print(trials, file=process.stdin, flush=True)
            assert process.stdout is not None
            return float(process.stdout.readline())

        yield write
        process.stdin.close()


@pytest.fixture(scope="module")
def show(browser: BrowserContext) -> Iterator[Callable[[str], Shown]]:
    """Return the function that opens an address; the browser reaches this machine meanwhile."""
    browser.set_offline(False)

    def opened(url: str) -> Shown:
        found = Shown(browser.new_page(), [], [])
        page = found.page
        page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: found.said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (found.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: found.asked.append(request.url))
        page.set_viewport_size({"width": 1600, "height": 1000})
        page.emulate_media(color_scheme="light")
        page.goto(url)
        return found

    yield opened
    browser.set_offline(True)


@pytest.fixture(scope="module")
def problem(server: str, show: Callable[[str], Shown], writer: Callable[[int], float]) -> Shown:
    """The page of a problem whose last task is still running."""
    writer(3)
    found = show(f"{server}/problem?name=svm")
    found.page.locator("h3", has_text="Which tasks are alike?").wait_for()
    found.page.wait_for_function(DRAWN)
    return found


DRAWN = "() => [...document.querySelectorAll('.plot')].every((plot) => plot.dataset.drawn)"


def ask(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Ask the server without a browser, byte by byte as given."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def slowness() -> float:
    """How much longer than alone something takes on this machine at the moment; other processes may wait longer yet."""
    begun, used = time.perf_counter(), time.process_time()
    while time.process_time() - used < 0.1:
        sum(range(1000))
    waited = (time.perf_counter() - begun) / (time.process_time() - used)
    return max(1.0, waited, os.getloadavg()[0] / (os.cpu_count() or 1))


def best_table(page: Page) -> Locator:
    return page.locator(".table", has=page.locator("h3", has_text="Which configuration was best")).locator("table")


def trials_of(page: Page, task: str) -> int:
    row = best_table(page).locator("tbody tr", has=page.locator("th", has_text=task))
    headings = best_table(page).locator("thead th").all_text_contents()
    return int(row.locator("th, td").nth(headings.index("trials")).text_content() or "")


def wait_for_trials(page: Page, count: int) -> None:
    sentence = "count => document.querySelector('#section-1 + ul').textContent.includes(` ${count} trials`)"
    page.wait_for_function(sentence, arg=count)


def only_from(shown: Shown, server: str) -> bool:
    return all(url.startswith(f"{server}/") for url in shown.asked)


def test_pages_lead_to_each_other_without_a_message_and_without_asking_anybody_else(
    server: str, show: Callable[[str], Shown]
) -> None:
    shown = show(f"{server}/")
    page = shown.page
    assert page.locator("h1").text_content() == "Memory overview"
    page.locator("a", has_text="svm").first.click()
    page.wait_for_url("**/problem?name=svm")
    page.locator("h3", has_text="Which tasks are alike?").wait_for()
    best_table(page).locator("a", has_text="covertype").click()
    page.wait_for_url("**/run?problem=svm&task=covertype")
    page.locator(".plot[data-drawn]").first.wait_for()
    assert "covertype" in (page.locator("h1").text_content() or "")
    page.locator("#live a", has_text="svm").click()
    page.wait_for_url("**/problem?name=svm")
    assert shown.said == []
    assert only_from(shown, server)
    page.close()


def test_a_new_trial_is_shown_within_three_seconds(problem: Shown, writer: Callable[[int], float]) -> None:
    page = problem.page
    before = trials_of(page, "running")
    wait_for_trials(page, 6 + 8 + before)
    slow = slowness()
    written = writer(before + 1)
    wait_for_trials(page, 6 + 8 + before + 1)
    assert time.time() - written < WITHIN * max(slow, slowness())
    assert trials_of(page, "running") == before + 1
    page.wait_for_function(DRAWN)
    assert page.locator("main").count() == 1
    assert "Live, updated" in (page.locator("#live").text_content() or "")
    assert problem.said == []


def test_a_new_trial_leaves_everything_as_the_reader_had_it(problem: Shown, writer: Callable[[int], float]) -> None:
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
    wait_for_trials(page, 6 + 8 + before + 1)
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
    page.wait_for_function(DRAWN)
    page.set_viewport_size({"width": 1600, "height": 1000})
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => [...document.querySelectorAll('.plot')].every((p) => p.dataset.drawn === 'dark')")
    page.emulate_media(color_scheme="light")
    assert problem.said == []


def test_pausing_keeps_the_page_until_it_is_to_go_on(problem: Shown, writer: Callable[[int], float]) -> None:
    page = problem.page
    before = trials_of(page, "running")
    button = page.locator("#live-pause")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    asked = len(problem.asked)
    writer(before + 1)
    page.wait_for_timeout(1500)
    assert len(problem.asked) <= asked + 1, "at most the question that was under way"
    assert trials_of(page, "running") == before
    page.keyboard.press("Enter")
    wait_for_trials(page, 6 + 8 + before + 1)


def test_the_report_of_a_run_grows_with_it(
    server: str, show: Callable[[str], Shown], writer: Callable[[int], float]
) -> None:
    shown = show(f"{server}/run?problem=svm&task=running")
    page = shown.page
    page.locator(".plot[data-drawn]").first.wait_for()
    version = page.evaluate("() => document.querySelector('main').textContent")
    table = ask(server, "/problem?name=svm")[2]
    found = re.search(r"with (\d+) trials", table)
    assert found is not None
    writer(int(found[1]) - 14 + 1)
    page.wait_for_function("text => document.querySelector('main').textContent !== text", arg=version)
    page.locator(".plot[data-drawn]").first.wait_for()
    assert shown.said == []
    assert only_from(shown, server)
    page.close()


def test_a_hostile_name_does_no_harm(server: str, show: Callable[[str], Shown]) -> None:
    shown = show(f"{server}/")
    page = shown.page
    page.locator("a", has_text="a/../b").first.click()
    page.wait_for_url("**/problem?name=*")
    page.locator("h2", has_text="Best configurations").wait_for()
    assert "<script>alert(2)</script>" in (page.locator("h1").text_content() or "")
    best_table(page).locator("a").first.click()
    page.wait_for_url("**/run?*")
    page.locator("main section").first.wait_for()
    page.wait_for_function("() => !document.querySelector('h2').textContent.includes('Please wait')")
    assert "<script>alert(2)</script>" in (page.locator("h1").text_content() or "")
    assert page.locator("img, iframe, object, embed, form").count() == 0
    assert shown.said == []
    assert only_from(shown, server)
    page.close()


def test_nothing_but_pages_is_given_and_nothing_is_taken(server: str, file: Path) -> None:
    for path in (
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/plotly-../live.js",
        f"/{file}",
        "/tuning.db",
    ):
        status, _, body = ask(server, path)
        assert (status, "root:" in body) == (404, False), path
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(server, "/", method)[0] == 405
    assert ask(server, "/", Host="rebound.example.org")[0] == 421
    status, headers, body = ask(server, "/", "HEAD")
    assert (status, body) == (200, "")
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self' 'sha256-")
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


def test_the_token_opens_the_door_once_and_a_cookie_keeps_it_open(
    file: Path, show: Callable[[str], Shown], browser: BrowserContext
) -> None:
    with served(file, "--host", "0.0.0.0", "--token", TOKEN) as (server, _):
        for path in ("/", "/?token=wrong", "/problem?name=svm", "/favicon.ico"):
            assert ask(server, path)[0] == 401, path
        assert ask(server, "/", Authorization=f"Bearer {TOKEN}x")[0] == 401
        assert ask(server, "/", Authorization=f"Bearer {TOKEN}")[0] == 200
        refused = show(f"{server}/problem?name=svm")
        assert refused.page.locator("h1").text_content() == "A token is needed"
        refused.page.close()
        shown = show(f"{server}/problem?name=svm&token=s3cret%2F%2Btoken")
        page = shown.page
        page.locator("h3", has_text="Which tasks are alike?").wait_for()
        assert page.url == f"{server}/problem?name=svm", "the token is no longer in the address"
        assert page.evaluate("() => document.cookie") == ""
        (cookie,) = browser.cookies(server)
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
        page.reload()
        page.locator("h3", has_text="Which tasks are alike?").wait_for()
        assert shown.said == []
        page.close()
    browser.clear_cookies()


def test_a_place_that_others_reach_is_refused_without_a_token(file: Path) -> None:
    command = [sys.executable, "-m", "recollect", "dashboard", str(file), "--host", "0.0.0.0", "--no-browser"]
    environment = {name: value for name, value in os.environ.items() if name != "RECOLLECT_TOKEN"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "recollect: host: others can reach '0.0.0.0', so it needs a token, too: --host 0.0.0.0 --token ...\n"
    )


def test_ctrl_c_ends_the_server_quietly_and_the_page_says_so(file: Path, show: Callable[[str], Shown]) -> None:
    before = file.read_bytes()
    with served(file) as (server, process):
        shown = show(f"{server}/")
        shown.page.locator("h3", has_text="Problems in this memory").wait_for()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (130, "", "")
        shown.page.locator("#live-trouble", has_text="The server does not answer; it is asked again.").wait_for()
        shown.page.close()
    assert file.read_bytes() == before, "nothing was written"
