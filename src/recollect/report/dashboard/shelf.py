"""Pages that were made, kept until something changes.

A page is made once for each state of the memory, however many ask for it, in a thread of its own, so that the server
answers meanwhile. Who asks does not wait for long: a page that takes longer is announced, or the last one is given once
more, and the new one is there when it is asked for next.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from threading import Thread
from typing import TypeVar, cast

from recollect.history.memory import Memory
from recollect.report.dashboard.addresses import Address
from recollect.report.dashboard.live import Live, live_page, waiting_page
from recollect.report.dashboard.marks import Marked, joint_mark, read_marks

PATIENCE = 1.0  # seconds that who asks waits for a page
AGE = 0.3  # seconds for which marks are not read again
MOST = 64  # pages that are kept
MAKERS = 2  # pages that are made at the same time
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """A page as it is now, and its version; page None: the version that is known already."""

    version: str
    page: Live | None


class Shelf:
    """The pages of a memory."""

    def __init__(self, memory: Memory, *, patience: float = PATIENCE) -> None:
        """Keep pages of this memory; ``patience``: seconds that who asks waits for one."""
        self._memory, self._patience = memory, patience
        self._made: OrderedDict[Address, Answer] = OrderedDict()
        self._making: dict[Address, asyncio.Task[Answer]] = {}
        self._reading = asyncio.Lock()
        self._makers = asyncio.Semaphore(MAKERS)
        self._marks: tuple[float, tuple[Marked, ...]] = (-AGE, ())
        self._start = token_hex(4)  # versions of an earlier server, perhaps of another recollect, are other ones

    async def look(self, address: Address, known: str = "") -> Answer | None:
        """Return a page; None if there is none at this address. ``known``: the version that is known already."""
        concerned = address.concerns(await self._read_marks())
        if not concerned and address != Address():
            return None
        version = f"{self._start}-{joint_mark(concerned)}"
        if version == known:
            return Answer(version, None)
        made = self._made.get(address)
        if made is None or made.version != version:
            made = await self._patiently(self._task(address, version)) or made
        if made is None:
            return Answer("", waiting_page(address))
        return Answer(known, None) if made.version == known else made

    def _task(self, address: Address, version: str) -> asyncio.Task[Answer]:
        """Return who makes a page, one at a time: what changes meanwhile is seen when it is asked for again."""
        if address not in self._making:
            task = self._making[address] = asyncio.create_task(self._make(address, version))
            task.add_done_callback(partial(self._done, address))
        return self._making[address]

    def _done(self, address: Address, task: asyncio.Task[Answer]) -> None:
        del self._making[address]
        if not task.cancelled():
            task.exception()  # told to who waits for it; if nobody does, it is met again when the page is asked for

    async def _make(self, address: Address, version: str) -> Answer:
        async with self._makers:
            page = await in_thread(lambda: live_page(address.page(self._memory), address, version))
        self._made[address] = Answer(version, page)
        self._made.move_to_end(address)
        while len(self._made) > MOST:
            self._made.popitem(last=False)
        return self._made[address]

    async def _patiently(self, task: asyncio.Task[Answer]) -> Answer | None:
        done, _ = await asyncio.wait([task], timeout=self._patience)
        return task.result() if done else None

    async def _read_marks(self) -> tuple[Marked, ...]:
        async with self._reading:
            if time.monotonic() - self._marks[0] >= AGE:
                marks = await in_thread(lambda: read_marks(self._memory))
                self._marks = (time.monotonic(), marks)
            return self._marks[1]


async def in_thread(work: Callable[[], T]) -> T:
    """Do some work in a thread that does not keep the server from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(cast(T, result))
        else:
            done.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001 - it is raised again where the result is awaited
            error = raised
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(settle, result, error)

    Thread(target=run, daemon=True).start()
    return await done
