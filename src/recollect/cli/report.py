"""``recollect report``: one run, or a whole memory, as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.memory import complete_problem, complete_task, messages, opened

EXAMPLES = """\b
Examples:
  recollect report --memory tuning.db --problem svm --task covertype
  recollect report --memory tuning.db --problem svm --out svm.html
"""
"""Shown below the options."""


def report(
    memory: Annotated[str, typer.Option(help="File name or storage URL of the memory.")],
    problem: Annotated[
        str | None, typer.Option(help="What is tuned again and again.", autocompletion=complete_problem)
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="The run to show; without it, all runs are shown.", autocompletion=complete_task),
    ] = None,
    out: Annotated[Path, typer.Option(help="File for the page; a page that is there is replaced.")] = Path(
        "report.html"
    ),
) -> None:
    """Make one HTML page that opens offline: of one run and what past runs taught it, or of all runs of a memory."""
    from recollect.report.page import render, write_page

    with opened(memory) as kept, messages():
        if task is None:
            from recollect.report.overview import overview_page

            page = overview_page(kept, problem)
        else:
            from recollect.report.run import report_run

            page = report_run(kept, problem, task)
    write_page(render(page), out)
    typer.echo(f"{out}")
