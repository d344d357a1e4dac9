"""One trial on the command line: ``recollect memory show --trial 7``."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import typer

from recollect.cli.memory import print_table, printable

if TYPE_CHECKING:
    from recollect.storage.trial_details import TrialDetails


def print_trial(details: TrialDetails, *, as_json: bool) -> None:
    """Print everything that is known about a trial."""
    content = dataclasses.asdict(details)
    content["started"] = None if details.started is None else details.started.isoformat(sep=" ", timespec="seconds")
    if as_json:
        return typer.echo(json.dumps(content, indent=2))
    names = ("problem", "task", "number", "state", "value", "seconds", "started")
    facts: dict[str, Any] = {"trial" if name == "number" else name: content[name] for name in names}
    print_table(("", ""), (facts | {"why": why_suggested(details)} | dict(details.place)).items())
    typer.echo("\nconfiguration:")
    print_table(("hyperparameter", "value"), ((name, str(value)) for name, value in details.config.items()))
    for note in details.notes:
        typer.echo("\n" + "\n".join(map(printable, note.splitlines())))


def why_suggested(details: TrialDetails) -> str | None:
    """Return why a trial was suggested, with the weights that were used; None if it is not known."""
    reason, past = details.suggestion.get("reason"), details.suggestion.get("past")
    if reason is None or not isinstance(past, dict) or "target" not in details.suggestion:
        return None if reason is None else str(reason)
    weights = {"this task": details.suggestion["target"], **{repr(task): weight for task, weight in past.items()}}
    largest = sorted(weights.items(), key=lambda entry: -entry[1])
    return f"{reason}; weights: {', '.join(f'{task} {weight:.0%}' for task, weight in largest)}"
