"""How fast good values were found, and how fast they would have been found without transfer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from recollect.history.run import Run
from recollect.numerics.arrays import FloatArray
from recollect.report.figure import Figure, Key, Spec, decimals
from recollect.report.names import named
from recollect.report.run.expectation import CLOSE, Expectation, expect, paired_values, reached
from recollect.report.run.values import ValueAxis, best_values, counted, numbers, percent, shown, thinned, value_axis
from recollect.report.story import Paired, Story
from recollect.report.table import Column, Table, number

QUESTION = "Did it find good values sooner than without transfer?"
ROWS, DOTS, CROSSES = 40, 300, 100  # rows of the table of numbers; trials that are drawn
ALONE = "How soon were good values found?"
HOVER = "<b>trial %{x}</b><br>value %{customdata}<extra></extra>"
BEST_HOVER = "<b>after %{x} trials</b><br>best value %{customdata}<extra></extra>"
FAILED_HOVER = "<b>trial %{x}</b><br>failed<extra></extra>"
BESIDE_HOVER = "<b>after %{x} trials</b><br>%{customdata}<extra></extra>"


@dataclass(slots=True)
class _Drawing:
    """Traces and the keys that name them."""

    traces: list[Spec] = field(default_factory=list)
    keys: list[Key] = field(default_factory=list)

    def add(self, label: str, *traces: Spec, colour: str, dash: str = "") -> None:
        first = len(self.traces)
        self.traces += traces
        self.keys.append(Key(label, tuple(range(first, len(self.traces))), colour, dash))


def progress_figure(story: Story) -> Figure | None:
    """Return the best value over trials, beside what is expected without transfer; None without any value."""
    run = story.run
    if run.best is None:
        return None
    expected = None if story.paired is not None else expect(story)
    beside = None if story.paired is None else paired_values(story.paired, len(run))
    axis = value_axis(run, beside)
    drawing = _Drawing()
    if expected is not None:
        drawing.add(_past_label(expected), *_band(expected), colour="grey", dash="9px,3px")
    if story.paired is not None and beside is not None:
        drawing.add(_paired_label(story.paired), _beside(beside), colour="grey", dash="9px,3px")
    drawing.add("single trials", _dots(run), colour="sky")
    if len(run.succeeded) < len(run):
        drawing.add("failed trials", _crosses(run, axis), colour="vermillion")
    drawing.add("best value so far", _best_line(run), colour="blue")
    compared = expected is not None or story.paired is not None
    return Figure(
        QUESTION if compared else ALONE,
        _seen(story, expected),
        tuple(drawing.traces),
        {
            "xaxis": {"title": {"text": "trials"}, "range": [0.5, len(run) + 0.5]},
            "yaxis": axis.layout(_title(run)),
            "margin": {"r": 24},
        },
        _numbers(story, expected, beside),
        keys=tuple(reversed(drawing.keys)),
    )


def _title(run: Run) -> str:
    return f"value ({'lower' if run.direction == 'minimize' else 'higher'} is better)"


def _past_label(expected: Expectation) -> str:
    return f"{expected.runs}{' without transfer' if expected.alone else ''}, scaled to this task"


def _paired_label(paired: Paired) -> str:
    return f"the same task without transfer ({named(paired.problem, 40)}, {named(paired.method, 30)})"


def _best_line(run: Run) -> Spec:
    """The best value so far, as steps: a point for each improvement, and the end."""
    best = best_values(run)
    changed = np.flatnonzero(np.isfinite(best) & (np.append(np.nan, best[:-1]) != best))
    rows = np.unique(np.append(changed, len(best) - 1))
    return {
        "x": (rows + 1).tolist(),
        "y": decimals(best[rows], 6),
        "customdata": [shown(value) for value in best[rows].tolist()],
        "mode": "lines+markers",
        "line": {"color": "@blue", "width": 2.6, "shape": "hv"},
        "marker": {"color": "@blue", "size": 5},
        "hovertemplate": BEST_HOVER,
    }


def _dots(run: Run) -> Spec:
    values = numbers(run)
    known = np.flatnonzero(np.isfinite(values))
    ok = known[thinned(len(known), DOTS)]
    return {
        "x": (ok + 1).tolist(),
        "y": decimals(values[ok], 6),
        "customdata": [shown(value) for value in values[ok].tolist()],
        "mode": "markers",
        "marker": {"color": "@sky:0.75", "size": 6},
        "hovertemplate": HOVER,
    }


def _crosses(run: Run, axis: ValueAxis) -> Spec:
    every = [place + 1 for place, trial in enumerate(run.trials) if not trial.ok]
    failed = [every[place] for place in thinned(len(every), CROSSES)]
    return {
        "x": failed,
        "y": [decimals(axis.failed, 6)] * len(failed),
        "mode": "markers",
        "marker": {"color": "@vermillion", "size": 8, "symbol": "x-thin-open", "line": {"width": 2}},
        "hovertemplate": FAILED_HOVER,
    }


def _band(expected: Expectation) -> list[Spec]:
    x = np.arange(1.0, len(expected.middle) + 1.0)
    band = {
        "x": decimals(np.concatenate([x, x[::-1]]), 6),
        "y": decimals(np.concatenate([expected.better, expected.worse[::-1]]), 6),
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": "@grey:0.15",
        "hoverinfo": "skip",
    }
    return [band, _beside(expected.middle)]


def _beside(values: FloatArray) -> Spec:
    known = np.flatnonzero(np.isfinite(values))
    return {
        "x": (known + 1).tolist(),
        "y": decimals(values[known], 6),
        "customdata": [f"without transfer, as far as it is known: {shown(value)}" for value in values[known].tolist()],
        "mode": "lines",
        "line": {"color": "@grey", "width": 2, "dash": "9px,3px", "shape": "hv"},
        "hovertemplate": BESIDE_HOVER,
    }


def _seen(story: Story, expected: Expectation | None) -> str:
    run = story.run
    assert run.best is not None
    when = run.trials.index(run.best) + 1
    sentence = f"The best value, {shown(run.best.value)}, was found in trial {when} of {len(run)}."
    hidden = max(len(run.succeeded) - DOTS, 0) + max(len(run) - len(run.succeeded) - CROSSES, 0)
    if hidden:
        sentence += f" {hidden:,} single trials are not drawn."
    if story.paired is not None:
        return f"{sentence} {_against(run, story.paired)}"
    if expected is None:
        return sentence
    first = f"Of its first {counted(expected.length, 'trial')} it" if expected.length < len(run) else "It"
    that = "their best" if expected.length < len(run) else "that"
    typical = int(np.ceil(np.median(expected.needed)))
    return (
        f"{sentence} {first} needed {expected.own} to come within {percent(CLOSE)} of {that}, measured by the range of "
        f"its values; half of {expected.runs} needed {typical} or more for the same in their own range. Dashed: the "
        "median of these past runs, band: the middle half of them, each drawn between the best and the worst of these "
        "values of this run. They show how fast past runs came down, not what they would have found here. "
        f"{expected.made}"
    )


def _against(run: Run, paired: Paired) -> str:
    other = paired_values(paired, len(run))
    last = float(other[-1])
    if not np.isfinite(last):
        return "The same task without transfer had no value in as many trials."
    how = f"The same task without transfer (problem {named(paired.problem, 40)}, method {named(paired.method, 30)})"
    when = reached(run, last)
    there = "this run never was" if when is None else f"this run was there after {counted(when, 'trial')}"
    at_end = f"had {shown(last)} after {counted(len(other), 'trial')}"
    return f"{how} {at_end}; {there}. It is one run of each, so that chance plays a part."


def _numbers(story: Story, expected: Expectation | None, beside: FloatArray | None) -> Table:
    run = story.run
    best = best_values(run)
    rows = []
    for count in (place + 1 for place in thinned(len(run), ROWS)):
        cells = [number(count, ",.0f"), number(float(best[count - 1]), ".4g")]
        for line in _lines(expected, beside):
            cells.append(number(float(line[count - 1]) if count <= len(line) else None, ".4g"))
        rows.append(tuple(cells))
    columns = [Column("trials"), Column("best value")]
    if beside is not None:
        columns.append(Column("without transfer"))
    if expected is not None:
        columns += [Column(f"past runs, scaled: {part}") for part in ("better quarter", "median", "worse quarter")]
    return Table("Best value after trials", tuple(columns), (tuple(rows),))


def _lines(expected: Expectation | None, beside: FloatArray | None) -> list[FloatArray]:
    found = [] if beside is None else [beside]
    return found if expected is None else [*found, expected.better, expected.middle, expected.worse]
