"""``recollect bench table``: the paper's tables, and tables of everything, from finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.checks import refuse_input


def table(
    results: Annotated[
        list[Path], typer.Argument(help="Files of results (.csv, .csv.gz), or folders with a runs.csv.")
    ],
    which: Annotated[
        str,
        typer.Option(
            "--table",
            help="main, ablation, transform, dilution, rho, versions, methods, summary, seconds, or all but the last.",
        ),
    ] = "all",
    form: Annotated[str, typer.Option("--format", help="markdown, latex or csv.")] = "markdown",
    benchmark: Annotated[list[str] | None, typer.Option(help="Only this benchmark; may be repeated.")] = None,
    common: Annotated[
        bool, typer.Option("--common", help="Only tasks and repetitions that all methods of a benchmark have.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File to write; by default the table is printed.")] = None,
) -> None:
    """Print tables of results, with the paper's numbers beside ours where it has them."""
    from recollect.bench.overview import make_tables
    from recollect.bench.results import gather
    from recollect.bench.study import common_runs, make_study
    from recollect.bench.typeset import typeset
    from recollect.files import make_folder, put

    refuse_input(out, results)
    runs = gather(results)
    study = make_study(common_runs(runs) if common else runs)
    text = typeset(make_tables(study, which, benchmark or ()), form)
    if out is None:
        typer.echo(text, nl=False)
        return
    make_folder(out.parent)
    put(out, text.encode("utf-8"))
    typer.echo(f"{out}")
