"""Regret curves of one benchmark, with the uncertainty that comes from which tasks it has.

Few methods share a panel. Many are shown in a panel for each family, with plain Bayesian optimization and random search
in all of them, and the methods of the other panels as pale lines.

Notation: b tasks, t evaluations; a curve is the mean over tasks of the regrets (b, t) of a method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.bench.figure_style import (
    HEAD,
    PALE,
    Layout,
    add_heading,
    add_note,
    count_ticks,
    draw_band,
    draw_line,
    foot,
    house_style,
    in_order,
    lines_for,
    name_ends,
    panels,
    plain_ticks,
    room_for,
)
from recollect.bench.study import Outcome, short_of
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWS = 1000
LEVEL = 0.95
MOST_IN_A_PANEL = 6  # besides the references
WORTH_A_LOGARITHM = 10.0  # highest over lowest value
DECADES = 4.0  # that a logarithmic axis shows at most
REFERENCES = ("gp", "random")
FAMILIES = (
    ("without models of past runs", ("gcp", "random", "gp", "smfo")),
    ("TST-R", ("tstr",)),
    ("RGPE", ("rgpe",)),
)
OTHERS = "other models of past runs"


def regret_figure(outcomes: Sequence[Outcome]) -> Figure:
    """Draw the mean regret of each method on one benchmark against evaluations.

    A method that has fewer tasks or repetitions than others says so beside its name.
    """
    if not outcomes:
        raise InputError("regret_figure: expected the outcome of at least one method, got none")
    ordered = {outcome.method: outcome for outcome in in_order(outcomes)}
    short = {name: short_of(outcome, outcomes) for name, outcome in ordered.items()}
    shown = {name: f"{name} ({lacking})" if lacking else name for name, lacking in short.items()}
    groups = grouped(list(ordered))
    single = len(groups) == 1
    note = _note(outcomes, single=single)
    size, head = ((5.6, 3.4), 0.1) if single else ((3.3, 2.4), HEAD)
    layout = Layout(*size, right=room_for(list(shown.values())), head=head, foot=foot(note))
    with house_style():
        figure, made = panels(len(groups), 2, layout)
        for axes, (title, names) in zip(made, groups, strict=True):
            _set_axes(axes, outcomes)
            banded = names if axes is made[0] else [name for name in names if name not in REFERENCES]
            _draw_lines(axes, {name: ordered[name] for name in names}, banded, shown)
            for other in (o for name, o in ordered.items() if name not in names and not short[name]):
                axes.plot(_steps(other.adtm), other.adtm, color=PALE, linewidth=0.7, zorder=1)
            axes.set_title(outcomes[0].benchmark if single else title)
        if not single:
            add_heading(figure, outcomes[0].benchmark)
        add_note(figure, note)
    return figure


def grouped(methods: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return which methods share a panel: all if they are few, else families in pieces, each with the references."""
    references = [name for name in REFERENCES if name in methods]
    rest = [name for name in methods if name not in REFERENCES]
    if len(rest) <= MOST_IN_A_PANEL:
        return [("", [*references, *rest])]
    families: dict[str, list[str]] = {title: [] for title in (FAMILIES[0][0], OTHERS, *(t for t, _ in FAMILIES[1:]))}
    for name in rest:
        families[_family(name)].append(name)
    groups = []
    for title, names in families.items():
        pieces = -(-len(names) // MOST_IN_A_PANEL)
        for number in range(pieces):
            suffix = f" ({number + 1} of {pieces})" if pieces > 1 else ""
            piece = names[number * len(names) // pieces : (number + 1) * len(names) // pieces]
            groups.append((title + suffix, [*references, *piece]))
    return groups


def _family(name: str) -> str:
    if name.startswith("gcp-prior"):
        return OTHERS
    return next((title for title, starts in FAMILIES if name.startswith(starts)), OTHERS)


def bootstrap_band(regrets: FloatArray, *, draws: int = DRAWS, level: float = LEVEL) -> tuple[FloatArray, FloatArray]:
    """Return the ends (t,) of a percentile interval for the mean of regrets (b, t) over tasks.

    Tasks are drawn with replacement, the same ones for every method with as many tasks.
    """
    b = len(regrets)
    times = np.random.default_rng(0).multinomial(b, np.full(b, 1.0 / b), size=draws)
    low, high = np.quantile(times @ regrets / b, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return low, high


def regret_limits(curves: Sequence[FloatArray]) -> tuple[float, float]:
    """Return the ends of an axis for curves (t,): the lower one is 0, or above it where a logarithm shows more."""
    values = np.concatenate(curves)
    values = values[np.isfinite(values)]
    high = float(values.max(initial=0.0)) or 1.0
    low = float(values[values > 0.0].min(initial=high))
    if high / low < WORTH_A_LOGARITHM:
        return 0.0, 1.05 * high
    return max(0.8 * low, high * 10.0**-DECADES), 1.2 * high


def _set_axes(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    low, high = regret_limits([outcome.adtm for outcome in outcomes])
    if low > 0.0:
        axes.set_yscale("log")
    axes.set_ylim(low, high)
    if low > 0.0:
        plain_ticks(axes.yaxis)
    count_ticks(axes, 1, max(len(outcome.adtm) for outcome in outcomes), "evaluations")
    axes.set_ylabel("normalised regret")


def _note(outcomes: Sequence[Outcome], *, single: bool) -> list[str]:
    tasks = max(len(outcome.tasks) for outcome in outcomes)
    lines = [f"Mean of {tasks} tasks: 0 is the best configuration of a task, 1 the worst."]
    lines.append(f"Bands: {LEVEL:.0%} of {DRAWS} bootstrap draws of the tasks")
    both = " and ".join(name for name in REFERENCES if any(outcome.method == name for outcome in outcomes))
    lines[-1] += "." if single or not both else f"; those of {both} only in the first panel."
    if not single:
        lines.append("Pale: methods of the other panels.")
    low, _ = regret_limits([outcome.adtm for outcome in outcomes])
    if any((outcome.adtm < low).any() for outcome in outcomes):
        lines.append(f"A line that leaves the panel at the bottom has a regret of 0, or below {low:.1g}.")
    return lines


def _draw_lines(axes: Axes, own: Mapping[str, Outcome], banded: Sequence[str], labels: Mapping[str, str]) -> None:
    lines = lines_for(list(own))
    for name in banded:
        band = bootstrap_band(own[name].regrets)
        draw_band(axes, _steps(band[0]), band, lines[name])
    for name, line in lines.items():
        draw_line(axes, _steps(own[name].adtm), own[name].adtm, line)
    ends = {name: float(curve[-1]) for name, o in own.items() if len(curve := o.adtm[np.isfinite(o.adtm)])}
    name_ends(axes, ends, lines, labels=labels)


def _steps(curve: FloatArray) -> FloatArray:
    return np.arange(1.0, len(curve) + 1.0)
