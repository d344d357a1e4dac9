"""``recollect dashboard``: the pages of a memory on this machine, kept up to date while runs go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from recollect.report.dashboard.serving import Place

INTERRUPTED = 130

EXAMPLES = """\b
Examples:
  recollect dashboard tuning.db
  recollect dashboard postgresql://me@host/tuning --port 8080 --no-browser
  recollect dashboard tuning.db --host 0.0.0.0 --token "$(openssl rand -hex 16)"
"""


def dashboard(
    memory: Annotated[str, typer.Argument(metavar="MEMORY", help="File name or storage URL of the memory.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes one that is free.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen at; one that others reach needs --token.")] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(envvar="RECOLLECT_TOKEN", show_envvar=True, help="Let in only who has this.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Serve the reports of a memory on this machine; they renew themselves while runs go on. Nothing is written."""
    from recollect.cli.memory import messages, printable
    from recollect.report.dashboard.opening import open_to_read
    from recollect.report.dashboard.serving import check_installed, find_place, serve
    from recollect.report.page import plotly_script

    check_installed()
    plotly_script()
    place = find_place(host, port, token=token)

    def begun(found: Place) -> None:
        typer.echo(f"{found.url} shows {printable(opened.store.name)}; Ctrl-C ends it")
        if not no_browser:
            _browse(found.url, token)

    with open_to_read(memory) as opened, messages(quiet=True):
        try:
            serve(opened, place, token=token, begun=begun)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def _browse(url: str, token: str | None) -> None:
    import webbrowser
    from urllib.parse import quote

    webbrowser.open(url if token is None else f"{url}?token={quote(token, safe='')}")
