"""Progress bars on standard error, for commands, `recollect.minimize` and the fits of past runs.

A terminal and a notebook show moving bars. Elsewhere (a log file, a job in the background) a bar prints one line per
minute, or nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, TaskID

Column = Literal["count", "bytes", "rate", "note", "elapsed", "remaining"]
SECONDS_BETWEEN_LINES = 60.0  # where there is no terminal


class Update(Protocol):
    """Called to report progress."""

    def __call__(self, name: str, done: int, total: int | None, *, note: str = "") -> None:
        """Show that ``done`` of ``total`` (None: not known yet) are done, with a short note in the column ``note``."""


@contextmanager
def progress_bars(
    *columns: Column, single: bool = False, interactive: bool = False, transient: bool = False
) -> Iterator[Update]:
    """Show one bar per name; nothing before the first update, and nothing while the bars of a caller are shown.

    Args:
        columns: What to show after the bar.
        single: Show a single bar, which takes the name of the latest update.
        interactive: Show nothing where there is no terminal and no notebook.
        transient: Remove the bars at the end.

    Yields:
        The function to call with every update.
    """
    display = _Display(columns, single, interactive, transient)
    try:
        yield display.update
    finally:
        if display in _shown:
            _shown.remove(display)
        if display.progress is not None and display.progress.live.is_started:
            display.progress.stop()


_shown: list[_Display] = []  # at most one: bars that move would overwrite each other


@dataclass(slots=True, eq=False)
class _Display:
    """The bars of one `progress_bars`; Rich is imported with the first update that is shown."""

    columns: tuple[Column, ...]
    single: bool
    interactive: bool
    transient: bool
    progress: Progress | None = None
    bars: dict[str, TaskID] = field(default_factory=dict)
    last_line: float = 0.0

    def update(self, name: str, done: int, total: int | None, *, note: str = "") -> None:
        if self.interactive and not is_interactive():
            return
        if self.progress is None:
            if _shown:
                return
            _shown.append(self)
            self.progress, self.last_line = self._created(), time.monotonic()
        progress, key = self.progress, "" if self.single else name
        if key not in self.bars:
            self.bars[key] = progress.add_task(name, total=total, rate="", note="")
        bar = self.bars[key]
        elapsed = progress.tasks[bar].elapsed
        rate = f"{60 * done / elapsed:.0f} per minute" if done and elapsed else ""
        fields: dict[str, Any] = {"description": name, "rate": rate, "note": note}
        progress.update(bar, completed=done, total=total, **fields)
        progress.start()
        self._print_line(progress, bar)

    def _created(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        name = TextColumn("{task.description:<24}", markup=False)
        # Without ipywidgets, bars cannot move in a notebook, and Rich would warn at each update: lines are printed.
        console = Console(stderr=True, force_jupyter=None if find_spec("ipywidgets") else False)
        return Progress(name, BarColumn(), *map(_column, self.columns), console=console, transient=self.transient)

    def _print_line(self, progress: Progress, bar: TaskID) -> None:
        """Print one bar as a line where bars cannot move, at most once per minute."""
        console: Console = progress.console
        if console.is_terminal or console.is_jupyter or time.monotonic() - self.last_line < SECONDS_BETWEEN_LINES:
            return
        console.print(progress.make_tasks_table([task for task in progress.tasks if task.id == bar]))
        self.last_line = time.monotonic()


def is_interactive() -> bool:
    """Return whether standard error is a terminal or a notebook, without importing Rich where it is neither."""
    if sys.stderr is not None and sys.stderr.isatty():
        return True
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console

    return Console(stderr=True).is_jupyter


def _column(column: Column) -> ProgressColumn:
    from rich import progress

    if column in ("rate", "note"):
        return progress.TextColumn(f"{{task.fields[{column}]}}", markup=False)
    amounts: dict[str, type[ProgressColumn]] = {"count": progress.MofNCompleteColumn, "bytes": progress.DownloadColumn}
    times = {"elapsed": progress.TimeElapsedColumn, "remaining": progress.TimeRemainingColumn}
    return (amounts | times)[column]()
