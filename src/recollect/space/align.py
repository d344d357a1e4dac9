"""Past configurations carried into a new search space, which may differ from the one they were tried in.

Values are mapped by value through the new space's scale; the bounds of the old space play no role. Reading them is
lenient where `Space.encode` is strict: what the past lacks gets the new default, what the new space does not know is
left out, numbers somewhat outside the new range keep their place on the extended scale. A configuration is dropped only
where nothing in the new space corresponds to one of its values. Forbidden clauses do not apply: the past may have tried
what is forbidden now.

Notation: n configurations given, m of them kept; X (m, d) their encodings, nan = inactive.

An integer parent outside its range switches children as the nearest end of the range does, so that always
``space.activity(X) == ~isnan(X)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect.errors import InputTypeError
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.space.columns import Choices, Column, Steps
from recollect.space.reading import MISSING, Row
from recollect.space.space import Space
from recollect.space.values import as_numbers

TOO_LOW, TOO_HIGH = -0.99, 1.99
"""Codes at or beyond these are dropped: one range width outside says little, and -1 marks inactive cells in kernels."""

SHOWN = 6
"""How many hyperparameters or reasons a message names of each kind."""


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Past configurations in a new space, and what had to be done to them.

    X (m, d); kept (m,) positions of its rows among the given configurations. The rest counts configurations, by
    hyperparameter and among the kept ones: filled, those that lacked it and got the new default; ignored, those that
    had a value for it without effect (unknown, inactive or another constant in the new space); outside, those whose
    number lies outside the new range. dropped counts by reason, each dropped configuration once.
    """

    X: FloatArray
    kept: IntArray
    filled: dict[str, int]
    ignored: dict[str, int]
    outside: dict[str, int]
    dropped: dict[str, int]

    @property
    def identical(self) -> bool:
        """Whether every configuration fits the new space as it is."""
        return not (self.filled or self.ignored or self.outside or self.dropped)

    def __str__(self) -> str:
        """Say what was done, in at most two sentences; nothing if nothing was done."""
        lost, left = sum(self.dropped.values()), len(self.kept)
        changes = (
            ("the default was filled in for", self.filled),
            ("values were ignored for", self.ignored),
            ("values lie outside the range for", self.outside),
        )
        done = "; ".join(f"{what} {_listed(counts, repr)}" for what, counts in changes if counts)
        sentences = []
        if lost:
            sentences.append(f"Dropped {lost} of {_configurations(lost + left)}: {_listed(self.dropped, str)}.")
        if done:
            sentences.append(f"In the {_configurations(left)} kept, {done}.")
        return " ".join(sentences)


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """One column over all n configurations; ``refused`` holds (n,) masks by reason, the first that applies counts."""

    codes: FloatArray
    filled: BoolArray
    ignored: BoolArray
    outside: BoolArray
    refused: dict[str, BoolArray]


def align(space: Space, configs: Sequence[Mapping[str, Any]]) -> Alignment:
    """Return the configurations encoded in ``space``, as far as they can be carried over, and what that took."""
    return align_all(space, [configs])[0]


def align_all(space: Space, groups: Sequence[Sequence[Mapping[str, Any]]]) -> list[Alignment]:
    """Return the alignment of each group of configurations; all are read together, which is quicker."""
    rows = [_rows(configs) for configs in groups]
    flat = [row for group in rows for row in group]
    X = np.full((len(flat), len(space.names)), np.nan)
    alive = np.ones(len(flat), dtype=np.bool_)
    filled, ignored, outside, dropped = (dict[str, BoolArray]() for _ in range(4))
    # Parents come first, so what switches a column on is known when its turn comes.
    for position, (column, condition) in enumerate(zip(space.columns, space.conditions, strict=True)):
        active = np.ones(len(flat), dtype=np.bool_) if condition is None else condition(X)
        cells = _read(column, [row.get(column.name, MISSING) for row in flat], active)
        X[:, position] = cells.codes
        filled[column.name], ignored[column.name], outside[column.name] = cells.filled, cells.ignored, cells.outside
        for reason, wrong in cells.refused.items():
            dropped[reason] = wrong & alive
            alive &= ~wrong
    filled, ignored, outside, dropped = map(_somewhere, (filled, ignored, outside, dropped))
    aligned, end = [], 0
    for group in rows:
        begin, end = end, end + len(group)
        kept = np.flatnonzero(alive[begin:end])
        aligned.append(
            Alignment(
                X=X[begin + kept],
                kept=kept,
                filled=_counts(filled, begin + kept),
                ignored=_counts(ignored, begin + kept) | _unknown([group[number] for number in kept], space.names),
                outside=_counts(outside, begin + kept),
                dropped=_counts(dropped, np.arange(begin, end)),
            )
        )
    return aligned


