"""The page of a memory: all tasks of a problem, or all problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np

from recollect._text import name_list, plural
from recollect.analysis import memory_tasks
from recollect.analysis.memory_tasks import MemoryContents, RecommendedPortfolio, StoredTask, TaskModels, ended, started
from recollect.analysis.source_usefulness import transfer_matrix
from recollect.errors import InputError
from recollect.report.formatting import IN_TEXT, join_names, printable
from recollect.report.html import Html, tag
from recollect.report.memory.task_figures import similarity_figure, source_influence_table, transfer_figure
from recollect.report.page import Page, Part, Section
from recollect.report.table import MINUTE, Table, Values, date_cell, link_cell, param_cell, param_column, simple_table
from recollect.runs.run import Config
from recollect.storage.memory import Memory

LEAD = "What past runs know: which tasks are alike, which helped others, and what to try first on a new one."
MAX_TASKS = 300  # that one page shows in full, so that it stays below 6 MB
PORTFOLIO_TITLE = "Try these first"
PORTFOLIO_LEAD = (
    "The configurations that past tasks recommend together for a new task, in this order. Each was tried on one of "
    "them, and each adds what the ones before lack."
)
TOO_LARGE = "Problems without a link are too large for this page; --problem NAME writes a page of one problem."
NO_COMPARISON = "Comparing tasks needs two of them with at least two successful trials each."
NO_WEIGHTS = "No trial records the weights of past tasks, so it is unknown which tasks learned from which."
MAX_CHANGES, MAX_SENTENCE = 5, 4 * IN_TEXT  # tasks of other spaces for which changes are listed; characters of each
MAX_ROWS = 50
MAX_LINE = 100  # characters in a line of the text field
DATE_COLUMNS = (("first trial", "d"), ("last trial", "d"))
TASK_COLUMNS = (("trials", "d"), ("failed", "d"), ("best value", ".6g"), ("direction", ""), *DATE_COLUMNS)
TaskLink: TypeAlias = Callable[[StoredTask], str | None]  # the URL of a task's report; None if there is none
EMPTY = (Section("Nothing yet", (tag("p", {}, "The memory holds no runs yet."),)),)


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Functions that return the URL of a problem's page and of a task's page; studies of others have no problem."""

    problem: Callable[[str], str]
    run: Callable[[str | None, str], str]


def memory_page(
    memory: Memory, problem: str | None = None, *, links: PageLinks | None = None, jobs: int | None = None
) -> Page:
    """Return the page of a problem of a memory, or of all; InputError if the memory does not have the problem.

    With links to other pages, the page of all problems only lists them. jobs: processes that fit models, None for one
    per core.
    """
    storage = printable(memory.store.name)
    if problem is None and links is not None:
        return _list_page(memory_tasks.read_memory_contents(memory, spaces=False), links, storage)
    contents = memory_tasks.read_memory_contents(memory, problem)
    if problem is None and len(contents.problems) != 1:
        return _all_problems_page(contents, storage, jobs)
    if problem is not None and not contents.tasks:
        problems = memory_tasks.read_memory_contents(memory, spaces=False).problems
        there = f"its problems are {name_list(map(repr, problems))}" if problems else "it has no problems"
        raise InputError(f"{memory.store.name}: there is no problem {problem!r}; {there}")
    chosen = contents.problems[0] if problem is None else problem
    tasks = contents.tasks_of(chosen)
    groups = _problem(tasks, jobs, multi_objective=contents.multi_objective, links=links)
    sections = [Section(title, tuple(parts)) for title, parts in groups.items()]
    return Page(f"Memory overview: {printable(chosen)}", LEAD, (*sections, *_other_studies(contents, links)), storage)


def _list_page(contents: MemoryContents, links: PageLinks, storage: str) -> Page:
    """Return the page that only links to others."""
    tables = (problem_table(contents, links.problem), latest_table(contents, _task_link(links)))
    sections = (Section("Problems", tables),) if contents.problems else ()
    return Page("Memory overview", LEAD, (*sections, *_other_studies(contents, links)) or EMPTY, storage)


def _all_problems_page(contents: MemoryContents, storage: str, jobs: int | None) -> Page:
    """Return the page of all problems, as many as fit."""
    sections: list[Section] = []
    anchors: dict[str, str] = {}
    shown = 0
    for name in contents.problems:
        tasks = contents.tasks_of(name)
        if shown + len(tasks) <= MAX_TASKS or not sections:
            shown += len(tasks)
            anchors[name] = f"#section-{len(sections) + 2}"  # the first one is the list
            parts: list[Part] = []
            for title, group in _problem(tasks, jobs).items():
                parts += [tag("h3", {}, title), *group] if title == PORTFOLIO_TITLE else group
            sections.append(Section(printable(name), tuple(parts)))
    if sections:
        listing: list[Part] = [problem_table(contents, anchors.get)]
        listing += [tag("p", {}, TOO_LARGE)] if len(anchors) < len(contents.problems) else []
        sections.insert(0, Section("Problems", tuple(listing)))
    title = f"Memory overview: {join_names(contents.problems, most=3)}" if sections else "Memory overview"
    return Page(title, LEAD, (*sections, *_other_studies(contents, None)) or EMPTY, storage)


