"""Runs as JSON lines that keep everything: types, states, notes, seconds, direction and search space.

    {"recollect_runs": 1, "runs": 2}                                                      the format, how many runs
    {"task": "a9a", "direction": "minimize", "space": {...} or null, "trials": 50}         before the trials of a run
    {"config": {"C": 0.1}, "value": 0.2, "state": "ok", "seconds": 1.5, "notes": []}       a trial

The head of a run may also have its "problem", "tags" and "note". The counts distinguish a truncated file from a
complete one. Spaces are in ConfigSpace's own JSON format.
Here is also the parser of all JSON that is imported, with errors that say in which line or entry something is wrong.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from recollect.errors import InputError, RecollectError, SpaceError
from recollect.numerics.arrays import native
from recollect.runs.run import Run, State, Trial
from recollect.space.serialization import from_json, to_json
from recollect.space.space import Space
from recollect.storage.run_reading import StoredRun

FORMAT, MARK = 1, "recollect_runs"  # only the first line of a file in this format has the mark
Lines = Iterator[tuple[str, dict[str, Any]]]


def json_objects(where: str, text: str) -> Lines:
    """Yield the JSON object of every line that is not blank, with its place in words."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{where}, line {number}"
            yield place, require_object(place, parse_json(place, line))


def parse_json(place: str, text: str) -> Any:
    """Return the content of a JSON text; InputError if it is truncated, not JSON, or repeats a name in an object."""
    try:
        return json.loads(text, object_pairs_hook=_unique_names)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: expected JSON, which may have been cut off: {error}") from error


def require_object(place: str, value: Any) -> dict[str, Any]:
    """Return a JSON object as it is; InputError for anything else."""
    if not isinstance(value, dict):
        raise InputError(f"{place}: expected a JSON object, got {json.dumps(value)[:60]}")
    return value


def to_lines(runs: Sequence[StoredRun]) -> str:
    """Return runs as text; InputError for a value that could not be restored exactly."""
    lines: list[dict[str, Any]] = [{MARK: FORMAT, "runs": len(runs)}]
    for stored in runs:
        run = stored.run
        labels = {"problem": stored.problem, "tags": list(stored.tags), "note": stored.note}
        lines.append(_head(run) | {key: content for key, content in labels.items() if content})
        lines += [_line(trial, f"run {run.task!r}, trial {number}") for number, trial in enumerate(run.trials)]
    return "".join(json.dumps(line) + "\n" for line in lines)


def from_lines(where: str, lines: Lines) -> list[StoredRun]:
    """Return the runs of a file, given its objects with their places; InputError names the place of a fault."""
    place, head = next(lines)
    if head[MARK] != FORMAT:
        raise InputError(
            f"{place}: expected runs in format {FORMAT}, got {head[MARK]!r}; a newer recollect may have written it"
        )
    spaces = cache(from_json)  # most runs of a file share one
    runs = [_run(where, lines, spaces) for _ in range(_count(place, head, "runs"))]
    for place, _ in lines:
        raise InputError(f"{place}: expected the end of the file, got more lines than the first line announces")
    return runs


def _head(run: Run) -> dict[str, Any]:
    try:
        space = None if run.space is None else json.loads(to_json(run.space))
    except SpaceError as error:
        raise InputError(f"run {run.task!r}: {error}") from error
    return {"task": run.task, "direction": run.direction, "space": space, "trials": len(run.trials)}


def _line(trial: Trial, where: str) -> dict[str, Any]:
    config = {name: _plain(value, f"{where}, {name!r}") for name, value in trial.config.items()}
    value, seconds = _plain(trial.value, where), _plain(trial.seconds, where)
    line = {"config": config, "value": value, "state": trial.state.value, "seconds": seconds, "notes": [*trial.notes]}
    return line if trial.estimate is None else {**line, "estimate": trial.estimate}


def _plain(value: Any, where: str) -> Any:
    plain = native(value)
    if plain is not None and type(plain) not in (str, int, float, bool):
        raise InputError(
            f"{where}: only str, int, float, bool and None can be stored, got {value!r} ({type(value).__name__})"
        )
    return plain


def _run(where: str, lines: Lines, space_of: Callable[[str], Space]) -> StoredRun:
    place, head = _next(where, lines, "a run")
    missing = [name for name in ("task", "direction", "space", "trials") if name not in head]
    if missing:
        raise InputError(f"{place}: expected the head of a run, {missing[0]!r} is missing")
    count = _count(place, head, "trials")
    trials = [_trial(*_next(where, lines, f"{count} trials of {head['task']!r}")) for _ in range(count)]
    try:
        space = None if head["space"] is None else space_of(json.dumps(head["space"]))
        run = Run(head["task"], trials=trials, space=space, direction=head["direction"])
    except RecollectError as error:
        raise InputError(f"{place}: {error}") from error
    problem, tags, note = _labels(place, head)
    return StoredRun(problem, run, tags, note)


def _labels(place: str, head: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...], str]:
    """Return the problem, the tags and the note of a run."""
    problem, tags, note = head.get("problem"), head.get("tags", []), head.get("note", "")
    texts = isinstance(tags, list) and all(isinstance(word, str) for word in (*tags, note))
    if not texts or not isinstance(problem, str | None):
        raise InputError(f"{place}: expected strings as problem and note, and a list of strings as tags")
    return problem, tuple(tags), note


def _trial(place: str, line: Mapping[str, Any]) -> Trial:
    try:
        config, notes = line["config"], line["notes"]
        if not isinstance(config, dict) or not isinstance(notes, list) or not all(type(note) is str for note in notes):
            raise InputError("config must be an object and notes a list of strings")
        numbers = {"value": line["value"], "seconds": line["seconds"], "estimate": line.get("estimate")}
        for name, number in numbers.items():
            if number is not None and type(number) not in (int, float):
                raise InputError(f"{name} must be a number or null, got {number!r}")
        return Trial(config, state=State(line["state"]), notes=tuple(notes), **numbers)
    except KeyError as error:
        raise InputError(f"{place}: expected a trial, {error} is missing") from error
    except ValueError as error:
        raise InputError(f"{place}: {error}") from error


def _next(where: str, lines: Lines, expected: str) -> tuple[str, dict[str, Any]]:
    line = next(lines, None)
    if line is None:
        raise InputError(f"{where}: expected {expected}, but the file ends before: it was cut off")
    return line


def _count(place: str, head: Mapping[str, Any], name: str) -> int:
    count = head.get(name)
    if type(count) is not int or count < 0:
        raise InputError(f"{place}: expected the number of {name}, got {count!r}")
    return count


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        repeated = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the name {repeated!r} occurs twice")
    return content
