"""Heat maps of tasks."""

from __future__ import annotations

from base64 import b64decode

import numpy as np
from tests.helpers.example_memory import example_run, modelled, slope

from recollect.analysis.memory_tasks import task_similarity
from recollect.report.formatting import thinned
from recollect.report.memory.task_figures import MAX_TASKS, similarity_figure, unique_names


def test_names_that_look_the_same_once_shortened_stay_apart_and_many_tasks_are_thinned() -> None:
    names = ["n" * 300 + "1" + "m" * 300, "n" * 300 + "2" + "m" * 300, "z"]
    assert len(set(unique_names(names))) == 3
    assert thinned(100, MAX_TASKS) == list(range(100))
    assert len(set(thinned(3000, MAX_TASKS))) == MAX_TASKS
    assert (thinned(3000, MAX_TASKS)[0], thinned(3000, MAX_TASKS)[-1]) == (0, 2999)


def test_the_heat_map_shows_the_correlations_in_that_order_and_says_the_extremes() -> None:
    models = modelled(example_run("a"), example_run("not a", lambda c: -slope(c)), example_run("also a", seed=3))
    similarity, order = task_similarity(models), np.array([0, 2, 1])
    figure = similarity_figure(models.tasks, similarity, order)
    assert figure is not None
    assert figure.traces[0]["y"] == ["a", "also a", "not a"]
    z = np.frombuffer(b64decode(figure.traces[0]["z"]), dtype=np.int8).reshape(3, 3) / 100
    assert np.allclose(z, similarity[np.ix_(order, order)], atol=0.01)
    assert "most alike are a and also a (" in figure.caption
    mean = np.mean([similarity[0, 1], similarity[0, 2], similarity[1, 2]])
    assert f"rank correlation of two tasks is {mean:.2f};" in figure.caption
    assert similarity_figure(models.tasks, similarity[:1, :1], np.array([0])) is None
