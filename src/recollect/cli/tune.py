"""``recollect tune``: tune any program that prints its score.

`recollect.tuning.commands` runs the program, `recollect.space.serialization` reads the search space.
"""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect._text import plural
from recollect.cli.memory import complete_problem, complete_task, messages, print_table, printable
from recollect.cli.stopping import stoppable
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.storage.memory import Memory
    from recollect.tuning.result import Result


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


EXAMPLES = """\b
Examples:
  recollect tune --space space.json --memory tuning.db --problem svm \\
    --task covertype --trials 50 -- python train.py --lr {lr} --depth {depth}
  recollect tune --space space.json --maximize --key accuracy --workers 2 \\
    --trial-seconds 600 -- ./train.sh {lr} {depth}
  recollect tune --space space.json --json \\
    -- python train.py --lr {lr} --depth {depth} --out {score_file}

\b
{name} in the command is replaced by the value of a hyperparameter; write {{
and }} for braces. {score_file} is a new file to which the program writes its
score. Without it, the last line that the program prints is the score: a
number, "name: number", or a JSON object with the key "value". The environment
variable RECOLLECT_CONFIG contains all values as JSON.
"""
"""The text below the options."""
SETTINGS: dict[str, Any] = {"allow_interspersed_args": False}
"""Everything after the program is an argument of the program."""


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
    str | None,
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
Workers = Annotated[int, typer.Option(min=1, help="Number of programs to run at the same time.")]
MethodName = Annotated[
    str, typer.Option(help="Tuning method; 'recollect methods' lists them.", autocompletion=complete_method)
]
Rename = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OLD=NEW", help="New name of a hyperparameter that past runs have under an old one; may be repeated."
    ),
]
Maximize = Annotated[bool, typer.Option("--maximize", help="Higher scores are better.")]
Key = Annotated[str | None, typer.Option(help="Name under which the program prints its score.")]
ScoreFile = Annotated[str | None, typer.Option(metavar="FILE", help="File to which the program writes its score.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random streams.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show neither progress nor warnings.")]


def tune(  # noqa: PLR0913 - one argument for each option
    command: Command,
    space: SpaceFile,
    *,
    memory: Where = None,
    problem: Problem = None,
    task: Task = None,
    trials: Trials = 50,
    seconds: Seconds = None,
    target: Target = None,
    trial_seconds: TrialSeconds = None,
    workers: Workers = 1,
    method: MethodName = "rgpe-taf",
    rename: Rename = None,
    maximize: Maximize = False,
    key: Key = None,
    score_file: ScoreFile = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tune any program.

    The program is run with one configuration after another. Each configuration is chosen from the scores so far and
    from past runs with the same --problem in the memory.
    """
    from recollect.optimizer import catalog
    from recollect.space.space import compile_space
    from recollect.storage.studies import DEFAULT_PROBLEM
    from recollect.tuning.commands import DEFAULT_SCORE_FILE, CommandEvaluator, parse_command
    from recollect.tuning.minimize import TuningSettings, tune_with

    with messages(quiet=quiet):
        searched, chosen = compile_space(space), catalog.method(method)
        template = parse_command(command, searched)
        programs = CommandEvaluator(template, workers, limit=trial_seconds, key=key, file=score_file or "")
        opened, problem, names = _memory(memory, task), problem or DEFAULT_PROBLEM, _new_names(rename or [])
        _warn_about_unused(template.unused)
        with stoppable(lambda: _how_to_resume(opened, problem, task)):
            result = tune_with(programs, searched, TuningSettings(
                trials=trials, memory=opened, problem=problem, task=task, method=chosen, seed=seed, rename=names,
                direction="maximize" if maximize else "minimize", seconds=seconds, target=target, progress=not quiet,
            ))  # fmt: skip
    best = template.fill(config, score_file=score_file or DEFAULT_SCORE_FILE) if (config := result.best_config) else []
    (_print_json if as_json else _print)(result, best, None if opened is None else opened.store.name)


def _memory(where: str | None, task: str | None) -> Memory | None:
    from recollect.storage.memory import Memory
    from recollect.storage.open import patiently

    if where is None:
        return None
    if task is None:
        raise InputError("--memory needs --task, the name of the dataset or instance of this run, but there is none")
    return patiently(lambda: Memory(where))


def _new_names(pairs: list[str]) -> dict[str, str]:
    """Return new names by old ones."""
    names: dict[str, str] = {}
    for pair in pairs:
        old, equals, new = pair.partition("=")
        if not old or not new or not equals:
            raise InputError(f"--rename: expected OLD=NEW, such as learning_rate=lr, got {pair!r}")
        if names.setdefault(old, new) != new:
            raise InputError(f"--rename: {old!r} has two new names, {names[old]!r} and {new!r}")
    return names


def _warn_about_unused(unused: tuple[str, ...]) -> None:
    from recollect.errors import RecollectWarning
    from recollect.tuning.commands import CONFIG_VARIABLE

    if unused:
        names = ", ".join(f"{{{name}}}" for name in unused)
        message = f"the command has no {names}; the program has to read the value from {CONFIG_VARIABLE}"
        warnings.warn(message, RecollectWarning, stacklevel=2)


def _how_to_resume(memory: Memory | None, problem: str, task: str | None) -> str:
    from recollect.errors import RecollectError

    if memory is None or task is None:
        return "nothing is stored without --memory"
    try:
        trials = plural(len(memory.run(task, problem)), "trial")
    except RecollectError:
        trials = "finished trials"
    return f"{trials} of task {task!r} stored in {memory.store.name}; the same command resumes the task"


def _print(result: Result, arguments: list[str], memory: str | None) -> None:
    from recollect.optimizer.explanation import SHOWN_PAST_RUNS

    run, best = result.run, result.run.best
    failed = len(run.failed)
    typer.echo(f"{printable(run.task)}: {plural(len(run), 'trial')}, {failed} failed; {result.stopped}")
    if best is not None:
        typer.echo(f"best value {best.value!r}\n")
        print_table(("hyperparameter", "value"), ((name, str(value)) for name, value in best.config.items()))
    typer.echo("\n" + "\n".join(map(printable, str(result.explain()).splitlines())))
    if len(result.explanation.past) > SHOWN_PAST_RUNS:
        typer.echo("--json lists all past runs")
    if memory is not None:
        where = ["recollect", "memory", "show", memory, "--problem", result.problem, "--task", run.task]
        typer.echo(f"\nall trials:\n  {shlex.join(where)} --trials")
    if best is None:
        typer.echo("recollect: no trial succeeded", err=True)
        raise typer.Exit(1)
    typer.echo(f"\nbest command:\n  {shlex.join(arguments)}")


def _print_json(result: Result, arguments: list[str], memory: str | None) -> None:
    run, explanation = result.run, result.explain()
    content = {
        "problem": result.problem,
        "task": run.task,
        "memory": memory,
        "direction": run.direction,
        "trials": len(run),
        "failed": len(run.failed),
        "stopped": result.stopped,
        "best_value": result.best_value,
        "best_config": result.best_config,
        "command": arguments or None,
        "summary": explanation.summary,
        "explanation": dataclasses.asdict(explanation),
    }
    typer.echo(json.dumps(_finite(content), indent=2))
    if run.best is None:
        raise typer.Exit(1)


def _finite(value: Any) -> Any:
    """Return plain data with None for numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
