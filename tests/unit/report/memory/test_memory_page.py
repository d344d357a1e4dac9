"""The page of a memory: its parts, what it leaves out, and names from outside."""

from __future__ import annotations

import json
import re

import numpy as np
import optuna
import pytest
from tests.helpers.drawings import check_caption, figures_of
from tests.helpers.example_memory import COMPILED, example_run, points, slope

from recollect import FAILED, Memory, Run
from recollect.errors import InputError
from recollect.report.html import Html
from recollect.report.memory.memory_page import PageLinks, configs_json, memory_page
from recollect.report.page import Page, render
from recollect.report.table import Table
from recollect.space.space import compile_space


@pytest.fixture
def memory() -> Memory:
    return Memory(optuna.storages.InMemoryStorage())


SCRIPT = "<script>alert(1)</script>"


HOSTILE = (SCRIPT, "\"><img src=x onerror='alert(2)'>", "\u202eedisni", "a/b%2Fc?d#e", "n" * 400)


def text_of(page: Page) -> str:
    """The page as readers have it: no scripts, no marks."""
    body = render(page).partition("<body>")[2].partition("</footer>")[0]
    return re.sub(r"<[^>]*>", " ", re.sub(r"<script.*?</script>", "", body, flags=re.DOTALL))


def tables(page: Page) -> dict[str, Table]:
    return {part.title: part for section in page.sections for part in section.parts if isinstance(part, Table)}


LINKS = PageLinks(lambda p: f"/p?{p}", lambda p, task: f"/r?{p}&{task}", lambda p: f"/c?problem={p}")


def titles(page: Page) -> list[str]:
    return [section.title for section in page.sections]


def test_a_page_has_all_its_parts_and_says_what_there_is(memory: Memory) -> None:
    for number, task in enumerate(("a", "b", "c")):
        memory.add(example_run(task, seed=number), "svm")
    page = memory_page(memory, "svm")
    assert titles(page) == ["At a glance", "Try these first", "Best configurations", "How tasks are related"]
    text = text_of(page)
    assert "36 finished" in text
    assert "All tasks share one search space: x and y." in text
    assert "No trial records the weights of past tasks" in text
    assert "Which tasks are alike?" in text
    field = re.search(r"<textarea[^>]*readonly[^>]*>(.*?)</textarea>", render(page), re.DOTALL)
    assert field is not None
    assert len(json.loads(field[1].replace("&quot;", '"'))) == len(
        tables(page)["Good on these tasks together"].blocks[0]
    )
    assert titles(memory_page(memory)) == titles(page), "the only problem need not be named"
    for figure in figures_of(page):
        check_caption(figure)


def test_best_configurations_are_those_of_the_runs_with_links_if_there_are_pages(memory: Memory) -> None:
    memory.add(example_run("a"), "svm")
    memory.add(example_run("b", direction="maximize"), "svm")
    memory.add(Run("c", points(2), [FAILED, FAILED], space=COMPILED), "svm")
    table = tables(memory_page(memory, "svm", links=LINKS))["Which configuration was best on each task?"]
    headings = [column.heading for column in table.columns]
    assert headings == [*("task", "best value", "x", "y", "trials", "failed", "direction", "first trial", "last trial")]
    rows = table.blocks[0]
    assert '<a href="/r?svm&amp;a">a</a>' in str(rows[0][0].content)
    assert 'data-task="a"' in str(rows[0][0].content)
    assert table.action is not None
    assert 'data-url="/c?problem=svm"' in table.action.text
    values = [slope(config) for config in points()]
    assert [row[1].sort_key for row in rows] == [min(values), max(values), None]
    assert rows[1][2].sort_key == points()[int(np.argmax(values))]["x"]
    assert [cell.content for cell in rows[2][2:6]] == ["–", "–", "2", "2"]


