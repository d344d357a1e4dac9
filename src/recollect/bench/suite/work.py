"""The file in which a build keeps what it has measured, so that it can be stopped and continued at any time.

The first line is a JSON object that says what the results depend on; every other line is one result (CSV, `FIELDS`). A
file is only appended to (`recollect.bench.lines`). Results that were made with other versions or settings are never
mixed: a head that differs is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from recollect.bench.lines import append_lines, open_lines
from recollect.bench.suite.measuring import Status
from recollect.errors import InputError

FIELDS = ("session", "elapsed", "dataset", "config", "error", "status", "seconds")
STATES = ("ok", "failed", "late")


@dataclass(frozen=True, slots=True)
class Result:
    """The error of a configuration (its number) on a data set.

    seconds: processor time; elapsed: seconds since the session, one start of the builder, began.
    """

    session: int
    elapsed: float
    dataset: str
    config: int
    error: float
    status: Status
    seconds: float

    def line(self) -> str:
        """The result as a line of the file."""
        return (
            f"{self.session},{self.elapsed:.3f},{self.dataset},{self.config},{self.error:.5f},{self.status},"
            f"{self.seconds:.4f}\n"
        )


def read_work(path: Path, head: Mapping[str, Any]) -> list[Result]:
    """Return the results in a file, which is begun with this head if it does not exist.

    Of results that come twice the first counts.
    """
    lines = open_lines(path, json.dumps(head, sort_keys=True) + "\n").splitlines()
    _check_head(path, lines[0] if lines else "", head)
    found: dict[tuple[str, int], Result] = {}
    for number, line in enumerate(lines[1:], start=2):
        result = _parsed(path, number, line)
        found.setdefault((result.dataset, result.config), result)
    return list(found.values())


def append(path: Path, results: Iterable[Result]) -> None:
    """Add results to a file."""
    append_lines(path, "".join(result.line() for result in results))


def wall_seconds(results: Iterable[Result]) -> float:
    """Return how long all sessions took together, each until its last result."""
    last: dict[int, float] = {}
    for result in results:
        last[result.session] = max(last.get(result.session, 0.0), result.elapsed)
    return sum(last.values())


def _check_head(path: Path, line: str, head: Mapping[str, Any]) -> None:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{path}, line 1: expected the head of a work file, got {line[:60]!r}")
    wanted = json.loads(json.dumps(head))
    differing = [key for key in sorted({*found, *wanted}) if found.get(key) != wanted.get(key)]
    if differing:
        key = differing[0]
        raise InputError(
            f"{path} was begun with another {', '.join(differing)}: {key} is {found.get(key)!r} there and "
            f"{wanted.get(key)!r} here; results must not be mixed, so remove the file or give another folder"
        )


def _parsed(path: Path, number: int, line: str) -> Result:
    cells = line.split(",")
    try:
        session, elapsed, dataset, config, error, status, seconds = cells
        if status not in STATES:
            raise ValueError(f"the status is one of {', '.join(STATES)}")
        made = float(error)
        if not 0.0 <= made <= 1.0:
            raise ValueError("an error lies between 0 and 1")
        state = cast("Status", status)
        return Result(int(session), float(elapsed), dataset, int(config), made, state, float(seconds))
    except ValueError as reason:
        raise InputError(f"{path}, line {number}: expected {','.join(FIELDS)}, got {line[:80]!r}: {reason}") from reason
