"""Pages are rendered once for each state of the memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.dashboard import PAGE, example

from recollect import Memory
from recollect.errors import StorageError
from recollect.report.dashboard.app import PageCache, PageRoute, in_thread, waiting_page
from recollect.report.dashboard.read_only import open_read_only
from recollect.report.page import Page

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")


def with_cache(memory: Memory, work: Callable[[PageCache], Awaitable[Any]], **given: Any) -> Any:
    async def all_of_it() -> Any:
        return await work(PageCache(memory, **{"max_wait": 60, **given}))

    return asyncio.run(all_of_it())


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> list[PageRoute]:
    """Record which pages are made."""
    made: list[PageRoute] = []

    def page(self: PageRoute, memory: Memory) -> Page:
        made.append(self)
        return PAGE

    monkeypatch.setattr(PageRoute, "page", page)
    return made


def test_a_page_is_made_once_for_all_who_ask_and_again_when_something_changed(
    file: Path, making: list[PageRoute], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recollect.report.dashboard.app.MAX_STATE_AGE", 0.0)

    async def work(cache: PageCache) -> None:
        answers = await asyncio.gather(*(cache.get(PageRoute("svm")) for _ in range(5)))
        assert making == [PageRoute("svm")]
        first = answers[0]
        assert first is not None
        assert first.page is not None
        assert all(answer == first for answer in answers)
        known = await cache.get(PageRoute("svm"), first.version)
        assert known is not None
        assert known.page is None
        with Memory(file) as memory:
            memory.add(example("third"), "svm")
        second = await cache.get(PageRoute("svm"), first.version)
        assert second is not None
        assert second.page is not None
        assert second.version != first.version
        assert making == [PageRoute("svm")] * 2
        assert await cache.get(PageRoute("nothing")) is None

    with_cache(open_read_only(str(file)), work)


def test_what_takes_long_is_announced_and_comes_later(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    threads = []

    def page(self: PageRoute, memory: Memory) -> Page:
        threads.append(threading.current_thread())
        go_on.wait(10)
        return PAGE

    monkeypatch.setattr(PageRoute, "page", page)

    async def work(cache: PageCache) -> None:
        waiting = await cache.get(PageRoute("svm"))
        assert waiting is not None
        assert waiting.version == ""
        assert waiting.page == waiting_page(PageRoute("svm"))
        go_on.set()
        while (answer := await cache.get(PageRoute("svm"))) is not None and not answer.version:
            await asyncio.sleep(0)
        assert answer is not None
        assert answer.page is not None
        assert "About it." in answer.page.html

    with_cache(open_read_only(str(file)), work, max_wait=0.01)
    assert len(threads) == 1
    assert threads[0].daemon, "it does not keep the server from ending"
    assert threads[0] is not threading.main_thread()


def test_a_page_that_fails_is_tried_again_and_whoever_waits_hears_of_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: Iterator[Page | None] = iter([None, PAGE])

    def page(self: PageRoute, memory: Memory) -> Page:
        found = next(outcomes)
        if found is None:
            raise StorageError("the disk is away")
        return found

    monkeypatch.setattr(PageRoute, "page", page)

    async def work(cache: PageCache) -> None:
        with pytest.raises(StorageError, match="the disk is away"):
            await cache.get(PageRoute("svm"))
        answer = await cache.get(PageRoute("svm"))
        assert answer is not None
        assert answer.page is not None

    with_cache(open_read_only(str(file)), work)


def test_only_so_many_pages_are_kept(file: Path, making: list[PageRoute], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.report.dashboard.app.MAX_PAGES", 1)

    async def work(cache: PageCache) -> None:
        for route in (PageRoute(), PageRoute("svm"), PageRoute("svm"), PageRoute()):
            await cache.get(route)

    with_cache(open_read_only(str(file)), work)
    assert making == [PageRoute(), PageRoute("svm"), PageRoute()]


def test_work_in_a_thread_gives_its_result_or_its_error() -> None:
    assert asyncio.run(in_thread(lambda: 3)) == 3
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 // 0))
