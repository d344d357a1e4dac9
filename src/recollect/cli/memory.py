"""``recollect memory``: list, show, import, export and check the runs of a memory.

Names are shown literally: nothing in them is markup, and control characters are escaped.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect._text import name_list, plural
from recollect.errors import InputError, RecollectError, RecollectWarning
from recollect.progress import progress_bars

if TYPE_CHECKING:
    from recollect.runs.run import Run
    from recollect.storage.memory import Memory
    from recollect.storage.run_reading import StoredRun
    from recollect.storage.run_writing import Report
    from recollect.storage.studies import TaskStudy

MIN_RUNS_FOR_BAR = 100  # fewer are stored before a progress bar helps
UNLIMITED_WIDTH = 10_000  # of a table that goes to a file or another program, where no line is wrapped

app = typer.Typer(
    name="memory",
    help="List, show, import, export and change stored runs.",
    epilog="Documentation: recollect help memory",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def complete_problem(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a problem in the memory on the command line."""
    names = {study.problem for study in _studies_or_none(ctx)}
    return sorted(name for name in names if name is not None and name.startswith(incomplete))


def complete_task(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete the name of a task in the memory, and in the problem if one is given, on the command line."""
    problem = ctx.params.get("problem")
    names = {study.task for study in _studies_or_none(ctx) if problem in (None, study.problem)}
    return sorted(name for name in names if name.startswith(incomplete))


PROBLEM_HELP = "Name of the model or program; runs with the same name learn from each other."
Where = Annotated[str, typer.Argument(metavar="MEMORY", help="File name or storage URL of the memory.")]
Problem = Annotated[str | None, typer.Option(help=PROBLEM_HELP, autocompletion=complete_problem)]
Task = Annotated[str, typer.Option(help="Name of the dataset or instance of the run.", autocompletion=complete_task)]
OnlyTask = Annotated[
    str | None, typer.Option(help="Name of the task; not needed if there is only one.", autocompletion=complete_task)
]
Source = Annotated[str, typer.Argument(help="CSV or JSON lines, another memory, Optuna storage, MLflow, W&B, SMAC3.")]
IMPORT_PROBLEM_HELP = """Problem to store the runs in. Default: "default"; runs of another memory keep their problems.
If another memory has this problem, only its runs of this problem are read."""
Tags = Annotated[list[str], typer.Option("--tag", metavar="TAG", help="Only runs with this tag; may be repeated.")]
Since = Annotated[
    str | None, typer.Option(metavar="DATE", help="Only runs with a trial that finished since then: 2026-01-31.")
]
SkipExisting = Annotated[bool, typer.Option("--skip-existing", help="Leave out runs that exist instead of refusing.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@app.command(name="list")
def list_(
    memory: Where,
    problem: Problem = None,
    tag: Tags = [],  # noqa: B006 - typer's notation
    since: Since = None,
    as_json: AsJson = False,
) -> None:
    """List the runs of a memory.

    With trials, failures, best value, direction and number of hyperparameters.

    \b
    Example:
      recollect memory list tuning.db --problem svm --since 2026-01-31
    """
    from recollect.storage.memory import open_existing
    from recollect.storage.open import without_password

    with messages():
        stored = open_existing(memory).stored_runs(problem, tags=tag, since=since)
        rows = [_summary(entry) for entry in stored]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    elif not rows:
        typer.echo(f"{without_password(memory)}: no runs")
    else:
        heads = ("problem", "task", "trials", "failed", "pruned", "best value", "direction", "hyperparameters", "tags")
        table = [[*row.values()][: len(heads) - 1] for row in rows]
        tags = [", ".join(row["tags"]) for row in rows]
        shown = len(heads) if any(tags) else len(heads) - 1
        lines = [[*cells, words][:shown] for cells, words in zip(table, tags, strict=True)]
        print_table(heads[:shown], lines, right=(2, 3, 4, 5, 7))


@app.command()
def problems(memory: Where, as_json: AsJson = False) -> None:
    """List the problems of a memory, with their runs and trials.

    \b
    Example:
      recollect memory problems tuning.db
    """
    from recollect.storage.memory import open_existing

    with messages():
        opened = open_existing(memory)
        facts = [dataclasses.asdict(entry) for entry in opened.problem_sizes()]
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    elif not facts:
        typer.echo(f"{opened.store.name}: no runs")
    else:
        rows = ((entry["problem"] or "(of other programs)", entry["runs"], entry["trials"]) for entry in facts)
        print_table(("problem", "runs", "trials"), rows, right=(1, 2))


@app.command()
def show(
    memory: Where,
    task: OnlyTask = None,
    problem: Problem = None,
    trials: Annotated[bool, typer.Option("--trials", help="Also show all trials.")] = False,
    trial: Annotated[int | None, typer.Option(min=0, metavar="NUMBER", help="Show only this trial.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show one run and its best configuration.

    --trials also shows all its trials, --trial everything about one of them.

    \b
    Examples:
      recollect memory show tuning.db --problem svm --task covertype --trials
      recollect memory show tuning.db --problem svm --task covertype --trial 7
    """
    from recollect.storage.memory import open_existing

    with messages():
        opened = open_existing(memory)
        task = _only_task(opened, problem) if task is None else task
    if trial is not None:
        from recollect.cli.show_trial import print_trial
        from recollect.storage.trial_details import read_trial

        with messages():
            details = read_trial(opened.store, task, trial, problem)
        return print_trial(details, as_json=as_json)
    with messages():
        stored = opened.stored_run(task, problem)
    facts, best = _summary(stored), stored.run.best
    if as_json:
        every = [{**dataclasses.asdict(trial), "state": trial.state.value} for trial in stored.run.trials]
        facts |= {"best_config": None if best is None else best.config} | ({"all_trials": every} if trials else {})
        return typer.echo(json.dumps(facts, indent=2))
    facts["tags"] = ", ".join(facts["tags"])
    shown = ((name, value) for name, value in facts.items() if value != "")
    print_table(("", ""), ((name.replace("_", " "), value) for name, value in shown))
    if best is not None:
        typer.echo("\nbest configuration:")
        print_table(("hyperparameter", "value"), ((name, str(value)) for name, value in best.config.items()))
    if trials:
        typer.echo("\ntrials:")
        _print_trials(stored.run)


def _only_task(memory: Memory, problem: str | None) -> str:
    """Return the task of a memory that has one; InputError with the names of all tasks for others."""
    tasks = memory.tasks(problem)
    if len(tasks) != 1:
        names = f"one of the tasks {name_list(map(repr, tasks))}" if tasks else "a run, but there is none"
        raise InputError(f"{memory.store.name}: expected --task, {names}")
    return tasks[0]


@app.command(name="import", epilog="Documentation: recollect help importing")
def import_(  # noqa: PLR0913, PLR0917 - one argument for each option
    memory: Where,
    source: Source,
    problem: Annotated[str | None, typer.Option(help=IMPORT_PROBLEM_HELP, autocompletion=complete_problem)] = None,
    task: Annotated[str | None, typer.Option(help="Task to read; for a source without tasks, its name.")] = None,
    value: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column or metric with the value.")] = None,
    maximize: Annotated[bool, typer.Option("--maximize", help="Higher values are better.")] = False,
    ignore: Annotated[list[str], typer.Option(metavar="COLUMN", help="Column to leave out; may be repeated.")] = [],  # noqa: B006 - typer's notation
    kind: Annotated[
        str | None, typer.Option(help="What a file is: csv, jsonl, json, smac, optuna, mlflow or wandb.")
    ] = None,
    skip_existing: SkipExisting = False,
) -> None:
    """Read runs from another source and store them.

    The memory is created if it does not exist.

    Runs are stored in batches, each run whole or not at all. An import that was interrupted is continued with
    --skip-existing.

    \b
    Examples:
      recollect memory import tuning.db results.csv --problem svm --value error
      recollect memory import tuning.db wandb:team/project --value val_loss
    """
    from recollect.storage.memory import Memory

    options: dict[str, Any] = {"task": task, "value": value, "direction": "maximize" if maximize else None}
    options |= {"kind": kind, "columns": dict.fromkeys(ignore, "ignore")}
    with messages(), shown_progress("importing") as report, Memory(memory) as opened:
        runs = opened.import_(source, problem, skip_existing=skip_existing, report=report, **options)
        name = opened.store.name
    typer.echo(f"{name}: {plural(len(runs), 'run')} with {plural(sum(map(len, runs)), 'trial')} imported")


@app.command()
def export(
    memory: Where,
    file: Annotated[Path, typer.Argument(help="Output file: .jsonl keeps everything, .csv is for spreadsheets.")],
    problem: Problem = None,
    everything: Annotated[bool, typer.Option("--all", help="Write the runs of all problems.")] = False,
) -> None:
    """Write runs to a file.

    `recollect memory import` reads it. An earlier export is replaced, but no other file.

    \b
    Example:
      recollect memory export tuning.db svm.jsonl --problem svm
    """
    from recollect.storage.memory import open_existing

    opened = open_existing(memory)
    name = opened.store.name
    if everything and problem is not None:
        raise InputError("export: expected either --all or --problem, got both")
    with messages():
        sizes = opened.problem_sizes()
    if not sizes:
        raise InputError(f"{name}: there are no runs")
    if problem is None and not everything and len(sizes) > 1:
        names = name_list(
            "those of other programs" if entry.problem is None else repr(entry.problem) for entry in sizes
        )
        raise InputError(f"{name}: there are several problems; choose one with --problem, or --all: {names}")
    with messages():
        chosen = sizes[0].problem if problem is None else problem
        _check_replaceable(file)
        count = opened.export(file, None if everything else chosen)
    typer.echo(f"{file}: {plural(count, 'run')}")


def _check_replaceable(file: Path) -> None:
    """Refuse a file that exists and is not an earlier export."""
    from recollect._files import read_text
    from recollect.storage.formats.json_lines import MARK

    head = ""
    if file.is_file():
        with suppress(InputError):
            head = read_text(file).partition("\n")[0]
        if not head.startswith(f'{{"{MARK}"') and not head.endswith(",value,state,seconds"):
            raise InputError(f"{file}: a file exists that is not an export of recollect; choose another name")


@app.command()
def check(memory: Where, as_json: AsJson = False) -> None:
    """Look for damage in a memory.

    Reads everything and lists what is damaged and what to do; exits with code 1 if anything is.

    \b
    Example:
      recollect memory check tuning.db
    """
    from recollect.storage.memory import open_existing

    opened = open_existing(memory)
    damage = opened.check()
    if as_json:
        typer.echo(json.dumps([dataclasses.asdict(entry) for entry in damage], indent=2))
    elif damage:
        rows = ((entry.place, entry.reason, entry.remedy) for entry in damage)
        print_table(("damaged", "what is wrong", "what to do"), rows)
        typer.echo("\nEverything else can be used: damaged studies and trials are left out when the memory is read.")
    else:
        typer.echo(f"{opened.store.name}: no damage")
    if damage:
        raise typer.Exit(1)


@contextmanager
def shown_progress(what: str) -> Iterator[Report]:
    """Show the progress of something with many runs."""
    with progress_bars("count", "remaining", transient=True) as update:

        def report(done: int, total: int) -> None:
            if total >= MIN_RUNS_FOR_BAR:
                update(what, done, total)

        yield report


@contextmanager
def messages(*, quiet: bool = False) -> Iterator[None]:
    """Print recollect's warnings as plain sentences on standard error, or not at all."""
    with warnings.catch_warnings():
        show_other = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **others: Any) -> None:
            if issubclass(category, RecollectWarning):
                sys.stderr.write(f"recollect: {printable(str(message))}\n")  # echo would write into progress bars
            else:
                show_other(message, category, *rest, **others)

        warnings.simplefilter("ignore" if quiet else "always", RecollectWarning)
        warnings.showwarning = show
        yield


