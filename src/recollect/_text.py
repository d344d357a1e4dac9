"""Text shared by messages, the command line and reports: valid names, counts with their nouns, lists of names."""

from __future__ import annotations

from collections.abc import Iterable


def is_unicode(text: str) -> bool:
    """Return whether a text can be stored and printed: a surrogate without its partner cannot."""
    return text == text.encode("utf-8", "replace").decode("utf-8")


def plural(count: int, noun: str, irregular: str | None = None) -> str:
    """Return a count with its noun: "1 trial", "2,000 trials"; ``irregular``: a plural that does not just add an s."""
    return f"{count:,} {noun if count == 1 else irregular or noun + 's'}"


def name_list(names: Iterable[str], limit: int = 6) -> str:
    """Return names as part of a sentence: "a, b and c", "a, b and 12 more", or "none".

    One name more than ``limit`` is still written out, since "1 more" would take as much room.
    """
    parts = list(names)
    if len(parts) > limit + 1:
        parts[limit:] = [f"{len(parts) - limit:,} more"]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts) or "none"
