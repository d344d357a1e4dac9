"""``recollect tune``: tune any program that prints its score; see `recollect.tuning.commands`.

A search space file holds ConfigSpace's own JSON, or an object with an entry for each hyperparameter:

    {"low": 1e-4, "high": 0.1, "log": true}     a range; two integers make it one of integers; "log" may be left out
    ["rbf", "poly"], {"choices": [16, 32]}      choices                      3, "adam", true, null     a constant
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

from recollect.cli.checks import any_number, positive
from recollect.cli.memory import complete_problem, complete_task, counted, messages, print_table, printable
from recollect.cli.stopping import stoppable

if TYPE_CHECKING:
    from recollect.history.memory import Memory
    from recollect.history.run import Direction
    from recollect.space.space import Space
    from recollect.tuning.commands import Template
    from recollect.tuning.result import Result

EXAMPLES = """\b
Examples:
  recollect tune --space space.json --memory tuning.db --problem svm \\
    --task covertype --trials 50 -- python train.py --lr {lr} --depth {depth}
  recollect tune --space space.json --maximize --key accuracy --workers 2 \\
    --trial-seconds 600 -- ./train.sh {lr} {depth}
  recollect tune --space space.json --json \\
    -- python train.py --lr {lr} --depth {depth} --out {score_file}

\b
{name} in the command becomes a value, {{ and }} are braces, {score_file} is a
new file for the score. Otherwise the score is what is printed last: a number,
"name: number", or a JSON object with the key "value". All values are also in
the environment, as JSON: RECOLLECT_CONFIG. Details: docs/command-line.md
"""
"""Shown below the options."""
SETTINGS: dict[str, Any] = {"allow_interspersed_args": False}
"""Whatever follows the program belongs to it."""


def complete_method(incomplete: str) -> list[str]:
    """Return the methods that begin like this."""
    from recollect.optimizer.catalog import methods

    return [name for name in methods() if name.startswith(incomplete)]


Command = Annotated[list[str], typer.Argument(metavar="PROGRAM", help="The program to tune, and its arguments.")]
SpaceFile = Annotated[
    Path, typer.Option(help="Search space: ConfigSpace's JSON, or a JSON object of ranges and choices.")
]
Where = Annotated[str | None, typer.Option(help="File name or storage URL that keeps all trials.")]
Problem = Annotated[str | None, typer.Option(help="What is tuned again and again.", autocompletion=complete_problem)]
Task = Annotated[str | None, typer.Option(help="What it is tuned on this time.", autocompletion=complete_task)]
Trials = Annotated[int, typer.Option(min=1, help="Stop when the task has so many trials.")]
Seconds = Annotated[float | None, typer.Option(callback=positive, help="Begin no trial after so many seconds.")]
Target = Annotated[float | None, typer.Option(callback=any_number, help="Stop when a value is as good as this.")]
TrialSeconds = Annotated[
    float | None, typer.Option(callback=positive, help="Time limit of a trial; one that exceeds it has failed.")
]
Workers = Annotated[int, typer.Option(min=1, help="Programs that run at the same time.")]
MethodName = Annotated[str, typer.Option(help="See: recollect methods.", autocompletion=complete_method)]
Maximize = Annotated[bool, typer.Option("--maximize", help="Higher scores are better.")]
Key = Annotated[str | None, typer.Option(help="Take the score that is printed last under this name.")]
ScoreFile = Annotated[str | None, typer.Option(metavar="FILE", help="The program writes its score there.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random streams.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no warnings.")]


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
    maximize: Maximize = False,
    key: Key = None,
    score_file: ScoreFile = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tune any program: run it with one configuration after another, learn from its score and from past runs."""
    from recollect.history.memory import DEFAULT_PROBLEM
    from recollect.optimizer import catalog
    from recollect.tuning.commands import Commands, parse_command
    from recollect.tuning.minimize import Settings, tune_with

    with messages(quiet=quiet):
        searched, chosen = read_space(space), catalog.method(method)
        template = parse_command(command, searched)
        programs = Commands(template, workers, limit=trial_seconds, key=key, file=score_file or "")
        kept, problem = _memory(memory, task), problem or DEFAULT_PROBLEM
        _warn_of(template.unused)
        with stoppable(lambda: _left(kept, problem, task)):
            settings = Settings(
                trials=trials, memory=kept, problem=problem, task=task, method=chosen, seed=seed,
                direction=_direction(maximize), seconds=seconds, target=target, progress=not quiet,
            )  # fmt: skip
            result = tune_with(programs, searched, settings)
    (_print_json if as_json else _print)(result, _best(result, template, score_file), memory)


def _best(result: Result, template: Template, score_file: str | None) -> list[str]:
    """Return the command with the best configuration; nothing if no trial succeeded."""
    from recollect.tuning.commands import FRESH

    config = result.best_config
    return [] if config is None else template.filled(config, score_file=score_file or FRESH)


def _direction(maximize: bool) -> Direction:
    return "maximize" if maximize else "minimize"


