"""Who is ahead: average ranks after every evaluation, and which of the last ones differ by more than chance.

The diagram of critical differences (Demsar, JMLR 2006) stands upright here: a row for each method, so that names never
overlap, and bars at the right that join methods which the test cannot tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recollect.bench.significance import ALPHA, RankTest, rank_test
from recollect.bench.study import Ranks, run_ranks
from recollect.bench.tables import checkpoints
from recollect.report.benchmark.contest import Contest
from recollect.report.figure import ROUNDED_AGAIN, Figure, Spec, decimals, name_axis, rows_height
from recollect.report.names import IN_HOVER, listed, named
from recollect.report.table import Column, Table, number, word

RANK_HOVER = "<b>%{customdata}</b><br>after %{x} evaluations: average rank %{z:.2f}<extra></extra>"
DOT_HOVER = "<b>%{customdata}</b><br>average rank %{x:.2f}<extra></extra>"
BAR_HOVER = "cannot be told apart:<br>%{customdata}<extra></extra>"


def rank_figure(contest: Contest) -> Figure | None:
    """Return average ranks after each evaluation; None with fewer than two methods that can be ranked."""
    plain = [outcome for outcome in contest.fair if "+" not in outcome.method]
    if len(plain) < 2 or not set.intersection(*(set(outcome.curves) for outcome in plain)):
        return None
    found = run_ranks(plain)
    order = np.argsort(found.ranks[:, -1], kind="stable")
    names = [found.methods[place] for place in order]
    ranks = found.ranks[order]
    heat: Spec = {
        "type": "heatmap",
        "x": list(range(1, ranks.shape[1] + 1)),
        "y": list(range(len(names))),
        "z": decimals(ranks, ROUNDED_AGAIN),
        "customdata": [[named(name, IN_HOVER)] * ranks.shape[1] for name in names],
        "colorscale": "Cividis",
        "reversescale": True,
        "hovertemplate": RANK_HOVER,
        "colorbar": {
            "thickness": 10,
            "xpad": 6,
            "ypad": 0,
            "outlinewidth": 0,
            "title": {"text": "average rank (1 is best)", "side": "right"},
        },
    }
    return Figure(
        "Which method is ahead after how many evaluations?",
        _ranks_seen(found, names, ranks),
        (heat,),
        {"xaxis": {"title": {"text": "evaluations"}}, "yaxis": name_axis(names)},
        _rank_numbers(names, ranks),
        height=rows_height(len(names)),
    )


def _ranks_seen(found: Ranks, names: Sequence[str], ranks: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    horizon = ranks.shape[1]
    early = checkpoints(horizon)[0]
    first = int(np.argmin(ranks[:, early - 1]))
    return (
        f"After {early} evaluations {named(names[first])} is ahead, with an average rank of "
        f"{ranks[first, early - 1]:.1f}; after {horizon} it is {named(names[0])}, with {ranks[0, -1]:.1f}. "
        f"Ranks are among {len(names)} methods with the same number of evaluations, over {found.runs} runs on "
        f"{found.tasks} tasks; equal regrets share a rank."
    )


def _rank_numbers(names: Sequence[str], ranks: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Table:
    counts = checkpoints(ranks.shape[1])
    columns = (Column("method", numeric=False), *(Column(f"after {count}") for count in counts))
    rows = tuple(
        (word(named(name)), *(number(float(row[count - 1])) for count in counts))
        for name, row in zip(names, ranks, strict=True)
    )
    return Table("Average rank after evaluations", columns, (rows,))


def difference_figure(contest: Contest) -> Figure | None:
    """Return which average ranks differ at the end; None with fewer than two complete methods or two tasks."""
    if len(contest.complete) < 2 or contest.tasks < 2:
        return None
    test = rank_test({outcome.method: outcome.runs_at(contest.horizon) for outcome in contest.complete})
    names = list(test.methods)
    axis = name_axis(names)
    axis["tickvals"] = [-1, *axis["tickvals"]]
    axis["ticktext"] = ["critical difference", *axis["ticktext"]]
    axis["range"] = [len(names) - 0.5, -1.7]
    end = float(test.ranks[0] + test.difference)
    return Figure(
        "Which methods differ by more than chance?",
        _difference_seen(contest, test),
        (*_rank_traces(test, end), *_bar_traces(test)),
        {
            "xaxis": {"title": {"text": "average rank (1 is best)"}, "domain": [0, 0.8], "zeroline": False},
            "xaxis2": {"domain": [0.84, 1], "visible": False, "range": [-0.7, max(len(test.alike), 1) - 0.3]},
            "yaxis": axis,
        },
        _difference_numbers(test),
        height=rows_height(len(names) + 1),
    )


def _rank_traces(test: RankTest, end: float) -> list[Spec]:
    count = len(test.methods)
    scale = {
        "x": decimals([test.ranks[0], end]),
        "y": [-1, -1],
        "mode": "lines+markers",
        "line": {"color": "@ink", "width": 3},
        "marker": {"color": "@ink", "size": 11, "symbol": "line-ns-open"},
        "hoverinfo": "skip",
    }
    limit = {
        "x": decimals([end, end]),
        "y": [-1, count - 0.5],
        "mode": "lines",
        "line": {"color": "@grey", "width": 1.5, "dash": "2px,3px"},
        "hoverinfo": "skip",
    }
    dots = {
        "x": decimals(test.ranks, ROUNDED_AGAIN),
        "y": list(range(count)),
        "customdata": [named(name, IN_HOVER) for name in test.methods],
        "mode": "markers",
        "marker": {"color": "@blue", "size": 9},
        "hovertemplate": DOT_HOVER,
    }
    return [limit, scale, dots]


def _bar_traces(test: RankTest) -> list[Spec]:
    """A bar over the rows of each group of methods that cannot be told apart."""
    places = {name: place for place, name in enumerate(test.methods)}
    bars: list[Spec] = []
    for number_, group in enumerate(test.alike):
        rows = list(range(places[group[0]], places[group[-1]] + 1))
        bars.append(
            {
                "x": [number_] * len(rows),
                "y": rows,
                "xaxis": "x2",
                "customdata": [f"{named(group[0], IN_HOVER)} to {named(group[-1], IN_HOVER)}"] * len(rows),
                "mode": "lines",
                "line": {"color": "@vermillion", "width": 5},
                "hovertemplate": BAR_HOVER,
            }
        )
    return bars


def _difference_seen(contest: Contest, test: RankTest) -> str:
    best, groups = test.methods[0], [group for group in test.alike if test.methods[0] in group]
    beside = len(groups[0]) - 1 if groups else 0
    worse = [name for name in test.methods if not groups or name not in groups[0]]
    worse = [name for name in worse if name != best]
    found = f"{beside} of {len(test.methods) - 1} others are within the critical difference of {test.difference:.2f}"
    behind = f", {listed(worse)} {'are' if len(worse) > 1 else 'is'} behind by more" if worse else ""
    p = "< 0.001" if test.p < 0.001 else f"= {test.p:.2g}"
    friedman = "differ" if test.p < ALPHA else "do not differ"
    left_out = [outcome.method for outcome in contest.outcomes if outcome not in contest.complete]
    absent = f" Without all tasks or repetitions, so not shown: {listed(left_out)}." if left_out else ""
    return (
        f"{named(best)} has the lowest average rank, {test.ranks[0]:.2f}; {found}{behind}. Over {test.tasks} tasks the "
        f"ranks as a whole {friedman} (Friedman's test, p {p}). Bars at the right join methods that cannot be told "
        f"apart (Nemenyi's test, {ALPHA:.0%}).{absent}"
    )


def _difference_numbers(test: RankTest) -> Table:
    rows = []
    for name, rank in zip(test.methods, test.ranks.tolist(), strict=True):
        groups = [str(place) for place, group in enumerate(test.alike, start=1) if name in group]
        rows.append((word(named(name)), number(rank), word(", ".join(groups) or "none")))
    columns = (Column("method", numeric=False), Column("average rank"), Column("groups it is in", numeric=False))
    return Table("Average rank at the end, and groups that cannot be told apart", columns, (tuple(rows),))
