"""A fuzzing harness: areas that try random and hostile input for a time budget, and count what went wrong.

An area is a function ``(rng, folder)`` that makes one attempt. It may raise `recollect.RecollectError` (a refusal is a
correct answer to bad input) and `Skip`. Anything else is a failure: another exception, a violated promise
(`AssertionError`), or an attempt that takes longer than `LONGEST` seconds, twice: once may be the machine's fault.

Every attempt has a seed of its own, printed with each failure: ``--area NAME --seed N --attempts 1`` repeats it.
"""

from __future__ import annotations

import faulthandler
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from recollect import RecollectError, RecollectWarning

LONGEST = 10.0
"""Seconds that one attempt may take; an area that starts a dozen processes has another limit."""

Attempt = Callable[[np.random.Generator, Path], int | None]
"""Make one attempt; return how many calls it consisted of, if more than one."""


class Skip(Exception):
    """What an attempt needs is not available here."""


@dataclass(frozen=True)
class Area:
    """One kind of attack: its name, what it does in one line, and the attempt."""

    name: str
    about: str
    attempt: Attempt
    longest: float = LONGEST


@dataclass
class Tally:
    """What came out of one area."""

    area: str
    tried: int = 0
    calls: int = 0
    refused: int = 0
    slowest: float = 0.0
    failures: list[str] = field(default_factory=list)
    skipped: str = ""

    def __str__(self) -> str:
        """One line of the summary."""
        if self.skipped:
            return f"{self.area:<15} skipped: {self.skipped}"
        return (
            f"{self.area:<15} {self.tried:>7} tried  {self.calls:>8} calls  {self.refused:>7} refused  "
            f"{len(self.failures):>4} failed  slowest {self.slowest:.1f} s"
        )


def run_area(area: Area, *, seconds: float = 0.0, seed: int = 0, attempts: int | None = None) -> Tally:
    """Attack for a time budget, or for a number of attempts; attempt i has the seed ``seed + i``."""
    tally = Tally(area.name)
    end = time.monotonic() + seconds
    number = seed
    while (time.monotonic() < end if attempts is None else number < seed + attempts) and not tally.skipped:
        _one(area, number, tally)
        number += 1
    return tally


def _one(area: Area, number: int, tally: Tally) -> None:
    failures = len(tally.failures)
    seconds = _attempt(area, number, tally)
    tally.tried += 1
    if seconds > area.longest and not tally.skipped and len(tally.failures) == failures:
        again = _attempt(area, number, tally)
        if again > area.longest:
            took = f"took {seconds:.1f} and {again:.1f} s, more than {area.longest:.0f} s"
            tally.failures.append(f"{area.name}, seed {number}: {took}")
        seconds = min(seconds, again)
    tally.slowest = max(tally.slowest, seconds)


def _attempt(area: Area, number: int, tally: Tally) -> float:
    """Make one attempt, add what came out of it, and return how many seconds it took."""
    begin = time.monotonic()
    faulthandler.dump_traceback_later(6 * area.longest, exit=True)  # a hang ends the process with a stack
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", RecollectWarning)
            tally.calls += area.attempt(np.random.default_rng(number), Path(folder)) or 1
    except RecollectError:
        tally.refused += 1
        tally.calls += 1
    except Skip as reason:
        tally.skipped = str(reason)
    except Exception as error:  # noqa: BLE001 - anything else is what the harness looks for
        where = traceback.format_exc(limit=-3)
        tally.failures.append(f"{area.name}, seed {number}: {type(error).__name__}: {error}\n{where}")
    finally:
        faulthandler.cancel_dump_traceback_later()
    return time.monotonic() - begin
