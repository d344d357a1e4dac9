"""Entry point of the ``recollect`` command with all subcommands, their options and help.

Only what ``--help`` needs is imported here; each command imports the rest when it runs.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from recollect import __version__
from recollect.cli import bench, dashboard, help_pages, memory, memory_changes, report, tune
from recollect.errors import RecollectError

app = typer.Typer(
    name="recollect",
    help="Hyperparameter tuning that learns from past runs.",
    epilog="'recollect help' lists the pages of the documentation; 'recollect help NAME' shows one.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app)
for command in memory_changes.COMMANDS:
    memory.app.command()(command)
app.add_typer(memory.app)
app.command(cls=tune.TuneCommand, epilog=tune.EXAMPLES, context_settings=tune.SETTINGS)(tune.tune)
app.command(epilog=report.EXAMPLES)(report.report)
app.command(epilog=dashboard.EXAMPLES)(dashboard.dashboard)
app.command("help")(help_pages.show_help)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"recollect {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Documentation: recollect help does-it-help")
def demo(
    trials: Annotated[int, typer.Option(min=12, max=200, help="Trials per method.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random streams.")] = 0,
) -> None:
    """Tune a classifier with and without past runs, and compare.

    The classifier is tuned on scikit-learn's diabetes data. Its past runs are drawn at random from tables of errors on
    35 other datasets that come with recollect. Then another classifier is tuned on each of these datasets, with the
    others as past runs.
    """
    from recollect.cli.demo import run_demo

    run_demo(trials, seed)


@app.command(epilog="Documentation: recollect help methods, and a page for each, such as recollect help methods/gp")
def methods() -> None:
    """List the tuning methods.

    One per line, with the section and the name of the method in the paper, Feurer et al., "Practical Transfer Learning
    for Bayesian Optimization" (2022).
    """
    from recollect.optimizer.catalog import CATALOG
    from recollect.optimizer.default_method import DEFAULT_METHOD

    width = max(len(entry.name) for entry in CATALOG)
    for entry in CATALOG:
        default = "the default; " if entry.name == DEFAULT_METHOD else ""
        typer.echo(f"{entry.name:<{width}}  {entry.summary} ({default}{entry.paper})")
    typer.echo(
        "In parentheses: section and name in the paper, Feurer et al. (2022). More: recollect help methods", err=True
    )


def main() -> None:
    """Run the command line; print an expected error as one sentence and exit with code 2."""
    try:
        app()
    except RecollectError as error:
        typer.echo(f"recollect: {error}", err=True)
        sys.exit(2)
