"""Stop long-running commands cleanly: by Ctrl-C, by ``kill``, or because the terminal was closed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer


@contextmanager
def stoppable(how_to_resume: Callable[[], str]) -> Iterator[None]:
    """End a command on SIGTERM and SIGHUP as on Ctrl-C: print what is stored and how to resume.

    Args:
        how_to_resume: Returns the rest of the sentence that starts with "interrupted;".
    """
    received = [signal.SIGINT]

    def stop(number: int, _frame: object) -> None:
        received[0] = signal.Signals(number)
        raise KeyboardInterrupt

    in_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))  # Windows has no SIGHUP
    handled = [number for number in numbers if in_main and signal.getsignal(number) == signal.SIG_DFL]
    for number in handled:
        signal.signal(number, stop)
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nrecollect: interrupted; {how_to_resume()}", err=True)
        raise typer.Exit(128 + received[0]) from None
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)