def test_trials_that_run_are_counted_on_the_pages_of_a_memory(memory: Memory) -> None:
    memory.add(example_run("a"), "svm")
    memory.add(example_run("b", seed=1), "svm")
    optuna.load_study(storage=memory.store.optuna, study_name="svm/b").ask()
    for page in (memory_page(memory, links=LINKS), memory_page(memory, "svm")):
        assert "1 running" in text_of(page)
    latest = tables(memory_page(memory, links=LINKS))["Tasks, the latest first"]
    headings = [column.heading for column in latest.columns]
    assert "direction" not in headings, "all tasks have the same"
    assert "pruned" not in headings, "there are none"
    running = {row[0].sort_key: row[headings.index("running")].sort_key for row in latest.blocks[0]}
    assert running == {"a": 0.0, "b": 1.0}


def test_tasks_of_other_spaces_are_carried_over_and_that_is_said(memory: Memory) -> None:
    memory.add(example_run("a"), "svm")
    memory.add(example_run("b", seed=1), "svm")
    narrow = compile_space({"x": (0.0, 1.0)})
    memory.add(Run("c", [{"x": k / 9} for k in range(10)], [float(k) for k in range(10)], space=narrow), "svm")
    text = text_of(memory_page(memory, "svm"))
    assert "the most common one, that of 2 of 3 tasks: x and y." in text
    assert "c: In the 10 configurations kept, the default was filled in for &#x27;y&#x27; (10)." in text


def test_tasks_without_a_space_are_compared_in_the_one_that_holds_them(memory: Memory) -> None:
    memory.add(example_run("a", space=None), "svm")
    memory.add(example_run("b", space=None, seed=1), "svm")
    text = text_of(memory_page(memory, "svm"))
    assert "No task has a stored search space" in text
    assert "Which tasks are alike?" in text


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_tasks_make_a_page_that_says_what_is_missing(memory: Memory, count: int) -> None:
    for number in range(count):
        memory.add(example_run(f"task {number}", seed=number), "svm")
    page = memory_page(memory)
    text = text_of(page)
    assert ("Which tasks are alike?" in text) == (count == 2)
    assert ("Comparing tasks needs two of them" in text) == (count == 1)
    assert ("The memory holds no runs yet." in text) == (count == 0)
    assert ("Try these first" in titles(page)) == (count > 0)


def test_tasks_with_too_few_trials_or_failures_only_are_named_as_left_out(memory: Memory) -> None:
    memory.add(Run("failed", points(3), [FAILED] * 3, space=COMPILED), "svm")
    memory.add(example_run("single", count=1), "svm")
    memory.add(example_run("empty", count=0), "svm")
    page = memory_page(memory, "svm")
    text = text_of(page)
    assert "3 failed" in text
    assert "fewer than two comparable trials succeeded: failed, single and empty." in text
    assert "Try these first" not in titles(page)
    assert len(tables(page)["Which configuration was best on each task?"].blocks[0]) == 3


def test_all_problems_are_on_one_page_with_a_list_that_leads_to_them(memory: Memory) -> None:
    memory.add(example_run("a"), "svm")
    memory.add(example_run("b"), "forest")
    optuna.create_study(storage=memory.store.optuna, study_name="somebody's")
    page = memory_page(memory)
    assert titles(page) == ["Problems", "svm", "forest", "Other studies"]
    links = [row[0].content for row in tables(page)["Problems in this memory"].blocks[0]]
    assert links == [Html('<a href="#section-2">svm</a>'), Html('<a href="#section-3">forest</a>')]
    assert render(page).count('id="section-3"') == 1
    assert [row[0].content for row in tables(page)["Studies of other programs"].blocks[0]] == ["somebody's"]


