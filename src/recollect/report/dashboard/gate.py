"""Who is let in, and what browsers are told with every answer.

* Only reading: GET and HEAD.
* On loopback, only requests for this machine by name: a page of somebody else, whose name was made to lead here (DNS
  rebinding), asks with that name and is refused.
* With a token, only who has it: in the query once, which leaves a cookie that no script and no other site gets, or as a
  bearer. Tokens are compared in a time that does not depend on where they differ.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from recollect.report.dashboard.live import NOTHING, notice

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = dict[bytes, bytes]

ALWAYS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
USUALLY = {b"cache-control": b"no-store", b"content-security-policy": NOTHING.encode()}
"""Unless an answer says otherwise."""

HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(:[0-9]+)?")


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer to who is not let in."""

    status: int
    title: str
    sentence: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


FOREIGN = Refusal(421, "Misdirected request", "This server answers only requests for localhost or 127.0.0.1.")
UNKNOWN = Refusal(
    401,
    "A token is needed",
    "Open the page with ?token= and the token that the dashboard was started with, or send it as a bearer.",
    ((b"www-authenticate", b"Bearer"),),
)
READ_ONLY = Refusal(405, "Only reading", "This server answers only GET and HEAD.", ((b"allow", b"GET, HEAD"),))


class Gate:
    """An application that lets some requests through to another one."""

    def __init__(self, inside: Application, *, loopback: bool, token: str | None, port: int) -> None:
        """Guard ``inside``, which serves loopback only or everybody with the token, at this port."""
        self._inside, self._loopback, self._token = inside, loopback, token
        self._cookie = f"recollect-{port}"  # browsers keep cookies by host, not by port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        headers = {bytes(name).lower(): bytes(value) for name, value in scope["headers"]}
        refusal, extra = self._judge(scope, headers)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                there = {bytes(name).lower() for name, _ in own}
                added = [pair for pair in USUALLY.items() if pair[0] not in there]
                message["headers"] = [*own, *ALWAYS.items(), *added, *extra]
            await send(message)

        if refusal is None:
            await self._inside(scope, receive, guarded)
        else:
            await _refuse(refusal, guarded, body=scope["method"] != "HEAD")

    def _judge(self, scope: Scope, headers: Headers) -> tuple[Refusal | None, list[tuple[bytes, bytes]]]:
        """Return why a request is refused, None if it is not, and headers for its answer."""
        hosts = [value for name, value in scope["headers"] if bytes(name).lower() == b"host"]
        if self._loopback and (len(hosts) != 1 or not is_loopback_name(hosts[0].decode("latin-1"))):
            return FOREIGN, []
        extra: list[tuple[bytes, bytes]] = []
        if self._token is not None:
            asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
            if asked and same(asked, self._token):
                extra = [(b"set-cookie", self._remembered())]
            elif not (self._has_cookie(headers) or self._is_bearer(headers)):
                return UNKNOWN, []
        return (READ_ONLY, extra) if scope["method"] not in ("GET", "HEAD") else (None, extra)

    def _is_bearer(self, headers: Headers) -> bool:
        kind, _, given = headers.get(b"authorization", b"").decode("utf-8", "replace").partition(" ")
        return kind.lower() == "bearer" and same(given.strip(), self._token or "")

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(self._cookie)
        except CookieError:
            return False
        return found is not None and same(found.value, self._secret())

    def _remembered(self) -> bytes:
        return f"{self._cookie}={self._secret()}; HttpOnly; SameSite=Strict; Path=/".encode()

    def _secret(self) -> str:
        """What the cookie holds: not the token, but what only who knows it can compute."""
        return hmac.new((self._token or "").encode(), self._cookie.encode(), sha256).hexdigest()


def same(given: str, expected: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell where they differ; an empty one never is."""
    equal = hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode("utf-8", "replace"))
    return equal and bool(expected)


def is_loopback_name(host: str) -> bool:
    """Whether the header Host names this machine: localhost or an address of loopback."""
    found = HOST.fullmatch(host.strip())
    if found is None:
        return False
    name = found[1].strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def _refuse(refusal: Refusal, send: Send, *, body: bool) -> None:
    content = notice(refusal.title, refusal.sentence).text.encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(content)).encode()),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": content if body else b""})
