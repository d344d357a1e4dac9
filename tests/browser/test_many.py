"""Ten thousand trials, and a thousand tasks: pages that open quickly, stay in place and can be searched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.browser.pages import MOST_SECONDS, Opened, Opening, fastest_opening, figure, hover_cell, table

from recollect import Memory, Run
from recollect.runs.run import FAILED, Trial
from recollect.space.space import compile_space

pytest.importorskip("plotly", reason="pages embed plotly's script")

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

TRIALS, TASKS = 10_000, 1_000
SPACE = compile_space({"lr": (1e-4, 1.0), "width": (8, 256), "depth": (1, 9), "momentum": (0.0, 0.99)})


def drawn(task: str, count: int, seed: int) -> Run:
    rng = np.random.default_rng(seed)
    trials = []
    for config in SPACE.decode(rng.random((count, 4))):
        value = abs(np.log10(config["lr"]) + 2 + 0.1 * seed) + 10 / config["width"] + 0.1 * float(rng.random())
        trials.append(Trial.of(config, FAILED if rng.random() < 0.05 else value))
    return Run(task, trials=trials, space=SPACE)


@pytest.fixture(scope="module")
def trials_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from recollect.analysis.run_data import RunData
    from recollect.report.page import render, write_page
    from recollect.report.run.run_page import page_of_run

    run = drawn("covertype", TRIALS, 0)
    data = RunData(run, "mlp", SPACE, (), (None,) * TRIALS, {"method": "random", "trials": TRIALS})
    path = tmp_path_factory.mktemp("many") / "trials.html"
    write_page(render(page_of_run(data)), path)
    return path


@pytest.fixture(scope="module")
def tasks_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from optuna.storages import InMemoryStorage

    from recollect.report.memory.memory_page import memory_page
    from recollect.report.page import render, write_page

    memory, runs = Memory(InMemoryStorage()), [drawn("", 8, seed) for seed in range(12)]  # copies are one fit
    for number in range(TASKS):
        memory.add(Run(f"dataset {number}", trials=runs[number % 12].trials, space=SPACE), "mlp")
    path = tmp_path_factory.mktemp("many") / "tasks.html"
    write_page(render(memory_page(memory, "mlp", jobs=1)), path)
    return path


def check(opening: Opening) -> None:
    assert 0.2 < opening.processor < MOST_SECONDS
    if opening.clock >= MOST_SECONDS and opening.load > 1.0:
        pytest.skip(f"{opening.clock:.1f} s on a machine with {opening.load:.1f} processes for each of its cores")
    assert opening.clock < MOST_SECONDS


def test_ten_thousand_trials_open_within_three_seconds(browser: BrowserContext, trials_file: Path) -> None:
    check(fastest_opening(browser, trials_file))


def test_a_thousand_tasks_open_within_three_seconds(browser: BrowserContext, tasks_file: Path) -> None:
    check(fastest_opening(browser, tasks_file))


def test_ten_thousand_trials_are_searched_and_sorted(open_file: Callable[[Path], Opened], trials_file: Path) -> None:
    found = open_file(trials_file)
    part = found.page.locator(".explorer")
    assert part.locator("tbody tr").count() == 25
    part.locator("thead button", has_text="value").click()
    values = [float(text) for text in part.locator("tbody td:nth-child(3)").all_text_contents()]
    assert values == sorted(values)
    part.locator("input[type=search]").fill("trial=9999")
    assert part.locator("tbody th").all_text_contents() == ["9999"]
    assert found.messages == []
    found.page.close()


def test_the_map_of_a_thousand_tasks_is_square_small_and_names_them(
    open_file: Callable[[Path], Opened], tasks_file: Path
) -> None:
    found = open_file(tasks_file)
    page = found.page
    plot = figure(page, "Which tasks are alike?").locator(".plot")
    box = plot.bounding_box()
    assert box is not None
    assert box["width"] == pytest.approx(box["height"], abs=1)
    assert box["width"] <= 600
    label = hover_cell(page, plot, 10, 700)
    assert label.count("dataset ") == 2
    assert "rank correlation" in label
    best = table(page, "Which configuration was best")
    assert best.locator("tbody tr").count() == 25
    part = page.locator(".table", has=page.locator("h3", has_text="Which configuration was best")).first
    part.locator("input[type=search]").fill("dataset 777")
    assert best.locator("tbody th").all_text_contents() == ["dataset 777"]
    assert found.messages == []
    page.close()
