"""The page of a memory: all tasks of a problem, or all problems."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np

from recollect._text import name_list, plural
from recollect.analysis import memory_tasks
from recollect.analysis.memory_tasks import MemoryContents, RecommendedPortfolio, StoredTask, TaskModels, ended, started
from recollect.analysis.source_usefulness import transfer_matrix
from recollect.analysis.trial_records import STATES, RecordState
from recollect.errors import InputError
from recollect.report.formatting import IN_TEXT, join_names, printable
from recollect.report.html import Attributes, Html, joined, tag
from recollect.report.memory.progress_figure import task_progress_figure
from recollect.report.memory.task_figures import similarity_figure, source_influence_table, transfer_figure
from recollect.report.page import Page, Part, Section
from recollect.report.run.hero import config_card, number_card
from recollect.report.table import MINUTE, Table, Values, date_cell, link_cell, param_cell, param_column, simple_table
from recollect.runs.run import Config
from recollect.storage.memory import Memory

KICKER = "Memory overview"
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
MAX_LINE = 100  # characters in a line of the text field
DATE_COLUMNS = (("first trial", "d"), ("last trial", "d"))
BEST_COLUMN = ("best value", ".6g")
TaskLink: TypeAlias = Callable[[StoredTask], str | None]  # the URL of a task's report; None if there is none
EMPTY = (Section("Nothing yet", (tag("p", {}, "The memory holds no runs yet."),)),)


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Functions that return URLs: of a problem's, a task's and a comparison's page; others' studies have no problem."""

    problem: Callable[[str], str]
    run: Callable[[str | None, str], str]
    compare: Callable[[str | None], str]  # of a problem; the names of tasks are added to it


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
    sections += _other_studies(contents, links)
    return Page(printable(chosen), LEAD, tuple(sections), storage, KICKER)


def _list_page(contents: MemoryContents, links: PageLinks, storage: str) -> Page:
    """Return the page that only links to others."""
    tables = (problem_table(contents, links.problem), latest_table(contents, task_link(links)))
    sections = (Section("Problems", (_contents_hero(contents), *tables)),) if contents.problems else ()
    title = "All problems" if contents.problems or not contents.tasks else "All studies"
    return Page(title, LEAD, (*sections, *_other_studies(contents, links)) or EMPTY, storage, KICKER)


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
    title = join_names(contents.problems, most=3) if sections else "Nothing yet"
    return Page(title, LEAD, (*sections, *_other_studies(contents, None)) or EMPTY, storage, KICKER)


def _problem(
    tasks: Sequence[StoredTask], jobs: int | None, *, multi_objective: int = 0, links: PageLinks | None = None
) -> dict[str, list[Part]]:
    """Return the parts of a problem's sections, by title."""
    models = memory_tasks.model_tasks(tasks, jobs)
    sentences = [*_times(tasks), *_space(tasks, models)]
    modelled = set() if models is None else set(models.tasks)
    if left_out := [task.name for task in tasks if task.name not in modelled]:
        names = join_names(left_out)
        sentences.append(f"Without a model, since fewer than two comparable trials succeeded: {names}.")
    if multi_objective:
        sentences.append(f"Left out: {plural(multi_objective, 'study', 'studies')} with several objectives.")
    portfolio = None if models is None else memory_tasks.recommended_portfolio(models)
    items = tag("ul", {"class": "facts"}, *(tag("li", {}, text) for text in sentences))
    groups: dict[str, list[Part]] = {"At a glance": [_hero(tasks, portfolio), items]}
    columns = () if models is None else models.space.names
    if portfolio is not None and portfolio.configs:
        button = {"type": "button", "class": "button", "data-copy": configs_json(portfolio.configs)}
        table = replace(portfolio_table(portfolio, columns), action=tag("button", button, "Copy all as JSON"))
        shown = tag("details", {}, tag("summary", {}, "As JSON"), portfolio_json(portfolio))
        groups[PORTFOLIO_TITLE] = [tag("p", {}, PORTFOLIO_LEAD), table, shown]
    progress = task_progress_figure(tasks)
    table = best_config_table(tasks, columns, task_link(links))
    groups["Best configurations"] = [_comparable(table, tasks, links), *([] if progress is None else [progress])]
    groups["How tasks are related"] = _relations(tasks, models, links)
    return groups


def _trial_card(tasks: Sequence[StoredTask]) -> Html:
    counts = {state: sum(task.counts[state] for task in tasks) for state in STATES}
    return number_card("Trials", f"{sum(counts.values()):,}", counts)


def _contents_hero(contents: MemoryContents) -> Html:
    """Return the numbers of a whole memory."""
    tasks = [task for task in contents.tasks if task.problem is not None]
    cards = [number_card("Problems", f"{len(contents.problems):,}", {}), number_card("Tasks", f"{len(tasks):,}", {})]
    return tag("div", {"class": "hero numbers"}, *cards, _trial_card(tasks))


def _hero(tasks: Sequence[StoredTask], portfolio: RecommendedPortfolio | None) -> Html:
    """Return the numbers of a problem, and what to try first."""
    cards = [number_card("Tasks", f"{len(tasks):,}", {}), _trial_card(tasks)]
    if portfolio is not None and portfolio.configs:
        cards.append(config_card("Try this first on a new task", portfolio.configs[0]))
    return tag("div", {"class": "hero numbers"}, *cards)


