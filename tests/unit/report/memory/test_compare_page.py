"""The page that compares chosen tasks, and all tasks of a problem in one figure."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.drawings import check_caption
from tests.helpers.example_memory import example_run

from recollect import FAILED, Memory, Run
from recollect.analysis.memory_tasks import StoredTask
from recollect.analysis.task_curves import curve_quartiles, task_curves
from recollect.errors import InputError
from recollect.report.figure import Figure
from recollect.report.memory.compare_page import compare_page
from recollect.report.memory.progress_figure import MAX_NAMED, task_progress_figure
from recollect.report.page import render
from recollect.report.table import Table
from recollect.runs.run import Direction


@pytest.fixture
def memory() -> Memory:
    from optuna.storages import InMemoryStorage

    filled = Memory(InMemoryStorage())
    for number, task in enumerate(("a", "b", "c")):
        filled.add(example_run(task, seed=number), "svm")
    return filled


def stored(values: list[object], task: str = "t", direction: Direction = "minimize") -> StoredTask:
    run = Run(task, [{"x": float(number)} for number in range(len(values))], values, direction=direction)
    return StoredTask("p", run, None, None, None, ())


def test_only_the_chosen_tasks_are_compared(memory: Memory) -> None:
    page = compare_page(memory, "svm", ["c", "a", "c"])
    parts = [part for section in page.sections for part in section.parts]
    table = next(part for part in parts if isinstance(part, Table))
    assert sorted(str(row[0].sort_key) for row in table.blocks[0]) == ["a", "c"]
    figures = [part for part in parts if isinstance(part, Figure)]
    questions = [figure.question for figure in figures]
    assert questions == ["How fast did the tasks find good values?", "Which tasks are alike?"]
    assert "<title>Comparison: a and c</title>" in render(page)
    for figure in figures:
        check_caption(figure)


@pytest.mark.parametrize(("tasks", "message"), [(["a", "z"], "no task 'z'"), (["a"], "at least two tasks")])
def test_a_comparison_needs_two_tasks_that_exist(memory: Memory, tasks: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare_page(memory, "svm", tasks)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_scaled_curves_fall_from_the_worst_to_the_best(direction: Direction) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    (curve,) = task_curves([stored([FAILED, 8 * sign, 10 * sign, 4 * sign, 6 * sign, 2 * sign], direction=direction)])
    np.testing.assert_allclose(curve.scaled, [np.nan, 0.75, 0.75, 0.25, 0.25, 0.0])
    assert task_curves([stored([1.0, 1.0]), stored([FAILED]), stored([])]) == []


def test_quartiles_count_a_task_that_ended_as_having_found_its_best() -> None:
    curves = task_curves([stored([2.0, 1.0]), stored([2.0, 2.0, 2.0, 1.0]), stored([2.0, 2.0, 1.0])])
    np.testing.assert_allclose(curve_quartiles(curves)[1], [1.0, 1.0, 0.0])


def test_a_few_tasks_have_names_and_many_have_a_band() -> None:
    few = task_progress_figure([stored([3.0, 2.0, 1.0], f"t{number}") for number in range(MAX_NAMED)])
    many = task_progress_figure([stored([3.0, 2.0, 1.0], f"t{number}") for number in range(400)])
    assert few is not None
    assert many is not None
    assert [key.label for key in few.keys] == [f"t{number}" for number in range(MAX_NAMED)]
    assert len({(key.colour, key.dash) for key in few.keys}) == MAX_NAMED
    assert [key.mark for key in many.keys] == ["line", "area", "line"]
    assert "150 of 400 tasks are drawn" in many.more
    assert all(len(view.traces) == len(figure.traces) for figure in (few, many) for view in figure.views)
    assert few.log_axis == "yaxis"
    assert task_progress_figure([stored([1.0, 2.0])]) is None
