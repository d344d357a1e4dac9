"""The page that compares chosen tasks of a problem: results, courses, similarity, distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from recollect._text import name_list, plural
from recollect.analysis import memory_tasks
from recollect.analysis.memory_tasks import StoredTask, read_memory_contents
from recollect.errors import InputError
from recollect.report.figure import Figure
from recollect.report.formatting import IN_HOVER, join_names, number_text, printable
from recollect.report.html import tag
from recollect.report.memory.memory_page import NO_COMPARISON, PageLinks, best_config_table, task_link
from recollect.report.memory.progress_figure import task_progress_figure
from recollect.report.memory.task_figures import similarity_figure
from recollect.report.page import Page, Part, Section
from recollect.report.run.hero import number_card
from recollect.storage.memory import Memory

KICKER = "Comparison"
MAX_CARDS = 3
BESIDE_MAP = 540  # pixels of a figure beside the square map


def compare_page(
    memory: Memory,
    problem: str | None,
    tasks: Sequence[str],
    *,
    links: PageLinks | None = None,
    jobs: int | None = None,
) -> Page:
    """Return the page of chosen tasks; problem None: of whichever problem has each; InputError if one is missing."""
    names = list(dict.fromkeys(tasks))
    contents = read_memory_contents(memory, problem)
    chosen = [task for task in contents.tasks if task.name in names]
    if missing := [name for name in names if name not in {task.name for task in chosen}]:
        where = f"problem {problem!r} of {memory.store.name}" if problem is not None else memory.store.name
        raise InputError(f"{where}: there is no task {name_list(map(repr, missing))}")
    if len(chosen) < 2:
        raise InputError(f"compare: expected at least two tasks, got {plural(len(chosen), 'task')}")
    models = memory_tasks.model_tasks(chosen, jobs)
    columns = () if models is None else models.space.names
    parts: dict[str, list[Part]] = {
        "Side by side": [*_cards(chosen), best_config_table(chosen, columns, task_link(links))],
        "Figures": _figures(chosen, models),
    }
    sections = [Section(title, tuple(own)) for title, own in parts.items()]
    title = join_names([task.name for task in chosen], most=4)
    where = f"Problem: {printable(problem)}." if problem is not None else "Tasks of a memory."
    lead = f"{where} {plural(len(chosen), 'task')} side by side."
    return Page(title, lead, tuple(sections), printable(memory.store.name), KICKER)


def _cards(tasks: Sequence[StoredTask]) -> list[Part]:
    """Return the best values of a few tasks, set large."""
    if len(tasks) > MAX_CARDS:
        return []
    values = [(task, None if task.run.best is None else task.run.best.value) for task in tasks]
    cards = [
        number_card(
            f"Best value of {printable(task.name, IN_HOVER)}", "none yet" if value is None else number_text(value),
            task.counts,
        )
        for task, value in values
    ]  # fmt: skip
    return [tag("div", {"class": "hero"}, *cards)]


def _figures(tasks: Sequence[StoredTask], models: memory_tasks.TaskModels | None) -> list[Part]:
    figures: list[Figure | None] = [task_progress_figure(tasks)]
    if models is not None:
        similarity = memory_tasks.task_similarity(models)
        figures.append(similarity_figure(models.tasks, similarity, memory_tasks.similarity_order(similarity)))
    found = [figure for figure in figures if figure is not None]
    parts: list[Part] = [
        replace(figure, wide=False, height=BESIDE_MAP) if len(found) > 1 else figure for figure in found
    ]
    return parts or [tag("p", {}, NO_COMPARISON)]
