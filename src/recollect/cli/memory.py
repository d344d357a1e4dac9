"""``recollect memory``: list, show, import, export and remove the runs of a memory.

Names are shown as they are: nothing in them is markup, and control characters are written out.
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

from recollect.cli.checks import absent

if TYPE_CHECKING:
    from recollect.history.memory import Kept, Memory
    from recollect.history.run import Run
    from recollect.history.studies import Entry

WIDE = 10_000  # columns of a table that goes to a file or another program, where nothing is to be folded

app = typer.Typer(
    name="memory",
    help="The runs of the past: list, show, import, export and remove them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def complete_problem(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the problems in the memory on the command line that begin like this."""
    names = {entry.problem for entry in _entries_if_any(ctx)}
    return sorted(name for name in names if name is not None and name.startswith(incomplete))


def complete_task(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the tasks, of the problem on the command line if there is one, that begin like this."""
    problem = ctx.params.get("problem")
    names = {entry.task for entry in _entries_if_any(ctx) if problem in (None, entry.problem)}
    return sorted(name for name in names if name.startswith(incomplete))


Where = Annotated[str, typer.Argument(metavar="MEMORY", help="File name or storage URL of the memory.")]
Problem = Annotated[str | None, typer.Option(help="What is tuned again and again.", autocompletion=complete_problem)]
Task = Annotated[str, typer.Option(help="What it was tuned on.", autocompletion=complete_task)]
Source = Annotated[str, typer.Argument(help="CSV, JSON lines, a memory, Optuna storage, MLflow, SMAC3 run history.")]
IMPORTED = """What the runs become part of, "default" if not given. Of another memory, only the runs of this problem are
read if it has it, all if not; without --problem they keep their own."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@app.command(name="list")
def list_(memory: Where, problem: Problem = None, as_json: AsJson = False) -> None:
    """List the runs of a memory: trials, failures, best value, direction, number of hyperparameters.

    \b
    Example:
      recollect memory list tuning.db --problem svm
    """
    rows = [_summary(kept) for kept in opened(memory).kept(problem, needed=True)]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    elif not rows:
        typer.echo(f"{memory}: no runs")
    else:
        heads = ("problem", "task", "trials", "failed", "best value", "direction", "hyperparameters")
        print_table(heads, [row.values() for row in rows], right=(2, 3, 4, 6))


@app.command()
def show(
    memory: Where,
    task: Task,
    problem: Problem = None,
    trials: Annotated[bool, typer.Option("--trials", help="Show all trials, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one run: its best configuration and, if asked for, all its trials.

    \b
    Example:
      recollect memory show tuning.db --problem svm --task covertype --trials
    """
    kept = _chosen(opened(memory), task, problem)
    facts, best = _summary(kept), kept.run.best
    if as_json:
        every = [{**dataclasses.asdict(trial), "state": trial.state.value} for trial in kept.run.trials]
        facts |= {"best_config": None if best is None else best.config} | ({"all_trials": every} if trials else {})
        return typer.echo(json.dumps(facts, indent=2))
    print_table(("", ""), ((name.replace("_", " "), value) for name, value in facts.items()))
    if best is not None:
        typer.echo("\nbest configuration:")
        print_table(("hyperparameter", "value"), ((name, str(given)) for name, given in best.config.items()))
    if trials:
        typer.echo("\ntrials:")
        _print_trials(kept.run)


@app.command(name="import")
def import_(
    memory: Where,
    source: Source,
    problem: Annotated[str | None, typer.Option(help=IMPORTED, autocompletion=complete_problem)] = None,
    task: Annotated[str | None, typer.Option(help="The one task to read, or the name of a run without one.")] = None,
    value: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column or metric that holds the value.")] = None,
    maximize: Annotated[bool, typer.Option("--maximize", help="Higher values are better.")] = False,
) -> None:
    """Read runs from elsewhere and keep them; the memory is made if it is not there.

    \b
    Example:
      recollect memory import tuning.db results.csv --problem svm --value error
    """
    from recollect.history.importers.recognise import read_kept
    from recollect.history.memory import Memory

    reading: dict[str, Any] = {"task": task, "value": value, "direction": "maximize" if maximize else None}
    if absent(memory):
        with messages(quiet=True):
            read_kept(source, problem, **reading)  # what cannot be read must not leave an empty memory behind
    with messages():
        runs = Memory(memory).import_(source, problem, **reading)
    typer.echo(f"{memory}: {counted(len(runs), 'run')} with {counted(sum(map(len, runs)), 'trial')} imported")


@app.command()
def export(
    memory: Where,
    file: Annotated[Path, typer.Argument(help="File to write: .jsonl keeps everything, .csv is for spreadsheets.")],
    problem: Problem = None,
) -> None:
    """Write the runs of a problem to a file that `recollect memory import` reads.

    \b
    Example:
      recollect memory export tuning.db svm.jsonl --problem svm
    """
    from recollect.errors import InputError
    from recollect.history.export import write_runs

    found = opened(memory).kept(problem, needed=True)
    problems = dict.fromkeys(kept.problem for kept in found)
    if not found:
        raise InputError(f"{memory}: there are no runs")
    if len(problems) > 1:
        names = ", ".join("those of other tools" if name is None else repr(name) for name in problems)
        raise InputError(f"{memory}: there are several problems, name one with --problem: {names}")
    with messages():
        write_runs([kept.run for kept in found], file)
    typer.echo(f"{file}: {counted(len(found), 'run')}")


@app.command()
def remove(
    memory: Where,
    task: Task,
    problem: Problem = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget a run for good; asks first.

    \b
    Example:
      recollect memory remove tuning.db --problem svm --task covertype --yes
    """
    from recollect.errors import InputError

    found = opened(memory)
    kept = _chosen(found, task, problem)
    if kept.problem is None:
        raise InputError(f"{memory}: {task!r} is a study that recollect did not make; remove it with Optuna")
    what = f"task {task!r} of problem {kept.problem!r} with {counted(len(kept.run), 'trial')}"
    if not yes and not sys.stdin.isatty():
        raise InputError(f"{memory}: {what} is removed only with --yes where nobody can be asked")
    if not yes and not typer.confirm(f"Remove {what} from {memory} for good?", err=True):
        typer.echo("nothing was removed")
        raise typer.Exit(1)
    found.remove(task, kept.problem)
    typer.echo(f"{memory}: removed {what}")


def opened(where: str) -> Memory:
    """Open a memory that is there; one that is not is an error, and is not made."""
    from recollect.errors import StorageError
    from recollect.history.memory import Memory
    from recollect.history.storage import shown

    if why := absent(where):
        raise StorageError(f"{shown(where)}: {why}")
    return Memory(where)


@contextmanager
def messages(*, quiet: bool = False) -> Iterator[None]:
    """Say what recollect warns of in plain sentences on standard error, or not at all."""
    from recollect.errors import RecollectWarning

    with warnings.catch_warnings():
        usual = warnings.showwarning

        def say(message: Warning | str, category: type[Warning], *rest: Any, **others: Any) -> None:
            if issubclass(category, RecollectWarning):
                sys.stderr.write(f"recollect: {printable(str(message))}\n")  # echo would write into progress bars
            else:
                usual(message, category, *rest, **others)

        warnings.simplefilter("ignore" if quiet else "always", RecollectWarning)
        warnings.showwarning = say
        yield


def printable(text: str) -> str:
    """Return a text with all written out that would steer the terminal or that its encoding does not have."""
    plain = re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: repr(found[0])[1:-1], text)
    encoding = sys.stdout.encoding or "utf-8"
    return plain.encode(encoding, "backslashreplace").decode(encoding)


def counted(number: int, what: str) -> str:
    """Return a number with its noun."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def print_table(heads: Sequence[str], rows: Iterable[Iterable[Any]], *, right: Collection[int] = ()) -> None:
    """Print values of any kind as a table, "-" for None; ``right``: the columns that are set to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=any(heads))
    for number, head in enumerate(heads):
        table.add_column(Text(printable(head)), justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        texts = ("-" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row)
        table.add_row(*(Text(printable(text)) for text in texts))
    Console(width=None if sys.stdout.isatty() else WIDE, highlight=False).print(table)


def _print_trials(run: Run) -> None:
    names = list(dict.fromkeys(name for config in run.configs for name in config))
    rows = []
    for number, trial in enumerate(run.trials):
        note = " ".join(trial.notes[:1]) or ("" if trial.ok else "failed")
        rows.append((number, trial.value, trial.seconds, *(trial.config.get(name, "") for name in names), note))
    print_table(("trial", "value", "seconds", *names, "note"), rows, right=range(3))


def _entries_if_any(ctx: typer.Context) -> list[Entry]:
    """Return what the memory on the command line holds; nothing, rather than an error, where it cannot be read."""
    from recollect.errors import RecollectError
    from recollect.history.storage import faults
    from recollect.history.studies import entries

    where = ctx.params.get("memory") or "".join(ctx.args[:1])  # arguments are parsed after the option that is completed
    with suppress(RecollectError), faults(where):
        return entries(opened(where).store)
    return []


def _chosen(memory: Memory, task: str, problem: str | None) -> Kept:
    """Return the run of a task; InputError if there is none, or several and no problem says which."""
    from recollect.errors import InputError

    there = memory.kept(problem, needed=True)
    found = [kept for kept in there if kept.run.task == task]
    here = memory.store.name + ("" if problem is None else f", problem {problem!r}")
    if not found:
        tasks = [*dict.fromkeys(repr(kept.run.task) for kept in there)]
        names = ", ".join(tasks[:8]) + (", ..." if len(tasks) > 8 else "")
        raise InputError(f"{here}: there is no task {task!r}, only {names or 'nothing at all'}")
    if len(found) > 1:
        names = ", ".join(repr(kept.problem) for kept in found if kept.problem is not None)
        raise InputError(f"{here}: there are several tasks {task!r}, name one with --problem: {names}")
    return found[0]


def _summary(kept: Kept) -> dict[str, Any]:
    run = kept.run
    names = {name for config in run.configs for name in config} if run.space is None else run.space.names
    return {
        "problem": kept.problem,
        "task": run.task,
        "trials": len(run),
        "failed": len(run) - len(run.succeeded),
        "best_value": None if run.best is None else run.best.value,
        "direction": run.direction,
        "hyperparameters": len(names),
    }
