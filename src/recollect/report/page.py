"""A page: one HTML file with everything in it, which opens offline and requests nothing.

Its content security policy admits only what is inside: scripts and style sheets by their hashes, and embedded images.
Plotly sets the style of single elements, hence ``style-src-attr 'unsafe-inline'``, and adds its rules to an empty style
sheet, hence the hash of the empty text. ``unsafe-eval`` is not needed: 17 types of traces of plotly 7 were tried in
Chromium, including those drawn with WebGL (``parcoords``, ``scattergl``, ``splom``, ``scatter3d``).

The script of plotly comes last, so that the text can be read before it has loaded.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from recollect import __version__
from recollect._files import make_folder, write_atomically
from recollect.errors import InputError, MissingExtraError, StorageError
from recollect.report.figure import Figure, figure_html
from recollect.report.html import Html, tag, verbatim
from recollect.report.table import Table, table_html

PLOTLY_STYLE = re.compile(r'getElementById\("([0-9a-f]{64})"\)')  # a style sheet that plotly adds if it is missing
WRAPPER, WRAPPER_END = "this, () => {", "}));"  # how plotly.js begins and ends
MAX_PREAMBLE = 1000  # characters before the wrapper
GENERATOR = "recollect report"
FEW_COLUMNS = 4  # of a table that needs half the width
NO_SCRIPT = "The figures need JavaScript; their numbers are in the tables below them."

Part: TypeAlias = Html | Figure | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page that can be linked to; consecutive figures stand side by side where there is room."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A page. lead: what it is about, in a sentence or two; source: what it was created from; kicker: its kind."""

    title: str
    lead: str
    sections: tuple[Section, ...]
    source: str = ""
    kicker: str = ""

    @property
    def full_title(self) -> str:
        """The title with the kind of page."""
        return f"{self.kicker}: {self.title}" if self.kicker else self.title


def render(page: Page) -> str:
    """Return the page as HTML; the same page always gives the same text."""
    styles = [asset("page.css")]
    scripts = [*page_scripts(), plotly_script()]
    policy = content_policy(scripts, styles)
    head = [tag("meta", {"http-equiv": "Content-Security-Policy", "content": policy})]
    return document(page, styles=styles, scripts=[verbatim("script", script) for script in scripts], head=head)


def document(
    page: Page, *, styles: Sequence[str], scripts: Sequence[Html], head: Sequence[Html], top: Sequence[Html] = ()
) -> str:
    """Return a whole HTML document; top: elements between the skip link and the header."""
    head_element = tag(
        "head",
        {},
        tag("meta", {"charset": "utf-8"}),
        *head,
        tag("meta", {"name": "generator", "content": GENERATOR}),
        tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        tag("meta", {"name": "color-scheme", "content": "light dark"}),
        tag("title", {}, page.full_title),
        *(verbatim("style", style) for style in styles),
        *(tag("meta", {"id": name, "name": "unused"}) for name in _plotly_styles()),
    )
    skip = tag("a", {"class": "skip", "href": "#main"}, "Skip to the content")
    body = tag("body", {}, skip, *top, *_body(page), *scripts)
    return f"<!doctype html>\n{tag('html', {'lang': 'en'}, head_element, body).text}\n"


def write_page(text: str, path: Path) -> None:
    """Write a page completely or not at all; replace an existing page, but no other file."""
    try:
        if path.is_dir():
            raise InputError(f"{path}: expected a file name for the page, but this is a folder")
        if path.exists():
            with path.open("rb") as file:
                if f'content="{GENERATOR}"'.encode() not in file.read(2000):
                    raise InputError(f"{path}: a file exists that is not a page of recollect; choose another name")
        place = path.resolve()
    except OSError as error:
        raise StorageError(f"{path}: the page cannot be written there: {error}") from error
    make_folder(place.parent)
    write_atomically(place, text.encode("utf-8"))


def content_policy(scripts: Sequence[str], styles: Sequence[str], *, live: bool = False) -> str:
    """Return what a browser may load and run on a page with these scripts and style sheets; live: also its server."""
    script_hashes, style_hashes = (" ".join(map(source_hash, contents)) for contents in (scripts, [*styles, ""]))
    server = "'self' " if live else ""
    rules = [
        f"default-src 'none'; script-src {server}{script_hashes}",
        f"style-src-elem {style_hashes}; style-src-attr 'unsafe-inline'",
        "img-src data:; base-uri 'none'; form-action 'none'",
        *(["connect-src 'self'; frame-ancestors 'none'"] if live else ()),
    ]
    return "; ".join(rules)


