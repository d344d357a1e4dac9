"""``recollect bench report``: finished experiments as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    results: Annotated[
        list[Path], typer.Argument(help="Files of results (.csv, .csv.gz), or folders with a runs.csv.")
    ],
    out: Annotated[Path, typer.Option(help="File for the page; a page that is there is replaced.")] = Path(
        "report.html"
    ),
    benchmark: Annotated[list[str] | None, typer.Option(help="Only this benchmark; may be repeated.")] = None,
) -> None:
    """Make one HTML page of results that opens offline: overview, regret curves, ranks, worst cases, tables."""
    from recollect.bench.results import gather
    from recollect.report.benchmark.page import bench_page
    from recollect.report.page import render, write_page

    source = ", ".join(path.name for path in results)
    write_page(render(bench_page(gather(results), benchmarks=benchmark or (), source=source)), out)
    typer.echo(f"{out}")