def _problem(
    tasks: Sequence[StoredTask], jobs: int | None, *, multi_objective: int = 0, links: PageLinks | None = None
) -> dict[str, list[Part]]:
    """Return the parts of a problem's sections, by title."""
    models = memory_tasks.model_tasks(tasks, jobs)
    sentences = [*_amount(tasks), *_space(tasks, models)]
    modelled = set() if models is None else set(models.tasks)
    if left_out := [task.name for task in tasks if task.name not in modelled]:
        names = join_names(left_out)
        sentences.append(f"Without a model, since fewer than two comparable trials succeeded: {names}.")
    if multi_objective:
        sentences.append(f"Left out: {plural(multi_objective, 'study', 'studies')} with several objectives.")
    groups: dict[str, list[Part]] = {"At a glance": [tag("ul", {}, *(tag("li", {}, text) for text in sentences))]}
    portfolio = None if models is None else memory_tasks.recommended_portfolio(models)
    columns = () if models is None else models.space.names
    if portfolio is not None and portfolio.configs:
        copy = [tag("p", {}, "To copy, as JSON:"), portfolio_json(portfolio)]
        groups[PORTFOLIO_TITLE] = [tag("p", {}, PORTFOLIO_LEAD), portfolio_table(portfolio, columns), *copy]
    groups["How tasks are related"] = _relations(tasks, models)
    groups["Best configurations"] = [best_config_table(tasks, columns, _task_link(links))]
    return groups


def _relations(tasks: Sequence[StoredTask], models: TaskModels | None) -> list[Part]:
    figure, order = None, []
    if models is not None:
        similarity = memory_tasks.task_similarity(models)
        places = memory_tasks.similarity_order(similarity)
        order = [models.tasks[place] for place in places]
        figure = similarity_figure(models.tasks, similarity, places)
    parts: list[Part] = [tag("p", {}, NO_COMPARISON) if figure is None else figure]
    matrix = transfer_matrix(tasks)
    if matrix is None:
        return [*parts, tag("p", {}, NO_WEIGHTS)]
    return [*parts, transfer_figure(matrix, order), source_influence_table(matrix)]


def _other_studies(contents: MemoryContents, links: PageLinks | None) -> tuple[Section, ...]:
    studies = contents.tasks_of(None)
    if not studies:
        return ()
    count = plural(len(studies), "past run")
    lead = tag("p", {}, f"{count} of other programs can be learned from, too, but belong to no problem.")
    return (Section("Other studies", (lead, other_studies_table(studies, _task_link(links)))),)


def _task_link(links: PageLinks | None) -> TaskLink:
    if links is None:
        return lambda _: None
    return lambda task: links.run(task.problem, task.name)


def _amount(tasks: Sequence[StoredTask]) -> list[str]:
    """Say how much there is, from when, and what is better."""
    trials, failed = sum(len(task.run) for task in tasks), sum(task.failed for task in tasks)
    amount = f"{plural(len(tasks), 'task')} with {plural(trials, 'trial')}"
    amount += f", of which {failed:,} failed" if failed else ", none of which failed" if trials else ""
    first, last = started(tasks), ended(tasks)
    if first is not None and last is not None:
        amount += f", from {first.strftime(MINUTE)} to {last.strftime(MINUTE)}"
    directions = {task.run.direction for task in tasks}
    sentences = [f"{amount}."]
    if len(directions) > 1:
        sentences.append("Some tasks are minimized, others maximized; they are compared by what is better.")
    elif directions == {"maximize"}:
        sentences.append("Higher values are better.")
    return sentences


def _space(tasks: Sequence[StoredTask], models: TaskModels | None) -> list[str]:
    if models is None:
        return []
    common, names = models.common, join_names(models.space.names)
    if common.inferred:
        sentence = f"No task has a stored search space; it is inferred from all that was tried: {names}."
    elif common.tasks == len(tasks):
        sentence = f"{'All tasks share' if len(tasks) > 1 else 'The task has'} one search space: {names}."
    else:
        sentence = (
            f"Tasks have different search spaces. They are compared in the most common one, that of {common.tasks} of "
            f"{len(tasks)} tasks: {names}. Trials of the other tasks were carried over by value."
        )
    changed = [(task, alignment) for task, alignment in models.alignments.items() if not alignment.identical]
    changes = [f"{printable(task)}: {printable(str(alignment), MAX_SENTENCE)}" for task, alignment in changed]
    if len(changes) > MAX_CHANGES:
        changes = [*changes[:MAX_CHANGES], f"{plural(len(changes) - MAX_CHANGES, 'more task')} were changed likewise."]
    return [sentence, *changes]


