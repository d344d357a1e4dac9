"""`write_runs`: write runs to files that `recollect.read_runs` reads.

JSON lines keep everything. CSV is for people and spreadsheets: it keeps tasks, configurations, values, states and
seconds; a warning names what it loses. Files are written whole or not at all.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from recollect._files import write_atomically
from recollect.errors import InputError, InputTypeError, RecollectWarning
from recollect.runs.run import Run, Trial
from recollect.storage.formats.json_lines import to_lines
from recollect.storage.importers import ImportOptions
from recollect.storage.importers.trial_tables import SPECIAL_ROLES, csv_table, runs_of
from recollect.storage.run_reading import StoredRun

ENDINGS = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz")


def write_runs(runs: Iterable[Run], path: str | os.PathLike[str]) -> None:
    """Write runs to a file; an existing file is replaced.

    Args:
        runs: The runs.
        path: A file that ends in .jsonl, which keeps everything, or .csv, or one of them with .gz. For CSV, a warning
            names what reading the file would not give back.

    Raises:
        InputError: The name has another ending, or the format cannot hold the runs.
        InputTypeError: ``runs`` has something else than runs.
        StorageError: The file cannot be written.

    Examples:
        >>> recollect.write_runs(recollect.Memory("tuning.db").runs("svm"), "svm.jsonl")
    """
    all_runs = [*runs] if isinstance(runs, Iterable) else [runs]
    for run in all_runs:
        if not isinstance(run, Run):
            raise InputTypeError(f"write_runs: expected an iterable of recollect.Run, got {run!r:.80}")
    write_stored_runs([StoredRun(None, run) for run in all_runs], path)


def write_stored_runs(stored: Sequence[StoredRun], path: str | os.PathLike[str]) -> None:
    """Write runs to a file like `write_runs`, with their problems, tags and notes."""
    target, all_runs = Path(path), [entry.run for entry in stored]
    if not target.name.endswith(ENDINGS):
        raise InputError(f"{target}: expected a name that ends in one of {', '.join(ENDINGS)}")
    lost: list[str] = []
    if target.name.removesuffix(".gz").endswith(".jsonl"):
        text = to_lines(stored)
    else:
        text = _csv_text(all_runs)
        labels = {
            "the problems": any(entry.problem is not None for entry in stored),
            "the tags": any(entry.tags for entry in stored),
            "the notes on runs": any(entry.note for entry in stored),
        }
        lost = [*_lost(all_runs, text), *(part for part, gone in labels.items() if gone)]
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"{target}: some text is not valid Unicode: {error.reason}; .jsonl can hold it") from error
    write_atomically(target, gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)
    if lost:
        message = f"{target}: CSV does not keep {', '.join(lost)}; .jsonl keeps everything"
        warnings.warn(message, RecollectWarning, stacklevel=2)


def _csv_text(runs: Sequence[Run]) -> str:
    if not any(run.trials for run in runs):
        raise InputError("a CSV file needs at least one trial; .jsonl can hold runs without any")
    tasks = [run.task for run in runs]
    named = len(runs) > 1 or tasks[0] != ""
    for task, count in Counter(tasks if named else ()).items():
        if not task or count > 1:
            raise InputError(f"CSV tells runs apart by their tasks, but {task!r} is empty or occurs twice; use .jsonl")
    names = list(dict.fromkeys(name for run in runs for trial in run.trials for name in trial.config))
    if not names:
        raise InputError("a CSV file needs at least one hyperparameter; .jsonl can hold trials without any")
    for name in names:
        if name in SPECIAL_ROLES or name != name.strip() or not name:
            roles = ", ".join(SPECIAL_ROLES)
            raise InputError(f"CSV cannot have a hyperparameter named {name!r} ({roles} are taken): use .jsonl")
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([*(["task"] if named else []), *names, "value", "state", "seconds"])
    for run in runs:
        writer.writerows([*([run.task] if named else []), *_cells(trial, names)] for trial in run.trials)
    return buffer.getvalue()


def _cells(trial: Trial, names: Sequence[str]) -> list[str]:
    values = (*map(trial.config.get, names), trial.value, trial.state.value, trial.seconds)
    return ["" if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in values]


def _lost(runs: Sequence[Run], text: str) -> list[str]:
    """Name what reading the text again would not give back."""
    if "\0" in text:
        raise InputError("CSV cannot hold the character NUL; use .jsonl")
    if "\r" in text.replace("\r\n", ""):
        raise InputError("CSV cannot hold a carriage return without a line feed; use .jsonl")
    again = runs_of(csv_table("CSV", text, ""), ImportOptions()).runs
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
        "the estimates of pruned trials": any(trial.estimate is not None for run in runs for trial in run.trials),
        "the search spaces": any(run.space is not None for run in runs),
        "the direction maximize": any(run.direction == "maximize" for run in runs),
        "runs without trials": len(written) < len(runs),
        f"the exact values of {', '.join(sorted(changed))}": bool(changed),
    }
    return [part for part, gone in parts.items() if gone]


def _same(before: Any, after: Any) -> bool:
    return bool(before == after) and isinstance(before, str | bool) == isinstance(after, str | bool)
