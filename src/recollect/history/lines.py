"""Runs as JSON lines that keep everything: types, states, notes, seconds, direction and search space.

    {"recollect_runs": 1, "runs": 2}                                                      the format, how many runs
    {"task": "a9a", "direction": "minimize", "space": {...} or null, "trials": 50}         before the trials of a run
    {"config": {"C": 0.1}, "value": 0.2, "state": "ok", "seconds": 1.5, "notes": []}       a trial

The counts tell a file that was cut off from a whole one. Spaces are in ConfigSpace's own JSON format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recollect.errors import InputError, RecollectError, SpaceError
from recollect.history.run import Run, State, Trial
from recollect.space.serial import from_json, to_json

FORMAT, MARK = 1, "recollect_runs"
Lines = Iterator[tuple[str, dict[str, Any]]]


def to_lines(runs: Sequence[Run]) -> str:
    """Return runs as text; InputError where a value could not be brought back as it is."""
    lines: list[dict[str, Any]] = [{MARK: FORMAT, "runs": len(runs)}]
    for run in runs:
        lines.append(_head(run))
        lines += [_line(trial, f"run {run.task!r}, trial {number}") for number, trial in enumerate(run.trials)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def is_head(line: Mapping[str, Any]) -> bool:
    """Whether this is the first line of such a text."""
    return MARK in line


def from_lines(where: str, lines: Lines) -> list[Run]:
    """Return the runs of a file, given as its objects with their places; InputError says what is wrong in which."""
    place, head = next(lines)
    if head[MARK] != FORMAT:
        raise InputError(
            f"{place}: expected runs in format {FORMAT}, got {head[MARK]!r}; a newer recollect may have written it"
        )
    runs = [_run(where, lines) for _ in range(_count(place, head, "runs"))]
    for place, _ in lines:
        raise InputError(f"{place}: expected the end of the file, there are more lines than were announced")
    return runs


def _head(run: Run) -> dict[str, Any]:
    try:
        space = None if run.space is None else json.loads(to_json(run.space))
    except SpaceError as error:
        raise InputError(f"run {run.task!r}: {error}") from error
    return {"task": run.task, "direction": run.direction, "space": space, "trials": len(run.trials)}


def _line(trial: Trial, where: str) -> dict[str, Any]:
    config = {name: _kept(value, f"{where}, {name!r}") for name, value in trial.config.items()}
    value, seconds = _kept(trial.value, where), _kept(trial.seconds, where)
    return {"config": config, "value": value, "state": trial.state.value, "seconds": seconds, "notes": [*trial.notes]}


def _kept(value: Any, where: str) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is not None and type(plain) not in (str, int, float, bool):
        raise InputError(
            f"{where}: only str, int, float, bool and None can be stored, got {value!r} ({type(value).__name__})"
        )
    return plain


def _run(where: str, lines: Lines) -> Run:
    place, head = _next(where, lines, "a run")
    absent = [name for name in ("task", "direction", "space", "trials") if name not in head]
    if absent:
        raise InputError(f"{place}: expected the head of a run, {absent[0]!r} is missing")
    count = _count(place, head, "trials")
    trials = [_trial(*_next(where, lines, f"{count} trials of {head['task']!r}")) for _ in range(count)]
    try:
        space = None if head["space"] is None else from_json(json.dumps(head["space"]))
        return Run(head["task"], trials=trials, space=space, direction=head["direction"])
    except RecollectError as error:
        raise InputError(f"{place}: {error}") from error


def _trial(place: str, line: Mapping[str, Any]) -> Trial:
    try:
        config, notes = line["config"], line["notes"]
        if not isinstance(config, dict) or not isinstance(notes, list) or not all(type(note) is str for note in notes):
            raise InputError("config must be an object and notes a list of texts")
        for name in ("value", "seconds"):
            if line[name] is not None and type(line[name]) not in (int, float):
                raise InputError(f"{name} must be a number or null, got {line[name]!r}")
        return Trial(config, line["value"], State(line["state"]), line["seconds"], tuple(notes))
    except KeyError as error:
        raise InputError(f"{place}: expected a trial, {error} is missing") from error
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error


def _next(where: str, lines: Lines, expected: str) -> tuple[str, dict[str, Any]]:
    found = next(lines, None)
    if found is None:
        raise InputError(f"{where}: expected {expected}, but the file ends before: it was cut off")
    return found


def _count(place: str, head: Mapping[str, Any], name: str) -> int:
    count = head.get(name)
    if type(count) is not int or count < 0:
        raise InputError(f"{place}: expected the number of {name}, got {count!r}")
    return count
