"""Commands that work for long are ended politely: by Ctrl-C, by ``kill``, or because the terminal was closed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer


@contextmanager
def stoppable(left: Callable[[], str]) -> Iterator[None]:
    """Let a polite kill and a closed terminal end a command as Ctrl-C does: say what is ``left`` and how to go on."""
    received = [signal.SIGINT]

    def stop(number: int, _frame: object) -> None:
        received[0] = signal.Signals(number)
        raise KeyboardInterrupt

    here = threading.current_thread() is threading.main_thread()
    polite = [
        number for number in (signal.SIGTERM, signal.SIGHUP) if here and signal.getsignal(number) == signal.SIG_DFL
    ]
    for number in polite:
        signal.signal(number, stop)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nrecollect: interrupted; {left()}", err=True)
        raise typer.Exit(128 + received[0]) from None
    finally:
        for number in polite:
            signal.signal(number, signal.SIG_DFL)
