"""A page that renews itself."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from pathlib import Path

import pytest
from tests.helpers.dashboard import PAGE

import recollect
from recollect.report.dashboard.app import PageRoute, live_page, live_script, notice_page, plotly_url
from recollect.report.page import render

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")

ASSETS = Path(recollect.__file__).parent / "report" / "assets"


def rules(policy: str) -> dict[str, list[str]]:
    return {
        name: content.split() for name, *rest in (rule.split(" ", 1) for rule in policy.split("; ")) for content in rest
    }


def hashed(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_a_live_page_may_ask_its_own_server_and_nothing_else_more_than_a_static_one() -> None:
    live, static = live_page(PAGE, PageRoute("svm"), "v1"), render(PAGE)
    scripts = re.findall(r"<script>(.*?)</script>", live.html, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", live.html, re.DOTALL)
    found = rules(live.policy)
    assert found["connect-src"] == ["'self'"]
    assert found["script-src"] == ["'self'", *map(hashed, scripts)]
    assert sorted(found["style-src-elem"]) == sorted(map(hashed, [*styles, ""]))
    assert found["default-src"] == found["frame-ancestors"] == found["base-uri"] == found["form-action"] == ["'none'"]
    assert found["img-src"] == ["data:"]
    inner = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', static)
    assert inner is not None
    assert "connect-src" not in inner[1]
    assert "http-equiv" not in live.html


def test_a_live_page_is_small_and_has_its_scripts_as_functions() -> None:
    live = live_page(PAGE, PageRoute("svm", "a<b"), "v1")
    assert len(live.html) < 80_000
    assert f'<script src="{plotly_url()}"></script>' in live.html
    own = (ASSETS / "figures.js").read_text()
    assert f"(document, addEventListener, matchMedia) => {{\n{own}\n}}" in live.html
    assert '<div id="live" data-version="v1">' in live.html
    assert '<a href="/">All problems</a><a href="/problem?name=svm">svm</a>' in live.html
    assert live.html.index('class="skip"') < live.html.index('id="live"') < live.html.index("<header>")
    assert live_script([]).count("=> {") < live_script(["a", "b"]).count("=> {")


def test_own_assets_load_nothing_and_evaluate_nothing() -> None:
    text = (ASSETS / "live.js").read_text() + (ASSETS / "live.css").read_text()
    assert not re.search(
        r"https?:|@import|url\(|\beval\b|innerHTML|insertAdjacentHTML|document\.write|new Function", text
    )


def test_a_notice_escapes_what_it_says_and_runs_nothing() -> None:
    page = notice_page("<b>", "<script>alert(1)</script>")
    assert "<script" not in page.html
    assert "&lt;script&gt;" in page.html
    assert "script-src" not in page.policy
    assert page.policy.startswith("default-src 'none'")


def test_a_notice_looks_like_all_pages_and_leads_to_them() -> None:
    page = notice_page("Not found", "There is no such page.")
    style = page.html.partition("<style>")[2].partition("</style>")[0]
    assert style == (ASSETS / "page.css").read_text()
    assert rules(page.policy)["style-src-elem"] == [hashed(style)]
    assert 'href="/"' in page.html
    assert "href" not in notice_page("A token is required", "Send it.", link=False).html.partition("</head>")[2]
