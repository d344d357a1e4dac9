"""One search space for all tasks of a problem: the one that most of them were tuned in, of equals the newest.

Tasks may lack a space, as those read from tables do. Where none has one it is read off the configurations: numbers
range from the lowest to the highest that was tried, on a log scale if the median lies nearer to the middle there; other
values are choices.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from recollect.errors import SpaceError
from recollect.history.run import Config
from recollect.report.overview.reading import Told
from recollect.space.serial import to_json
from recollect.space.space import Space, compile_space

LOG_RATIO = 10.0  # between the highest and the lowest value, below which a scale is linear


@dataclass(frozen=True, slots=True, eq=False)
class Common:
    """The space of a problem. own: how many tasks were tuned in it; inferred: it was read off what was tried."""

    space: Space
    own: int
    inferred: bool


def common_space(tasks: Sequence[Told]) -> Common | None:
    """Return the space in which tasks are compared; None if nothing was tried anywhere."""
    spaces = {to_json(told.space): told.space for told in tasks if told.space is not None}
    if not spaces:
        inferred = infer_space([config for told in tasks for config in told.run.configs])
        return None if inferred is None else Common(inferred, 0, inferred=True)
    texts = [to_json(told.space) for told in tasks if told.space is not None]
    counts, newest = Counter(texts), {text: place for place, text in enumerate(texts)}
    chosen = max(counts, key=lambda text: (counts[text], newest[text]))
    return Common(spaces[chosen], counts[chosen], inferred=False)


def infer_space(configs: Sequence[Config]) -> Space | None:
    """Return the space that holds all these configurations; None if there is nothing in them."""
    values: dict[str, list[Any]] = {}
    for config in configs:
        for name, value in config.items():
            values.setdefault(name, []).append(value)
    found: dict[str, Any] = {}
    for name, given in values.items():
        try:
            found |= compile_space({name: _spec(given)}).source
        except SpaceError:
            continue  # a range that cannot be told apart, or choices that nobody can name: nothing to compare by
    return compile_space(found) if found else None


def _spec(values: Sequence[Any]) -> Any:
    """Return a hyperparameter as a space has it in a dict."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        low, high = min(values), max(values)
        if low == high:
            return low
        return (low, high, "log") if _on_log_scale(low, high, float(median(values))) else (low, high)
    choices = list({(type(value), value): value for value in values}.values())
    return choices if len(choices) > 1 else choices[0]


def _on_log_scale(low: float, high: float, middle: float) -> bool:
    if low <= 0 or high < LOG_RATIO * low:
        return False
    linear, log = (middle - low) / (high - low), math.log(middle / low) / math.log(high / low)
    return abs(log - 0.5) < abs(linear - 0.5)
