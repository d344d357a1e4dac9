"""The pages of a memory as a Starlette application: which page has which URL, and how pages renew themselves.

Names are percent-encoded in the query, so slashes and dots in them have no meaning.

A live page differs from the static page in three ways. Its policy is sent as a header instead of being part of it, and
allows requests to its own server. Plotly's script is a file of the server, which browsers cache. The page's other
scripts are passed to ``live.js``, which runs them again on each new content.

A page is rendered once for each state of the memory, however many clients request it, in a thread, so that the server
can answer meanwhile. No client waits long: if a page takes longer, it gets the previous version or a page that says so,
and the new one when it asks again. `recollect.report.dashboard.events` tells it when to ask.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from secrets import token_hex
from threading import Thread
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, urlencode

from recollect.errors import InputError, RecollectError
from recollect.report.dashboard.events import EventStreams
from recollect.report.dashboard.read_only import StudyState, combined_token, read_study_states
from recollect.report.formatting import IN_HOVER, printable
from recollect.report.html import Html, joined, tag, verbatim
from recollect.report.memory.compare_page import compare_page
from recollect.report.memory.memory_page import PageLinks, memory_page
from recollect.report.page import (
    Page,
    Section,
    asset,
    content_policy,
    document,
    page_scripts,
    plotly_script,
    source_hash,
)
from recollect.storage.memory import Memory

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

START_PATH, PROBLEM_PATH, RUN_PATH, COMPARE_PATH = "/", "/problem", "/run", "/compare"


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A page: the start page without names, a problem, a task, or tasks that are compared.

    A task without a problem is another tool's study.
    """

    problem: str | None = None
    task: str | None = None
    compared: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Its URL on the server."""
        if self.compared:
            return "&".join(
                [_url(COMPARE_PATH, {"problem": self.problem}), *(f"task={quote(t, safe='')}" for t in self.compared)]
            )
        if self.task is not None:
            return _url(RUN_PATH, {"problem": self.problem, "task": self.task})
        return START_PATH if self.problem is None else _url(PROBLEM_PATH, {"name": self.problem})

    @property
    def title(self) -> str:
        """Its name in a link to it."""
        return "Comparison" if self.compared else self.task or self.problem or "All problems"

    @property
    def parents(self) -> tuple[PageRoute, ...]:
        """The pages above it, the start page first."""
        if self.problem is not None and (self.task is not None or self.compared):
            return (PageRoute(), PageRoute(self.problem))
        return () if self == PageRoute() else (PageRoute(),)

    def studies(self, states: Sequence[StudyState]) -> tuple[StudyState, ...]:
        """Return the studies that the page depends on; none if there is no such page."""
        if self == PageRoute():
            return tuple(states)
        if self.compared:
            own = [state for state in states if state.entry.problem == self.problem]
            return tuple(state for state in own if state.entry.task in self.compared)
        names = [(state.entry.problem, state.entry.task) for state in states]
        if self.task is not None and (self.problem, self.task) not in names:
            return ()
        return tuple(state for state in states if state.entry.problem == self.problem or state.entry.task == self.task)

    def page(self, memory: Memory) -> Page:
        """Create the page, which may take a while; on one core, since runs may be using the others."""
        if self.compared:
            return compare_page(memory, self.problem, self.compared, links=LINKS, jobs=1)
        if self.task is None:
            return memory_page(memory, self.problem, links=LINKS, jobs=1)
        from recollect.report.run.run_page import run_page

        return run_page(memory, self.problem, self.task, link=LINKS.run)


def find_route(path: str, query: Mapping[str, str], tasks: Sequence[str] = ()) -> PageRoute | None:
    """Return the page that a path and its query request; None if there is no such path or a name is missing.

    tasks: all tasks of the query, of which a comparison has several.
    """
    if path == START_PATH:
        return PageRoute()
    if path == PROBLEM_PATH and "name" in query:
        return PageRoute(query["name"])
    if path == COMPARE_PATH and tasks:
        return PageRoute(query.get("problem"), compared=tuple(dict.fromkeys(tasks)))
    if path == RUN_PATH and "task" in query:
        return PageRoute(query.get("problem"), query["task"])
    return None


def _url(path: str, names: Mapping[str, str | None]) -> str:
    return f"{path}?{urlencode({key: name for key, name in names.items() if name is not None}, quote_via=quote)}"


LINKS = PageLinks(
    lambda problem: PageRoute(problem).url,
    lambda problem, task: PageRoute(problem, task).url,
    lambda problem: _url(COMPARE_PATH, {"problem": problem}),
)
ICON = Html('<link rel="icon" href="data:,">')  # otherwise browsers request one
STRICT_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
WAIT = "Models of all tasks are being fitted for the first time. The page appears by itself when they are ready."


@dataclass(frozen=True, slots=True)
class LivePage:
    """A page for browsers, and the policy that is sent with it."""

    html: str
    policy: str


def live_page(page: Page, route: PageRoute, version: str) -> LivePage:
    """Return a page that checks for new versions of itself."""
    styles = [asset("page.css"), asset("live.css")]
    script = live_script(page_scripts())
    scripts = [Html(f'<script src="{plotly_url()}"></script>'), verbatim("script", script)]
    html = document(page, styles=styles, scripts=scripts, head=[ICON], top=[_bar(route, version)])
    return LivePage(html, content_policy([script], styles, live=True))


def waiting_page(route: PageRoute) -> LivePage:
    """Return the page that is shown until the first version is ready."""
    return live_page(Page(printable(route.title), WAIT, (Section("Please wait", ()),)), route, "")


def notice_page(title: str, sentence: str, *, link: bool = True) -> LivePage:
    """Return a page with only a sentence, and perhaps a link to the start page."""
    style = asset("page.css")
    viewport = tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"})
    metas = (tag("meta", {"charset": "utf-8"}), viewport)
    head = tag("head", {}, *metas, tag("title", {}, title), ICON, verbatim("style", style))
    start = tag("a", {"class": "button", "href": START_PATH}, "All problems") if link else ""
    body = tag("body", {}, tag("header", {}, tag("h1", {}, title), tag("p", {}, sentence)), tag("main", {}, start))
    html = f"<!doctype html>\n{tag('html', {'lang': 'en'}, head, body).text}\n"
    return LivePage(html, f"{STRICT_POLICY}; img-src data:; style-src-elem {source_hash(style)}")


def live_script(scripts: Sequence[str]) -> str:
    """Return the script of a page: its own scripts as functions, and ``live.js``, which calls them.

    It gives them what they use to find figures and to listen to events, so that it can stop what they started.
    """
    functions = "".join(f"(document, addEventListener, matchMedia) => {{\n{script}\n}},\n" for script in scripts)
    return f'"use strict";\n(() => {{\nconst scripts = [\n{functions}];\n{asset("live.js")}}})();\n'


@cache
def plotly_url() -> str:
    """Return the URL of plotly's script; each version has its own, so browsers may cache it forever."""
    return f"/plotly-{sha256(plotly_script().encode()).hexdigest()[:16]}.js"