def problem_table(contents: MemoryContents, link: Callable[[str], str | None]) -> Table:
    """Return all problems; link: the URL of a problem, None if there is none."""
    rows = []
    for name in contents.problems:
        tasks = contents.tasks_of(name)
        counts = (len(tasks), sum(len(task.run) for task in tasks), sum(task.failed for task in tasks))
        rows.append((link_cell(name, link(name)), *counts, date_cell(started(tasks)), date_cell(ended(tasks))))
    columns = (("problem", ""), ("tasks", "d"), ("trials", "d"), ("failed", "d"), *DATE_COLUMNS)
    return simple_table("Problems in this memory", columns, rows)


def latest_table(contents: MemoryContents, link: TaskLink) -> Table:
    """Return the tasks whose last trials ended last."""
    tasks = [task for task in contents.tasks if task.problem is not None]
    tasks.sort(key=lambda task: task.ended or datetime.min, reverse=True)
    shown = tasks[:MAX_ROWS]
    rows = [(link_cell(task.name, link(task)), printable(task.problem or ""), *_facts(task)) for task in shown]
    note = f"The latest {MAX_ROWS} of {len(tasks)} tasks." if len(tasks) > MAX_ROWS else ""
    return simple_table("Tasks, the latest first", (("task", ""), ("problem", ""), *TASK_COLUMNS), rows, note)


def other_studies_table(studies: Sequence[StoredTask], link: TaskLink) -> Table:
    """Return studies of other programs."""
    rows = [(link_cell(study.name, link(study)), *_facts(study)) for study in studies[:MAX_ROWS]]
    note = f"The first {MAX_ROWS} of {len(studies)}." if len(studies) > MAX_ROWS else ""
    return simple_table("Studies of other programs", (("study", ""), *TASK_COLUMNS), rows, note)


def best_config_table(tasks: Sequence[StoredTask], names: Sequence[str], link: TaskLink) -> Table:
    """Return the best configuration of each task; names: hyperparameters that come first, in this order."""
    configs = [{} if task.run.best is None else task.run.best.config for task in tasks]
    shown = [name for name in names if any(name in config for config in configs)]
    shown += dict.fromkeys(name for config in configs for name in config if name not in names)
    mixed = len({task.run.direction for task in tasks}) > 1
    trials, failed, value, direction, *dates = TASK_COLUMNS
    params = [param_column(name, [config.get(name) for config in configs]) for name in shown]
    columns = [("task", ""), value, *([direction] if mixed else []), *params, trials, failed, *dates]
    rows = []
    for task, config in zip(tasks, configs, strict=True):
        count, failures, best, way, *moments = _facts(task)
        cells = [param_cell(config.get(name)) for name in shown]
        name = link_cell(task.name, link(task))
        rows.append((name, best, *([way] if mixed else []), *cells, count, failures, *moments))
    return simple_table("Which configuration was best on each task?", columns, rows)


def _facts(task: StoredTask) -> Values:
    """Return the cells of TASK_COLUMNS."""
    value = None if task.run.best is None else task.run.best.value
    return len(task.run), task.failed, value, task.run.direction, date_cell(task.started), date_cell(task.ended)


def portfolio_table(portfolio: RecommendedPortfolio, names: Sequence[str]) -> Table:
    """Return the configurations; names: hyperparameters in the order of the columns."""
    configs = portfolio.configs
    shown = [name for name in names if any(name in config for config in configs)]
    params = [param_column(name, [config.get(name) for config in configs]) for name in shown]
    numbers = enumerate(zip(configs, portfolio.gaps, portfolio.best_for, strict=True), start=1)
    rows: list[Values] = [
        (place, *(param_cell(config.get(name)) for name in shown), 100 * float(gap), int(tasks))
        for place, (config, gap, tasks) in numbers
    ]
    tasks = f"the {portfolio.tasks} tasks" if portfolio.tasks > 1 else "the only task"
    return simple_table(
        "Good on these tasks together",
        [("try", "d"), *params, ("gap after it, %", ".1f"), ("best for", "d")],
        rows,
        "Gap after it: predicted distance from the best configuration tried so far to the best that each task has "
        f"seen, in percent of the range from its best to its worst value, averaged over {tasks}.",
        "Best for: number of tasks on which it is predicted to be the best of these.",
    )


def portfolio_json(portfolio: RecommendedPortfolio) -> Html:
    """Return the configurations as JSON in a text field, for copying."""
    text = configs_json(portfolio.configs)
    lines = text.splitlines()
    size = {"rows": len(lines), "cols": min(max(map(len, lines)) + 2, MAX_LINE)}
    style = {"wrap": "off", "spellcheck": "false", "aria-label": "Configurations to try first, as JSON"}
    return tag("textarea", {"class": "frame", "readonly": True, **size, **style}, text)


def configs_json(configs: Sequence[Config]) -> str:
    """Return configurations as a JSON list, one per line."""

    def plain(value: Any) -> Any:
        return value.item() if isinstance(value, np.generic) else str(value)

    lines = [f"  {json.dumps(config, ensure_ascii=False, default=plain)}" for config in configs]
    return "[\n" + ",\n".join(lines) + "\n]"
