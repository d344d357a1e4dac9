"""Who is ahead: average ranks against evaluations (paper, ranking figure), and critical differences.

The ranking figure has two line-ups, methods that combine models and methods that combine acquisition functions, each
with plain Bayesian optimization and random search. The diagram of critical differences is Demsar's (JMLR 2006): average
ranks on a line, and bars below it over methods that the test cannot tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from recollect.bench.figure_style import (
    HEAD,
    Layout,
    add_heading,
    add_note,
    count_ticks,
    draw_line,
    foot,
    house_style,
    lines_for,
    name_ends,
    panels,
    room_for,
)
from recollect.bench.significance import RankTest
from recollect.bench.statistics import common_places
from recollect.bench.study import Ranks, Study, run_ranks
from recollect.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINE_UPS = (("gp", "random", "tstr-ei", "rgpe-mean"), ("gp", "random", "tstr-taf", "rgpe-taf"))
COLUMNS = 3  # at most
MOST_TICKS = 14  # on the scale of the diagram
ABOVE, RULE, BAR, ROW = 0.75, 0.28, 0.12, 0.2
"""Inches in the diagram: above the scale, from the scale to the first name without bars, for a bar, for a name."""


def rank_figure(study: Study) -> Figure:
    """Draw the average ranks of both line-ups on each benchmark that has at least three methods of them."""
    found = [(name, ups) for name in study.outcomes if any(ups := line_up_ranks(study, name))]
    if not found:
        wanted = " or ".join("{" + ", ".join(names) + "}" for names in LINE_UPS)
        raise InputError(f"ranks: expected runs of at least three of {wanted} on one benchmark, but there are none")
    columns = -(-len(found) // -(-len(found) // COLUMNS))  # rows of about the same length
    bands = [found[start : start + columns] for start in range(0, len(found), columns)]
    note = ["Average rank by regret among the methods", "of a panel, over runs: 1 is best."]
    layout = Layout(2.3, 1.7, right=room_for([name for names in LINE_UPS for name in names]), foot=foot(note))
    with house_style():
        figure, made = panels(2 * columns * len(bands), columns, layout)
        for number, axes in enumerate(made):
            row, column = divmod(number, columns)
            band, line_up = bands[row // 2], row % 2
            ranks = band[column][1][line_up] if column < len(band) else None
            if ranks is None:
                axes.remove()
            else:
                _draw_ranks(axes, band[column][0], ranks)
        add_note(figure, note)
    return figure


def line_up_ranks(study: Study, benchmark: str) -> list[Ranks | None]:
    """Return the ranks of both line-ups; None without three methods of it that have a run in common."""
    found = study.outcomes[benchmark]
    present = [[found[name] for name in names if name in found] for names in LINE_UPS]
    return [
        run_ranks(outcomes) if len(outcomes) > 2 and common_places([o.curves for o in outcomes]) else None
        for outcomes in present
    ]


def _draw_ranks(axes: Axes, benchmark: str, ranks: Ranks) -> None:
    lines = lines_for(ranks.methods)
    h = ranks.ranks.shape[1]
    axes.set_ylim(0.9, len(ranks.methods) + 0.1)
    axes.set_yticks(range(1, len(ranks.methods) + 1))
    count_ticks(axes, 1, h, "evaluations")
    for name, curve in zip(ranks.methods, ranks.ranks, strict=True):
        draw_line(axes, np.arange(1.0, h + 1.0), curve, lines[name])
    ends = dict(zip(ranks.methods, ranks.ranks[:, -1].tolist(), strict=True))
    name_ends(axes, {name: end for name, end in ends.items() if np.isfinite(end)}, lines)
    axes.set_title(f"{benchmark} ({ranks.runs} runs)")
    axes.set_ylabel("average rank")


def difference_figure(
    benchmark: str, test: RankTest, *, evaluations: int, left_out: Sequence[str] = (), variants: int = 0
) -> Figure:
    """Draw which average ranks of a test differ, best at the left.

    What is not in it: ``left_out``, methods without all runs, and so many ``variants``.
    """
    note = [
        f"Average rank by regret after {evaluations} evaluations, over {test.tasks} tasks: 1 is best.",
        "Bars join methods whose ranks differ by less than the critical difference (Nemenyi, 5%).",
        *(wrap(f"Not shown, without all tasks or repetitions: {', '.join(left_out)}.", 90) if left_out else ()),
        *([f"Not shown: {variants} variants, whose names have a suffix."] if variants else ()),
    ]
    bars = BAR * len(test.alike)
    below = RULE + bars + ROW * ((len(test.methods) + 1) // 2)
    low = int(np.floor(test.ranks[0]))
    side = room_for(test.methods) + 0.35
    layout = Layout(3.4, ABOVE + below, left=side, right=side, top=0.0, bottom=0.0, head=HEAD, foot=foot(note))
    with house_style():
        figure, (axes,) = panels(1, 1, layout)
        axes.set_xlim(low, int(np.ceil(max(test.ranks[-1], low + test.difference))))
        axes.set_ylim(-below, ABOVE)
        axes.axis("off")
        _draw_scale(axes, test.difference)
        _draw_names(axes, test, first=RULE + bars)
        _draw_bars(axes, test)
        add_heading(figure, benchmark)
        add_note(figure, note)
    return figure


def _draw_scale(axes: Axes, difference: float) -> None:
    low, high = axes.get_xlim()
    axes.plot([low, high], [0.0, 0.0], color="black", linewidth=0.8, clip_on=False)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100) if (high - low) / step <= MOST_TICKS)
    for rank in range(-(-int(low) // step) * step, int(high) + 1, step):
        axes.plot([rank, rank], [0.0, 0.06], color="black", linewidth=0.8, clip_on=False)
        axes.text(rank, 0.1, str(rank), ha="center", va="bottom")
    axes.plot([low, low + difference], [0.42, 0.42], color="black", linewidth=1.6, clip_on=False)
    for end in (low, low + difference):
        axes.plot([end, end], [0.38, 0.46], color="black", linewidth=0.8, clip_on=False)
    axes.text(low, 0.52, f"critical difference {difference:.2f}", ha="left", va="bottom")


def _draw_names(axes: Axes, test: RankTest, *, first: float) -> None:
    """Write the better half at the left, the best one highest, the others at the right, the worst one highest."""
    half = (len(test.methods) + 1) // 2
    low, high = axes.get_xlim()
    room = 0.02 * (high - low)
    for number, (name, rank) in enumerate(zip(test.methods, test.ranks.tolist(), strict=True)):
        left = number < half
        y = -(first + ROW * (number if left else len(test.methods) - 1 - number))
        edge = low - room if left else high + room
        axes.plot([rank, rank, edge], [0.0, y, y], color="#555555", linewidth=0.6, clip_on=False, zorder=1)
        label = f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}"
        axes.text(edge + (-room if left else room), y, label, ha="right" if left else "left", va="center")


def _draw_bars(axes: Axes, test: RankTest) -> None:
    ranks = dict(zip(test.methods, test.ranks.tolist(), strict=True))
    for number, group in enumerate(test.alike):
        y = -(0.14 + BAR * number)
        ends = [ranks[group[0]] - 0.03, ranks[group[-1]] + 0.03]
        axes.plot(ends, [y, y], color="#0072B2", linewidth=3.0, solid_capstyle="butt", clip_on=False, zorder=3)
