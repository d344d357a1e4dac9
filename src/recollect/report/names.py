"""Names of methods, benchmarks and tasks come from files of others: they may be long, or written from right to left.

Here they are made fit to be shown. That they cannot become elements is the work of `recollect.report.html`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

IN_TEXT, IN_HOVER, ON_AXIS = 120, 60, 24  # signs that are shown of a name
ISOLATE, END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
MISSING = "\N{REPLACEMENT CHARACTER}"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
DIRECTED = frozenset({"R", "AL", "AN"})
CONTROLS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})


def named(name: str, most: int = IN_TEXT) -> str:
    """Return a name that can stand in a sentence: shortened in its middle, without signs that rearrange the line.

    One that is written from right to left is isolated, so that what follows it keeps its place.
    """
    seen = "".join(MISSING if _rearranges(sign) else sign for sign in shortened(name, most))
    if any(unicodedata.bidirectional(sign) in DIRECTED for sign in seen):
        return f"{ISOLATE}{seen}{END}"
    return seen or "(no name)"


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many signs; of a longer one, its beginning and its end."""
    if len(text) <= most:
        return text
    first = most // 2
    return text[:first] + ELLIPSIS + text[len(text) - (most - 1 - first) :]


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return names as a list in a sentence: "a, b and c"; of many the first ones, and how many more there are."""
    shown = [named(name) for name in names]
    if len(shown) > most + 1:
        shown = [*shown[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _rearranges(sign: str) -> bool:
    return unicodedata.category(sign) in UNSEEN or unicodedata.bidirectional(sign) in CONTROLS
