"""``recollect bench run`` and ``pack``: make the runs of a plan, and keep them in one small file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.progress import bars


def run(
    plan: Annotated[Path, typer.Argument(help="Plan of an experiment (TOML).")],
    out: Annotated[Path, typer.Option(help="Folder of the results; what it holds is not made again.")] = Path("study"),
    jobs: Annotated[int, typer.Option(min=1, help="Processes on this computer.")] = 1,
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
    with bars("count", "rate", "elapsed", "remaining") as progress:
        tally = conduct(wanted, out, engine=engine, progress=progress)
    for crash in tally.crashed:
        typer.echo(f"{' '.join(map(str, crash.key))} crashed:\n{crash.reason}", err=True)
    typer.echo(f"{out}: {tally.runs} runs, {tally.new} of them new")
    if tally.crashed:
        typer.echo(f"{len(tally.crashed)} runs crashed; the same command tries them again", err=True)
        raise typer.Exit(1)


def pack(
    results: Annotated[list[Path], typer.Argument(help="Results: folders or files.")],
    out: Annotated[Path, typer.Option(help="File to write (.csv.gz).")],
) -> None:
    """Write finished runs into one file: sorted, errors with seven digits, compressed, without times.

    Example: recollect bench pack quick --out quick.csv.gz
    """
    from recollect.bench.results import gather, pack

    runs = gather(results)
    pack(runs, out)
    typer.echo(f"{out}: {len(runs)} runs, {out.stat().st_size / 1e6:.2f} MB")
