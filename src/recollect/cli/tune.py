"""``recollect tune``: tune any program that prints its score.

`recollect.tuning.commands` runs the program, `recollect.space.serialization` reads the search space.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shlex
import warnings
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from recollect._text import plural
from recollect.cli.memory import messages, print_table, printable
from recollect.cli.stopping import stoppable
from recollect.cli.tune_options import (
    AsJson,
    Callbacks,
    Command,
    First,
    Folder,
    Key,
    Logs,
    MaxFailures,
    Maximize,
    MethodName,
    MinImprovement,
    Note,
    Patience,
    Problem,
    Quiet,
    Rename,
    ScoreFile,
    Seconds,
    Seed,
    SpaceFile,
    StopWhen,
    Tags,
    Target,
    Task,
    Trials,
    TrialSeconds,
    Where,
    Workers,
)
from recollect.errors import InputError
from recollect.optimizer.default_method import DEFAULT_METHOD

if TYPE_CHECKING:
    from recollect.storage.memory import Memory
    from recollect.tuning.callbacks import Callback
    from recollect.tuning.commands import CommandTemplate, TaskFolders
    from recollect.tuning.minimize import TuningSettings
    from recollect.tuning.result import Result


EXAMPLES = """\b
Examples:
  recollect tune --space space.json --memory tuning.db --problem svm \\
    --task covertype --trials 50 -- python train.py --lr {lr} --depth {depth}
  recollect tune --space space.json --maximize --key accuracy --workers 2 \\
    --trial-seconds 600 -- ./train.sh {lr} {depth}
  recollect tune --space space.json --logs logs --json \\
    -- python train.py --lr {lr} --depth {depth} --out {score_file}

\b
{name} in the command is replaced by the value of a hyperparameter; write {{
and }} for braces. {score_file} is a new file to which the program writes its
score. Without it, the last line that the program prints is the score: a
number, "name: number", or a JSON object with the key "value". {trial} is the
number of the trial, {worker} that of the worker, {logs} the task's folder in
--logs. The environment variable RECOLLECT_CONFIG contains all values as JSON;
RECOLLECT_TRIAL, RECOLLECT_WORKER, RECOLLECT_TASK and RECOLLECT_PROBLEM say
which trial this is.

Documentation: recollect help command-line, recollect help spaces"""
"""The text below the options."""
SETTINGS: dict[str, Any] = {"allow_interspersed_args": False}
"""Everything after the program is an argument of the program."""
SEPARATED = "recollect: the program follows --"


class TuneCommand(TyperCommand):
    """The command, which notes whether the program was separated from the options by ``--``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments and note whether ``--`` is right before the program."""
        every = list(args)
        rest = super().parse_args(ctx, args)
        program = ctx.params.get("command") or []
        ctx.meta[SEPARATED] = every[-len(program) - 1 : len(every) - len(program)] == ["--"]
        return rest


def tune(  # noqa: PLR0913 - one argument for each option, all of which `_run` gets
    ctx: typer.Context,
    command: Command,
    space: SpaceFile,
    *,
    memory: Where = None,
    problem: Problem = "default",
    task: Task = None,
    trials: Trials = 50,
    seconds: Seconds = None,
    target: Target = None,
    patience: Patience = None,
    max_failures: MaxFailures = 5,
    stop_when: StopWhen = None,
    min_improvement: MinImprovement = None,
    trial_seconds: TrialSeconds = None,
    workers: Workers = 1,
    method: MethodName = DEFAULT_METHOD,
    rename: Rename = None,
    maximize: Maximize = False,
    key: Key = None,
    score_file: ScoreFile = None,
    first: First = None,
    callback: Callbacks = None,
    logs: Logs = None,
    folder: Folder = None,
    tag: Tags = None,
    note: Note = "",
    seed: Seed = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tune any program.

    The program is run with one configuration after another. Each configuration is chosen from the scores so far and
    from past runs with the same --problem in the memory.
    """
    _run(ctx, SimpleNamespace(**locals()))


