"""The dashboard in a real browser: a server process on a real file, its pages, who is let in, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.browser.pages import HEBREW, REVERSED, Opened, unreadable, wait_until_drawn
from tests.browser.servers import ask, best_table, only_from, runs, served

from recollect import Memory

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")
pytest.importorskip("uvicorn", reason="the dashboard needs it")

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

HOSTILE = "a/../b%2F\"'><img src=x onerror=alert(1)><script>alert(2)</script>?task=#\N{HEBREW LETTER ALEF}\U0001f600"
LONG = REVERSED + HEBREW + "'\"<b>" + "long-" * 60
TOKEN = "s3cret/+token"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dashboard") / "tuning.db"
    with Memory(path) as memory:
        memory.add(runs("covertype"), "svm")
        memory.add(runs("adult", 8), "svm")
        memory.add(runs(HOSTILE, 4), HOSTILE)
        memory.add(runs(LONG, 4), HOSTILE)
    return path


def test_pages_lead_to_each_other_without_a_message_and_without_asking_anybody_else(
    server: str, show: Callable[[str], Opened]
) -> None:
    shown = show(f"{server}/")
    page = shown.page
    assert page.locator("h1").text_content() == "All problems"
    page.locator("a", has_text="svm").first.click()
    page.wait_for_url("**/problem?name=svm")
    page.locator("h3", has_text="Which tasks are alike?").wait_for()
    best_table(page).locator("a", has_text="covertype").click()
    page.wait_for_url("**/run?problem=svm&task=covertype")
    page.locator(".plot[data-drawn]").first.wait_for()
    assert "covertype" in (page.locator("h1").text_content() or "")
    page.locator("#live a", has_text="svm").click()
    page.wait_for_url("**/problem?name=svm")
    assert shown.messages == []
    assert only_from(shown, server)
    page.close()


@pytest.mark.parametrize(
    ("name", "part"), [(HOSTILE, "a/../b"), (LONG, "edisni tuo")], ids=["with markup", "long and right to left"]
)
def test_a_hostile_name_does_no_harm(server: str, show: Callable[[str], Opened], name: str, part: str) -> None:
    shown = show(f"{server}/")
    page = shown.page
    page.locator("a", has_text="a/../b").first.click()
    page.wait_for_url("**/problem?name=*")
    page.locator("h2", has_text="Best configurations").wait_for()
    assert "<script>alert(2)</script>" in (page.locator("h1").text_content() or "")
    best_table(page).locator("a", has_text=part).click()
    page.wait_for_url("**/run?*")
    assert parse_qs(urlsplit(page.url).query)["task"] == [name]
    page.wait_for_function("() => !document.querySelector('h2').textContent.includes('Please wait')")
    wait_until_drawn(page)
    assert part in (page.locator("h1").text_content() or "")
    assert REVERSED[0] not in (page.locator("body").text_content() or ""), "what turns the line round is not shown"
    assert unreadable(page) == []
    assert page.locator("img, iframe, object, embed, form").count() == 0
    assert shown.messages == []
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
    file: Path, show: Callable[[str], Opened], browser: BrowserContext
) -> None:
    with served(file, "--host", "0.0.0.0", "--token", TOKEN) as (server, _):
        for path in ("/", "/?token=wrong", "/problem?name=svm", "/favicon.ico"):
            assert ask(server, path)[0] == 401, path
        assert ask(server, "/", Authorization=f"Bearer {TOKEN}x")[0] == 401
        assert ask(server, "/", Authorization=f"Bearer {TOKEN}")[0] == 200
        for address in ("/problem?name=svm", "/problem?name=svm&token=wrong", f"/?token={TOKEN[:-1]}"):
            page = browser.new_page()
            answer = page.goto(f"{server}{address}")
            assert answer is not None
            assert (answer.status, page.locator("h1").text_content()) == (401, "A token is required")
            assert "svm" not in page.content()
            assert browser.cookies(server) == []
            page.close()
        shown = show(f"{server}/problem?name=svm&token=s3cret%2F%2Btoken")
        page = shown.page
        page.locator("h3", has_text="Which tasks are alike?").wait_for()
        assert page.url == f"{server}/problem?name=svm", "the token is no longer in the address"
        assert page.evaluate("() => document.cookie") == ""
        (cookie,) = browser.cookies(server)
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Lax")
        page.reload()
        page.locator("h3", has_text="Which tasks are alike?").wait_for()
        assert shown.messages == []
        page.close()
    browser.clear_cookies()


def test_a_place_that_others_reach_is_refused_without_a_token(file: Path) -> None:
    command = [sys.executable, "-m", "recollect", "dashboard", str(file), "--host", "0.0.0.0", "--no-browser"]
    environment = {name: value for name, value in os.environ.items() if name != "RECOLLECT_TOKEN"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("recollect: host: others can reach '0.0.0.0', so a token is required: ")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_ends_the_server_quietly_and_the_page_says_so(file: Path, show: Callable[[str], Opened]) -> None:
    before = file.read_bytes()
    with served(file) as (server, process):
        shown = show(f"{server}/")
        shown.page.locator("h3", has_text="Problems in this memory").wait_for()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (130, "", "")
        shown.page.locator("#live-trouble", has_text="The server does not respond; retrying.").wait_for()
        shown.page.close()
    assert file.read_bytes() == before, "nothing was written"
