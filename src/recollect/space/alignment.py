"""Alignment of past configurations with a new search space, which may differ from the one they were tried in.

Values are mapped by value onto the new space's scale; the bounds of the old space play no role. Reading is lenient
where `Space.encode` is strict: missing hyperparameters get the new default, unknown ones are ignored, and numbers
somewhat outside the new range keep their place on the extended scale. A configuration is dropped only if one of its
values corresponds to nothing in the new space. Forbidden clauses do not apply: the past may have tried what is
forbidden now.

Notation: n past configurations, m of them kept; X (m, d) their encodings, nan = inactive.

An integer parent outside its range activates children as the nearest end of the range does, so
``space.activity(X) == ~isnan(X)`` always holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recollect._text import name_list, plural
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray
from recollect.space.columns import Choices, SpaceColumn, Steps, as_numbers
from recollect.space.config_columns import ConfigColumns
from recollect.space.space import MISSING, Space

# Codes at or beyond these are dropped: one range width outside says little, and -1 marks inactive cells in kernels.
MIN_CODE, MAX_CODE = -0.99, 1.99


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """Past configurations in a new space, and what had to be done to them, as counts of configurations."""

    X: FloatArray  # (m, d) encodings of the configurations that were kept
    kept: IntArray  # (m,) their positions among the past configurations
    filled: dict[str, int]  # by hyperparameter that they lacked; they got the new default
    ignored: dict[str, int]  # by hyperparameter whose value has no effect: unknown, inactive or another constant now
    outside: dict[str, int]  # by hyperparameter whose number lies outside the new range
    dropped: dict[str, int]  # dropped configurations by reason, each counted once

    @property
    def identical(self) -> bool:
        """Whether every configuration fits the new space as it is."""
        return not (self.filled or self.ignored or self.outside or self.dropped)

    def __str__(self) -> str:
        """Return what was done, in at most two sentences; empty if nothing was done."""
        lost, left = sum(self.dropped.values()), len(self.kept)
        changes = (
            ("the default was filled in for", self.filled),
            ("values were ignored for", self.ignored),
            ("values lie outside the range for", self.outside),
        )
        changed = "; ".join(f"{what} {_with_counts(counts, repr)}" for what, counts in changes if counts)
        loss = f"Dropped {lost} of {plural(lost + left, 'configuration')}: {_with_counts(self.dropped, str)}."
        change = f"In the {plural(left, 'configuration')} kept, {changed}."
        return " ".join([loss] * bool(lost) + [change] * bool(changed))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """One column over all n configurations."""

    codes: FloatArray
    filled: BoolArray
    ignored: BoolArray
    outside: BoolArray
    dropped: dict[str, BoolArray]  # masks (n,) by reason, of which the first counts


def align(space: Space, configs: Sequence[Mapping[str, Any]]) -> Alignment:
    """Return the configurations encoded in ``space``, as far as possible, and what had to be changed."""
    return align_all(space, [ConfigColumns.of(configs)])[0]


def align_all(space: Space, groups: Sequence[ConfigColumns]) -> list[Alignment]:
    """Return the alignment of each group of configurations; all are read together, which is faster."""
    total = sum(group.count for group in groups)
    X = np.full((total, len(space.names)), np.nan)
    alive = np.ones(total, dtype=np.bool_)
    filled, ignored, outside, dropped = (dict[str, BoolArray]() for _ in range(4))
    # Parents come first, so the activity of a column is known when its turn comes.
    for position, (column, condition) in enumerate(zip(space.columns, space.conditions, strict=True)):
        active = np.ones(total, dtype=np.bool_) if condition is None else condition(X)
        cells = _align_column(column, [value for group in groups for value in group.column(column.name)], active)
        X[:, position] = cells.codes
        filled[column.name], ignored[column.name], outside[column.name] = cells.filled, cells.ignored, cells.outside
        for reason, wrong in cells.dropped.items():
            dropped[reason] = wrong & alive
            alive &= ~wrong
    filled, ignored, outside, dropped = map(_nonempty, (filled, ignored, outside, dropped))
    aligned, end, known = [], 0, set(space.names)
    for group in groups:
        begin, end = end, end + group.count
        kept = np.flatnonzero(alive[begin:end])
        fill, ignore, out = (_counts(masks, begin + kept) for masks in (filled, ignored, outside))
        for name in group.cells:
            if name not in known and (count := sum(group.cells[name][number] is not MISSING for number in kept)):
                ignore[name] = count
        drop = _counts(dropped, np.arange(begin, end))
        aligned.append(Alignment(X[begin + kept], kept, fill, ignore, out, drop))
    return aligned


def _align_column(column: SpaceColumn, values: list[Any], active: BoolArray) -> _Cells:
    """Read one column of all configurations; ``active`` (n,) says where the new space uses it."""
    codes = column.codes_anywhere(values)
    blank = np.array([value is MISSING or value is None for value in values], dtype=np.bool_)
    absent = blank & np.isnan(codes)  # None may be a choice
    present = active & ~absent
    unused = ~active & ~blank
    nowhere = np.zeros(len(values), dtype=np.bool_)
    if column.size == 1 and (column.constant if isinstance(column, Choices) else True):
        # What is constant now may have varied in the past, and a constant may be left out. A categorical with a single
        # choice is not a constant: other choices are unknown to the new space.
        other = present & (codes != column.default)
        return _Cells(np.where(active, column.default, np.nan), nowhere, unused | other, nowhere, {})
    wrong = present & (np.isnan(codes) | _too_far(column, codes))
    dropped = {reason: wrong & mask for reason, mask in _drop_reasons(column, values, codes)} if wrong.any() else {}
    return _Cells(
        codes=np.where(present & ~wrong, codes, np.where(active & absent, column.default, np.nan)),
        filled=active & absent,
        ignored=unused,
        outside=nowhere if column.categorical else present & ((codes < 0.0) | (codes > 1.0)),
        dropped=dropped,
    )


def _too_far(column: SpaceColumn, codes: FloatArray) -> BoolArray:
    return np.asarray(((codes <= MIN_CODE) | (codes >= MAX_CODE)) & (not column.categorical))


def _drop_reasons(column: SpaceColumn, values: list[Any], codes: FloatArray) -> list[tuple[str, BoolArray]]:
    """Return the reasons to drop values, the plainest first, each with a mask (n,) of where it holds.

    Earlier reasons take precedence; every value without a code, or with one too far outside, has one of them.
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


def _nonempty(masks: Mapping[str, BoolArray]) -> dict[str, BoolArray]:
    return {name: mask for name, mask in masks.items() if mask.any()}


def _counts(masks: Mapping[str, BoolArray], where: IntArray) -> dict[str, int]:
    return {name: count for name, mask in masks.items() if (count := int(mask[where].sum()))}


def _with_counts(counts: Mapping[str, int], show: Callable[[str], str]) -> str:
    return name_list(f"{show(key)} ({count})" for key, count in counts.items())
