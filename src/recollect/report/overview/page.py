"""The page on a memory: all tasks of a problem, or all problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recollect.errors import InputError
from recollect.history.memory import Memory
from recollect.report.html import Html, tag
from recollect.report.names import listed, named
from recollect.report.overview.best import best_table
from recollect.report.overview.first import make_portfolio, portfolio_table, to_copy
from recollect.report.overview.likeness import agreement_of, likeness_figure, neighbours_first
from recollect.report.overview.listing import foreign_table, latest_table, problem_table
from recollect.report.overview.models import Models, model_tasks
from recollect.report.overview.reading import Holdings, Told, read_holdings
from recollect.report.overview.teaching import gather_lessons, teacher_table, teaching_figure
from recollect.report.overview.words import at_a_glance, count
from recollect.report.page import Page, Part, Section

LEAD = "What past runs know: which tasks are alike, which of them helped others, and what to try first on a new one."
MOST_TASKS = 300
"""Tasks that one page tells of in full; a page is to stay below 6 MB."""

FIRST = "Try these first"
FIRST_LEAD = (
    "Before anything is known of a new task, these configurations, in this order, are the ones that past tasks "
    "recommend together: each was tried on one of them, and each adds what the ones before lack."
)
COPY = "To copy, as JSON:"
TOO_LARGE = "Problems without a link are too large to be told of here; --problem NAME makes a page of one."
EMPTY = (Section("Nothing yet", (tag("p", {}, "The memory holds no runs yet."),)),)


@dataclass(frozen=True, slots=True)
class Links:
    """Where other pages are, if there are others: that of a problem, and that of a task.

    A task without a problem is a study that recollect did not make.
    """

    problem: Callable[[str], str]
    run: Callable[[str | None, str], str]


def overview_page(
    memory: Memory, problem: str | None = None, *, links: Links | None = None, jobs: int | None = None
) -> Page:
    """Return the page on a problem of a memory, or on all; InputError if the memory does not have that problem.

    With links, the page on all problems only lists them, and names lead to the pages on problems and tasks. ``jobs``:
    processes that fit models, None for as many as there are cores.
    """
    source = named(memory.store.name)
    if problem is None and links is not None:
        return _listing(read_holdings(memory, spaces=False), links, source)
    holdings = read_holdings(memory, problem)
    if problem is None and len(holdings.problems) != 1:
        return _all_problems(holdings, source, jobs)
    if problem is not None and not holdings.tasks:
        there = read_holdings(memory, spaces=False).problems
        known = f"its problems are {', '.join(map(repr, there[:8]))}" if there else "it has none"
        raise InputError(f"{memory.store.name}: there is no problem {problem!r}: {known}")
    chosen = holdings.problems[0] if problem is None else problem
    tasks = holdings.of(chosen)
    groups = _problem(tasks, model_tasks(tasks, jobs), several=holdings.several, links=links)
    sections = [Section(title, tuple(parts)) for title, parts in groups]
    return Page(f"Memory overview: {named(chosen)}", LEAD, (*sections, *_foreign(holdings, links)), source)


def _listing(holdings: Holdings, links: Links, source: str) -> Page:
    """Return the page that only leads to others."""
    tables = (problem_table(holdings, links.problem), latest_table(holdings, _link(links)))
    sections = (Section("Problems", tables),) if holdings.problems else ()
    return Page("Memory overview", LEAD, (*sections, *_foreign(holdings, links)) or EMPTY, source)


def _all_problems(holdings: Holdings, source: str, jobs: int | None) -> Page:
    """Return the page that tells of all problems, as many as it can hold."""
    sections: list[Section] = []
    places: dict[str, str] = {}
    told = 0
    for name in holdings.problems:
        tasks = holdings.of(name)
        if told + len(tasks) <= MOST_TASKS or not sections:
            told += len(tasks)
            places[name] = f"#section-{len(sections) + 2}"  # the first one is the list
            parts: list[Part] = []
            for title, group in _problem(tasks, model_tasks(tasks, jobs)):
                parts += [tag("h3", {}, title), *group] if title == FIRST else group
            sections.append(Section(named(name), tuple(parts)))
    if sections:
        listing: list[Part] = [problem_table(holdings, places.get)]
        listing += [tag("p", {}, TOO_LARGE)] if len(places) < len(holdings.problems) else []
        sections.insert(0, Section("Problems", tuple(listing)))
    title = f"Memory overview: {listed(holdings.problems, most=3)}" if sections else "Memory overview"
    return Page(title, LEAD, (*sections, *_foreign(holdings, None)) or EMPTY, source)


def _problem(
    tasks: Sequence[Told], models: Models | None, *, several: int = 0, links: Links | None = None
) -> list[tuple[str, list[Part]]]:
    """Return what is said of a problem: titles, and what stands below them."""
    glance = at_a_glance(tasks, models, several)
    groups: list[tuple[str, list[Part]]] = [("At a glance", [_sentences(glance)])]
    if models is not None:
        portfolio = make_portfolio(models)
        if portfolio.configs:
            table = portfolio_table(portfolio, models.space.names)
            copy = tag("p", {}, COPY)
            groups.append((FIRST, [tag("p", {}, FIRST_LEAD), table, copy, to_copy(portfolio)]))
    groups.append(("How tasks are related", _relations(tasks, models)))
    names = () if models is None else models.space.names
    groups.append(("Best configurations", [best_table(tasks, names, _link(links))]))
    return groups


def _relations(tasks: Sequence[Told], models: Models | None) -> list[Part]:
    parts: list[Part] = []
    order: list[str] = []
    if models is not None:
        agreement = agreement_of(models)
        places = neighbours_first(agreement)
        order = [models.tasks[place] for place in places]
        figure = likeness_figure(models, agreement, places)
        parts += [] if figure is None else [figure]
    if not parts:
        parts.append(tag("p", {}, "Two tasks with at least two successful trials each are needed to compare them."))
    lessons = gather_lessons(tasks)
    if lessons is None:
        none = "No trial notes which past tasks stood behind it, so nothing can be said of which tasks taught which."
        return [*parts, tag("p", {}, none)]
    return [*parts, teaching_figure(lessons, order), teacher_table(lessons)]


def _foreign(holdings: Holdings, links: Links | None) -> tuple[Section, ...]:
    studies = holdings.of(None)
    if not studies:
        return ()
    sentence = (
        f"{count(len(studies), 'past run')} that other tools made can be learned from, too; they belong to no problem."
    )
    return (Section("Other studies", (tag("p", {}, sentence), foreign_table(studies, _link(links)))),)


def _link(links: Links | None) -> Callable[[Told], str | None]:
    if links is None:
        return lambda _: None
    return lambda told: links.run(told.problem, told.task)


def _sentences(sentences: Sequence[str]) -> Html:
    return tag("ul", {}, *(tag("li", {}, sentence) for sentence in sentences))
