"""``recollect report``: one run or a whole memory as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.memory import complete_problem, complete_task, messages
from recollect.errors import InputError

EXAMPLES = """\b
Examples:
  recollect report tuning.db --problem svm --task covertype
  recollect report --memory tuning.db --problem svm --out svm.html
  recollect report --memory tuning.db --problem svm --task covertype --task wine

Documentation: recollect help reports"""


def report(
    where: Annotated[
        str | None, typer.Argument(metavar="MEMORY", help="File name or storage URL of the memory.")
    ] = None,
    memory: Annotated[str | None, typer.Option(help="The same, as in recollect tune.")] = None,
    problem: Annotated[
        str | None, typer.Option(help="Name of the problem; default: all problems.", autocompletion=complete_problem)
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the task; default: an overview of all tasks. Several are compared: --task A --task B.",
            autocompletion=complete_task,
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="File for the page; an existing page is replaced.")] = Path("report.html"),
) -> None:
    """Write an HTML page about a run or a memory.

    With --task, the page is about that run and what it learned from past runs. It opens offline.
    """
    from recollect.report.page import render, write_page
    from recollect.storage.memory import open_existing

    if (where is None) == (memory is None):
        got = "neither" if memory is None else "both"
        raise InputError(f"report: expected the memory, as MEMORY or --memory, got {got}")
    with open_existing(where or memory or "") as store, messages():
        if not task:
            from recollect.report.memory.memory_page import memory_page

            page = memory_page(store, problem)
        elif len(task) > 1:
            from recollect.report.memory.compare_page import compare_page

            page = compare_page(store, problem, task)
        else:
            from recollect.report.run.run_page import run_page

            page = run_page(store, problem, task[0])
    write_page(render(page), out)
    typer.echo(f"{out}")
