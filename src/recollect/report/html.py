"""Elements of a page. Text is escaped where it becomes HTML, here and nowhere else.

A child that is a ``str`` is text; only `Html` is taken as it is, and only `tag`, `joined`, `data_block` and `verbatim`
create it. A name from outside therefore cannot become an element, whatever it contains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Any, TypeAlias

from recollect.errors import InputError

VOID_ELEMENTS = frozenset({"meta", "br", "hr", "col", "input"})
LOADING_ATTRIBUTES = frozenset({"style", "src", "srcdoc"})
ATTRIBUTE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
INTERNAL_LINK = re.compile(r"#|/(?!/)")  # into the page, or to another page of this server
INVALID = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")  # not allowed in HTML or UTF-8
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_IN_SCRIPT = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is already HTML."""

    text: str


Child: TypeAlias = Html | str
Attributes: TypeAlias = Mapping[str, str | int | bool | None]  # True: without a value; False and None: omitted


def tag(name: str, attributes: Attributes | None = None, *children: Child) -> Html:
    """Return an element; its text and attribute values are escaped."""
    head = "".join([name, *(_attribute(key, value) for key, value in (attributes or {}).items())])
    if name in VOID_ELEMENTS:
        return Html(f"<{head}>")
    return Html(f"<{head}>{joined(children).text}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    """Return children in sequence."""
    return Html("".join(child.text if isinstance(child, Html) else escaped(child) for child in children))


def escaped(text: str) -> str:
    """Return text escaped for HTML, also within quotation marks."""
    return escape(INVALID.sub(REPLACEMENT, text), quote=True)


def data_block(value: Any, attributes: Attributes | None = None) -> Html:
    """Return JSON for the scripts of the page: nothing in it can end the block or be executed."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    head = tag("script", {"type": "application/json", **(attributes or {})}).text.removesuffix("</script>")
    return Html(f"{head}{INVALID.sub(REPLACEMENT, text).translate(_IN_SCRIPT)}</script>")


def verbatim(name: str, content: str) -> Html:
    """Return a script or a style sheet unchanged; it must come from a package, never from a user."""
    if re.search(rf"</{name}|<!--", content, re.IGNORECASE):
        raise InputError(f"verbatim: expected a {name} that does not end its element, got one that does")
    return Html(f"<{name}>{content}</{name}>")


def _attribute(name: str, value: str | int | bool | None) -> str:
    if not _is_harmless(name):
        raise InputError(f"tag: expected an attribute that loads and runs nothing, got {name!r}")
    if name.lower() == "href" and not INTERNAL_LINK.match(str(value)):
        raise InputError(f"tag: expected a link into the page (#...) or to the same server (/...), got {value!r}")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'


@cache
def _is_harmless(name: str) -> bool:
    lower = name.lower()
    return bool(ATTRIBUTE_NAME.fullmatch(name)) and not lower.startswith("on") and lower not in LOADING_ATTRIBUTES
