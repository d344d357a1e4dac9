"""The options of ``recollect tune``: their types, help and checks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.memory import complete_problem, complete_task
from recollect.errors import InputError


def _positive(option: typer.CallbackParam, value: float | None) -> float | None:
    """Check that an option has a positive number."""
    if value is not None and not value > 0:
        raise InputError(f"{option.opts[0]}: expected a positive number, got {value:g}")
    return value


def _any_number(option: typer.CallbackParam, value: float | None) -> float | None:
    """Check that an option has a number."""
    if value is not None and math.isnan(value):
        raise InputError(f"{option.opts[0]}: expected a number, got {value:g}")
    return value


def _number_of_workers(value: int) -> int:
    """Check the number of workers; -1 stands for one per core."""
    if value < 1 and value != -1:
        raise InputError(f"--workers: expected at least 1, or -1 for one per core, got {value}")
    return value


def _rule(value: str | None) -> str | None:
    """Check the name of the rule that ends a run."""
    from recollect.tuning.stop_rules import UNLIKELY

    if value not in (None, UNLIKELY):
        raise InputError(f"--stop-when: expected {UNLIKELY!r}, got {value!r}")
    return value


def complete_method(incomplete: str) -> list[str]:
    """Return the methods that start with this text."""
    from recollect.optimizer.catalog import methods

    return [name for name in methods() if name.startswith(incomplete)]


Command = Annotated[list[str], typer.Argument(metavar="PROGRAM", help="The program to tune and its arguments.")]
SpaceFile = Annotated[
    Path,
    typer.Option(help="JSON, YAML or TOML file with the search space: ranges and choices (recollect help spaces)."),
]
Where = Annotated[str | None, typer.Option(help="File name or storage URL that stores all trials; needs --task.")]
Problem = Annotated[
    str,
    typer.Option(
        help="Name of the model or program; runs with the same name learn from each other.",
        autocompletion=complete_problem,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="Name of the dataset or instance of this run; an unfinished task is resumed.", autocompletion=complete_task
    ),
]
Trials = Annotated[int, typer.Option(min=1, help="Trial budget of the task, including trials of earlier calls.")]
Seconds = Annotated[
    float | None, typer.Option(callback=_positive, help="Time budget: start no new trial after this many seconds.")
]
Target = Annotated[
    float | None, typer.Option(callback=_any_number, help="Stop when a value is at least as good as this.")
]
TrialSeconds = Annotated[
    float | None, typer.Option(callback=_positive, help="Time limit of one trial; a trial that exceeds it has failed.")
]
Patience = Annotated[
    int | None, typer.Option(min=1, help="Stop when this many trials in a row have not improved the best value.")
]
StopWhen = Annotated[
    str | None,
    typer.Option(
        metavar="unlikely",
        help="Stop when a worthwhile improvement is unlikely, judged by the model and by past runs.",
    ),
]
MinImprovement = Annotated[
    float | None, typer.Option(help="Smallest improvement that counts, for --patience and --stop-when.")
]
MaxFailures = Annotated[
    int,
    typer.Option(
        min=0, help="Stop when this many trials in a row fail for the same reason before any success; 0: never."
    ),
]
First = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="JSON, JSON lines or CSV file with configurations to try before all others."),
]
Callbacks = Annotated[
    list[str] | None,
    typer.Option(
        "--callback", metavar="NAME", help="Call this after every trial: mlflow, wandb or an entry point; repeatable."
    ),
]
Logs = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Keep the output of every trial in DIR/TASK/7.out and 7.err.")
]
Folder = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Run every trial in a working folder of its own, DIR/TASK/7.")
]
Workers = Annotated[
    int,
    typer.Option(callback=_number_of_workers, help="Number of programs to run at the same time; -1: one per core."),
]
MethodName = Annotated[
    str, typer.Option(help="Tuning method; 'recollect methods' lists them.", autocompletion=complete_method)
]
Rename = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OLD=NEW", help="New name of a hyperparameter that past runs have under an old one; may be repeated."
    ),
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Label for selecting the run later; may be repeated.")
]
Note = Annotated[str, typer.Option(metavar="TEXT", help="A remark on the run.")]
Maximize = Annotated[bool, typer.Option("--maximize", help="Higher scores are better.")]
Key = Annotated[str | None, typer.Option(help="Name under which the program prints its score.")]
ScoreFile = Annotated[str | None, typer.Option(metavar="FILE", help="File to which the program writes its score.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random streams.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show neither progress nor warnings.")]
