"""``recollect bench``: which benchmarks there are, their data, what a table looks like as one; experiments on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli.bench_build import build
from recollect.cli.bench_figure import figure, scaling
from recollect.cli.bench_report import report
from recollect.cli.bench_run import pack, run
from recollect.cli.bench_table import table
from recollect.cli.progress import bars

if TYPE_CHECKING:
    from recollect.bench.problem import Benchmark
    from recollect.bench.registry import Listed

app = typer.Typer(
    name="bench",
    help="Benchmarks and experiments: list and get benchmarks, run plans, make tables and figures.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for command in (build, run, pack, table, figure, report, scaling):
    app.command()(command)


@app.command(name="list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """List all benchmarks: tasks, hyperparameters, conditions, source, and whether they work offline."""
    from recollect.bench.registry import entries, listed

    rows = [listed(entry) for entry in entries()]
    if as_json:
        typer.echo(json.dumps([_as_json(row) for row in rows], indent=2))
    else:
        _print_list(rows)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Name of the benchmark.")],
    source: Annotated[Path | None, typer.Option("--from", help="Local copy of the data: a file or a folder.")] = None,
) -> None:
    """Get the published data of a benchmark; an interrupted download goes on where it stopped."""
    from recollect.bench import registry

    with bars("bytes", "remaining", one=True) as progress:
        folder = registry.fetch(name, source=source, progress=progress)
    if folder is None:
        typer.echo(f"{name} needs no data: it comes with recollect")
        return
    typer.echo(f"{name}: {folder}")
    for line in _unchecked(folder):
        typer.echo(line)


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="Name of the benchmark.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Tidy CSV file (task, hyperparameters..., error) instead of a name.")
    ] = None,
    space: Annotated[Path | None, typer.Option(help="Search space of the table, in ConfigSpace's JSON format.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that build forests where a benchmark has them.")] = 1,
) -> None:
    """Show one benchmark: where it comes from, its search space and its tasks."""
    from recollect.bench import from_table, load
    from recollect.bench.forest_task import Build
    from recollect.errors import InputError

    if (name is None) == (table is None) or (space is not None and table is None):
        raise InputError("expected the name of a benchmark, or --table PATH, which --space PATH may describe")
    if table is not None:
        benchmark = from_table(table, space=space)
    else:
        with bars("count", "remaining") as tell:
            how = Build(progress=lambda done, total: tell("forests", done, total))
            benchmark = load(str(name), jobs=jobs, build=how)
    for line in _description(benchmark):
        typer.echo(line)


def _as_json(row: Listed) -> dict[str, Any]:
    shape = row.shape
    return {
        "name": row.name,
        "title": row.title,
        "tasks": None if shape is None else shape.tasks,
        "hyperparameters": None if shape is None else shape.dimensions,
        "conditional": None if shape is None else shape.conditional,
        "source": row.source,
        "offline": row.offline,
        "note": row.reason,
    }


def _print_list(rows: list[Listed]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("benchmark", no_wrap=True)
    for column in ("tasks", "dims", "conditional"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("available", no_wrap=True)
    table.add_column("what")
    table.add_column("source", overflow="fold")
    for row in rows:
        shape = row.shape
        counts = ["?"] * 3 if shape is None else [str(shape.tasks), str(shape.dimensions), str(shape.conditional)]
        available = "offline" if row.offline else ("not built" if row.reason else "to fetch")
        table.add_row(row.name, *counts, available, row.title, row.source.removeprefix("https://"))
    Console().print(table, highlight=False)


def _unchecked(folder: Path) -> list[str]:
    """Say what was received where there was no published checksum to compare with."""
    from recollect.bench.fetch import RECORD

    if not (folder / RECORD).exists():
        return []
    files = json.loads((folder / RECORD).read_text())["files"]
    return [
        f"{entry['url']}: no checksum is published; {entry['size']} bytes, sha256 {entry['sha256']}"
        for entry in files
        if entry["checked"].startswith("no ")
    ]


def _description(benchmark: Benchmark) -> list[str]:
    from recollect.space.columns import Interval, Steps

    about, space = benchmark.about, benchmark.space
    lines = [
        f"{benchmark.name}: {about.title}",
        *(f"  {word}: {text}" for word, text in _facts(benchmark) if text),
        "  hyperparameters:",
    ]
    for column, condition in zip(space.columns, space.condition_texts, strict=True):
        scale = ", log scale" if isinstance(column, Interval | Steps) and column.log else ""
        when = f"; only if {condition.partition(' | ')[2] or condition}" if condition else ""
        lines.append(f"    {column.name}: {column.expected()}{scale}{when}")
    return lines


def _facts(benchmark: Benchmark) -> list[tuple[str, str]]:
    about, shown = benchmark.about, ", ".join(benchmark.tasks[:5])
    more = ", ..." if len(benchmark.tasks) > 5 else ""
    count = "" if benchmark.candidates is None else f"{len(benchmark.candidates)}, the same for all tasks"
    return [
        ("citation", about.citation),
        ("licence", about.licence),
        ("source", about.source),
        ("error", about.measured),
        ("tasks", f"{len(benchmark.tasks)} ({shown}{more})"),
        ("configurations", count),
    ]
