"""Server-sent events: an open page has one stream, which says what the current version of the page is.

The stream carries versions, not pages: a page that learns of another version than its own requests it as it would
without a stream, and gets it from the cache. A stream is a coroutine. It needs no thread, and all streams share one
query for change tokens. Their number is limited, since each occupies a connection; a page without a stream asks every
second. A stream ends when its client has gone, when the memory cannot be read, and when the server ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.errors import RecollectError

if TYPE_CHECKING:
    from starlette.responses import Response

MAX_STREAMS = 40  # well below the limit of connections
INTERVAL = 0.5  # seconds between two looks at the memory
HEARTBEAT = 15.0  # seconds after which something is sent in any case: only then is it noticed that nobody listens
RETRY_MILLISECONDS = 3000  # after which a browser opens a stream that has ended again


@dataclass(slots=True)
class EventStreams:
    """The streams of a server; ``ending``: whether it is about to end."""

    ending: Callable[[], bool]
    count: int = 0

    @property
    def full(self) -> bool:
        """Whether no further stream is admitted."""
        return self.count >= MAX_STREAMS

    def response(self, version: Callable[[], Awaitable[str | None]]) -> Response:
        """Return a stream of the versions of a page; None: there is no such page any more."""
        from starlette.responses import StreamingResponse

        return StreamingResponse(self.events(version), media_type="text/event-stream")

    async def events(self, version: Callable[[], Awaitable[str | None]]) -> AsyncIterator[str]:
        """Yield an event for each new version, and comments in between."""
        self.count += 1
        try:
            yield f"retry: {RETRY_MILLISECONDS}\n\n"
            known: str | None = None
            silent = 0.0
            while not self.ending() and (current := await version()) is not None:
                if current != known:
                    yield f"data: {current}\n\n"
                    known, silent = current, 0.0
                elif silent >= HEARTBEAT:
                    yield ": still there\n\n"
                    silent = 0.0
                await asyncio.sleep(INTERVAL)
                silent += INTERVAL
        except RecollectError:
            pass  # the page asks without a stream, and is told what is wrong
        finally:
            self.count -= 1
