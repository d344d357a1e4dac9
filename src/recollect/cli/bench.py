"""``recollect bench``: list, fetch, show and build benchmarks; run plans, pack results, create tables and figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect._text import name_list, plural
from recollect.cli.stopping import stoppable
from recollect.errors import InputError
from recollect.progress import progress_bars

if TYPE_CHECKING:
    from recollect.bench.benchmark import Benchmark
    from recollect.bench.paper.scaling_study import Measurement

HELP = "Compare methods on benchmarks: experiments, tables, figures."
PAGES = "Documentation: recollect help experiments, recollect help benchmarks"
app = typer.Typer(name="bench", help=HELP, epilog=PAGES, no_args_is_help=True, rich_markup_mode=None)
PIPED_WIDTH = 180  # columns of a list that is not printed to a terminal
TABLES_HELP = "main, ablation, transform, dilution, rho, versions, methods, summary, seconds, or all (without seconds)."
Results = Annotated[list[Path], typer.Argument(help="Result files (.csv, .csv.gz, .csv.xz), or folders with runs.csv.")]
Benchmarks = Annotated[list[str] | None, typer.Option(help="Only this benchmark; may be repeated.")]
FigureChoice = StrEnum("FigureChoice", ["all", "regret", "ranks", "weights", "difference"])


@app.command()
def run(
    plan: Annotated[Path, typer.Argument(help="Plan of the experiment (TOML).")],
    out: Annotated[Path, typer.Option(help="Folder for the results; completed runs in it are kept.")] = Path("study"),
    jobs: Annotated[int, typer.Option(min=1, help="Processes on this computer; ignored with --cluster.")] = 1,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")] = None,
) -> None:
    """Execute all runs of a plan. If interrupted, the same command resumes.

    Example: recollect bench run quick.toml --jobs 2 --out quick
    """
    from recollect.bench.experiment.executors import DaskExecutor, LocalExecutor
    from recollect.bench.experiment.plan import load_plan
    from recollect.bench.experiment.runner import run_experiment

    experiment = load_plan(plan)
    executor = LocalExecutor(jobs) if cluster is None else DaskExecutor(cluster)
    resume = f"completed runs are in {out}, and the same command resumes"
    with stoppable(lambda: resume), progress_bars("count", "rate", "elapsed", "remaining") as progress:
        forest_jobs = None if cluster else jobs
        summary = run_experiment(experiment, out, executor=executor, jobs=forest_jobs, progress=progress)
    by_reason = sorted(summary.failed, key=lambda failure: failure.reason)
    for reason, failures in groupby(by_reason, key=lambda failure: failure.reason):
        first, *others = failures
        more = f" and {plural(len(others), 'other run')}" if others else ""
        typer.echo(f"{first.key}{more} failed:\n{reason}", err=True)
    typer.echo(f"{out}: {plural(summary.runs, 'run')}, {summary.new:,} of them new")
    if summary.without_weights:
        count = plural(summary.without_weights, "earlier run")
        typer.echo(f"the weights that the plan asks for are missing in {count}", err=True)
    if summary.waiting:
        verb = "waits" if summary.waiting == 1 else "wait"
        typer.echo(f"{plural(summary.waiting, 'run')} {verb} for past runs that failed", err=True)
    if summary.failed:
        typer.echo(f"{plural(len(summary.failed), 'run')} failed; the same command tries again", err=True)
        raise typer.Exit(1)


@app.command()
def pack(
    results: Annotated[list[Path], typer.Argument(help="Results: folders or files.")],
    out: Annotated[Path, typer.Option(help="File to write (.csv.gz, .csv.xz or .csv).")],
) -> None:
    """Write completed runs to one small file.

    Sorted, errors rounded to ten digits, compressed, without times.

    Example: recollect bench pack quick --out quick.csv.gz
    """
    from recollect.bench.experiment.results import PACKED_ENDINGS, load_results, pack_results

    _refuse_input(out, results)
    if not out.name.endswith(PACKED_ENDINGS):
        raise InputError(f"{out}: expected a name that ends in .csv.gz, .csv.xz or .csv")
    runs = load_results(results)
    pack_results(runs, out)
    typer.echo(f"{out}: {plural(len(runs), 'run')}, {out.stat().st_size / 1e3:,.0f} kB")


@app.command()
def table(
    results: Results,
    which: Annotated[str, typer.Option("--table", help=TABLES_HELP)] = "all",
    form: Annotated[str, typer.Option("--format", help="markdown, latex or csv.")] = "markdown",
    benchmark: Benchmarks = None,
    common: Annotated[
        bool, typer.Option("--common", help="Only tasks and repetitions that all methods of a benchmark have.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="File to write; default: print the tables.")] = None,
) -> None:
    """Print tables of results.

    With the paper's numbers, where it has them.
    """
    from recollect._files import make_folder, write_atomically
    from recollect.bench.analysis.aggregate import aggregate_runs, common_runs
    from recollect.bench.analysis.result_tables import make_tables, render_tables
    from recollect.bench.experiment.results import load_results

    _refuse_input(out, results)
    runs = load_results(results)
    experiment = aggregate_runs(common_runs(runs) if common else runs)
    text = render_tables(make_tables(experiment, which, benchmark or ()), form)
    if out is None:
        typer.echo(text, nl=False)
        return
    make_folder(out.parent)
    write_atomically(out, text.encode("utf-8"))
    typer.echo(f"{out}")


@app.command()
def figure(
    results: Results,
    choice: Annotated[FigureChoice, typer.Option("--figure", help="Which figures to draw.")] = FigureChoice.all,
    benchmark: Annotated[str | None, typer.Option(help="Only this benchmark.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("figures"),
) -> None:
    """Draw figures of results.

    Regret curves, ranks, weights and critical differences, as PNG and SVG.
    """
    from recollect.bench.analysis.figures import KINDS, draw_figures
    from recollect.bench.experiment.results import load_results

    kinds = [kind for kind in KINDS if choice in (FigureChoice.all, kind)]
    for path in draw_figures(load_results(results), out, kinds=kinds, benchmark=benchmark):
        typer.echo(path)


@app.command()
def report(
    results: Results,
    out: Annotated[Path, typer.Option(help="File for the page; an existing report is replaced.")] = Path("report.html"),
    benchmark: Benchmarks = None,
) -> None:
    """Write an HTML page about results.

    Overview, regret curves, ranks, worst cases and tables. The page works offline.
    """
    from recollect.bench.experiment.results import load_results
    from recollect.report.benchmark.benchmark_page import bench_page
    from recollect.report.page import render, write_page

    source = ", ".join(path.name for path in results)
    write_page(render(bench_page(load_results(results), benchmarks=benchmark or (), source=source)), out)
    typer.echo(f"{out}")


@app.command()
def scaling(
    benchmark: Annotated[str | None, typer.Option(help="Benchmark with the tasks; default: adaboost-grid.")] = None,
    table: Annotated[Path | None, typer.Option(help="CSV file instead of a benchmark.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for scaling.csv and the figure.")] = Path("scaling"),
    repetitions: Annotated[int, typer.Option(min=1, help="How often everything is measured.")] = 5,
    most: Annotated[int, typer.Option(min=5, help="Largest number of past runs for multi-task models.")] = 50,
    seconds_limit: Annotated[float, typer.Option(min=1, help="Stop measuring after about this many seconds.")] = 600.0,
) -> None:
    """Measure how fitting time grows with past runs.

    And how the time of ranking weights grows with resamples. Writes a CSV file and a figure.

    Ctrl-C ends the measurements. The figure shows those that are finished; the same command resumes.
    """
    from recollect.bench import from_table, load
    from recollect.bench.analysis.figure_style import save
    from recollect.bench.paper.scaling_study import MeasurementFile, ScalingPlan, measure_scaling, scaling_figure

    if benchmark is not None and table is not None:
        raise InputError(f"expected --benchmark or --table, got both: {benchmark} and {table}")
    plan = ScalingPlan(few=tuple(range(5, most + 1, 5)), repetitions=repetitions, seconds_limit=seconds_limit)
    tasks = load(benchmark or "adaboost-grid") if table is None else from_table(table)
    file = MeasurementFile(out / "scaling.csv", tasks.name, plan.observations)
    rows = file.open()
    keys = set(plan.keys())
    left = len(keys - {row.key for row in rows})
    rows += file.append(_with_progress(measure_scaling(tasks, plan, [row.key for row in rows]), left))
    missing = len(keys - {row.key for row in rows})
    if missing:
        typer.echo(f"{len(keys) - missing} of {len(keys)} measurements finished before the time limit or Ctrl-C")
    title = f"{tasks.name}, {plan.observations} observations on every task"
    for path in (file.path, *save(scaling_figure(title, rows), out / "scaling")):
        typer.echo(path)


@app.command()
def build(
    names: Annotated[list[str], typer.Argument(help="Search spaces of the suite (own-...), or all.")],
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes that train.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the results and provenance.json.")] = Path("suite"),
    work: Annotated[Path | None, typer.Option(help="Folder for unfinished work; default: in the cache folder.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this dataset; may be repeated.")] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Only this many configurations per space.")] = None,
) -> None:
    """Train the models of the embedded suite. If interrupted, the same command resumes."""
    from recollect.bench.problems.suite.builder import BuildSettings, build_suite
    from recollect.bench.problems.suite.suite_benchmarks import SUITE, suite_space
    from recollect.bench.problems.suite.training import DATASETS

    spaces = [suite_space(name).name for name in (SUITE if names == ["all"] else names)]
    part = [*(f" --dataset {name}" for name in dataset or ()), f" --first {first}" if first else ""]
    for name in spaces:
        # The provenance records the command without folders, which mean nothing on other computers.
        command = f"recollect bench build {name} --jobs {jobs}{''.join(part)}"
        settings = BuildSettings(jobs=jobs, datasets=tuple(dataset or DATASETS), first=first, command=command)
        with progress_bars("count", "elapsed", "remaining") as update:
            update(name, 0, None)
            path = build_suite(name, out, work=work, settings=settings, progress=partial(update, name))
        typer.echo(f"{name}: {path}")


@app.command(name="list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False) -> None:
    """List all benchmarks.

    With tasks, hyperparameters, conditions, whether they work offline, licence and source.

    Agreement is the mean rank correlation between the errors of two tasks: how much there is to transfer.
    """
    from recollect.bench.registry import entries, summarize

    rows = [summarize(entry) for entry in entries()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        _print_list(rows)


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="Name of the benchmark.")],
    source: Annotated[Path | None, typer.Option("--from", help="Local copy of the data: a file or a folder.")] = None,
) -> None:
    """Download the published data of a benchmark. An interrupted download is resumed."""
    from recollect.bench import registry
    from recollect.bench.data.download import RECORD_FILE

    with progress_bars("bytes", "remaining", single=True) as update:
        folder = registry.fetch(name, source=source, progress=update)
    if folder is None:
        typer.echo(f"{name} needs no data: it comes with recollect")
        return
    typer.echo(f"{name}: {folder}")
    record = folder / RECORD_FILE
    for file in json.loads(record.read_text(encoding="utf-8"))["files"] if record.exists() else ():
        if file["checked"].startswith("no "):
            typer.echo(f"{file['url']}: no checksum is published; {file['size']} bytes, sha256 {file['sha256']}")


@app.command()
def show(
    name: Annotated[str | None, typer.Argument(help="Name of the benchmark.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="CSV file (task, hyperparameters..., error) instead of a name.")
    ] = None,
    space: Annotated[Path | None, typer.Option(help="Search space of the file: JSON, YAML or TOML.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes that build forests, if there are any.")] = 1,
) -> None:
    """Show a benchmark: its source, search space and tasks."""
    from recollect.bench import from_table, load
    from recollect.bench.problems.forest_benchmark import ForestBuild

    if (name is None) == (table is None) or (space is not None and table is None):
        raise InputError("expected the name of a benchmark, or --table PATH, optionally with --space PATH")
    if table is not None:
        benchmark = from_table(table, space=space)
    else:
        with progress_bars("count", "remaining") as update:
            build = ForestBuild(progress=lambda done, total: update("forests", done, total))
            benchmark = load(str(name), jobs=jobs, build=build)
    for line in _description(benchmark):
        typer.echo(line)


def _with_progress(rows: Iterable[Measurement], left: int) -> Iterator[Measurement]:
    """Show how many of the remaining measurements are finished; Ctrl-C ends them, once there is one."""
    done = 0
    with progress_bars("count", "elapsed", single=True) as update:
        if left:
            update("measuring", 0, left)
        try:
            for done, row in enumerate(rows, start=1):
                update(f"{row.key.kind} {row.key.method} {row.key.x:,}", done, left)
                yield row
        except KeyboardInterrupt:
            if not done:
                raise


def _print_list(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    table.add_column("benchmark", no_wrap=True)
    for column in ("tasks", "dims", "conditional", "agreement"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("available", no_wrap=True)
    table.add_column("description")
    table.add_column("licence")
    table.add_column("source", overflow="fold")
    for row in rows:
        sizes = row["tasks"], row["hyperparameters"], row["conditional"]
        counts = ("?" if size is None else str(size) for size in sizes)
        agreement = "" if row["agreement"] is None else f"{row['agreement']:.2f}"
        available = "offline" if row["offline"] else ("not built" if row["note"] else "to fetch")
        source = row["source"].removeprefix("https://")
        table.add_row(row["name"], *counts, agreement, available, row["title"], row["licence"], source)
    console = Console()
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    console.print(table, highlight=False)


def _description(benchmark: Benchmark) -> Iterator[str]:
    from recollect.space.columns import Interval, Steps

    about, space = benchmark.about, benchmark.space
    yield f"{benchmark.name}: {about.title}"
    facts = {
        "citation": about.citation,
        "licence": about.licence,
        "source": about.source,
        "error": about.measured,
        "tasks": f"{len(benchmark.tasks)} ({name_list(benchmark.tasks, 5)})",
        "configurations": f"{len(benchmark.candidates)}, the same for all tasks" if benchmark.candidates else "",
    }
    yield from (f"  {name}: {text}" for name, text in facts.items() if text)
    yield "  hyperparameters:"
    for column, condition in zip(space.columns, space.condition_texts, strict=True):
        scale = ", log scale" if isinstance(column, Interval | Steps) and column.log else ""
        when = f"; only if {condition.partition(' | ')[2] or condition}" if condition else ""
        yield f"    {column.name}: {column.expected()}{scale}{when}"


def _refuse_input(out: Path | None, results: list[Path]) -> None:
    """Refuse to overwrite the files that results are read from."""
    for source in (path for folder in results for path in (folder, folder / "runs.csv")):
        if out is not None and out.exists() and source.exists() and out.samefile(source):
            raise InputError(f"{out}: results are read from this file; name another one for the output")