def asset(name: str) -> str:
    """Return a script or style sheet of the package."""
    return (files("recollect.report") / "assets" / name).read_text(encoding="utf-8")


def page_scripts() -> list[str]:
    """Return the scripts of tables, trials and figures, in the order in which they run."""
    return [asset("tables.js"), asset("trials.js"), asset("figures.js")]


def plotly_script() -> str:
    """Return plotly.js; MissingExtraError if plotly is not installed."""
    if find_spec("plotly") is None:
        raise MissingExtraError("reports need plotly: pip install 'recollect[report]'")
    return _plotly()


@cache
def _plotly() -> str:
    return parsed_once(str(import_module("plotly.offline").get_plotlyjs()))


@cache
def _plotly_styles() -> tuple[str, ...]:
    """Return the ids of style sheets that plotly would add, which elements of the page occupy."""
    return tuple(dict.fromkeys(PLOTLY_STYLE.findall(plotly_script())))


def parsed_once(script: str) -> str:
    """Return plotly.js with the function that contains all of it in parentheses; any other script unchanged.

    For browsers, parentheses are a sign that the function is called at once. Without them, they skim all of it first
    and then parse it again.
    """
    preamble, wrapper, body = script.partition(WRAPPER)
    body = body.rstrip()
    if not wrapper or len(preamble) > MAX_PREAMBLE or not body.endswith(WRAPPER_END):
        return script
    return f"{preamble}{WRAPPER.replace('()', '(()')}{body.removesuffix(WRAPPER_END)}{WRAPPER_END.replace('}', '})')}\n"


def _body(page: Page) -> list[Html]:
    links, sections = [], []
    for number, section in enumerate(page.sections, start=1):
        identity = f"section-{number}"
        links.append(tag("li", {}, tag("a", {"href": f"#{identity}"}, section.title)))
        title = tag("h2", {"id": identity, "tabindex": -1}, section.title)
        sections.append(tag("section", {"aria-labelledby": identity}, title, *_grouped(section.parts, identity)))
    kicker = tag("p", {"class": "kicker"}, page.kicker) if page.kicker else Html("")
    return [
        tag("header", {}, kicker, tag("h1", {}, page.title), tag("p", {}, page.lead)),
        tag("nav", {"aria-label": "Sections"}, tag("ul", {}, *links)) if len(links) > 1 else Html(""),
        tag("main", {"id": "main", "tabindex": -1}, tag("noscript", {}, tag("p", {}, NO_SCRIPT)), *sections),
        tag("footer", {}, tag("p", {}, f"Created by recollect {__version__}{page.source and f' from {page.source}'}.")),
    ]


def _grouped(parts: Sequence[Part], identity: str) -> list[Html]:
    """Put consecutive figures into one element, and likewise consecutive tables."""

    def element(part: Part, name: str) -> Html:
        if isinstance(part, Figure):
            return figure_html(part, name)
        return table_html(part, name) if isinstance(part, Table) else part

    groups: list[Html] = []
    parts = _levelled(parts)
    for kind, group in groupby(enumerate(parts, start=1), key=lambda pair: type(pair[1])):
        members = list(group)
        elements = [element(part, f"{identity}-{place}") for place, part in members]
        small = all(isinstance(part, Table) and len(part.columns) <= FEW_COLUMNS for _, part in members)
        names = f"{kind.__name__.lower()}s{' small' if small else ''}"
        groups += elements if kind is Html else [tag("div", {"class": names}, *elements)]
    return groups


def _levelled(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with figures that stand side by side equally high."""
    levelled: list[Part] = []
    left: Figure | None = None  # the last part, if its row has room for another figure
    for part in parts:
        levelled.append(part)
        if not isinstance(part, Figure) or part.wide:
            left = None
        elif left is None:
            left = part
        else:
            if not any(figure.square or figure.numbers_shown for figure in (left, part)):
                height = max(left.height, part.height)
                levelled[-2:] = [replace(left, height=height), replace(part, height=height)]
            left = None
    return levelled


def source_hash(content: str) -> str:
    """Return how a policy names a script or style sheet with this content."""
    return f"'sha256-{b64encode(sha256(content.encode('utf-8')).digest()).decode()}'"