def _bar(route: PageRoute, version: str) -> Html:
    links = [tag("a", {"href": parent.url}, printable(parent.title, IN_HOVER)) for parent in route.parents]
    pages = tag("nav", {"aria-label": "Pages"}, joined(links)) if links else ""
    state, trouble = tag("span", {"id": "live-state"}, "Live"), tag("span", {"id": "live-trouble", "role": "status"})
    pause = tag("button", {"id": "live-pause", "type": "button", "aria-pressed": "false"}, "Pause")
    return tag("div", {"id": "live", "data-version": version}, pages, state, trouble, pause)


MAX_WAIT = 1.0  # seconds that a client waits for a page
MAX_STATE_AGE = 0.3  # seconds for which change tokens are not read again
MAX_PAGES, MAX_THREADS = 64, 2  # pages that are kept, and that are rendered at the same time
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A page and its version; page None: the client has that version already."""

    version: str
    page: LivePage | None


class PageCache:
    """The pages of a memory."""

    def __init__(self, memory: Memory, *, max_wait: float = MAX_WAIT) -> None:
        """Cache pages of this memory; ``max_wait``: seconds that a client waits for one."""
        self._memory, self._max_wait = memory, max_wait
        self._pages: OrderedDict[PageRoute, CachedPage] = OrderedDict()
        self._tasks: dict[PageRoute, asyncio.Task[CachedPage]] = {}
        self._read_lock = asyncio.Lock()
        self._threads = asyncio.Semaphore(MAX_THREADS)
        self._states: tuple[float, tuple[StudyState, ...]] = (-MAX_STATE_AGE, ())
        self._server_id = token_hex(4)  # pages of an earlier server, perhaps of another version, have other versions

    async def version(self, route: PageRoute) -> str | None:
        """Return the current version of a page, None if there is none on this route."""
        studies = route.studies(await self._read_states())
        if not studies and route != PageRoute():
            return None
        return f"{self._server_id}-{combined_token(studies)}"

    async def get(self, route: PageRoute, known_version: str = "") -> CachedPage | None:
        """Return a page; None if there is none on this route. ``known_version``: the version that the client has."""
        version = await self.version(route)
        if version is None or version == known_version:
            return None if version is None else CachedPage(version, None)
        page = self._pages.get(route)
        if page is None or page.version != version:
            done, _ = await asyncio.wait([task := self._task(route, version)], timeout=self._max_wait)
            page = task.result() if done else page
        if page is None:
            return CachedPage("", waiting_page(route))
        return CachedPage(known_version, None) if page.version == known_version else page

    def _task(self, route: PageRoute, version: str) -> asyncio.Task[CachedPage]:
        """Return the task that renders a page, one at a time: later changes are seen on the next request."""
        if route not in self._tasks:
            task = self._tasks[route] = asyncio.create_task(self._render(route, version))
            task.add_done_callback(partial(self._finish, route))
        return self._tasks[route]

    def _finish(self, route: PageRoute, task: asyncio.Task[CachedPage]) -> None:
        del self._tasks[route]
        if not task.cancelled():
            task.exception()  # retrieved, even if no client waits any more: the next request meets it again

    async def _render(self, route: PageRoute, version: str) -> CachedPage:
        async with self._threads:
            page = await in_thread(lambda: live_page(route.page(self._memory), route, version))
        self._pages[route] = CachedPage(version, page)
        self._pages.move_to_end(route)
        while len(self._pages) > MAX_PAGES:
            self._pages.popitem(last=False)
        return self._pages[route]

    async def _read_states(self) -> tuple[StudyState, ...]:
        async with self._read_lock:
            if time.monotonic() - self._states[0] >= MAX_STATE_AGE:
                states = await in_thread(lambda: read_study_states(self._memory))
                self._states = (time.monotonic(), states)
            return self._states[1]


async def in_thread(work: Callable[[], T]) -> T:
    """Do some work in a daemon thread, which does not keep the server from ending."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from here on it cannot be cancelled

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return await asyncio.wrap_future(future)


