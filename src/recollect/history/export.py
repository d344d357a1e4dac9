"""Runs written to files that `recollect.history.importers.read_runs` reads.

JSON lines keep everything. CSV is for people and spreadsheets: it keeps tasks, configurations, values, states and
seconds, and what it does not bring back is told in a warning. Files are put in place whole or not at all.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from recollect.errors import InputError, InputTypeError, RecollectWarning
from recollect.files import put
from recollect.history.importers.asked import Asked
from recollect.history.importers.tables import SPECIAL, csv_table, runs_of
from recollect.history.lines import to_lines
from recollect.history.run import Run, Trial

ENDINGS = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz")


def write_runs(runs: Iterable[Run], path: str | os.PathLike[str]) -> None:
    """Write runs to a .jsonl or .csv file, plain or .gz; a file that is there is replaced."""
    target = Path(path)
    given = [*runs] if isinstance(runs, Iterable) else [runs]
    for run in given:
        if not isinstance(run, Run):
            raise InputTypeError(f"write_runs: expected an iterable of recollect.Run, got {run!r:.80}")
    if not target.name.endswith(ENDINGS):
        raise InputError(f"{target}: expected a name that ends in one of {', '.join(ENDINGS)}")
    lost: list[str] = []
    if target.name.removesuffix(".gz").endswith(".jsonl"):
        text = to_lines(given)
    else:
        text = _csv_text(given)
        lost = _lost(given, text)
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{target}: a text is not valid Unicode: {error.reason}; .jsonl can hold it") from error
    put(target, gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)
    if lost:
        message = f"{target}: CSV does not bring back {', '.join(lost)}; .jsonl keeps everything"
        warnings.warn(message, RecollectWarning, stacklevel=2)


def _csv_text(runs: Sequence[Run]) -> str:
    if not any(run.trials for run in runs):
        raise InputError("a CSV file needs at least one trial; .jsonl can hold runs without any")
    tasks = [run.task for run in runs]
    named = len(runs) > 1 or tasks[0] != ""
    for task in tasks if named else ():
        if not task or tasks.count(task) > 1:
            raise InputError(f"CSV tells runs apart by their tasks, but {task!r} is empty or comes twice; use .jsonl")
    names = list(dict.fromkeys(name for run in runs for trial in run.trials for name in trial.config))
    _check_names(names)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*(["task"] if named else []), *names, "value", "state", "seconds"])
    for run in runs:
        writer.writerows([*([run.task] if named else []), *_cells(trial, names)] for trial in run.trials)
    return buffer.getvalue()


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise InputError("a CSV file needs at least one hyperparameter; .jsonl can hold trials without any")
    for name in names:
        if name in SPECIAL or name != name.strip() or not name:
            raise InputError(
                f"CSV cannot have a hyperparameter named {name!r} ({', '.join(SPECIAL)} are taken): use .jsonl"
            )


def _cells(trial: Trial, names: Sequence[str]) -> list[str]:
    config = [_cell(trial.config.get(name)) for name in names]
    return [*config, _cell(trial.value), trial.state.value, _cell(trial.seconds)]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lost(runs: Sequence[Run], text: str) -> list[str]:
    """Say what reading the text again would not give back."""
    if "\0" in text:
        raise InputError("CSV cannot hold the character NUL; use .jsonl")
    again = runs_of(csv_table("CSV", text, ""), Asked()).runs
    written = [run for run in runs if run.trials]
    changed = {
        name
        for before, after in zip(written, again, strict=True)
        for old, new in zip(before.trials, after.trials, strict=True)
        for name in old.config
        if name not in new.config or not _same(old.config[name], new.config[name])
    }
    parts = {
        "the notes": any(trial.notes for run in runs for trial in run.trials),
        "the search spaces": any(run.space is not None for run in runs),
        "the direction maximize": any(run.direction == "maximize" for run in runs),
        "runs without trials": len(written) < len(runs),
        f"the exact values of {', '.join(sorted(changed))}": bool(changed),
    }
    return [part for part, gone in parts.items() if gone]


def _same(before: Any, after: Any) -> bool:
    return bool(before == after) and isinstance(before, str | bool) == isinstance(after, str | bool)
