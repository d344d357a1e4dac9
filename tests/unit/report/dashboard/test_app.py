"""The pages as an application."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.dashboard import ask

from recollect.report.dashboard.app import dashboard_app, plotly_url
from recollect.report.dashboard.read_only import open_read_only

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")


def test_pages_are_answered_with_their_policy_and_version(file: Path) -> None:
    app = dashboard_app(open_read_only(str(file)))
    answer = ask(app, "/")
    assert answer.status == 200
    assert "connect-src 'self'" in answer.headers["content-security-policy"]
    assert '<a href="/problem?name=svm">svm</a>' in answer.text
    again = ask(app, "/", if_none_match=answer.headers["etag"])
    assert (again.status, again.text) == (304, "")
    assert ask(app, "/", if_none_match='"something"').status == 200
    assert ask(app, "/", method="HEAD").status == 200
    assert ask(app, "/favicon.ico").status == 204


def test_plotly_is_a_file_that_browsers_keep(file: Path) -> None:
    answer = ask(dashboard_app(open_read_only(str(file))), plotly_url())
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert "plotly.js v" in answer.text[:300]


@pytest.mark.parametrize(
    "path",
    [
        "/nothing", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/problem", "/run?problem=svm", "/problem/..",
        "/problem?name=nothing", "/run?problem=svm&task=../../etc/passwd", "/plotly-0.js", "/live.js", "//etc/passwd",
    ],
)  # fmt: skip
def test_there_is_nothing_but_the_pages(path: str, file: Path) -> None:
    answer = ask(dashboard_app(open_read_only(str(file))), path)
    assert answer.status == 404
    assert "no such page" in answer.text


def test_a_memory_that_has_gone_away_is_a_sentence_and_no_page(file: Path) -> None:
    app = dashboard_app(open_read_only(str(file)))
    file.unlink()
    answer = ask(app, "/")
    assert answer.status == 503
    assert "tuning.db" in answer.text
    assert "Traceback" not in answer.text
