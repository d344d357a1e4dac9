"""Connections to the dashboard: a limited number of them, each with a limited time to send a request.

Whoever reaches the port can open connections and never finish a request, even without a token. uvicorn has a timeout
only between requests, and its limit of connections refuses the newest ones, which locks everybody else out. Here the
oldest connection gives way instead, those without a request first, so new requests are always answered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 100  # with BACKLOG below 256, the smallest usual limit of open files
BACKLOG = 64  # connections that wait to be accepted
REQUEST_SECONDS = 10.0  # in which the header of a request must arrive
MAX_LOGGED = 20  # messages per minute


class LimitedProtocol(H11Protocol):
    """HTTP on a connection that ends if no request arrives in time, or if newer connections need its place."""

    opened = 0.0
    timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit a connection; end the oldest one if there are too many."""
        super().connection_made(transport)
        self.opened = self.loop.time()
        self._expect_request()
        if len(self.connections) > MAX_CONNECTIONS:
            others = [other for other in self.connections if isinstance(other, LimitedProtocol) and other is not self]
            oldest = min(others, key=lambda other: (not other.waiting, other.opened))
            self.connections.discard(oldest)
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        super().connection_lost(exc)
        if self.timer is not None:
            self.timer.cancel()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._expect_request()

    def _expect_request(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = self.loop.call_later(REQUEST_SECONDS, self._end_if_waiting)

    def _end_if_waiting(self) -> None:
        if self.waiting:
            self.transport.abort()


class LogLimit(logging.Filter):
    """Passes a limited number of messages per minute, since clients can cause any number of them."""

    def __init__(self) -> None:
        """Start to count."""
        super().__init__()
        self._minute, self._count = -1, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is within the limit; the first one beyond it is replaced by a sentence that says so."""
        minute = int(time.monotonic() // 60)
        self._count = self._count + 1 if minute == self._minute else 1
        self._minute = minute
        if self._count == MAX_LOGGED + 1:
            record.msg, record.args, record.exc_info = "further messages of this minute are left out", (), None
        return self._count <= MAX_LOGGED + 1


@contextmanager
def limited_logs() -> Iterator[None]:
    """Limit what the server and its event loop log."""
    limit, loggers = LogLimit(), [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addFilter(limit)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(limit)
