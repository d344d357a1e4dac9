"""Progress bars of the commands, on standard error: what is done, how much of it, and how long it takes.

A terminal sees them move; a file, where the command works in the background, gets a line a minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.progress import ProgressColumn, TaskID

Tell = Callable[[str, int, int | None], None]
"""Told what is done, how much of it, and how much there is (None: not known)."""

Shown = Literal["count", "bytes", "rate", "elapsed", "remaining"]
EVERY = 60.0  # seconds between two lines where there is no terminal


@contextmanager
def bars(*shown: Shown, one: bool = False) -> Iterator[Tell]:
    """Show a bar for everything that is told of, with these columns behind it; nothing before something is told.

    one: a single bar, which takes the name of what was told last.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description:<24}", markup=False), BarColumn(), *map(_column, shown))
    console = Console(stderr=True)
    progress = Progress(*columns, console=console)
    known: dict[str, TaskID] = {}
    written = time.monotonic()

    def tell(what: str, done: int, total: int | None) -> None:
        nonlocal written
        name = "" if one else what
        if name not in known:
            known[name] = progress.add_task(what, total=total, rate="")
        elapsed = progress.tasks[known[name]].elapsed
        rate = f"{60 * done / elapsed:.0f} a minute" if done and elapsed else ""
        progress.update(known[name], description=what, completed=done, total=total, rate=rate)
        progress.start()
        if not console.is_terminal and time.monotonic() - written >= EVERY:
            console.print(progress.make_tasks_table([task for task in progress.tasks if task.id == known[name]]))
            written = time.monotonic()

    try:
        yield tell
    finally:
        if progress.live.is_started:
            progress.stop()


def _column(shown: Shown) -> ProgressColumn:
    from rich import progress

    match shown:
        case "count":
            return progress.MofNCompleteColumn()
        case "bytes":
            return progress.DownloadColumn()
        case "rate":
            return progress.TextColumn("{task.fields[rate]}")
        case "elapsed":
            return progress.TimeElapsedColumn()
        case "remaining":
            return progress.TimeRemainingColumn()
