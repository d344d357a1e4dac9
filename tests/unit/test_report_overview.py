"""The overview of a memory: what is read, compared, recommended and left out, checked against plain computations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from scipy.stats import spearmanr

from recollect import FAILED, Memory, Run, minimize
from recollect.errors import InputError
from recollect.history.reading import read_finished
from recollect.history.studies import entries
from recollect.report.html import Html
from recollect.report.overview import Links, overview_page
from recollect.report.overview.first import as_json, make_portfolio
from recollect.report.overview.grid import MOST, thinned, unique_names
from recollect.report.overview.likeness import agreement_of, likeness_figure, neighbours_first
from recollect.report.overview.models import Models, common_points, model_tasks
from recollect.report.overview.reading import Told, read_holdings
from recollect.report.overview.spaces import common_space, infer_space
from recollect.report.overview.teaching import gather_lessons, teacher_table, teaching_figure
from recollect.report.page import Page, render
from recollect.report.story import Note
from recollect.report.table import Table
from recollect.space.serial import to_json
from recollect.space.space import compile_space

SPACE: dict[str, Any] = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
COMPILED = compile_space(SPACE)
SCRIPT = "<script>alert(1)</script>"
HOSTILE = (SCRIPT, "\"><img src=x onerror='alert(2)'>", "\u202eedisni", "a/b%2Fc?d#e", "n" * 400)


def points(count: int = 12, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"x": float(a), "y": float(b)} for a, b in rng.random((count, 2))]


def slope(config: dict[str, Any]) -> float:
    return float(config["x"] + 0.2 * config["y"])


def run(task: str, function: Callable[[dict[str, Any]], float] = slope, **given: Any) -> Run:
    configs = points(given.pop("count", 12), given.pop("seed", 0))
    return Run(task, configs, [function(config) for config in configs], **{"space": COMPILED, **given})


def told(*runs: Run) -> list[Told]:
    return [Told("p", one, one.space, None, None, ()) for one in runs]


def modelled(*runs: Run) -> Models:
    models = model_tasks(told(*runs))
    assert models is not None
    return models


@pytest.fixture
def memory() -> Memory:
    return Memory(optuna.storages.InMemoryStorage())


def text_of(page: Page) -> str:
    """The page as readers have it: no scripts, no marks."""
    body = render(page).partition("<body>")[2].partition("</footer>")[0]
    return re.sub(r"<[^>]*>", " ", re.sub(r"<script.*?</script>", "", body, flags=re.DOTALL))


def tables(page: Page) -> dict[str, Table]:
    return {part.title: part for section in page.sections for part in section.parts if isinstance(part, Table)}


def titles(page: Page) -> list[str]:
    return [section.title for section in page.sections]


# What is read.


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a file"])
def test_runs_dates_and_failures_are_read_as_they_are_stored(memory: Memory, tmp_path: Path, stored: bool) -> None:
    memory = Memory(tmp_path / "tuning.db") if stored else memory
    memory.add(Run("a", points(3), [0.5, FAILED, 0.25], space=COMPILED), "svm")
    memory.add(run("b", direction="maximize"), "svm")
    optuna.create_study(storage=memory.store.optuna, study_name="somebody's")
    optuna.create_study(storage=memory.store.optuna, study_name="two", directions=["minimize", "maximize"])
    holdings = read_holdings(memory)
    assert [(one.problem, one.task, len(one.run), one.failed) for one in holdings.tasks] == [
        ("svm", "a", 3, 1), ("svm", "b", 12, 0), (None, "somebody's", 0, 0),
    ]  # fmt: skip
    assert holdings.several == 1
    assert holdings.problems == ("svm",)
    ids = {entry.task: entry.id for entry in entries(memory.store)}
    records = read_finished(memory.store, [ids["a"]], keys=())[ids["a"]]
    assert holdings.tasks[0].first == min(record.datetime_start for record in records if record.datetime_start)
    assert holdings.tasks[0].last == max(record.datetime_complete for record in records if record.datetime_complete)
    assert [one.task for one in read_holdings(memory, "svm").tasks] == ["a", "b"]
    assert [one.space is None for one in holdings.tasks] == [False, False, True]
    assert read_holdings(memory, spaces=False).tasks[0].space is None


def test_notes_with_weights_are_read_and_others_are_passed_over(tmp_path: Path) -> None:
    with Memory(tmp_path / "tuning.db") as memory:
        memory.add(run("first"), "svm")
        minimize(
            slope, SPACE, trials=5, memory=memory, problem="svm", task="second", method="rgpe-mean", progress=False
        )
        optuna_trial = memory.store.optuna.create_new_trial(entries(memory.store)[1].id)
        memory.store.optuna.set_trial_user_attr(optuna_trial, "recollect:influence", {"past": "nonsense", "target": 2})
        memory.store.optuna.set_trial_state_values(optuna_trial, optuna.trial.TrialState.FAIL)
        second = read_holdings(memory).tasks[1]
    assert len(second.run) == 6
    assert second.notes
    for note in second.notes:
        assert note.target is not None
        assert note.target + sum(note.past.values()) == pytest.approx(1, abs=0.01)
        assert set(note.past) | note.dropped <= {"first"}


# The common space.


def test_the_space_that_most_tasks_have_is_common_and_of_equals_the_newest() -> None:
    other = compile_space({"x": (0.0, 2.0)})
    two_to_one = common_space(told(run("a"), Run("b", [], [], space=other), run("c")))
    assert two_to_one is not None
    assert to_json(two_to_one.space) == to_json(COMPILED)
    assert (two_to_one.own, two_to_one.inferred) == (2, False)
    even = common_space(told(run("a"), Run("b", [], [], space=other)))
    assert even is not None
    assert to_json(even.space) == to_json(other)


def test_without_a_stored_space_it_holds_all_that_was_tried() -> None:
    configs = [{"c": 10.0**k, "n": k, "kernel": "rbf" if k else "poly", "flag": bool(k)} for k in range(-3, 4)]
    space = infer_space(configs)
    assert space is not None
    X = space.encode(configs)
    place = space.names.index("c")
    assert np.allclose(X[:, place], np.linspace(0, 1, 7)), "seven powers of ten are even on a log scale"
    assert space.decode(X) == configs
    assert infer_space([]) is None
    assert common_space(told(Run("a", [], []))) is None


def test_what_makes_no_range_is_left_out_of_an_inferred_space() -> None:
    space = infer_space([{"x": 0.0, "tiny": 1e-15}, {"x": 1.0, "tiny": 2e-15}])
    assert space is not None
    assert space.names == ("x",)


# Likeness.


def test_tasks_that_order_alike_oppositely_or_not_at_all() -> None:
    models = modelled(
        run("a"),
        run("a, stretched", lambda c: float(np.exp(3 * slope(c))), seed=1),
        run("upside down", lambda c: -slope(c), seed=2),
        run("flat", lambda _: 1.0),
        run("higher", lambda c: -slope(c), direction="maximize"),
    )
    agreement = agreement_of(models)
    assert agreement[0, 1] > 0.95
    assert agreement[0, 2] < -0.95
    assert agreement[0, 4] > 0.95, "higher is better there"
    assert np.isnan(agreement[3]).all()
    assert np.allclose(np.diag(agreement)[[0, 1, 2, 4]], 1)
    kept = [0, 1, 2, 4]
    reference = spearmanr(models.means[kept], axis=1).statistic
    assert np.allclose(agreement[np.ix_(kept, kept)], reference)


def test_common_points_hold_the_space_and_what_was_tried_each_once() -> None:
    X = COMPILED.encode(points(10))
    found = common_points(COMPILED, [X, X[:5]])
    assert len(found) == 512 + 10
    assert {tuple(row) for row in X} <= {tuple(row) for row in found}
    many = np.random.default_rng(0).random((5000, 2))
    assert len(common_points(COMPILED, [many])) == 512 + 1536


def test_similar_tasks_become_neighbours_and_flat_ones_come_last() -> None:
    groups = np.array([0, 1, 0, 1, 0, 1])
    agreement = np.where(groups[:, None] == groups[None], 0.9, -0.2)
    np.fill_diagonal(agreement, 1.0)
    agreement = np.pad(agreement, (0, 1), constant_values=np.nan)
    order = neighbours_first(agreement)
    assert sorted(order) == list(range(7))
    assert order[-1] == 6
    assert len({*groups[order[:3]]}) == len({*groups[order[3:6]]}) == 1
    assert list(neighbours_first(np.eye(2))) == [0, 1]


def test_the_heat_map_shows_the_correlations_in_that_order_and_says_the_extremes() -> None:
    models = modelled(run("a"), run("not a", lambda c: -slope(c)), run("also a", seed=3))
    agreement, order = agreement_of(models), np.array([0, 2, 1])
    figure = likeness_figure(models, agreement, order)
    assert figure is not None
    assert figure.traces[0]["y"] == ["a", "also a", "not a"]
    assert np.allclose(figure.traces[0]["z"], agreement[np.ix_(order, order)], atol=0.01)
    assert "Most alike are a and also a (" in figure.seen
    mean = np.mean([agreement[0, 1], agreement[0, 2], agreement[1, 2]])
    assert f"On average two tasks have {mean:.2f}." in figure.seen
    assert likeness_figure(models, agreement[:1, :1], np.array([0])) is None


def test_names_that_look_the_same_once_shortened_stay_apart_and_many_tasks_are_thinned() -> None:
    names = ["n" * 300 + "1" + "m" * 300, "n" * 300 + "2" + "m" * 300, "z"]
    assert len(set(unique_names(names))) == 3
    assert thinned(100) == list(range(100))
    assert len(set(thinned(1000))) == MOST
    assert (thinned(1000)[0], thinned(1000)[-1]) == (0, 999)


# Teaching.


def lesson(task: str, *notes: Note) -> Told:
    return Told("p", run(task), None, None, None, notes)


def test_weights_are_averaged_over_trials_and_missing_ones_are_nothing() -> None:
    tasks = [
        lesson("a"),
        lesson("b", Note("", 0.4, {"a": 0.6}), Note("", 1.0, {}, frozenset({"a"}))),
        lesson("c", Note("", 0.0, {"a": 0.2, "b": 0.8})),
    ]
    lessons = gather_lessons(tasks)
    assert lessons is not None
    assert (lessons.learners, lessons.teachers) == (("b", "c"), ("b", "a"))
    assert np.allclose(lessons.weights, [[0.0, 0.3], [0.8, 0.2]])
    assert np.allclose(lessons.own, [0.7, 0.0])
    assert np.allclose(lessons.dropped, [0.0, 1 / 3]), "a was dropped in one of three suggestions"
    assert gather_lessons(tasks[:1]) is None
    figure = teaching_figure(lessons, ["c", "b", "a"])
    assert figure.traces[0]["y"] == ["c", "b"]
    assert figure.traces[0]["z"] == [[80.0, 20.0], [0.0, 30.0]]
    assert "past tasks had 65% of the weight" in figure.seen
    assert "strongest single influence is b on c (80%); a taught most tasks (2)" in figure.seen
    rows = {str(row[0].shown): [cell.shown for cell in row[1:]] for row in teacher_table(lessons).blocks[0]}
    assert rows["a"] == ["2", "2", "25.0", "b", "30.0", "33"]
    assert rows["b"] == ["1", "1", "80.0", "c", "80.0", "0"]


def test_a_past_task_that_was_always_dropped_is_listed_as_such() -> None:
    lessons = gather_lessons([lesson("b", Note("", 1.0, {}, frozenset({"a"})))])
    assert lessons is not None
    assert [cell.shown for cell in teacher_table(lessons).blocks[0][0]] == ["a", "1", "0", "–", "", "–", "100"]
    assert "below 1% everywhere: a." in teaching_figure(lessons, []).seen


# What to try first.


def test_the_portfolio_is_greedy_on_the_predictions_of_all_tasks() -> None:
    models = modelled(run("left", lambda c: c["x"]), run("right", lambda c: -c["x"], seed=1))
    portfolio = make_portfolio(models, size=3)
    tried = np.concatenate([COMPILED.encode(points(12, seed)) for seed in (0, 1)])
    lows, highs = (np.array([f(models.sources.data(k).y) for k in range(2)])[:, None] for f in (np.min, np.max))
    P = (models.sources.means(tried) - lows) / (highs - lows)
    best, expected, gaps = np.full(2, np.inf), [], []
    for _ in range(3):
        reached = np.minimum(best[:, None], P).sum(axis=0)
        expected.append(tried[int(np.argmin(reached))])
        best = np.minimum(best, P[:, int(np.argmin(reached))])
        gaps.append(np.clip(best, 0, 1).mean())
    assert np.allclose(COMPILED.encode(portfolio.configs)[:2], expected[:2])
    assert np.allclose(portfolio.gaps, gaps)
    assert portfolio.served.sum() == 2
    assert portfolio.tasks == 2


def test_the_portfolio_to_copy_is_json_with_one_configuration_in_a_line() -> None:
    configs = [{"x": 0.1, "kernel": '</textarea><script>"'}, {"x": None, "flag": True}]
    assert json.loads(as_json(configs)) == configs
    assert len(as_json(configs).splitlines()) == 4


# The page.


def test_a_page_has_all_its_parts_and_says_what_there_is(memory: Memory) -> None:
    for number, task in enumerate(("a", "b", "c")):
        memory.add(run(task, seed=number), "svm")
    page = overview_page(memory, "svm")
    assert titles(page) == ["At a glance", "Try these first", "How tasks are related", "Best configurations"]
    text = text_of(page)
    assert "3 tasks with 36 trials, none of which failed, from " in text
    assert "All tasks share one search space: x and y." in text
    assert "No trial notes which past tasks stood behind it" in text
    assert "Which tasks are alike?" in text
    field = re.search(r"<textarea[^>]*readonly[^>]*>(.*?)</textarea>", render(page), re.DOTALL)
    assert field is not None
    assert len(json.loads(field[1].replace("&quot;", '"'))) == 8
    assert titles(overview_page(memory)) == titles(page), "the only problem need not be named"


def test_best_configurations_are_those_of_the_runs_with_links_if_there_are_pages(memory: Memory) -> None:
    memory.add(run("a"), "svm")
    memory.add(run("b", direction="maximize"), "svm")
    memory.add(Run("c", points(2), [FAILED, FAILED], space=COMPILED), "svm")
    links = Links(lambda problem: f"/p?{problem}", lambda problem, task: f"/r?{problem}&{task}")
    table = tables(overview_page(memory, "svm", links=links))["Which configuration was best on each task?"]
    headings = [column.heading for column in table.columns]
    assert headings == [*("task", "best value", "direction", "x", "y", "trials", "failed", "first trial", "last trial")]
    rows = table.blocks[0]
    assert rows[0][0].shown == Html('<a href="/r?svm&amp;a">a</a>')
    values = [slope(config) for config in points()]
    assert [row[1].order for row in rows] == [min(values), max(values), None]
    assert rows[1][3].order == points()[int(np.argmax(values))]["x"]
    assert [cell.shown for cell in rows[2][3:7]] == ["–", "–", "2", "2"]


def test_tasks_of_other_spaces_are_carried_over_and_that_is_said(memory: Memory) -> None:
    memory.add(run("a"), "svm")
    memory.add(run("b", seed=1), "svm")
    narrow = compile_space({"x": (0.0, 1.0)})
    memory.add(Run("c", [{"x": k / 9} for k in range(10)], [float(k) for k in range(10)], space=narrow), "svm")
    text = text_of(overview_page(memory, "svm"))
    assert "compared in the one that most have, 2 of 3, of equals the newest: x and y." in text
    assert "c: In the 10 configurations kept, the default was filled in for &#x27;y&#x27; (10)." in text


def test_tasks_without_a_space_are_compared_in_the_one_that_holds_them(memory: Memory) -> None:
    memory.add(run("a", space=None), "svm")
    memory.add(run("b", space=None, seed=1), "svm")
    text = text_of(overview_page(memory, "svm"))
    assert "No task has a search space of its own" in text
    assert "Which tasks are alike?" in text


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_tasks_make_a_page_that_says_what_is_missing(memory: Memory, count: int) -> None:
    for number in range(count):
        memory.add(run(f"task {number}", seed=number), "svm")
    page = overview_page(memory)
    text = text_of(page)
    assert ("Which tasks are alike?" in text) == (count == 2)
    assert ("Two tasks with at least two successful trials each are needed" in text) == (count == 1)
    assert ("The memory holds no runs yet." in text) == (count == 0)
    assert ("Try these first" in titles(page)) == (count > 0)


def test_tasks_with_too_few_trials_or_failures_only_are_named_as_left_out(memory: Memory) -> None:
    memory.add(Run("failed", points(3), [FAILED] * 3, space=COMPILED), "svm")
    memory.add(run("single", count=1), "svm")
    memory.add(run("empty", count=0), "svm")
    page = overview_page(memory, "svm")
    text = text_of(page)
    assert "3 tasks with 4 trials, of which 3 failed" in text
    assert "fewer than two of its trials succeeded and can be compared: failed, single and empty." in text
    assert "Try these first" not in titles(page)
    assert len(tables(page)["Which configuration was best on each task?"].blocks[0]) == 3


def test_all_problems_are_on_one_page_with_a_list_that_leads_to_them(memory: Memory) -> None:
    memory.add(run("a"), "svm")
    memory.add(run("b"), "forest")
    optuna.create_study(storage=memory.store.optuna, study_name="somebody's")
    page = overview_page(memory)
    assert titles(page) == ["Problems", "svm", "forest", "Other studies"]
    links = [row[0].shown for row in tables(page)["Problems in this memory"].blocks[0]]
    assert links == [Html('<a href="#section-2">svm</a>'), Html('<a href="#section-3">forest</a>')]
    assert render(page).count('id="section-3"') == 1
    assert [row[0].shown for row in tables(page)["Studies that recollect did not make"].blocks[0]] == ["somebody's"]


def test_problems_that_do_not_fit_are_only_listed(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.report.overview.page.MOST_TASKS", 1)
    memory.add(run("a"), "svm")
    memory.add(run("b"), "forest")
    page = overview_page(memory)
    assert titles(page) == ["Problems", "svm"]
    assert "Problems without a link are too large to be told of here; --problem NAME makes a page of one." in text_of(
        page
    )


def test_with_other_pages_the_start_only_lists_and_links(memory: Memory) -> None:
    memory.add(run("a"), "svm")
    memory.add(run("b"), "svm")
    links = Links(lambda problem: f"/p?{problem}", lambda problem, task: f"/r?{problem}&{task}")
    page = overview_page(memory, links=links)
    assert list(tables(page)) == ["Problems in this memory", "Tasks, the latest first"]
    latest = tables(page)["Tasks, the latest first"].blocks[0]
    assert [row[0].shown for row in latest] == [Html(f'<a href="/r?svm&amp;{task}">{task}</a>') for task in "ba"]


def test_a_problem_that_is_not_there_is_named_with_those_that_are(memory: Memory) -> None:
    memory.add(run("a"), "svm")
    with pytest.raises(InputError, match=r"InMemoryStorage: there is no problem 'forest': its problems are 'svm'"):
        overview_page(memory, "forest")


def test_hostile_names_are_only_text(memory: Memory) -> None:
    problem = f"{SCRIPT}'\"&/%"
    for number, name in enumerate(HOSTILE):
        memory.add(run(name, seed=number), problem)
    for page in (overview_page(memory), overview_page(memory, links=Links(lambda _: "/p", lambda _, __: "/r"))):
        text = render(page)
        assert text.count("<script>") == 3, "the page's own"
        assert "<img" not in text
        assert "\u202e" not in text_of(page)
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_a_trial_that_does_not_belong_to_the_space_is_left_out_and_that_is_said(memory: Memory) -> None:
    memory.add(run("a"), "svm")
    memory.add(run("b", seed=1), "svm")
    study = optuna.load_study(storage=memory.store.optuna, study_name="svm/b")
    study.optimize(lambda trial: trial.suggest_categorical("x", ["elsewhere"]) == "", n_trials=1)
    page = overview_page(memory, "svm")
    text = text_of(page)
    assert "2 tasks with 25 trials" in text
    assert "b: Dropped 1 of 13 configurations: &#x27;x&#x27; is not a finite number (1)." in text


def test_a_hundred_tasks_fit_on_a_page_below_6_megabytes(memory: Memory) -> None:
    runs = [run("", seed=seed) for seed in range(5)]  # copies of one run are one fit
    for number in range(100):
        memory.add(Run(f"a data set with a long name, {number}", trials=runs[number % 5].trials, space=COMPILED), "svm")
    page = overview_page(memory, "svm")
    text = render(page)
    assert len(text.encode()) < 6_000_000
    assert len(text.encode()) - text.index("plotly.js v") < 5_400_000
    assert "100 tasks with 1,200 trials" in text