def _comparable(table: Table, tasks: Sequence[StoredTask], links: PageLinks | None) -> Table:
    """Return a table whose rows, one for each task, can be chosen for a comparison."""
    if links is None or len(tasks) < 2:
        return table
    rows = []
    for row, task in zip(table.blocks[0], tasks, strict=True):
        choose = {"type": "checkbox", "data-task": task.name, "aria-label": f"Compare {printable(task.name)}"}
        rows.append((replace(row[0], content=joined([tag("input", choose), " ", row[0].content])), *row[1:]))
    url = links.compare(tasks[0].problem)
    attributes: Attributes = {"type": "button", "class": "button compare", "disabled": True, "data-url": url}
    button = tag("button", attributes, "Compare chosen tasks")
    return replace(table, blocks=(tuple(rows),), action=button)


def _relations(tasks: Sequence[StoredTask], models: TaskModels | None, links: PageLinks | None) -> list[Part]:
    figure, order = None, []
    if models is not None:
        similarity = memory_tasks.task_similarity(models)
        places = memory_tasks.similarity_order(similarity)
        order = [models.tasks[place] for place in places]
        figure = similarity_figure(models.tasks, similarity, places)
    matrix = transfer_matrix(tasks)
    if matrix is None:
        wide = None if figure is None else replace(figure, wide=True, numbers_shown=True)
        return [wide or tag("p", {}, NO_COMPARISON), tag("p", {}, NO_WEIGHTS)]
    parts: list[Part] = [tag("p", {}, NO_COMPARISON) if figure is None else figure]
    by_name = {task.name: task for task in tasks}
    link = task_link(links)
    urls = {name: link(by_name[name]) for name in matrix.sources if name in by_name}
    return [*parts, transfer_figure(matrix, order), source_influence_table(matrix, urls)]


def _other_studies(contents: MemoryContents, links: PageLinks | None) -> tuple[Section, ...]:
    studies = contents.tasks_of(None)
    if not studies:
        return ()
    table = _comparable(other_studies_table(studies, task_link(links)), studies, links)
    lead = tag("p", {}, "recollect did not make these studies, but new runs can learn from them as well.")
    if contents.problems:
        return (Section("Other studies", (lead, table)),)
    hero = tag("div", {"class": "hero numbers"}, number_card("Studies", f"{len(studies):,}", {}), _trial_card(studies))
    return (Section("Studies", (hero, lead, table)),)


def task_link(links: PageLinks | None) -> TaskLink:
    """Return the function that gives the URL of a task's page."""
    if links is None:
        return lambda _: None
    return lambda task: links.run(task.problem, task.name)


def _times(tasks: Sequence[StoredTask]) -> list[str]:
    """Say when trials ran, and what is better."""
    first, last = started(tasks), ended(tasks)
    sentences = []
    if first is not None and last is not None:
        sentences.append(f"First trial: {first.strftime(MINUTE)}. Last trial: {last.strftime(MINUTE)}.")
    directions = {task.run.direction for task in tasks}
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
    facts = TaskFacts.of(tasks)
    columns = (("task", ""), BEST_COLUMN, ("problem", ""), *facts.columns)
    rows = [
        (link_cell(task.name, link(task)), _best_value(task), printable(task.problem or ""), *facts.cells(task))
        for task in tasks
    ]
    return simple_table("Tasks, the latest first", columns, rows)


def other_studies_table(studies: Sequence[StoredTask], link: TaskLink) -> Table:
    """Return studies of other programs."""
    facts = TaskFacts.of(studies)
    rows = [(link_cell(study.name, link(study)), _best_value(study), *facts.cells(study)) for study in studies]
    return simple_table("Studies of other programs", (("study", ""), BEST_COLUMN, *facts.columns), rows)


def best_config_table(tasks: Sequence[StoredTask], names: Sequence[str], link: TaskLink) -> Table:
    """Return the best configuration of each task; names: hyperparameters that come first, in this order."""
    configs = [{} if task.run.best is None else task.run.best.config for task in tasks]
    shown = [name for name in names if any(name in config for config in configs)]
    shown += dict.fromkeys(name for config in configs for name in config if name not in names)
    facts = TaskFacts.of(tasks)
    params = [param_column(name, [config.get(name) for config in configs]) for name in shown]
    rows = []
    for task, config in zip(tasks, configs, strict=True):
        cells = [param_cell(config.get(name)) for name in shown]
        rows.append((link_cell(task.name, link(task)), _best_value(task), *cells, *facts.cells(task)))
    columns = [("task", ""), BEST_COLUMN, *params, *facts.columns]
    return simple_table("Which configuration was best on each task?", columns, rows)


def _best_value(task: StoredTask) -> float | None:
    return None if task.run.best is None else task.run.best.value


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What tables say about tasks besides their best: numbers of trials, dates and, if tasks differ, the direction."""

    states: tuple[RecordState, ...]  # that have a column
    mixed: bool  # whether directions differ

    @classmethod
    def of(cls, tasks: Sequence[StoredTask]) -> TaskFacts:
        """Return the facts that say something about these tasks."""
        rare: tuple[RecordState, ...] = ("pruned", "running")
        seen = tuple(state for state in rare if any(task.counts[state] for task in tasks))
        return cls(("failed", *seen), len({task.run.direction for task in tasks}) > 1)

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Their columns."""
        counts = [(state, "d") for state in self.states]
        return [("trials", "d"), *counts, *([("direction", "")] if self.mixed else []), *DATE_COLUMNS]

    def cells(self, task: StoredTask) -> Values:
        """Return the cells of a task."""
        counts = [task.counts[state] for state in self.states]
        direction = [task.run.direction] if self.mixed else []
        return [len(task.run), *counts, *direction, date_cell(task.started), date_cell(task.ended)]


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
        "Further configurations would close less than 0.1% of the gap, so the list ends here."
        if portfolio.stopped
        else "",
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
