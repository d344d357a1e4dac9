"""The page of one run: how it went, what past runs contributed, what mattered, what failed, how it was tuned."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from recollect._text import plural
from recollect.analysis.headline import headline
from recollect.analysis.importance import MIN_TRIALS, Importance, importance
from recollect.analysis.run_data import RunData, read_run_data, run_data_of
from recollect.analysis.run_summary import run_summary
from recollect.analysis.source_usefulness import (
    RankAgreement,
    WeightHistory,
    prior_history,
    rank_agreement,
    source_predictions,
    source_usefulness,
    weight_history,
)
from recollect.report.formatting import printable
from recollect.report.html import tag
from recollect.report.page import Page, Part, Section, render, write_page
from recollect.report.run.axes import hyperparameter_axes
from recollect.report.run.contour_figure import contour_figure
from recollect.report.run.hero import hero
from recollect.report.run.hyperparameter_figures import importance_figure, slice_figures
from recollect.report.run.parallel_coordinates import parallel_coordinates_figure
from recollect.report.run.progress_figures import progress_figure
from recollect.report.run.run_tables import (
    failure_summary,
    failure_table,
    settings_table,
    source_summary,
    source_table,
    space_table,
)
from recollect.report.run.trial_explorer import TaskUrl, trial_explorer
from recollect.report.run.trial_figures import (
    distribution_figure,
    intermediate_figure,
    prediction_figure,
    timeline_figure,
)
from recollect.report.run.weight_figures import prior_figure, weight_figure
from recollect.report.table import MINUTE

if TYPE_CHECKING:
    from recollect.storage.memory import Memory
    from recollect.tuning.result import Result

KICKER, NO_TRIALS = "Tuning report", " No trial has ended yet."
MAX_SENTENCE = 1000  # characters
MAX_SHOWN_ROWS = 8  # of a table that is open at first
RunLink = Callable[[str | None, str], str]  # the URL of a task's page, given its problem and its name


def run_page(memory: Memory, problem: str | None, task: str, *, link: RunLink | None = None) -> Page:
    """Return the page of a task in a memory; with problem None, of whichever problem has it; link: to other tasks."""
    return page_of_run(read_run_data(memory, problem, task), link=link)


def write_run_report(result: Result, path: str | os.PathLike[str]) -> None:
    """Write the page of a result."""
    write_page(render(page_of_run(run_data_of(result))), Path(path))


def page_of_run(data: RunData, *, link: RunLink | None = None) -> Page:
    """Return the page of a run; link: to the pages of past runs, if there are any."""
    history, important, method = weight_history(data), importance(data), data.method
    learned = method is not None and method.transfers and data.space is not None and bool(data.past or history)
    agreement = rank_agreement(data, method, history) if learned and method is not None else None

    def source_link(task: str) -> str | None:
        return None if link is None else link(data.problem, task)

    failures, tables = failure_table(data), (settings_table(data), space_table(data))
    contents: dict[str, list[Part]] = {
        "At a glance": _glance(data, history, agreement),
        "Past runs": _past_runs(data, history, agreement, source_link),
        "Hyperparameters": _hyperparameters(data, important),
        "Trials": _trials(data, source_link),
        "Failed trials": [] if failures is None else [tag("p", {}, failure_summary(data.run)), failures],
        "Settings": [table for table in tables if table is not None],
    }
    sections = [Section(title, tuple(parts)) for title, parts in contents.items() if parts]
    problem = f"Problem: {printable(data.problem)}." if data.problem else "An Optuna study."
    how = f" Method: {method.name}." if method is not None else ""
    last = f" Last trial: {data.times[1].strftime(MINUTE)}." if data.times else "" if data.records else NO_TRIALS
    lead = f"{problem}{how}{last}"
    trials = plural(len(data.run), "trial")
    source = f"{trials} in {printable(data.storage)}" if data.storage else trials
    return Page(printable(data.run.task), lead, tuple(sections), source, KICKER)


def _glance(data: RunData, history: WeightHistory | None, agreement: RankAgreement | None) -> list[Part]:
    prior, progress = prior_history(data), progress_figure(data)
    weights = None if history is None else weight_figure(history) if prior is None else prior_figure(prior)
    if progress is not None and weights is None:
        progress = replace(progress, wide=True)
    summary = [tag("li", {}, printable(sentence, MAX_SENTENCE)) for sentence in run_summary(data, history)]
    details = tag("details", {}, tag("summary", {}, "More about this run"), tag("ul", {}, *summary))
    return [hero(headline(data, agreement), details), *(part for part in (progress, weights) if part is not None)]


def _past_runs(
    data: RunData, history: WeightHistory | None, agreement: RankAgreement | None, link: TaskUrl
) -> list[Part]:
    if agreement is None or data.method is None:
        return []
    sources, trials = source_usefulness(data, data.method, history, agreement), len(data.run.succeeded)
    parts: list[Part] = [tag("p", {}, source_summary(sources, trials)), source_table(sources, trials, link)]
    if history is not None and prior_history(data) is not None:
        parts.append(replace(weight_figure(history, prior=True), wide=True))
    return parts


def _trials(data: RunData, link: TaskUrl) -> list[Part]:
    if not data.records:
        return []
    predictions = None if data.method is None else source_predictions(data, data.method)
    found = (intermediate_figure(data), prediction_figure(data), distribution_figure(data))
    figures = [figure for figure in found if figure is not None]
    if len(figures) % 2:  # instead of half an empty row
        figures[0] = replace(figures[0], wide=True)
    lanes = timeline_figure(data)
    return [trial_explorer(data, predictions, link), *([] if lanes is None else [lanes]), *figures]


def _hyperparameters(data: RunData, important: Importance | None) -> list[Part]:
    names = () if important is None else tuple(important.shares)
    axes = hyperparameter_axes(data, names)
    slices = slice_figures(data, axes)
    bars = None if important is None else importance_figure(important)
    if bars is not None and len(slices) < 2:  # beside the contours, which are twice as high
        bars = replace(bars, numbers_shown=len(names) <= MAX_SHOWN_ROWS)
    found = (
        parallel_coordinates_figure(data, axes),
        bars,
        *slices[1:],
        contour_figure(data, axes, names),
        *slices[:1],
    )
    figures = [figure for figure in found if figure is not None]
    if sum(not figure.wide for figure in figures) % 2:  # instead of half an empty row
        figures[-1] = replace(figures[-1], wide=True)
    parts: list[Part] = [*figures]
    varying = 0 if data.space is None else int(data.space.varying.sum())
    if parts and len(axes) < varying:
        parts.insert(0, tag("p", {}, f"The figures show the {len(axes)} most important of {varying} hyperparameters."))
    if parts and important is None:
        parts.insert(0, tag("p", {}, f"Importance needs {MIN_TRIALS} trials with values that differ."))
    return parts
