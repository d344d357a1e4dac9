"""The server: where it listens, who gets access, the security headers of every response, and how it ends.

* Only reading: GET and HEAD.
* On loopback, only requests that name this machine as their host. A page of somebody else, whose name was made to
  resolve to this machine (DNS rebinding), uses that name and is refused.
* With a token, only requests that have it: once in the query, which sets a cookie that no script can read and redirects
  to the address without the token, or as a bearer token. Tokens are compared in constant time. The cookie is sent with
  links from other sites, too (``SameSite=Lax``); otherwise a link with the token would not open from a mail.

Starlette's TrustedHostMiddleware is not used: it knows neither all loopback addresses nor IPv6.
"""

from __future__ import annotations

import errno
import hmac
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from recollect.errors import InputError, MissingExtraError
from recollect.report.dashboard.app import STRICT_POLICY, dashboard_app, notice_page
from recollect.storage.memory import Memory

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

SECURITY_HEADERS = {
    **{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"},
    **{"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"},
}
DEFAULT_HEADERS = {"Cache-Control": "no-store", "Content-Security-Policy": STRICT_POLICY}  # if a response has no other
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(:[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused."""

    status: int
    title: str
    sentence: str
    headers: dict[str, str]


FOREIGN_HOST = Refusal(421, "Misdirected request", "This server answers only requests for localhost or 127.0.0.1.", {})
ADVICE = "Open the page with ?token= and the token that the dashboard was started with, or send it as a bearer token."
NO_TOKEN = Refusal(401, "A token is required", ADVICE, {"WWW-Authenticate": "Bearer"})
NOT_READING = Refusal(405, "Read only", "This server answers only GET and HEAD.", {"Allow": "GET, HEAD"})


@dataclass(frozen=True, slots=True)
class AccessControl:
    """Decides about requests to a server; loopback: only this machine can reach it; token: what requests need, if any.

    The port is part of the cookie's name: browsers keep cookies by host, not by port.
    """

    loopback: bool
    token: str | None
    port: int

    def protect(self, app: ASGIApp) -> ASGIApp:
        """Return an application with access control."""
        from starlette.middleware.base import BaseHTTPMiddleware

        return BaseHTTPMiddleware(app, dispatch=self._dispatch)

    async def _dispatch(self, request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        from starlette.responses import HTMLResponse, RedirectResponse

        token_in_query = self._is_token(next(reversed(request.query_params.getlist("token")), ""))
        refusal = self._refusal(request, token_in_query=token_in_query)
        response: Response
        if refusal is not None:
            page = notice_page(refusal.title, refusal.sentence, link=False)
            headers = {**refusal.headers, "Content-Security-Policy": page.policy}
            response = HTMLResponse(page.html, refusal.status, headers)
        elif token_in_query:  # a path that starts with two slashes would lead to another server
            others = [pair for pair in request.query_params.multi_items() if pair[0] != "token"]
            path, query = quote(request.scope["path"].lstrip("/")), urlencode(others, quote_via=quote)
            response = RedirectResponse(f"/{path}{query and f'?{query}'}", 303)
        else:
            response = await call_next(request)
        response.headers.update(SECURITY_HEADERS)
        for name, value in DEFAULT_HEADERS.items():
            response.headers.setdefault(name, value)
        if token_in_query and refusal is not FOREIGN_HOST:
            response.set_cookie(self._cookie, self._secret, httponly=True, samesite="lax")
        return response

    def _refusal(self, request: Request, *, token_in_query: bool) -> Refusal | None:
        hosts = request.headers.getlist("host")
        if self.loopback and (len(hosts) != 1 or not is_loopback_name(hosts[0])):
            return FOREIGN_HOST
        if self.token is not None and not token_in_query and not self._has_credentials(request):
            return NO_TOKEN
        return None if request.method in ("GET", "HEAD") else NOT_READING

    def _has_credentials(self, request: Request) -> bool:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        bearer = kind.lower() == "bearer" and self._is_token(token.strip())
        return bearer or equal_secrets(request.cookies.get(self._cookie, ""), self._secret)

    def _is_token(self, text: str) -> bool:
        return equal_secrets(text, self.token or "")

    @property
    def _cookie(self) -> str:
        return f"recollect-{self.port}"

    @property
    def _secret(self) -> str:
        """The value of the cookie: not the token, but something that only those who know it can compute."""
        return hmac.new((self.token or "").encode(), self._cookie.encode(), sha256).hexdigest()


def equal_secrets(text: str, expected: str) -> bool:
    """Whether two secrets are equal, compared in constant time; an empty one never is."""
    equal = hmac.compare_digest(text.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))
    return equal and bool(expected)


def is_loopback_name(host: str) -> bool:
    """Whether the header Host names this machine: localhost or a loopback address."""
    match = HOST.fullmatch(host.strip())
    name = match[1].strip("[]").lower() if match else ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:  # not an address
        return False


LOOPBACK, DEFAULT_PORT = "127.0.0.1", 8000
SHUTDOWN_SECONDS = 3  # for requests that are in progress when the server ends


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where a server listens: the host as given, its IP address; loopback: only this machine can reach it."""

    host: str
    port: int
    family: socket.AddressFamily
    address: str
    loopback: bool

    @property
    def url(self) -> str:
        """The URL for a browser on this machine."""
        host = self.address if self.loopback or not ipaddress.ip_address(self.address).is_unspecified else LOOPBACK
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"


def check_installed() -> None:
    """Raise MissingExtraError if the server is not installed."""
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MissingExtraError("the dashboard needs starlette and uvicorn: pip install 'recollect[dashboard]'")


def read_token(path: Path) -> str:
    """Return the token in a file, without the spaces and line ends around it."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise InputError(f"--token-file: expected a text file with a token, got {str(path)!r}: {error}") from error


def listen_address(host: str = LOOPBACK, port: int = DEFAULT_PORT, *, token: str | None = None) -> ListenAddress:
    """Return where to listen; InputError for an unknown host, one that others reach without a token, or a bad token."""
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
        raise InputError(
            "token: expected one or more printable ASCII characters without spaces around them, got something else"
        )
    expected = "host: expected a name or an address of this machine, got"
    if not host:
        raise InputError(f"{expected} nothing")
    try:
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise InputError(f"{expected} {host!r}: {error}") from error
    addresses = [str(info[4][0]).partition("%")[0] for info in infos]
    loopback = all(ipaddress.ip_address(address).is_loopback for address in addresses)
    if not loopback and token is None:
        options = f"--host {host} --token-file FILE, or set RECOLLECT_TOKEN"
        raise InputError(f"host: others can reach {host!r}, so a token is required: {options}")
    return ListenAddress(host, port, infos[0][0], addresses[0], loopback)


def serve(
    memory: Memory, where: ListenAddress, *, token: str | None, on_start: Callable[[ListenAddress], None]
) -> None:
    """Serve the pages of a memory until interrupted; call ``on_start`` with the address once it listens."""
    from uvicorn import Config, Server

    from recollect.report.dashboard.connections import BACKLOG, LimitedProtocol, limited_logs

    with _listen(where) as listener, limited_logs():
        bound = replace(where, port=listener.getsockname()[1])
        access = AccessControl(loopback=bound.loopback, token=token, port=bound.port)
        app = dashboard_app(memory, ending=lambda: server.should_exit)
        config = Config(
            access.protect(app), log_config=None, log_level="warning", access_log=False, lifespan="off",
            ws="none", interface="asgi3", server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS, http=LimitedProtocol, backlog=BACKLOG,
        )  # fmt: skip
        server = Server(config)
        on_start(bound)
        server.run(sockets=[listener])


def _listen(where: ListenAddress) -> socket.socket:
    listener = socket.socket(where.family, socket.SOCK_STREAM)
    try:
        if socket.has_dualstack_ipv6() and where.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((where.address, where.port))
        listener.listen()
    except OSError as error:
        listener.close()
        place = f"port {where.port} of {where.host}"
        reasons = {
            errno.EADDRINUSE: " is in use: choose another one with --port",
            errno.EACCES: " is not allowed for this user: choose one above 1023 with --port",
        }
        raise InputError(place + reasons.get(error.errno or 0, f": cannot listen there: {error}")) from error
    return listener
