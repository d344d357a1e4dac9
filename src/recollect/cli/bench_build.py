"""``recollect bench build``: train the models behind the embedded suite; see `recollect.bench.suite.builder`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.progress import bars


def build(
    names: Annotated[list[str], typer.Argument(help="Search spaces of the suite (own-...), or all.")],
    jobs: Annotated[int, typer.Option(min=1, help="Processes that train.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the tables and provenance.json.")] = Path("suite"),
    work: Annotated[Path | None, typer.Option(help="Folder of unfinished work; by default in the cache.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only this data set; may be repeated.")] = None,
    first: Annotated[int | None, typer.Option(min=1, help="Only so many configurations of each space.")] = None,
) -> None:
    """Train the models of the embedded suite; a build that was stopped goes on where it was."""
    from recollect.bench.suite.builder import BuildSettings, build_suite
    from recollect.bench.suite.datasets import DATASETS
    from recollect.bench.suite.spaces import SUITE, suite_space

    chosen = [suite_space(name).name for name in (SUITE if names == ["all"] else names)]
    part = [*(f" --dataset {name}" for name in dataset or ()), f" --first {first}" if first else ""]
    for name in chosen:
        # Without the folders, which are nobody's business but this computer's.
        command = f"recollect bench build {name} --jobs {jobs}{''.join(part)}"
        settings = BuildSettings(jobs=jobs, datasets=tuple(dataset or DATASETS), first=first, command=command)
        with bars("count", "elapsed", "remaining") as tell:
            tell(name, 0, None)
            path = build_suite(name, out, work=work, settings=settings, progress=partial(tell, name))
        typer.echo(f"{name}: {path}")