def _run(ctx: typer.Context, given: SimpleNamespace) -> None:
    """Tune, given the arguments of `tune`."""
    from recollect.space.space import compile_space
    from recollect.tuning.commands import CommandEvaluator, TaskFolders, parse_command
    from recollect.tuning.minimize import default_task, tune_with, worker_count

    with messages(quiet=given.quiet):
        space = compile_space(given.space)
        template = parse_command(given.command, space, logs=given.logs is not None)
        opened, task = _memory(given.memory, given.task), default_task() if given.task is None else given.task
        folders = TaskFolders.of(given.problem, task, logs=given.logs, work=given.folder)
        programs = CommandEvaluator(
            template, worker_count(given.workers), limit=given.trial_seconds, key=given.key,
            file=given.score_file or "", folders=folders,
        )  # fmt: skip
        _warn_about_unused(template.unused)
        _warn_about_arguments(given.command, ctx, in_folders=given.folder is not None)
        settings = _settings(given, opened, folders)
        with stoppable(lambda: _how_to_resume(opened, given.problem, given.task)):
            result = tune_with(programs, space, settings)
    best = _best_command(template, result, folders, given.score_file)
    (_print_json if given.as_json else _print)(result, best, None if opened is None else opened.store.name)


def _settings(given: SimpleNamespace, memory: Memory | None, folders: TaskFolders) -> TuningSettings:
    from recollect.optimizer import catalog
    from recollect.tuning.minimize import TuningSettings

    return TuningSettings(
        trials=given.trials, memory=memory, problem=given.problem, task=folders.task, seed=given.seed,
        method=catalog.method(given.method), direction="maximize" if given.maximize else "minimize",
        seconds=given.seconds, target=given.target, patience=given.patience, max_failures=given.max_failures or None,
        stop_when=given.stop_when, min_improvement=given.min_improvement,
        rename=_new_names(given.rename or []), first=_first(given.first), callbacks=_callbacks(given.callback or ()),
        tags=given.tag or (), note=given.note, progress=not given.quiet, place=folders.place,
    )  # fmt: skip


def _best_command(template: CommandTemplate, result: Result, folders: TaskFolders, file: str | None) -> list[str]:
    """Return the program's arguments with the best values; empty if no trial succeeded."""
    from recollect.tuning.commands import DEFAULT_SCORE_FILE

    if (best := result.run.best) is None:
        return []
    provided = {"score_file": file or DEFAULT_SCORE_FILE, "logs": str(folders.logs)}
    return template.fill(best.config, **provided, trial=str(best.number), worker="0")


def _first(path: Path | None) -> list[dict[str, Any]]:
    from recollect.storage.formats.config_files import read_configs

    return [] if path is None else read_configs(path)


def _callbacks(names: Iterable[str]) -> list[Callback]:
    from recollect.tuning.callbacks import callback_named

    return [callback_named(name) for name in names]


def _warn_about_arguments(command: list[str], ctx: typer.Context, *, in_folders: bool) -> None:
    """Warn of arguments of the program that look like options of recollect, or like files of this folder."""
    from recollect.errors import RecollectWarning

    options = {option for parameter in ctx.command.params for option in parameter.opts if option.startswith("--")}
    own = [argument for argument in command[1:] if argument.partition("=")[0] in options]
    if own and not ctx.meta.get(SEPARATED):
        message = (
            f"{own[0]} comes after the program and is passed to it; put options of recollect before the program, and "
            "-- between them"
        )
        warnings.warn(message, RecollectWarning, stacklevel=2)
    files = [word for word in command[1:] if "{" not in word and not os.path.isabs(word) and os.path.isfile(word)]
    if in_folders and files:
        message = (
            f"the program runs in folders of its own and does not find {files[0]}; write {Path(files[0]).absolute()}"
        )
        warnings.warn(message, RecollectWarning, stacklevel=2)


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
        values = "value" if len(unused) == 1 else "values"
        message = f"the command has no {names}; the program has to read the {values} from {CONFIG_VARIABLE}"
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
    if memory is not None and run.trials:
        where = ["recollect", "memory", "show", memory, "--problem", result.problem, "--task", run.task]
        typer.echo(f"\nall trials:\n  {shlex.join(where)} --trials")
        typer.echo(f"everything about one trial:\n  {shlex.join(where)} --trial {run.trials[-1].number}")
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
