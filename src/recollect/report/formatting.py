"""Names, numbers and values as text, and the choice of what to show of many.

Names of methods, benchmarks and tasks come from others: they may be long, or written from right to left. This module
makes them fit to be shown. `recollect.report.html` ensures that they cannot become elements.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from recollect._text import name_list

IN_TEXT, IN_HOVER, ON_AXIS = 120, 60, 24  # characters of a name that are shown
ISOLATE, END = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
MISSING = "\N{REPLACEMENT CHARACTER}"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
BIDI_CONTROLS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
INVISIBLE = frozenset({"Cc", "Cs", "Zl", "Zp"})


def printable(name: str, most: int = IN_TEXT) -> str:
    """Return a name that can stand in a sentence: shortened in its middle, without characters that rearrange the line.

    A name that is written from right to left is isolated, so that what follows it keeps its place.
    """
    short = shortened(name, most)
    if short and short.isascii() and short.isprintable():  # nearly always
        return short
    text = ""
    for sign in short:
        hidden = unicodedata.category(sign) in INVISIBLE or unicodedata.bidirectional(sign) in BIDI_CONTROLS
        text += MISSING if hidden else sign
    if any(unicodedata.bidirectional(sign) in RIGHT_TO_LEFT for sign in text):
        return f"{ISOLATE}{text}{END}"
    return text or "(no name)"


def shortened(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters: the beginning and the end of a longer one."""
    if len(text) <= most:
        return text
    first = most // 2
    return text[:first] + ELLIPSIS + text[len(text) - (most - 1 - first) :]


def join_names(names: Sequence[str], most: int = 6) -> str:
    """Return names as part of a sentence ("a, b and 3 more"), each made printable."""
    return name_list(map(printable, names), most)


def number_text(value: float | None) -> str:
    """Return a number as sentences and tables show it."""
    return "none" if value is None else f"{value:.4g}"


def compact_number(value: float) -> str:
    """Return a number in few characters, for the labels of an axis."""
    size = abs(value)
    if size != 0 and not 1e-3 <= size < 1e5:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    return f"{value:.0f}" if size >= 1000 else f"{value:.3g}"


def percent(share: float) -> str:
    """Return a share of 1 in percent."""
    return f"{100.0 * share:.0f}%"


def duration_text(seconds: float) -> str:
    """Return a duration in the units that suit it."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


def param_text(value: Any) -> str:
    """Return the value of a hyperparameter as text."""
    return f"{value:.4g}" if isinstance(value, float) else printable(str(value), IN_HOVER)


def thinned(count: int, most: int, *, keep: Sequence[int] = ()) -> list[int]:
    """Return at most ``most`` of the indices 0 ... count - 1, sorted: those to keep, and others spread evenly."""
    if count <= most:
        return list(range(count))
    kept = sorted(set(keep))[:most]
    others = [place for place in range(count) if place not in set(kept)]
    steps = np.unique(np.linspace(0, len(others) - 1, max(most - len(kept), 0)).astype(int))
    return sorted([*kept, *(others[step] for step in steps)])
