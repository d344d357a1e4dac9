"""Streams of events: which versions they announce, how many there are, and when they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.helpers.dashboard import ask

from recollect.errors import StorageError
from recollect.report.dashboard import events
from recollect.report.dashboard.app import PageCache, PageRoute, dashboard_app
from recollect.report.dashboard.events import EventStreams
from recollect.report.dashboard.read_only import open_read_only
from recollect.report.dashboard.server import SECURITY_HEADERS, AccessControl

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(_: float) -> None:
        return None

    monkeypatch.setattr("recollect.report.dashboard.events.asyncio.sleep", sleep)


def stream_of(versions: list[str | Exception | None], streams: EventStreams) -> list[str]:
    left: Iterator[str | Exception | None] = iter(versions)

    async def version() -> str | None:
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    async def collected() -> list[str]:
        return [event async for event in streams.events(version)]

    return asyncio.run(collected())


def announced(sent: list[str]) -> list[str]:
    return [event.removeprefix("data: ").strip() for event in sent if event.startswith("data: ")]


def test_a_version_is_announced_once_until_the_page_is_gone() -> None:
    streams = EventStreams(ending=lambda: False)
    sent = stream_of(["a", "a", "b", "b", "a", None], streams)
    assert announced(sent) == ["a", "b", "a"]
    assert all(event.endswith("\n\n") for event in sent)
    assert streams.count == 0


def test_a_stream_without_news_shows_that_it_is_alive() -> None:
    quiet = 1 + int(events.HEARTBEAT / events.INTERVAL)
    sent = stream_of([*["a"] * quiet, *["a"] * quiet, None], EventStreams(ending=lambda: False))
    assert announced(sent) == ["a"]
    assert [event for event in sent if event.startswith(":")] == [": still there\n\n"] * 2


def test_a_stream_ends_with_the_server_and_when_the_memory_cannot_be_read() -> None:
    answers = iter([False, False, True])
    assert announced(stream_of(["a", "b", "c"], EventStreams(ending=lambda: next(answers)))) == ["a", "b"]
    streams = EventStreams(ending=lambda: False)
    assert announced(stream_of(["a", StorageError("the disk is away")], streams)) == ["a"]
    assert streams.count == 0


def test_a_stream_that_is_left_in_the_middle_no_longer_counts() -> None:
    streams = EventStreams(ending=lambda: False)

    async def version() -> str:
        return "a"

    async def work() -> None:
        stream = streams.events(version)
        await anext(stream)
        assert streams.count == 1
        await stream.aclose()  # type: ignore[attr-defined]
        assert streams.count == 0

    asyncio.run(work())


@pytest.fixture
def app(file: Path) -> Callable[[str, str], tuple[int, dict[str, str], str]]:
    """The application of a server that ends after the first look."""
    looks = iter([False, True, False, True])
    protected = AccessControl(loopback=True, token=None, port=8000).protect(
        dashboard_app(open_read_only(str(file)), ending=lambda: next(looks))
    )

    def asked(path: str, method: str = "GET") -> tuple[int, dict[str, str], str]:
        answer = ask(protected, path, method=method)
        return answer.status, answer.headers, answer.text

    return asked


@pytest.mark.parametrize("path", ["/", "/problem?name=svm", "/run?problem=svm&task=first"])
def test_every_page_has_a_stream_with_the_version_that_it_is_sent_with(path: str, file: Path) -> None:
    looks = iter([False, True])
    app = dashboard_app(open_read_only(str(file)), ending=lambda: next(looks))
    stream = ask(app, f"/events{path}")
    assert stream.headers["content-type"].startswith("text/event-stream")
    (version,) = announced(stream.text.split("\n"))
    assert ask(app, path, if_none_match=f'"{version}"').status == 304


def test_a_stream_has_the_security_headers_and_is_not_kept(
    app: Callable[[str, str], tuple[int, dict[str, str], str]],
) -> None:
    status, headers, _ = app("/events/problem?name=svm", "GET")
    assert status == 200
    assert {name: headers[name.lower()] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert headers["cache-control"] == "no-store"
    assert app("/events/", "HEAD")[2] == ""
    assert app("/events/", "POST")[0] == 405
    for path in ("/events/problem?name=nothing", "/events/run", "/events/nothing"):
        assert app(path, "GET")[0] == 404


def test_there_are_only_so_many_streams(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.report.dashboard.events.MAX_STREAMS", 0)
    assert ask(dashboard_app(open_read_only(str(file))), "/events/").status == 503


def test_a_memory_that_has_gone_away_has_no_stream(file: Path) -> None:
    app = dashboard_app(open_read_only(str(file)))
    file.unlink()
    assert ask(app, "/events/").status == 503


def test_the_version_of_a_page_does_not_need_the_page(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def page(self: PageRoute, memory: object) -> None:
        raise AssertionError("it is not rendered")

    monkeypatch.setattr(PageRoute, "page", page)

    async def work() -> None:
        cache = PageCache(open_read_only(str(file)))
        assert await cache.version(PageRoute("svm"))
        assert await cache.version(PageRoute("nothing")) is None

    asyncio.run(work())
