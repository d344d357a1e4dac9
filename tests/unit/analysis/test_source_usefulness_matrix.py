"""Which past tasks influenced which tasks."""

from __future__ import annotations

import numpy as np
from tests.helpers.example_memory import example_run

from recollect.analysis.memory_tasks import StoredTask
from recollect.analysis.source_usefulness import transfer_matrix
from recollect.report.memory.task_figures import source_influence_table, transfer_figure
from recollect.tuning.suggestion_notes import SuggestionNote


def learned_task(task: str, *notes: SuggestionNote) -> StoredTask:
    return StoredTask("p", example_run(task), None, None, None, notes)


def test_weights_are_averaged_over_trials_and_missing_ones_are_nothing() -> None:
    tasks = [
        learned_task("a"),
        learned_task("b", SuggestionNote("", 0.4, {"a": 0.6}), SuggestionNote("", 1.0, {}, frozenset({"a"}))),
        learned_task("c", SuggestionNote("", 0.0, {"a": 0.2, "b": 0.8})),
    ]
    matrix = transfer_matrix(tasks)
    assert matrix is not None
    assert (matrix.tasks, matrix.sources) == (("b", "c"), ("b", "a"))
    assert np.allclose(matrix.weights, [[0.0, 0.3], [0.8, 0.2]])
    assert np.allclose(matrix.target_weights, [0.7, 0.0])
    assert np.allclose(matrix.drop_rates, [0.0, 1 / 3]), "a was dropped in one of three suggestions"
    assert transfer_matrix(tasks[:1]) is None
    figure = transfer_figure(matrix, ["c", "b", "a"])
    assert figure.traces[0]["y"] == ["c", "b"]
    assert figure.traces[0]["z"] == [[80.0, 20.0], [0.0, 30.0]]
    assert "past tasks had 65% of the weight" in figure.caption
    assert "b on c (80%)" in figure.caption
    assert "a influenced most tasks (2)" in figure.more
    rows = {str(row[0].content): [cell.content for cell in row[1:]] for row in source_influence_table(matrix).blocks[0]}
    assert rows["a"] == ["2", "2", "25.0", "b", "30.0", "33"]
    assert rows["b"] == ["1", "1", "80.0", "c", "80.0", "0"]


def test_a_past_task_that_was_always_dropped_is_listed_as_such() -> None:
    matrix = transfer_matrix([learned_task("b", SuggestionNote("", 1.0, {}, frozenset({"a"})))])
    assert matrix is not None
    assert [cell.content for cell in source_influence_table(matrix).blocks[0][0]] == [
        "a",
        "1",
        "0",
        "–",
        "",
        "–",
        "100",
    ]
    assert "below 1% everywhere: a." in transfer_figure(matrix, []).more
