"""``recollect bench table``: the paper's tables, and tables of everything, from finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def table(
    results: Annotated[
        list[Path], typer.Argument(help="Files of results (.csv, .csv.gz), or folders with a runs.csv.")
    ],
    which: Annotated[
        str,
        typer.Option(
            "--table", help="main, ablation, transform, dilution, rho, versions, methods, summary or all of them."
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
    from recollect.errors import InputError

    runs = gather(results)
    study = make_study(common_runs(runs) if common else runs)
    text = typeset(make_tables(study, which, benchmark or ()), form)
    if out is None:
        typer.echo(text, nl=False)
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{out}: expected a file that can be written: {error}") from error
    typer.echo(f"{out}")
