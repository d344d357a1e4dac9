"""Requests to the dashboard without a server, and runs and a page for it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from recollect import Run
from recollect.report.html import tag
from recollect.report.page import Page, Section

SPACE: dict[str, Any] = {"x": (0.0, 1.0)}


PAGE = Page("A <page>", "About it.", (Section("One", (tag("p", {}, "text"),)),), "here")


def example(task: str) -> Run:
    return Run(task, [{"x": k / 4} for k in range(4)], [1.0, 0.5, 0.7, 2.0], space=SPACE)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str


def ask(app: Any, path: str, *, method: str = "GET", host: str | None = "127.0.0.1:8000", **headers: str) -> Answer:
    """Ask an application, as a server would."""
    target, _, query = path.partition("?")
    sent: list[Any] = []

    received: list[dict[str, Any]] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not received:  # the client waits for the answer
            await asyncio.Event().wait()
        return received.pop()

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "http_version": "1.1", "scheme": "http", "root_path": "", "method": method,
        "path": target, "raw_path": target.encode(), "query_string": query.encode(),
        "headers": [*([(b"host", host.encode())] if host is not None else []), *pairs],
        "server": ("127.0.0.1", 8000), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    found = {bytes(name).decode(): bytes(value).decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], found, body.decode())
