"""A page: one HTML file with everything in it, which opens offline and asks nobody for anything.

Its policy lets nothing in but what is inside: scripts and style sheets by their hashes, pictures that are part of
it. Plotly sets the style of single elements, hence ``style-src-attr 'unsafe-inline'``, and adds its rules to an
empty style sheet, hence the hash of nothing. ``unsafe-eval`` is not needed: 17 types of trace of plotly 7 were tried in
Chromium, those drawn with WebGL (``parcoords``, ``scattergl``, ``splom``, ``scatter3d``) among them.

The script of plotly comes last, so that the text can be read before it has been loaded.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from recollect import __version__
from recollect.errors import InputError, MissingExtraError, StorageError
from recollect.files import make_folder, put
from recollect.report.figure import Figure, figure_html
from recollect.report.html import Html, tag, verbatim
from recollect.report.table import Table, table_html

OWN_STYLE = re.compile(r'getElementById\("([0-9a-f]{64})"\)')  # of a style sheet that plotly adds if it is not there
WHOLE, END, HEAD = "this, () => {", "}));", 1000  # how plotly.js begins, within so many signs, and how it ends
GENERATOR = "recollect report"
SCRIPTS = ("tables.js", "figures.js")
NO_SCRIPT = "The figures need JavaScript; their numbers are in the tables below them."

Part: TypeAlias = Html | Figure | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page that can be linked to; figures that follow each other stand side by side where there is room."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page. lead: what it is about, in a sentence or two; source: what it was made from."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    source: str = ""


def render(page: Page) -> str:
    """Return the page as HTML; the same page gives the same text."""
    styles = [_asset("page.css")]
    scripts = [*map(_asset, SCRIPTS), plotly_script()]
    head = tag(
        "head",
        {},
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"http-equiv": "Content-Security-Policy", "content": policy(scripts, styles)}),
        tag("meta", {"name": "generator", "content": GENERATOR}),
        tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        tag("meta", {"name": "color-scheme", "content": "light dark"}),
        tag("title", {}, page.title),
        *(verbatim("style", style) for style in styles),
        *(tag("meta", {"id": name, "name": "unused"}) for name in dict.fromkeys(OWN_STYLE.findall(scripts[-1]))),
    )
    body = tag("body", {}, *_body(page), *(verbatim("script", script) for script in scripts))
    return f"<!doctype html>\n{tag('html', {'lang': 'en'}, head, body).text}\n"


def write_page(text: str, path: Path) -> None:
    """Write a page, whole or not at all. A page that is there is replaced, any other file is not."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: expected the name of a file for the page, this is a folder")
        if path.exists() and not _is_page(path):
            raise InputError(
                f"{path}: there is a file already, and it is not a page of recollect's; choose another name"
            )
        place = path.resolve()
    except OSError as error:
        raise StorageError(f"{path}: expected a place where the page can be written: {error}") from error
    make_folder(place.parent)
    put(place, text.encode("utf-8"))


def policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return what a browser may load and run on a page with these scripts and style sheets."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src-elem {' '.join(map(_hash, [*styles, '']))}",
            "style-src-attr 'unsafe-inline'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def plotly_script() -> str:
    """Return plotly.js; MissingExtraError if plotly is not installed."""
    if find_spec("plotly") is None:
        raise MissingExtraError("reports need plotly: pip install 'recollect[report]'")
    return parsed_once(str(import_module("plotly.offline").get_plotlyjs()))


def parsed_once(script: str) -> str:
    """Return plotly.js with the function that holds all of it in parentheses; any other script as it is.

    Browsers take them as a sign that it is called at once. Without, they skim all of it first, then read it again.
    """
    head, found, body = script.partition(WHOLE)
    body = body.rstrip()
    if not found or len(head) > HEAD or not body.endswith(END):
        return script
    return f"{head}{WHOLE.replace('()', '(()')}{body.removesuffix(END)}{END.replace('}', '})')}\n"


def _body(page: Page) -> list[Html]:
    links = [
        tag("li", {}, tag("a", {"href": f"#section-{number}"}, section.title))
        for number, section in enumerate(page.sections, start=1)
    ]
    return [
        tag("a", {"class": "skip", "href": "#main"}, "Skip to the content"),
        tag("header", {}, tag("h1", {}, page.title), tag("p", {}, page.lead)),
        tag("nav", {"aria-label": "Sections"}, tag("ul", {}, *links)) if len(links) > 1 else Html(""),
        tag("main", {"id": "main", "tabindex": -1}, tag("noscript", {}, tag("p", {}, NO_SCRIPT)), *_sections(page)),
        tag("footer", {}, tag("p", {}, f"Made by recollect {__version__}{page.source and f' from {page.source}'}.")),
    ]


def _sections(page: Page) -> list[Html]:
    made = []
    for number, section in enumerate(page.sections, start=1):
        identity = f"section-{number}"
        title = tag("h2", {"id": identity, "tabindex": -1}, section.title)
        made.append(tag("section", {"aria-labelledby": identity}, title, *_grouped(section.parts, identity)))
    return made


def _grouped(parts: Sequence[Part], identity: str) -> list[Html]:
    """Put figures that follow each other into one element, and so tables."""
    made: list[Html] = []
    numbered = enumerate(parts, start=1)
    for kind, group in groupby(numbered, key=lambda pair: type(pair[1])):
        inside = [_part(part, f"{identity}-{place}") for place, part in group]
        made += inside if kind is Html else [tag("div", {"class": f"{kind.__name__.lower()}s"}, *inside)]
    return made


def _part(part: Part, identity: str) -> Html:
    if isinstance(part, Figure):
        return figure_html(part, identity)
    return table_html(part, identity) if isinstance(part, Table) else part


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        return f'content="{GENERATOR}"'.encode() in file.read(2000)


def _asset(name: str) -> str:
    return (files("recollect.report") / "assets" / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode('utf-8')).digest()).decode()}'"