def printable(text: str) -> str:
    """Return a text with control characters, and characters that the terminal cannot encode, escaped."""
    plain = re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda match: repr(match[0])[1:-1], text)
    encoding = sys.stdout.encoding or "utf-8"
    return plain.encode(encoding, "backslashreplace").decode(encoding)


def print_table(heads: Sequence[str], rows: Iterable[Iterable[Any]], *, right: Collection[int] = ()) -> None:
    """Print values of any kind as a table, "-" for None; ``right``: the columns that are aligned right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=any(heads))
    for number, head in enumerate(heads):
        table.add_column(Text(printable(head)), justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        texts = ("-" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row)
        table.add_row(*(Text(printable(text)) for text in texts))
    Console(width=None if sys.stdout.isatty() else UNLIMITED_WIDTH, highlight=False).print(table)


def _print_trials(run: Run) -> None:
    names = list(dict.fromkeys(name for config in run.configs for name in config))
    rows = []
    for index, trial in enumerate(run.trials):
        number = index if trial.number is None else trial.number
        note = " ".join(trial.notes[:1]) or ("" if trial.ok else trial.state.value)
        rows.append((number, trial.value, trial.seconds, *(trial.config.get(name, "") for name in names), note))
    print_table(("trial", "value", "seconds", *names, "note"), rows, right=range(3))


def _studies_or_none(ctx: typer.Context) -> list[TaskStudy]:
    """Return the studies of the memory on the command line; none, rather than an error, if it cannot be read."""
    from recollect.storage.memory import open_existing
    from recollect.storage.open import storage_errors
    from recollect.storage.studies import task_studies

    where = ctx.params.get("memory") or "".join(ctx.args[:1])  # arguments are parsed after the option that is completed
    with suppress(RecollectError), storage_errors(where), messages(quiet=True):
        return task_studies(open_existing(where).store)
    return []


def _summary(stored: StoredRun) -> dict[str, Any]:
    run = stored.run
    names = {name for config in run.configs for name in config} if run.space is None else run.space.names
    return {
        "problem": stored.problem,
        "task": run.task,
        "trials": len(run),
        "failed": len(run.failed),
        "pruned": len(run.pruned),
        "best_value": None if run.best is None else run.best.value,
        "direction": run.direction,
        "hyperparameters": len(names),
        "tags": list(stored.tags),
        "note": stored.note,
    }
