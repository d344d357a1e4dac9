"""``recollect help``: the pages of the documentation in the terminal.

The folder ``pages`` beside this module is the folder ``docs`` of the repository, so the terminal and the site show the
same text. A page is named by its file name, the page of a method with its folder (``methods/gp``); pages that only a
browser can show (home, API, notebooks) are left out.
"""

from __future__ import annotations

import os
import pydoc
import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.formulas import plain_formulas
from recollect.errors import InputError

PAGES = Path(__file__).parent / "pages"
FENCE = re.compile(r"(^```.*?^```)", flags=re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^# (.+)$", flags=re.MULTILINE)
IMAGE = re.compile(r"!\[([^]]*)\]\([^)]*\)|<img [^>]*alt=\"([^\"]*)\"[^>]*>")
LINK = re.compile(r"\[([^]]+)\]\(([^)\s]+)\)")
WIDEST = 100


def page_names() -> Mapping[str, Path]:
    """Return the pages that the terminal can show, by name."""
    pages = {page_name(path): path for path in PAGES.glob("**/*.md") if path.stem != "index"}
    return dict(sorted(pages.items()))


def page_name(path: Path) -> str:
    """Return the name of a page: that of its file, for a method with the folder."""
    return f"methods/{path.stem}" if path.parent.name == "methods" else path.stem


def complete_topic(incomplete: str) -> list[str]:
    """Return the pages whose names begin like this."""
    return [name for name in page_names() if name.startswith(incomplete)]


def show_help(
    topic: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of a page; without it, all pages.", autocompletion=complete_topic),
    ] = None,
) -> None:
    """Show a page of the documentation, or list all pages."""
    if topic is None:
        typer.echo(list_pages())
    else:
        os.environ.setdefault("LESS", "-RFX")  # colours, and no pager for a page that fits
        pydoc.pager(render_page(topic))


def list_pages() -> str:
    """Return the name and title of every page."""
    pages = page_names()
    width = max(map(len, pages))
    lines = [f"  {name:<{width}}  {page_title(_read(path))}" for name, path in pages.items()]
    return "\n".join(["Pages of the documentation (recollect help NAME):", "", *lines])


def page_title(markdown: str) -> str:
    """Return the title of a page without markup."""
    title = TITLE.search(markdown)
    return title[1].replace("`", "") if title else ""


def render_page(name: str) -> str:
    """Return a page as text for the terminal.

    Args:
        name: Name of the page; a method can be named alone where no other page has its name.

    Returns:
        The text, with colours if the output is a terminal. Pages that the text refers to are listed at its end.

    Raises:
        InputError: There is no such page.
    """
    from rich.console import Console
    from rich.markdown import Markdown

    pages = page_names()
    name = f"methods/{name}" if name not in pages and f"methods/{name}" in pages else name
    if name not in pages:
        similar = get_close_matches(name, pages, n=3)
        hint = f"; similar: {', '.join(similar)}" if similar else ""
        raise InputError(f"there is no page {name!r}{hint}. 'recollect help' lists all pages")
    text, others = plain_links(plain_formulas(_read(pages[name])), pages[name])
    console = Console(force_terminal=_styled(), highlight=False)
    console.width = min(console.width, WIDEST)
    with console.capture() as captured:
        console.print(Markdown(text, hyperlinks=False))
        if others:
            console.print(f"\nSee also: {', '.join(f'recollect help {other}' for other in others)}", soft_wrap=True)
    return captured.get()


def plain_links(markdown: str, page: Path) -> tuple[str, list[str]]:
    """Replace links and pictures, which a terminal cannot follow, by their text.

    Args:
        markdown: Text of a page.
        page: Its file; links are relative to it.

    Returns:
        The text, and the names of the pages that it linked to, in order.
    """
    names = {path.resolve(): name for name, path in page_names().items() if path != page}
    others: dict[str, None] = {}

    def replace(match: re.Match[str]) -> str:
        target = match[2].partition("#")[0]
        if "://" in target:
            return f"{match[1]} ({match[2]})"
        if other := names.get((page.parent / target).resolve()):
            others.setdefault(other)
            return match[1] if not match[1].endswith(".md") else page_title(_read(page.parent / target))
        return match[1]

    parts = FENCE.split(markdown)
    for index in range(0, len(parts), 2):
        prose = IMAGE.sub(lambda match: f"*(figure: {match[1] or match[2]})*", parts[index])
        parts[index] = LINK.sub(replace, prose)
    return "".join(parts), list(others)


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _styled() -> bool:
    return sys.stdout.isatty()
