"""The demonstration's second part: 35 data sets, each in turn new and the others past, because one says little.

It is an experiment as `recollect bench run` makes them, on a benchmark of the embedded suite: errors are looked up in
tables of real trainings, past runs are random search. The learner is one for which past runs bring much, and the user
is told so; in the same experiment on own-svm they bring hardly anything.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recollect.cli.progress import bars
from recollect.system import cores

if TYPE_CHECKING:
    from rich.table import Table

    from recollect.bench.study import Outcome

BENCHMARK, TRIALS, POINTS = "own-xgboost", 20, (5, 10, 20)
OURS, PLAIN = "rgpe-taf", "gp"
BETTER, WORSE, UNCLEAR = "better", "worse", "no clear difference"
ALPHA = 0.05

INTRODUCTION = """\
[bold]One data set says little: now {tasks} of them, each in turn new, the others past[/bold]

Gradient boosting with {count} hyperparameters. Errors are looked up in tables of
real trainings; a past run is {each} trials of random search.
"""


def replay(seed: int, methods: Sequence[str], past_trials: int) -> Mapping[str, Outcome]:
    """Return what came out for each method on all data sets."""
    from recollect.bench.conduct import conduct
    from recollect.bench.engines import Local
    from recollect.bench.plan import PastSource, Plan, Spec
    from recollect.bench.results import gather
    from recollect.bench.study import make_study

    plan = Plan(tuple(methods), (Spec(BENCHMARK),), PastSource("random", past_trials), horizon=TRIALS, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        with bars("count", "elapsed") as progress:
            conduct(plan, Path(folder), engine=Local(cores()), progress=progress)
        return make_study(gather([Path(folder)])).outcomes[BENCHMARK]


def introduction(past_trials: int) -> str:
    """Say what is going to be done."""
    from recollect.bench.suite.store import load_suite

    suite = load_suite(BENCHMARK)
    return INTRODUCTION.format(tasks=len(suite.tasks), count=len(suite.space.names), each=past_trials)


def replay_table(found: Mapping[str, Outcome], names: Mapping[str, str]) -> Table:
    """Return the table of mean regrets, and on how many data sets past runs were better and worse."""
    from rich.table import Table

    tasks = len(found[OURS].tasks)
    title = f"Mean of {tasks} data sets: 0 the best error known, 100 the worst"
    table = Table(title=title, title_justify="left")
    table.add_column("after so many trials")
    for point in POINTS:
        table.add_column(str(point), justify="right")
    for method, name in names.items():
        cells = [f"{100 * found[method].adtm[point - 1]:.2f}" for point in POINTS]
        table.add_row(f"{name} ({method})", *cells, end_section=method == list(names)[-1])
    for rival in (name for name in names if name != OURS):
        counts = [_better_and_worse(found, rival, point) for point in POINTS]
        table.add_row(f"past runs better, worse than {rival}", *(f"{better}, {worse}" for better, worse, _ in counts))
    return table


def replay_verdict(found: Mapping[str, Outcome]) -> str:
    """Say where past runs were clearly better or worse than plain Bayesian optimization, and what they save."""
    words = {}
    for point in POINTS:
        better, worse, p = _better_and_worse(found, PLAIN, point)
        words[point] = UNCLEAR if p >= ALPHA else BETTER if better > worse else WORSE
    test = f"Wilcoxon's test over data sets, {ALPHA:.0%}"
    lines = [f"Past runs against plain Bayesian optimization: {by_word(words)} ({test})."]
    reached = np.flatnonzero(found[OURS].adtm <= found[PLAIN].adtm[-1])
    if reached.size and reached[0] + 1 < TRIALS:
        lines.append(f"What it reaches after {TRIALS} trials is reached with past runs after {reached[0] + 1}.")
    lines.append("For this learner past runs bring much, for others less or nothing: docs/results.md has more of them.")
    return "\n".join(lines)


def by_word(words: Mapping[int, str]) -> str:
    """Say after how many trials past runs were better, worse or neither."""
    where = {word: [point for point in words if words[point] == word] for word in (BETTER, WORSE, UNCLEAR)}
    return ", ".join(f"{word} after {listed(points)} trials" for word, points in where.items() if points)


def listed(numbers: Sequence[int]) -> str:
    """Return numbers as one says them."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def _better_and_worse(found: Mapping[str, Outcome], rival: str, point: int) -> tuple[int, int, float]:
    """On how many data sets past runs are better and worse after so many trials, and p."""
    from recollect.bench.significance import signed_rank

    ours, theirs = found[OURS].at(point), found[rival].at(point)
    a, b = (np.array([regrets[task] for task in sorted(ours)]) for regrets in (ours, theirs))
    return int((a < b).sum()), int((a > b).sum()), signed_rank(a, b)
