"""When a hyperparameter is present: conditions inferred from the configurations that a program asked for.

A program that asks for ``gamma`` only after it got ``kernel = "rbf"`` declares this nowhere, but its trials show it. A
hyperparameter that is missing from some trials is a child if one other hyperparameter, its parent, decides in all of
them whether it is present: a categorical parent by its value, an integer parent by its value or by a threshold. Parents
can be children themselves. While trials are few, several parents may fit by chance. A parent with k values fits 2^k of
the patterns in which a child may be present, a threshold among k values 2(k + 1); the parent that fits the fewest
patterns is the least likely to fit by chance and is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Values: TypeAlias = Mapping[str, Any]
ChanceKey: TypeAlias = tuple[float, float, str]  # how likely a rule fits by chance, gap to the parent, its name


@dataclass(frozen=True, slots=True, eq=False)
class TrialParams:
    """The parameters of one trial, and the names (None: all) whose absence from it is evidence."""

    values: Values
    scope: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class PresenceRule:
    """A parameter is present if ``parent`` is one of ``values`` or, if that is None, lies in [low, high]."""

    parent: str
    values: tuple[Any, ...] | None = None
    low: float = -math.inf
    high: float = math.inf

    def holds(self, values: Values) -> bool:
        """Return whether the parameter is present, given the other parameters of a trial."""
        if self.parent not in values:
            return False
        value = values[self.parent]
        return value in self.values if self.values is not None else self.low <= value <= self.high


ALWAYS = PresenceRule("")  # of a parameter that is present in every trial: it has no parent


def infer_conditions(
    names: Iterable[str], parents: Mapping[str, bool], evidence: Sequence[Sequence[TrialParams]]
) -> dict[str, PresenceRule | None]:
    """Return the rule of each name that can be explained; None for a parameter that is always present.

    ``parents`` may decide, numbers (True) by a threshold; what a set of trials cannot explain is left to the next.
    """
    explained: dict[str, PresenceRule | None] = {}
    waiting = list(names)
    for records in evidence:
        before = -1
        while before != len(explained):  # a child that is explained may be the parent of another
            before = len(explained)
            deciding = {name: parents[name] for name in explained if name in parents}
            for name in waiting:
                about = [record.values for record in records if record.scope is None or name in record.scope]
                if (rule := _explain(name, about, deciding)) is not None:
                    explained[name] = rule if rule.parent else None
            waiting = [name for name in waiting if name not in explained]
    return explained


def _explain(name: str, about: Sequence[Values], deciding: Mapping[str, bool]) -> PresenceRule | None:
    there = [name in values for values in about]
    if all(there) or not any(there):
        return ALWAYS if there and there[0] else None
    rules = [_rule(name, parent, about, numeric=numeric) for parent, numeric in deciding.items()]
    return min((pair for pair in rules if pair is not None), key=lambda pair: pair[0], default=(None, None))[1]


def _rule(name: str, parent: str, about: Sequence[Values], *, numeric: bool) -> tuple[ChanceKey, PresenceRule] | None:
    """Return the rule by which ``parent`` decides about ``name`` in all trials, with its probability by chance as key.

    Ties go to the parent that was requested last before the child.
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
    orders = [list(values) for values in about if name in values]
    gap = float(min(order.index(name) - order.index(parent) for order in orders))  # requests between parent and child
    count, gap = len(there | gone), gap if gap > 0 else math.inf  # infinite if the parent ever came after
    if numeric and gone and (min(there) > max(gone) or max(there) < min(gone)):
        rule = PresenceRule(parent, low=min(there)) if min(there) > max(gone) else PresenceRule(parent, high=max(there))
        return (math.log2(2 * (count + 1)), gap, parent), rule
    if numeric and count == len(about):
        return None  # every number occurred just once, which would explain anything
    return (float(count), gap, parent), PresenceRule(parent, tuple(sorted(there, key=repr)))
