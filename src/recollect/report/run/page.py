"""The page of one run: how it went, what past runs had to do with it, what mattered, what failed, how it was tuned."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.report.html import tag
from recollect.report.names import named
from recollect.report.page import Page, Part, Section, render, write_page
from recollect.report.run.axes import axes
from recollect.report.run.importance import FEWEST, Importance, importance, importance_figure
from recollect.report.run.lines import lines_figure
from recollect.report.run.past_table import past_table, past_words
from recollect.report.run.progress import progress_figure
from recollect.report.run.slices import slices_figures
from recollect.report.run.tables import (
    best_copy,
    best_table,
    failure_table,
    failure_words,
    settings_table,
    space_table,
)
from recollect.report.run.teachers import teachers
from recollect.report.run.weights import Weighed, weighed, weight_figure
from recollect.report.run.words import at_a_glance
from recollect.report.story import Story, read_story, story_of

if TYPE_CHECKING:
    from recollect.history.memory import Memory
    from recollect.tuning.result import Result


def report_run(memory: Memory, problem: str | None, task: str) -> Page:
    """Return the page of a task in a memory; problem None: whichever problem has it."""
    return run_report(read_story(memory, problem, task))


def write_report(result: Result, path: str | os.PathLike[str]) -> None:
    """Write the page of a result."""
    write_page(render(run_report(story_of(result))), Path(path))


def run_report(story: Story) -> Page:
    """Return the page of a run."""
    found = weighed(story)
    important = importance(story)
    sections = [
        Section("At a glance", tuple(_glance(story, found))),
        *_section("Past runs", _past(story, found)),
        *_section("Hyperparameters", _hyperparameters(story, important)),
        *_section("Failed trials", _failures(story)),
        Section("Settings", tuple(part for part in (settings_table(story), space_table(story)) if part is not None)),
    ]
    lead = f"Problem: {named(story.problem)}. " if story.problem else ""
    return Page(f"Tuning report: {named(story.run.task)}", f"{lead}{_about(story)}", tuple(sections), _source(story))


def _about(story: Story) -> str:
    return (
        "How the run went, what it learned from past runs, and what can be learned from it. "
        "Each figure answers the question above it."
        if story.run.trials
        else "No trial has ended yet."
    )


def _source(story: Story) -> str:
    trials = f"{len(story.run):,} trial{'s' * (len(story.run) != 1)}"
    return f"{trials} in {named(story.source)}" if story.source else trials


def _section(title: str, parts: list[Part]) -> list[Section]:
    return [Section(title, tuple(parts))] if parts else []


def _glance(story: Story, found: Weighed | None) -> list[Part]:
    items = [tag("li", {}, sentence) for sentence in at_a_glance(story, found)]
    if story.run.best is not None:
        items.append(best_copy(story.run.best))
    parts: list[Part] = [tag("ul", {}, *items)]
    figures = (progress_figure(story), None if found is None else weight_figure(found))
    parts += [figure for figure in figures if figure is not None]
    if story.run.best is not None:
        parts.append(best_table(story.run.best))
    return parts


def _past(story: Story, found: Weighed | None) -> list[Part]:
    method = story.method
    if method is None or not method.transfers or story.space is None or not (story.past or found):
        return []
    known = teachers(story, method, found)
    trials = len(story.run.succeeded)
    return [tag("p", {}, past_words(known, trials)), past_table(known, trials)]


def _hyperparameters(story: Story, important: Importance | None) -> list[Part]:
    drawn = axes(story, () if important is None else tuple(important.parts))
    figures = [
        lines_figure(story, drawn),
        None if important is None else importance_figure(important, story),
        *slices_figures(story, drawn),
    ]
    parts: list[Part] = [figure for figure in figures if figure is not None]
    every = 0 if story.space is None else int(story.space.varying.sum())
    if parts and len(drawn) < every:
        parts.insert(0, tag("p", {}, f"The {len(drawn)} most important of {every} hyperparameters are drawn."))
    if parts and important is None:
        parts.insert(0, tag("p", {}, f"Importance needs {FEWEST} trials with values that differ."))
    return parts


def _failures(story: Story) -> list[Part]:
    table = failure_table(story.run)
    return [] if table is None else [tag("p", {}, failure_words(story.run)), table]
