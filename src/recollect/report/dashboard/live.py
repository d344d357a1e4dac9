"""A page made able to renew itself, out of the static one.

The page is the same, with three differences. Its policy is sent with it instead of being in it, and lets it ask its
own server, nobody else. Plotly's script is a file of the server, which browsers keep. The page's other scripts are
handed to ``live.js``, which runs them again on each new content.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import unescape
from importlib.resources import files

from recollect.errors import InputError
from recollect.report.dashboard.addresses import Address
from recollect.report.html import Html, joined, tag, verbatim
from recollect.report.names import IN_HOVER, named
from recollect.report.page import Page, Section, plotly_script, render

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
SCRIPT = ("<script>", "</script>")
ICON = '<link rel="icon" href="data:,">'  # or browsers ask for one
NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
WAIT = "Models of all tasks are fitted for the first time. The page appears by itself when they are ready."


@dataclass(frozen=True, slots=True)
class Live:
    """A page for browsers, and the policy that is sent with it."""

    text: str
    policy: str


def live_page(page: Page, address: Address, version: str) -> Live:
    """Return a page that looks for new versions of itself."""
    text, scripts = _without_scripts(render(page))
    found = POLICY.search(text)
    if found is None:
        raise InputError("live_page: expected a page with a policy, got one without")
    script = live_script([script for script in scripts if script != _plotly()])
    style = _asset("live.css")
    text = POLICY.sub("", text, count=1)
    text = _before(text, "</head>", f"{ICON}{verbatim('style', style).text}")
    text = _before(text, "<header>", _bar(address, version).text)
    text = _before(text, "</body>", f'<script src="{plotly_url()}"></script>{verbatim("script", script).text}')
    return Live(text, _policy(unescape(found[1]), script, style))


def waiting_page(address: Address) -> Live:
    """Return the page that is shown until one has been made for the first time."""
    return live_page(Page(named(address.title), WAIT, (Section("Please wait", ()),)), address, "")


def notice(title: str, sentence: str) -> Live:
    """Return a page that only says something."""
    head = tag("head", {}, tag("meta", {"charset": "utf-8"}), tag("title", {}, title), Html(ICON))
    body = tag("body", {}, tag("h1", {}, title), tag("p", {}, sentence))
    text = f"<!doctype html>\n{tag('html', {'lang': 'en'}, head, body).text}\n"
    return Live(text, f"{NOTHING}; img-src data:")


def live_script(scripts: Sequence[str]) -> str:
    """Return the script of a page: its own ones as functions, and the one that calls them.

    What they take from the browser to find figures and to listen to events is given to them by that one, so that it can
    end what they began.
    """
    functions = "".join(f"(document, addEventListener, matchMedia) => {{\n{script}\n}},\n" for script in scripts)
    return f'"use strict";\n(() => {{\nconst scripts = [\n{functions}];\n{_asset("live.js")}}})();\n'


@cache
def plotly_url() -> str:
    """Return where plotly's script is on the server; another version is elsewhere, so browsers may keep it for good."""
    return f"/plotly-{sha256(_plotly().encode()).hexdigest()[:16]}.js"


@cache
def _plotly() -> str:
    return plotly_script()


def _without_scripts(text: str) -> tuple[str, list[str]]:
    """Return a page without the scripts that run, and these; data are in elements that say so."""
    begin, end = SCRIPT
    first, *rest = text.split(begin)
    parts = [part.split(end, 1) for part in rest]
    return first + "".join(after for _, after in parts), [script for script, _ in parts]


def _policy(static: str, script: str, style: str) -> str:
    """Return the policy of a static page with what a live one needs besides."""
    rules = dict(rule.split(" ", 1) for rule in static.split("; "))
    rules["script-src"] = f"'self' {_hash(script)}"
    rules["style-src-elem"] = f"{rules['style-src-elem']} {_hash(style)}"
    rules |= {"connect-src": "'self'", "frame-ancestors": "'none'"}
    return "; ".join(f"{name} {content}" for name, content in rules.items())


def _bar(address: Address, version: str) -> Html:
    links = [tag("a", {"href": page.url}, named(page.title, IN_HOVER)) for page in address.above]
    return tag(
        "div",
        {"id": "live", "data-version": version},
        tag("nav", {"aria-label": "Pages"}, joined(links)) if links else "",
        tag("span", {"id": "live-state"}, "Live"),
        tag("span", {"id": "live-trouble", "role": "status"}),
        tag("button", {"id": "live-pause", "type": "button", "aria-pressed": "false"}, "Pause"),
    )


def _before(text: str, mark: str, added: str) -> str:
    """Put something before a mark that the page has once: what is text in it has no marks."""
    before, found, after = text.partition(mark)
    if not found:
        raise InputError(f"live_page: expected a page with {mark}, got one without")
    return f"{before}{added}{found}{after}"


def _asset(name: str) -> str:
    return (files("recollect.report.dashboard") / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode('utf-8')).digest()).decode()}'"