CACHED_FOREVER = "private, max-age=31536000, immutable"
NOT_FOUND = "There is no such page; the start page links to all pages."
EVENTS_PATH = "/events"  # before the path of a page
TOO_MANY = "Too many pages are open for another stream of events; this one asks for news by itself."


def dashboard_app(memory: Memory, *, ending: Callable[[], bool] = lambda: False) -> Starlette:
    """Return the application that serves the pages of a memory; ``ending``: whether the server is about to end."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import Response
    from starlette.routing import Route

    script = plotly_script().encode()

    async def plotly(_: Request) -> Response:
        return Response(script, media_type="text/javascript", headers={"Cache-Control": CACHED_FOREVER})

    async def icon(_: Request) -> Response:
        return Response(status_code=204)

    async def missing(_: Request, __: Exception) -> Response:
        return _response(notice_page("Not found", NOT_FOUND), 404)

    pages, paths = PageCache(memory), (START_PATH, PROBLEM_PATH, RUN_PATH, COMPARE_PATH)
    routes = [Route(path, partial(_show, cache=pages)) for path in paths]
    events = partial(_announce, cache=pages, streams=EventStreams(ending))
    routes += [Route(f"{EVENTS_PATH}{path}", events, methods=["GET"]) for path in paths]
    routes += [Route(plotly_url(), plotly), Route("/favicon.ico", icon)]
    return Starlette(routes=routes, exception_handlers={HTTPException: missing})


async def _announce(request: Request, cache: PageCache, streams: EventStreams) -> Response:
    """Return the stream of events of a page."""
    from starlette.responses import Response

    route = _route(request)
    try:
        version = None if route is None else await cache.version(route)
    except RecollectError as error:
        return _response(notice_page("The memory cannot be read", str(error)), 503)
    if route is None or version is None:
        return _response(notice_page("Not found", NOT_FOUND), 404)
    if streams.full:
        return _response(notice_page("Too many streams", TOO_MANY), 503)
    return Response() if request.method == "HEAD" else streams.response(partial(cache.version, route))


def _route(request: Request) -> PageRoute | None:
    path, query = request.url.path.removeprefix(EVENTS_PATH), request.query_params
    return find_route(path, query, query.getlist("task"))


async def _show(request: Request, cache: PageCache) -> Response:
    from starlette.responses import Response

    route = _route(request)
    known_version = request.headers.get("if-none-match", "").strip().removeprefix("W/").strip('"')
    try:
        cached = None if route is None else await cache.get(route, known_version)
    except InputError as error:  # it was there a moment ago, or several problems have the task
        return _response(notice_page("Not found", str(error)), 404)
    except RecollectError as error:
        return _response(notice_page("The memory cannot be read", str(error)), 503)
    if cached is None:
        return _response(notice_page("Not found", NOT_FOUND), 404)
    headers = {"ETag": f'"{cached.version}"'} if cached.version else {}
    return Response(status_code=304, headers=headers) if cached.page is None else _response(cached.page, 200, headers)


def _response(page: LivePage, status: int, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(page.html, status, {"Content-Security-Policy": page.policy, **(headers or {})})
