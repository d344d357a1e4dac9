"""``recollect dashboard``: the pages of a memory on this machine, kept up to date while runs continue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.report.dashboard.server import ListenAddress

EXIT_INTERRUPTED = 130

EXAMPLES = """\b
Examples:
  recollect dashboard tuning.db
  recollect dashboard postgresql://me@host/tuning --port 8080 --no-browser
  recollect dashboard tuning.db --host 0.0.0.0 --token-file token.txt

Documentation: recollect help dashboard"""


def dashboard(
    memory: Annotated[str, typer.Argument(metavar="MEMORY", help="File name or storage URL of the memory.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free port.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; one that others can reach requires a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None, typer.Option(envvar="RECOLLECT_TOKEN", show_envvar=True, help="Require this token for access.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="Require the token in this file; unlike --token, it is in no list of processes.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
) -> None:
    """Serve live reports of a memory on this machine.

    The pages update while runs continue. Nothing is written to the memory.
    """
    from recollect.cli.memory import messages, printable
    from recollect.report.dashboard.read_only import open_read_only
    from recollect.report.dashboard.server import check_installed, listen_address, read_token, serve
    from recollect.report.page import plotly_script

    check_installed()
    plotly_script()
    if token is not None and token_file is not None:
        raise InputError("token: expected one of --token, RECOLLECT_TOKEN and --token-file, got more than one")
    token = token if token_file is None else read_token(token_file)
    where = listen_address(host, port, token=token)

    def on_start(bound: ListenAddress) -> None:
        typer.echo(f"{bound.url} shows {printable(opened.store.name)}; press Ctrl-C to stop")
        if not no_browser:
            _open_browser(bound.url, token)

    with open_read_only(memory) as opened, messages(quiet=True):
        try:
            serve(opened, where, token=token, on_start=on_start)
        except KeyboardInterrupt:
            raise typer.Exit(EXIT_INTERRUPTED) from None


def _open_browser(url: str, token: str | None) -> None:
    import webbrowser
    from urllib.parse import quote

    webbrowser.open(url if token is None else f"{url}?token={quote(token, safe='')}")