def _rows(configs: Sequence[Mapping[str, Any]]) -> list[Row]:
    if isinstance(configs, Mapping | str) or not isinstance(configs, Sequence | np.ndarray):
        raise InputTypeError(f"expected a sequence of configurations, got {type(configs).__name__}; put one in a list")
    for number, config in enumerate(configs):
        if not isinstance(config, Mapping):
            raise InputTypeError(f"configuration {number}: expected a mapping, got {config!r}")
    return [dict(config) for config in configs]


def _read(column: Column, values: list[Any], active: BoolArray) -> _Cells:
    """Read one column of all configurations; ``active`` (n,) says where the new space uses it."""
    codes = column.codes_anywhere(values)
    blank = np.array([value is MISSING or value is None for value in values], dtype=np.bool_)
    absent = blank & np.isnan(codes)  # None may be a choice
    present = active & ~absent
    unused = ~active & ~blank
    nowhere = np.zeros(len(values), dtype=np.bool_)
    if column.size == 1 and (column.constant if isinstance(column, Choices) else True):
        # What is constant now may have been something else in the past; a constant may always be left out. The only
        # choice left of a categorical is no constant: other choices are unknown to the new space.
        other = present & (codes != column.default)
        return _Cells(np.where(active, column.default, np.nan), nowhere, unused | other, nowhere, {})
    wrong = present & (np.isnan(codes) | _too_far(column, codes))
    refused = {reason: wrong & mask for reason, mask in _objections(column, values, codes)} if wrong.any() else {}
    return _Cells(
        codes=np.where(present & ~wrong, codes, np.where(active & absent, column.default, np.nan)),
        filled=active & absent,
        ignored=unused,
        outside=nowhere if column.categorical else present & ((codes < 0.0) | (codes > 1.0)),
        refused=refused,
    )


def _too_far(column: Column, codes: FloatArray) -> BoolArray:
    far: BoolArray = (codes <= TOO_LOW) | (codes >= TOO_HIGH)
    return far & (not column.categorical)


def _objections(column: Column, values: list[Any], codes: FloatArray) -> list[tuple[str, BoolArray]]:
    """List the reasons against values, the plainest first, each with where (n,) it holds.

    Earlier reasons take precedence; every value without a code, or with one too far outside, meets one of them.
    """
    name, no_code = repr(column.name), np.isnan(codes)
    if isinstance(column, Choices) or (isinstance(column, Steps) and column.choices is not None):
        return [(f"{name} is not {column.expected()}", no_code)]
    v = as_numbers(values)
    ends = f"[{column.value(0.0)!r}, {column.value(1.0)!r}]"
    return [
        (f"{name} is not a finite number", ~np.isfinite(v)),
        (f"{name} is not an integer", no_code & (v != np.rint(v)) & isinstance(column, Steps)),
        (f"{name} is not positive, as its log scale requires", no_code),
        (f"{name} is too far outside the range {ends}", _too_far(column, codes)),
    ]


def _somewhere(masks: Mapping[str, BoolArray]) -> dict[str, BoolArray]:
    return {name: mask for name, mask in masks.items() if mask.any()}


def _counts(masks: Mapping[str, BoolArray], where: IntArray) -> dict[str, int]:
    counts = {name: int(mask[where].sum()) for name, mask in masks.items()}
    return {name: count for name, count in counts.items() if count}


def _unknown(rows: Sequence[Row], names: Sequence[str]) -> dict[str, int]:
    known, counts = set(names), dict[str, int]()
    for row in rows:
        for name in row:
            if name not in known:
                counts[name] = counts.get(name, 0) + 1
    return counts


def _listed(counts: Mapping[str, int], show: Callable[[str], str]) -> str:
    """Write the keys out with their counts, shortened when there are many."""
    shown = [f"{show(key)} ({count})" for key, count in counts.items()][:SHOWN]
    more = len(counts) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _configurations(count: int) -> str:
    return f"{count} configuration{'' if count == 1 else 's'}"
