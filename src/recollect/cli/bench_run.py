"""``recollect bench run`` and ``pack``: make the runs of a plan, and keep them in one small file."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli.checks import refuse_input
from recollect.cli.progress import bars
from recollect.cli.stopping import stoppable
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.bench.cell import Crashed


def run(
    plan: Annotated[Path, typer.Argument(help="Plan of an experiment (TOML).")],
    out: Annotated[Path, typer.Option(help="Folder of the results; what it holds is not made again.")] = Path("study"),
    jobs: Annotated[int, typer.Option(min=1, help="Processes on this computer, without --cluster.")] = 1,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler to work on instead.")] = None,
) -> None:
    """Make all runs of a plan; stopped at any time, the same command goes on where it was.

    Example: recollect bench run quick.toml --jobs 2 --out quick
    """
    from recollect.bench.conduct import conduct
    from recollect.bench.engines import Cluster, Local
    from recollect.bench.plan import load_plan

    wanted = load_plan(plan)
    engine = Local(jobs) if cluster is None else Cluster(cluster)
    left = f"what was made is in {out}, and the same command goes on"
    with stoppable(lambda: left), bars("count", "rate", "elapsed", "remaining") as progress:
        tally = conduct(wanted, out, engine=engine, jobs=None if cluster else jobs, progress=progress)
    for reason, same in groupby(sorted(tally.crashed, key=_reason), key=_reason):
        first, *others = same
        more = f" and {len(others)} other runs" if others else ""
        typer.echo(f"{' '.join(map(str, first.key))}{more} crashed:\n{reason}", err=True)
    typer.echo(f"{out}: {tally.runs} runs, {tally.new} of them new")
    if tally.unweighed:
        typer.echo(f"{tally.unweighed} runs were made before without the weights that the plan asks for", err=True)
    if tally.waiting:
        typer.echo(f"{tally.waiting} runs wait for past runs that crashed", err=True)
    if tally.crashed:
        typer.echo(f"{len(tally.crashed)} runs crashed; the same command tries them again", err=True)
        raise typer.Exit(1)


def _reason(crash: Crashed) -> str:
    return crash.reason


def pack(
    results: Annotated[list[Path], typer.Argument(help="Results: folders or files.")],
    out: Annotated[Path, typer.Option(help="File to write (.csv.gz, or .csv).")],
) -> None:
    """Write finished runs into one file: sorted, errors rounded (ten digits), compressed, without times.

    Example: recollect bench pack quick --out quick.csv.gz
    """
    from recollect.bench.results import gather, pack

    refuse_input(out, results)
    if not out.name.endswith((".csv", ".csv.gz")):
        raise InputError(f"{out}: expected a name that ends in .csv.gz, or .csv")
    runs = gather(results)
    pack(runs, out)
    typer.echo(f"{out}: {len(runs)} runs, {out.stat().st_size / 1e3:,.0f} kB")
