"""When a parameter is there: conditions inferred from the trials of a define-by-run objective.

An objective that asks for ``gamma`` only after it got ``kernel = "rbf"`` says so nowhere; it shows in its trials. A
parameter that is missing from some of them is a child if one other parameter, its parent, decides in all of them
whether it is there: a categorical one by its value, an integer one by its value or by a threshold. Parents can be
children themselves.

Several parameters may fit by chance while trials are few. A parent that can take k values fits 2^k of the patterns in
which a child may come and go, a threshold among k values 2(k + 1); the parent that fits the fewest is the least likely
to do so by chance, and is taken. A later trial that contradicts it makes the search begin again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """A parameter is there when ``parent`` is one of ``values``, or lies in [low, high] when ``values`` is None."""

    parent: str
    values: tuple[Any, ...] | None = None
    low: float = -math.inf
    high: float = math.inf

    def holds(self, values: Values) -> bool:
        """Tell whether the parameter is there, given the other parameters of a trial."""
        if self.parent not in values:
            return False
        value = values[self.parent]
        return value in self.values if self.values is not None else self.low <= value <= self.high


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """The parameters of one trial, and of which names (None = all) it can say that they were not there."""

    values: Values
    scope: frozenset[str] | None = None

    def tells(self, name: str) -> bool:
        """Whether the trial is evidence about a parameter."""
        return self.scope is None or name in self.scope


def explain_presence(
    names: Iterable[str], parents: Mapping[str, bool], evidence: Sequence[Sequence[Record]]
) -> dict[str, Rule | None]:
    """Return for each name that can be explained its rule, None for one that is always there.

    ``parents`` may decide about others: True for numbers, which may have a threshold. ``evidence`` are sets of records;
    what the first cannot explain is left to the next.
    """
    explained: dict[str, Rule | None] = {}
    waiting = list(names)
    for records in evidence:
        before = -1
        while before != len(explained):  # a child that is explained may be the parent of another
            before = len(explained)
            deciding = {name: parents[name] for name in explained if name in parents}
            for name in waiting:
                about = [record.values for record in records if record.tells(name)]
                found = _explain(name, about, deciding)
                if found is not None:
                    explained[name] = found if found.parent else None
            waiting = [name for name in waiting if name not in explained]
    return explained


ALWAYS = Rule("")
"""The rule of a parameter that is in every trial: it has no parent."""


def _explain(name: str, about: Sequence[Values], deciding: Mapping[str, bool]) -> Rule | None:
    there = [name in values for values in about]
    if not any(there):
        return None
    if all(there):
        return ALWAYS
    found = [_rule(name, parent, about, numeric=numeric) for parent, numeric in deciding.items()]
    fitting = [pair for pair in found if pair is not None]
    return min(fitting, key=lambda pair: pair[0])[1] if fitting else None


def _rule(
    name: str, parent: str, about: Sequence[Values], *, numeric: bool
) -> tuple[tuple[float, float, str], Rule] | None:
    """Return the rule by which ``parent`` decides about ``name`` in all trials, after how easily it does so by chance.

    Among equals the one asked for most shortly before the child comes first.
    """
    if any(name in values and parent not in values for values in about):
        return None
    try:
        there = {values[parent] for values in about if name in values}
        gone = {values[parent] for values in about if parent in values and name not in values}
    except TypeError:  # choices that cannot be hashed
        return None
    if there & gone or (numeric and not all(type(value) in (int, float) for value in there | gone)):
        return None
    count, gap = len(there | gone), _gap(name, parent, about)
    if numeric and gone and (min(there) > max(gone) or max(there) < min(gone)):
        rule = Rule(parent, low=min(there)) if min(there) > max(gone) else Rule(parent, high=max(there))
        return (math.log2(2 * (count + 1)), gap, parent), rule
    if numeric and count == len(about):
        return None  # every number came just once, which explains anything
    return (float(count), gap, parent), Rule(parent, tuple(sorted(there, key=repr)))


def _gap(name: str, parent: str, about: Sequence[Values]) -> float:
    """Return how many places before the child the parent was asked for; infinite if it ever came after."""
    orders = [list(values) for values in about if name in values]
    gaps = [order.index(name) - order.index(parent) for order in orders]
    return float(min(gaps)) if min(gaps) > 0 else math.inf
