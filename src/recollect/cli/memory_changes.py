"""``recollect memory``: copy, tag, rename and remove the runs of a memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from recollect._text import plural
from recollect.cli.memory import (
    Problem,
    SkipExisting,
    Task,
    Where,
    complete_task,
    messages,
    print_table,
    shown_progress,
)
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.storage.memory import Memory

OptionalTask = Annotated[
    str | None,
    typer.Option(help="Name of the dataset or instance; without it, the whole problem.", autocompletion=complete_task),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]


def copy(
    memory: Where,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="File name or storage URL of the memory to copy to.")],
    problem: Problem = None,
    skip_existing: SkipExisting = False,
) -> None:
    """Copy runs to another memory.

    Everything that is stored with them is copied. The other memory is created if it does not exist.

    \b
    Example:
      recollect memory copy tuning.db postgresql://me@host/tuning --problem svm
    """
    from recollect.storage.memory import Memory, open_existing

    with messages(), shown_progress("copying") as report, open_existing(memory) as opened, Memory(other) as target:
        count = opened.copy_to(target, problem, skip_existing=skip_existing, report=report)
        name = target.store.name
    typer.echo(f"{name}: {plural(count, 'run')} copied")


def tag(
    memory: Where,
    task: Task,
    problem: Problem = None,
    add: Annotated[list[str], typer.Option("--add", metavar="TAG", help="Tag to add; may be repeated.")] = [],  # noqa: B006
    remove: Annotated[list[str], typer.Option("--remove", metavar="TAG", help="Tag to remove.")] = [],  # noqa: B006
    note: Annotated[str | None, typer.Option(help='A remark on the run; "" removes it.')] = None,
) -> None:
    """Show or change the tags and the note of a run.

    \b
    Example:
      recollect memory tag tuning.db --problem svm --task covertype --add gpu --note "new data"
    """
    from recollect.storage.memory import open_existing

    with messages():
        opened = open_existing(memory)
        owner = _own_problem(opened, task, problem)
        opened.tag(task, owner, add=add, remove=remove, note=note)
        stored = opened.stored_run(task, owner)
    print_table(("", ""), (("tags", ", ".join(stored.tags) or "-"), ("note", stored.note or "-")))


def rename(
    memory: Where,
    to: Annotated[str, typer.Option(help="The new name.")],
    task: OptionalTask = None,
    problem: Problem = None,
) -> None:
    """Rename a task or, with --problem alone, a problem.

    \b
    Example:
      recollect memory rename tuning.db --problem svn --to svm
    """
    from recollect.storage.memory import open_existing

    opened = open_existing(memory)
    with messages():
        owner = _own_problem(opened, task, problem)
        opened.rename(to, task=task, problem=owner)
    old = f"problem {owner!r}" if task is None else f"task {task!r} of problem {owner!r}"
    typer.echo(f"{opened.store.name}: {old} is now {to!r}")


def remove(memory: Where, task: OptionalTask = None, problem: Problem = None, yes: Yes = False) -> None:
    """Delete a run or, with --problem alone, a problem.

    Asks for confirmation. Deleted runs cannot be restored.

    \b
    Example:
      recollect memory remove tuning.db --problem svm --task covertype --yes
    """
    from recollect.storage.memory import open_existing

    opened = open_existing(memory)
    with messages():
        name, owner = opened.store.name, _own_problem(opened, task, problem)
        if task is None:
            (size,) = (entry for entry in opened.problem_sizes() if entry.problem == owner)
            what = f"problem {owner!r} with {plural(size.runs, 'run')} and {plural(size.trials, 'trial')}"
        else:
            trials = plural(len(opened.stored_run(task, owner).run), "trial")
            what = f"task {task!r} of problem {owner!r} with {trials}"
    if not yes and not sys.stdin.isatty():
        raise InputError(f"{name}: without a terminal, {what} is removed only with --yes")
    if not yes and not typer.confirm(f"Remove {what} from {name} permanently?", err=True):
        typer.echo("nothing was removed")
        raise typer.Exit(1)
    opened.remove(task, owner)
    typer.echo(f"{name}: removed {what}")


def _own_problem(opened: Memory, task: str | None, problem: str | None) -> str:
    """Return the problem of a task, or the one named; InputError if there is none, or recollect did not create it."""
    if task is None:
        if problem is None:
            raise InputError("expected --task, or --problem alone for a whole problem")
        opened.tasks(problem)  # raises if there is no such problem
        return problem
    owner = opened.stored_run(task, problem).problem
    if owner is None:
        raise InputError(f"{opened.store.name}: {task!r} is a study that recollect did not create; use Optuna for it")
    return owner


COMMANDS = (copy, tag, rename, remove)
