"""The pages of a memory as an application of Starlette."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import InputError, RecollectError
from recollect.history.memory import Memory
from recollect.report.dashboard.addresses import PROBLEM, RUN, START, find_address
from recollect.report.dashboard.live import Live, notice, plotly_url
from recollect.report.dashboard.shelf import Shelf
from recollect.report.page import plotly_script

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

KEPT = "private, max-age=31536000, immutable"
NOT_THERE = "There is no such page; the start page has links to all that there are."


def make_site(memory: Memory) -> Starlette:
    """Return the application that serves the pages of a memory."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import Response
    from starlette.routing import Route

    shelf = Shelf(memory)
    script = plotly_script().encode()

    async def show(request: Request) -> Response:
        return await _show(request, shelf)

    async def plotly(_: Request) -> Response:
        return Response(script, media_type="text/javascript", headers={"Cache-Control": KEPT})

    async def icon(_: Request) -> Response:
        return Response(status_code=204)

    async def missing(_: Request, __: Exception) -> Response:
        return _answer(notice("Not found", NOT_THERE), 404)

    routes = [Route(path, show) for path in (START, PROBLEM, RUN)]
    routes += [Route(plotly_url(), plotly), Route("/favicon.ico", icon)]
    return Starlette(routes=routes, exception_handlers={HTTPException: missing})


async def _show(request: Request, shelf: Shelf) -> Response:
    from starlette.responses import Response

    address = find_address(request.url.path, request.query_params)
    known = request.headers.get("if-none-match", "").strip().removeprefix("W/").strip('"')
    try:
        found = None if address is None else await shelf.look(address, known)
    except InputError as error:  # it was there a moment ago, or is not of one task only
        return _answer(notice("Not found", str(error)), 404)
    except RecollectError as error:
        return _answer(notice("The memory cannot be read", str(error)), 503)
    if found is None:
        return _answer(notice("Not found", NOT_THERE), 404)
    tagged = {"ETag": f'"{found.version}"'} if found.version else {}
    return Response(status_code=304, headers=tagged) if found.page is None else _answer(found.page, 200, tagged)


def _answer(page: Live, status: int, headers: dict[str, str] | None = None) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(page.text, status, {"Content-Security-Policy": page.policy, **(headers or {})})