def test_problems_that_do_not_fit_are_only_listed(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.report.memory.memory_page.MAX_TASKS", 1)
    memory.add(example_run("a"), "svm")
    memory.add(example_run("b"), "forest")
    page = memory_page(memory)
    assert titles(page) == ["Problems", "svm"]
    assert "Problems without a link are too large for this page; --problem NAME" in text_of(page)


def test_with_other_pages_the_start_only_lists_and_links(memory: Memory) -> None:
    memory.add(example_run("a"), "svm")
    memory.add(example_run("b"), "svm")
    page = memory_page(memory, links=LINKS)
    assert list(tables(page)) == ["Problems in this memory", "Tasks, the latest first"]
    numbers = re.findall(r'class="value">([^<]*)<', render(page))
    assert numbers == ["1", "2", "24"], "problems, tasks and trials"
    latest = tables(page)["Tasks, the latest first"].blocks[0]
    assert [row[0].content for row in latest] == [Html(f'<a href="/r?svm&amp;{task}">{task}</a>') for task in "ba"]


def test_a_memory_of_optuna_studies_has_numbers_links_and_a_choice_to_compare(memory: Memory) -> None:
    for name in ("one", "two"):
        study = optuna.create_study(storage=memory.store.optuna, study_name=name)
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    page = memory_page(memory, links=LINKS)
    assert (page.title, titles(page)) == ("All studies", ["Studies"])
    table = tables(page)["Studies of other programs"]
    assert table.action is not None
    for row, name in zip(table.blocks[0], ("one", "two"), strict=True):
        assert f'data-task="{name}"' in str(row[0].content)
        assert f'href="/r?None&amp;{name}"' in str(row[0].content)
    assert re.findall(r'class="value">([^<]*)<', render(page)) == ["2", "6"], "studies and trials"


def test_a_problem_that_is_not_there_is_named_with_those_that_are(memory: Memory) -> None:
    memory.add(example_run("a"), "svm")
    with pytest.raises(InputError, match=r"InMemoryStorage: there is no problem 'forest'; its problems are 'svm'"):
        memory_page(memory, "forest")


def test_hostile_names_are_only_text(memory: Memory) -> None:
    problem = f"{SCRIPT}'\"&/%"
    for number, name in enumerate(HOSTILE):
        memory.add(example_run(name, seed=number), problem)
    for page in (
        memory_page(memory),
        memory_page(memory, links=PageLinks(lambda _: "/p", lambda _, __: "/r", lambda _: "/c")),
    ):
        text = render(page)
        assert text.count("<script>") == 4, "the page's own"
        assert "<img" not in text
        assert "\u202e" not in text_of(page)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_a_trial_that_does_not_belong_to_the_space_is_left_out_and_that_is_said(memory: Memory) -> None:
    memory.add(example_run("a"), "svm")
    memory.add(example_run("b", seed=1), "svm")
    study = optuna.load_study(storage=memory.store.optuna, study_name="svm/b")
    study.optimize(lambda trial: trial.suggest_categorical("x", ["elsewhere"]) == "", n_trials=1)
    page = memory_page(memory, "svm")
    text = text_of(page)
    assert "25 finished" in text
    assert "b: Dropped 1 of 13 configurations: &#x27;x&#x27; is not a finite number (1)." in text


def test_a_hundred_tasks_fit_on_a_page_below_6_megabytes(memory: Memory) -> None:
    runs = [example_run("", seed=seed) for seed in range(5)]  # copies of one run are one fit
    for number in range(100):
        memory.add(Run(f"a dataset with a long name, {number}", trials=runs[number % 5].trials, space=COMPILED), "svm")
    page = memory_page(memory, "svm")
    text = render(page)
    assert len(text.encode()) < 6_000_000
    assert len(text.encode()) - text.index("plotly.js v") < 5_400_000
    assert "1,200 finished" in text


def test_the_portfolio_to_copy_is_json_with_one_configuration_in_a_line() -> None:
    configs = [{"x": 0.1, "kernel": '</textarea><script>"'}, {"x": None, "flag": True}]
    assert json.loads(configs_json(configs)) == configs
    assert len(configs_json(configs).splitlines()) == 4
