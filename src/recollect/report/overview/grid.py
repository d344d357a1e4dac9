"""What heat maps with a row and a column for each task have in common: names that stay readable with a hundred of them.

Columns carry numbers only, so that nothing overlaps on a narrow screen: those of rows, where both are the same tasks,
or those of a table. Pointing at a cell tells both names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from recollect.report.figure import rows_height
from recollect.report.names import IN_HOVER, ON_AXIS, named

ROOMY = 30  # rows up to which each has the usual height
LOW_ROW, SMALL = 14, 10  # pixels of a row when there are more, and of its name
FEWEST = 7  # rows that a heat map has room for at least, so that the title of its scale has, too
ALL, LABELS = 10, 5  # columns of which all are numbered, and how many at most if there are more
STEPS = (5, 10, 20, 50)
MOST = 150  # rows and columns that can be told apart, and that keep a page small


def thinned(count: int) -> list[int]:
    """Return the places of so many tasks that are shown: all, or as many as fit, evenly spread over their order."""
    if count <= MOST:
        return list(range(count))
    return [round(place * (count - 1) / (MOST - 1)) for place in range(MOST)]


def unique_names(names: Sequence[str]) -> list[str]:
    """Return names as they are shown when pointed at; those that look the same once shortened get a number."""
    shown = [named(name, IN_HOVER) for name in names]
    counts, seen = Counter(shown), Counter[str]()
    unique = []
    for text in shown:
        seen[text] += 1
        unique.append(text if counts[text] == 1 else f"{text} [{seen[text]}]")
    return unique


def grid_axes(rows: Sequence[str], columns: Sequence[str], labels: Sequence[str], title: str) -> dict[str, Any]:
    """Return the axes of a heat map. rows, columns: as of `unique_names`; title: what columns are."""
    small = {"tickfont": {"size": SMALL}} if len(rows) > ROOMY else {}
    step = 1 if len(columns) <= ALL else next(step for step in STEPS if len(columns) <= LABELS * step)
    places = range(step - 1, len(columns), step)
    common = {"type": "category", "showgrid": False, "zeroline": False, "fixedrange": True}
    return {
        "yaxis": {
            **common,
            "tickvals": list(rows),
            "ticktext": list(labels),
            "range": [len(rows) - 0.5, -0.5],
            "automargin": True,
            **small,
        },
        "xaxis": {
            **common,
            "tickvals": [columns[place] for place in places],
            "ticktext": [str(place + 1) for place in places],
            "range": [-0.5, len(columns) - 0.5],
            "tickangle": 0,
            "title": {"text": title},
        },
    }


def labels(names: Sequence[str], *, numbered: bool) -> list[str]:
    """Return names as they stand beside the rows, with the number of the row if it is needed."""
    if not numbered:
        return [named(name, ON_AXIS) for name in names]
    return [f"{named(name, ON_AXIS)} \N{MIDDLE DOT} {place}" for place, name in enumerate(names, start=1)]


def bar(title: str) -> dict[str, Any]:
    """Return the scale of colours beside a heat map."""
    return {"thickness": 10, "xpad": 6, "ypad": 0, "outlinewidth": 0, "title": {"text": title, "side": "right"}}


def grid_height(rows: int) -> int:
    """Return the height of a heat map with so many rows."""
    return rows_height(max(rows, FEWEST)) if rows <= ROOMY else rows_height(0) + LOW_ROW * rows
