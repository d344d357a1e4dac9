"""The progress bar of a run: on standard error, shown only to somebody who sits at a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from recollect.tuning.session import Progress


@contextmanager
def bar(task: str, trials: int, *, show: bool) -> Iterator[Callable[[Progress], None]]:
    """Yield what a session tells its progress to."""
    if not show:
        yield lambda _progress: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield lambda _progress: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[said]}"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console) as bars:
        line = bars.add_task(escape(task[:30]), total=trials, said="")
        yield lambda progress: bars.update(line, completed=progress.trials, said=escape(said(progress)))


def said(progress: Progress) -> str:
    """Say in a few words how it stands: the best value, and what past runs contribute."""
    value = None if progress.best is None else progress.best.value
    words = ["no value yet" if value is None else f"best {value:.6g}"]
    if progress.past is not None:
        words.append(f"past runs {progress.past:.0%}")
    if progress.running > 1:
        words.append(f"{progress.running} running")
    return ", ".join(words)