def _memory(where: str | None, task: str | None) -> Memory | None:
    from recollect.errors import InputError
    from recollect.history.memory import Memory

    if where is None:
        return None
    if task is None:
        raise InputError("a memory keeps runs by their names: say with --task what is tuned on this time")
    return Memory(where)


def _warn_of(unused: tuple[str, ...]) -> None:
    from recollect.errors import RecollectWarning
    from recollect.tuning.commands import CONFIG_VARIABLE

    if unused:
        names = ", ".join(f"{{{name}}}" for name in unused)
        message = f"the command has no {names}: the program must take the value from {CONFIG_VARIABLE}"
        warnings.warn(message, RecollectWarning, stacklevel=2)


def read_space(path: Path) -> Space:
    """Return the search space in a file; SpaceError says which entry of which file is wrong."""
    from recollect.errors import InputError, RecollectError, SpaceError
    from recollect.space.serial import from_json
    from recollect.space.space import compile_space

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: the search space cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SpaceError(f"{path}: expected a search space as JSON, this is no text: {error.reason}") from error
    try:
        content = json.loads(text, object_pairs_hook=_object)
        if not isinstance(content, dict):
            raise SpaceError(f"expected a JSON object with an entry for each hyperparameter, got {text.strip()[:80]!r}")
        listed = content.get("hyperparameters")
        if isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed):
            return from_json(text)
        return compile_space({name: _specification(name, entry, str(path)) for name, entry in content.items()})
    except RecollectError as error:
        raise SpaceError(f"{path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SpaceError(f"{path}: expected a search space as JSON: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    from recollect.errors import SpaceError

    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise SpaceError(f"the key {name!r} comes twice")
        found[name] = value
    return found


def _specification(name: str, entry: Any, where: str) -> Any:
    """Return what `compile_space` takes for an entry of a space file."""
    from recollect.errors import RecollectWarning, SpaceError

    if isinstance(entry, list) and len(entry) == 2 and all(type(choice) in (int, float) for choice in entry):
        low, high = map(json.dumps, entry)
        message = f'{where}: {name!r} has two choices; {{"low": {low}, "high": {high}}} would be a range'
        warnings.warn(
            f'{message}, {{"choices": [{low}, {high}]}} says that none is meant', RecollectWarning, stacklevel=2
        )
    if not isinstance(entry, dict):
        return entry
    if entry.keys() == {"choices"} and isinstance(entry["choices"], list):
        return entry["choices"]
    log = entry.get("log", False)
    if not {"low", "high"} <= entry.keys() <= {"low", "high", "log"} or not isinstance(log, bool):
        forms = '{"low": 1, "high": 9}, also with "log": true, a list of choices, {"choices": [...]} or one constant'
        raise SpaceError(f"{name!r}: expected {forms}; got {json.dumps(entry)[:200]}")
    return (entry["low"], entry["high"], "log") if log else (entry["low"], entry["high"])


def _left(memory: Memory | None, problem: str, task: str | None) -> str:
    from recollect.errors import RecollectError

    if memory is None or task is None:
        return "nothing is kept without --memory"
    try:
        trials = counted(len(memory.run(task, problem)), "trial")
    except RecollectError:
        trials = "what was finished"
    return f"kept in {memory.store.name}: {trials} of task {task!r}; the same command goes on from there"


def _print(result: Result, arguments: list[str], memory: str | None) -> None:
    run, best = result.run, result.run.best
    failed = len(run) - len(run.succeeded)
    typer.echo(f"{printable(run.task)}: {counted(len(run), 'trial')}, {failed} failed; {result.stopped}")
    if best is not None:
        typer.echo(f"best value {best.value!r}\n")
        print_table(("hyperparameter", "value"), ((name, str(value)) for name, value in best.config.items()))
    typer.echo("\n" + "\n".join(map(printable, str(result.explain()).splitlines())))
    if memory is not None:
        where = ["recollect", "memory", "show", memory, "--problem", result.problem, "--task", run.task]
        typer.echo(f"\nall trials:\n  {shlex.join(where)} --trials")
    if best is None:
        typer.echo("recollect: no trial succeeded", err=True)
        raise typer.Exit(1)
    typer.echo(f"\nthe best command:\n  {shlex.join(arguments)}")


def _print_json(result: Result, arguments: list[str], memory: str | None) -> None:
    from recollect.history.storage import shown

    run, explanation = result.run, result.explain()
    content = {
        "problem": result.problem,
        "task": run.task,
        "memory": None if memory is None else shown(memory),
        "direction": run.direction,
        "trials": len(run),
        "failed": len(run) - len(run.succeeded),
        "stopped": result.stopped,
        "best_value": result.best_value,
        "best_config": result.best_config,
        "command": arguments or None,
        "explanation": dataclasses.asdict(explanation),
    }
    typer.echo(json.dumps(_finite(content), indent=2))
    if run.best is None:
        raise typer.Exit(1)


def _finite(value: Any) -> Any:
    """Return plain data with None for what JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
