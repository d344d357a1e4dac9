"""``recollect bench figure`` and ``recollect bench scaling``: what experiments showed, and how fitting time grows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.progress import bars

if TYPE_CHECKING:
    from recollect.bench.measurements import Measurement
    from recollect.bench.problem import Benchmark


class Wanted(StrEnum):
    """Which figures."""

    all = "all"
    regret = "regret"
    ranks = "ranks"
    weights = "weights"
    difference = "difference"


def figure(
    results: Annotated[list[Path], typer.Argument(help="Files of results, or folders that hold a runs.csv.")],
    wanted: Annotated[Wanted, typer.Option("--figure", help="Which figures.")] = Wanted.all,
    benchmark: Annotated[str | None, typer.Option(help="Only this benchmark.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("figures"),
) -> None:
    """Draw figures of finished experiments: regret curves, ranks, weights, critical differences; PNG and SVG."""
    from recollect.bench.figures import KINDS, draw_figures
    from recollect.bench.results import gather

    kinds = [kind for kind in KINDS if wanted in (Wanted.all, kind)]
    for path in draw_figures(gather(results), out, kinds=kinds, benchmark=benchmark):
        typer.echo(path)


def scaling(
    benchmark: Annotated[str | None, typer.Option(help="Whose tasks are used; adaboost-grid if not given.")] = None,
    table: Annotated[Path | None, typer.Option(help="Tidy CSV file instead of a benchmark.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for scaling.csv and the figure.")] = Path("scaling"),
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of everything.")] = 5,
    most: Annotated[int, typer.Option(min=5, help="Past runs that the multi-task process is measured with.")] = 50,
    seconds_limit: Annotated[float, typer.Option(min=1, help="Stop measuring after about so many seconds.")] = 600.0,
) -> None:
    """Measure how fitting time grows with past runs, and the time of weights with resamples; CSV and figure.

    Ctrl-C ends the measurements; the figure is drawn from those that were made, and the same command goes on.
    """
    from recollect.bench.figure_scaling import scaling_figure
    from recollect.bench.figure_style import save
    from recollect.bench.measurements import MeasurementFile
    from recollect.bench.scaling import ScalingPlan, measure_scaling

    plan = ScalingPlan(few=tuple(range(5, most + 1, 5)), repetitions=repetitions, seconds_limit=seconds_limit)
    chosen = _opened(benchmark, table)
    file = MeasurementFile(out / "scaling.csv", chosen.name, plan.observations)
    rows = file.open()
    wanted = set(plan.keys())
    left = len(wanted - {row.key for row in rows})
    rows += file.append(_watched(measure_scaling(chosen, plan, [row.key for row in rows]), left))
    missing = len(wanted - {row.key for row in rows})
    if missing:
        typer.echo(f"{missing} of {len(wanted)} measurements were not made: the time limit or Ctrl-C came first")
    title = f"{chosen.name}, {plan.observations} observations on every task"
    for path in (file.path, *save(scaling_figure(title, rows), out / "scaling")):
        typer.echo(path)


def _opened(name: str | None, table: Path | None) -> Benchmark:
    from recollect.bench import from_table, load
    from recollect.errors import InputError

    if name is not None and table is not None:
        raise InputError(f"expected --benchmark or --table, got both: {name} and {table}")
    return load(name or "adaboost-grid") if table is None else from_table(table)


def _watched(rows: Iterable[Measurement], left: int) -> Iterator[Measurement]:
    """Show how many measurements of those left are done; end at Ctrl-C if there are any."""
    done = 0
    with bars("count", "elapsed", one=True) as tell:
        if left:
            tell("measuring", 0, left)
        try:
            for done, row in enumerate(rows, start=1):
                tell(f"{row.key.kind} {row.key.method} {row.key.x:,}", done, left)
                yield row
        except KeyboardInterrupt:
            if not done:
                raise
