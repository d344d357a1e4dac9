"""The overview of a memory in a real browser: made by the real command of a real file, of many tasks, of hostile names.

Each page is opened once, since loading plotly takes a second of a processor; tests put back what they change.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from tests.browser.pages import (
    HEBREW,
    HOSTILE,
    IN_SCHEME,
    LINK,
    QUOTES,
    SCRIPT,
    Opened,
    column,
    figure,
    hover_cell,
    loads_nothing,
    press,
    table,
    texts,
    unreadable,
)

from recollect import FAILED, Memory, Run, minimize

pytest.importorskip("plotly", reason="pages embed plotly's script")

SPACE: dict[str, Any] = {"c": (0.01, 100.0, "log"), "depth": (1, 8), "kernel": ["rbf", "poly", "linear"]}
NAMES = (*HOSTILE[:-1], "long-" * 80)  # a memory takes no longer ones
ALIKE, TAUGHT = "Which tasks are alike?", "Which tasks learned from which?"
GAVE, BEST = "What did past tasks contribute to others?", "Which configuration was best on each task?"
FIRST = "Good on these tasks together"
KEPT = {"covertype": 0.0, "bank": 0.2, "crx": -0.8}  # tasks that Memory.add wrote, and where their optimum is
TUNED = {"adult": 0.3, "digits": 0.6}  # tasks that learned from those


def configs(count: int, seed: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    drawn = zip(rng.uniform(-2, 2, count), rng.integers(1, 9, count), rng.choice(SPACE["kernel"], count), strict=True)
    return [{"c": float(10**c), "depth": int(depth), "kernel": str(kernel)} for c, depth, kernel in drawn]


def error(config: dict[str, Any], shift: float = 0.0) -> float:
    return float((np.log10(config["c"]) - shift) ** 2 + 0.1 * config["depth"] + (config["kernel"] == "poly"))


def write(memory: Memory, path: Path, problem: str | None = None) -> Path:
    from recollect.report.memory.memory_page import memory_page
    from recollect.report.page import render, write_page

    write_page(render(memory_page(memory, problem)), path)
    return path


def told(*arguments: str, folder: Path) -> str:
    """Run the command; return what it wrote to its standard output, nothing else being there."""
    command = [sys.executable, "-m", "recollect", "report", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("overview")


@pytest.fixture(scope="module")
def memory(folder: Path) -> Iterator[Memory]:
    """Past runs in a file, two runs that learned from them, and two problems beside theirs."""
    with Memory(folder / "tuning.db") as memory:
        for seed, (task, shift) in enumerate(KEPT.items()):
            values = [error(config, shift) for config in configs(15, seed)]
            memory.add(Run(task, configs(15, seed), values, space=SPACE), "svm")
        for task, shift in TUNED.items():
            given: dict[str, Any] = {"memory": memory, "problem": "svm", "task": task, "method": "rgpe-mean"}
            minimize(lambda config, shift=shift: error(config, shift), SPACE, trials=12, progress=False, **given)
        memory.add(Run("failed", configs(3, 1), [FAILED] * 3, space=SPACE), "forest")
        memory.add(Run("some", configs(3, 2), [1.0, 2.0, FAILED], space=SPACE), "trees")
        yield memory


@pytest.fixture(scope="module")
def file(memory: Memory, folder: Path) -> Path:
    assert told("--memory", "tuning.db", "--out", "overview.html", folder=folder) == "overview.html\n"
    return folder / "overview.html"


@pytest.fixture(scope="module")
def hundred(open_file: Callable[[Path], Opened], folder: Path) -> Opened:
    memory = Memory(optuna.storages.InMemoryStorage())
    trials = [Run("", configs(6, seed), [error(c, 0.2 * seed) for c in configs(6, seed)]).trials for seed in range(8)]
    for number in range(100):
        memory.add(Run(f"a dataset with a long name {number}", trials=trials[number % 8], space=SPACE), "svm")
    return open_file(write(memory, folder / "hundred.html"))


@pytest.fixture(scope="module")
def hostile(open_file: Callable[[Path], Opened], folder: Path) -> Opened:
    memory = Memory(optuna.storages.InMemoryStorage())
    space = {SCRIPT: (0.0, 1.0), QUOTES: [SCRIPT, QUOTES]}
    rng = np.random.default_rng(0)
    for name in NAMES:
        tried = [{SCRIPT: float(x), QUOTES: SCRIPT if x > 0.5 else QUOTES} for x in rng.random(4)]
        memory.add(Run(name, tried, [float(x) for x in rng.random(4)], space=space), SCRIPT + QUOTES)
    study = optuna.load_study(
        storage=memory.store.optuna, study_name=memory.store.optuna.get_all_studies()[-1].study_name
    )
    trial = study.ask()
    weights = dict.fromkeys(NAMES[:-1], 0.1)
    trial.set_user_attr("recollect:influence", {"reason": SCRIPT, "target": 0.5, "past": weights, "dropped": []})
    study.tell(trial, state=optuna.trial.TrialState.FAIL)
    return open_file(write(memory, folder / "hostile.html"))


def test_the_page_opens_without_a_message_and_without_asking_anybody(opened: Opened, file: Path) -> None:
    assert opened.messages == []
    assert opened.requests == [file.as_uri()]


def test_figures_have_data_that_are_drawn_and_a_text_alternative(opened: Opened) -> None:
    plots = opened.page.locator(".plot")
    assert plots.count() == 3
    assert plots.first.locator(".scatterlayer path").count() > 2, "several tasks in one figure"
    for plot in plots.all()[1:]:
        cells = plot.evaluate("plot => plot._fullData[0].z.flat().filter((value) => value !== null).length")
        assert cells >= 4
        assert plot.locator(".heatmaplayer image").count() == 1
        assert len(plot.get_attribute("aria-label") or "") > 60


def test_pointing_at_a_cell_tells_both_tasks_and_the_number(opened: Opened) -> None:
    page = opened.page
    alike = figure(page, ALIKE).locator(".plot")
    names, z = alike.evaluate("plot => [plot._fullData[0].y, plot._fullData[0].z]")
    assert hover_cell(page, alike, 2, 0) == f"{names[0]}{names[2]}rank correlation {z[0][2]:.2f}"
    taught = figure(page, TAUGHT).locator(".plot")
    assert "learned from " in hover_cell(page, taught, 0, 0)
    assert opened.messages == []


def test_tasks_are_compared_with_each_other_and_agree_with_themselves(opened: Opened) -> None:
    plot = figure(opened.page, ALIKE).locator(".plot")
    names, cells = plot.evaluate("plot => [plot._fullData[0].y, plot._fullData[0].z]")
    assert set(names) == {*KEPT, *TUNED}
    found = np.array(cells, dtype=float)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 1.0)
    likeness = dict(zip(names, found[names.index("covertype")], strict=True))
    assert likeness["bank"] > likeness["crx"], "the optimum of crx is far away"


def test_the_table_of_teachers_says_what_the_trials_noted(opened: Opened, memory: Memory) -> None:
    rows = table(opened.page, GAVE)
    taught = dict(zip(texts(rows, "past task"), column(rows, 2), strict=True))
    assert set(taught) == {*KEPT, "adult"}, "digits came last, so it taught nobody"
    weights = figure(opened.page, TAUGHT).locator(".plot").evaluate("plot => plot._fullData[0]")
    by_task = dict(zip(weights["x"], np.array(weights["z"], dtype=float).T, strict=True))
    assert {task: int((given >= 1).sum()) for task, given in by_task.items()} == taught
    assert max(taught.values(), key=float) > 0


def test_best_configurations_are_those_in_the_memory(opened: Opened, memory: Memory) -> None:
    rows = table(opened.page, BEST)
    found = dict(zip(texts(rows, "task"), column(rows, 1), strict=True))
    kept = {run.task: run.best for run in memory.runs("svm")}
    assert set(found) == {*KEPT, *TUNED}
    for task, best in kept.items():
        assert best is not None
        assert found[task] == best.value
        row = rows.locator("tbody tr", has=opened.page.locator("th", has_text=task))
        assert best.config["kernel"] in (row.text_content() or "")


def test_what_to_try_first_was_tried_before(opened: Opened, memory: Memory) -> None:
    assert opened.page.locator("h3", has_text="Try these first").first.is_visible()
    first = table(opened.page, FIRST)
    copied = json.loads(opened.page.locator("textarea").first.input_value())
    assert column(first, 0) == [float(place) for place in range(1, len(copied) + 1)]
    assert texts(first, "kernel") == [config["kernel"] for config in copied]
    tried = [trial.config for run in memory.runs("svm") for trial in run.trials]
    for config in copied:
        same = [other for other in tried if (other["depth"], other["kernel"]) == (config["depth"], config["kernel"])]
        assert any(other["c"] == pytest.approx(config["c"], rel=1e-9) for other in same), config


def test_the_page_of_one_problem_tells_of_no_other(
    open_file: Callable[[Path], Opened], memory: Memory, folder: Path
) -> None:
    assert told("--memory", "tuning.db", "--problem", "svm", folder=folder) == "report.html\n"
    found = open_file(folder / "report.html")
    page = found.page
    assert page.locator("h1").text_content() == "svm"
    assert page.locator(".plot .heatmaplayer image").count() == 2
    assert {"At a glance", "Try these first", "How tasks are related", "Best configurations"} <= set(
        page.locator("h2").all_text_contents()
    )
    assert "forest" not in (page.locator("main").text_content() or "")
    assert found.messages == []
    assert found.requests == [page.url]
    page.close()


@pytest.mark.parametrize("with_keyboard", [False, True], ids=["by clicks", "with the keyboard"])
def test_best_configurations_are_sorted_up_down_and_back(opened: Opened, with_keyboard: bool) -> None:
    best = table(opened.page, BEST)
    button = best.locator("thead button", has_text="best value")
    before = column(best, 1)

    def pressed() -> list[float | None]:
        press(opened.page, button, with_keyboard=with_keyboard)
        return column(best, 1)

    assert pressed() == sorted(before)  # type: ignore[type-var]
    assert pressed() == sorted(before, reverse=True)  # type: ignore[type-var]
    assert pressed() == before


def test_what_to_try_first_can_be_copied_with_the_keyboard(opened: Opened) -> None:
    field, shown = opened.page.locator("textarea").first, opened.page.locator("summary", has_text="As JSON").first
    shown.focus()
    opened.page.keyboard.press("Enter")
    field.focus()
    opened.page.keyboard.press("Control+A")
    selected = field.evaluate("field => field.value.slice(field.selectionStart, field.selectionEnd)")
    found = json.loads(selected)
    assert 1 <= len(found) <= 8
    assert len(found) == table(opened.page, "Good on these tasks together").locator("tbody tr").count()
    assert set(found[0]) == set(SPACE)
    opened.page.keyboard.press("x")
    assert field.input_value() == selected, "it cannot be changed"


def test_the_list_of_problems_leads_to_their_sections(opened: Opened) -> None:
    page = opened.page
    link = table(page, "Problems in this memory").locator("a", has_text="trees")
    link.click()
    target = page.locator(link.get_attribute("href") or "")
    assert target.text_content() == "trees"
    assert 0 <= target.evaluate("title => title.getBoundingClientRect().top") < 1000


def test_figures_follow_the_scheme_of_the_reader(opened: Opened) -> None:
    page = opened.page
    seen = {}
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(IN_SCHEME, arg=scheme)
        seen[scheme] = figure(page, ALIKE).locator(".plot").evaluate("plot => plot._fullData[0].colorscale[1][1]")
    assert seen == {"dark": "#171a21", "light": "#ffffff"}, "what says nothing has the colour of the card"


@pytest.mark.parametrize("which", ["opened", "hundred", "hostile"])
def test_all_can_be_read_on_any_screen(which: str, request: pytest.FixtureRequest) -> None:
    assert unreadable(request.getfixturevalue(which).page) == []


def test_a_hundred_tasks_are_all_shown(hundred: Opened) -> None:
    page = hundred.page
    assert hundred.messages == []
    plot = figure(page, ALIKE).locator(".plot")
    assert plot.locator(".ytick text").count() == 0, "names are shown when pointed at"
    numbers = "plot => plot._fullData[0].z.flatMap((row) => [...row].filter(Number.isFinite)).length"
    assert plot.evaluate(numbers) == 10_000
    assert "a dataset with a long name" in hover_cell(page, plot, 42, 17)


def test_hostile_names_are_only_names(hostile: Opened) -> None:
    page = hostile.page
    assert hostile.messages == []
    assert len(hostile.requests) == 1
    assert loads_nothing(page)
    names = page.locator("tbody th").all_text_contents()
    assert {SCRIPT, QUOTES, LINK} <= set(names)
    assert any(HEBREW in name for name in names)
    plot = figure(page, TAUGHT).locator(".plot")
    labels = [hover_cell(page, plot, column, 0) for column in range(len(NAMES) - 1)]
    assert any(f"learned from {SCRIPT}" in label for label in labels)
    assert any(QUOTES in label for label in labels)
    assert SCRIPT in json.loads(page.locator("textarea").input_value())[0]
    assert hostile.messages == []
