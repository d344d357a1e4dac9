"""The figures of weights over trials, and of how much the past counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.example_runs import (
    learned,
    noted,
    run_data,
    usual,
)

from recollect.analysis.source_usefulness import PriorHistory, weight_history
from recollect.report.figure import COLOURS
from recollect.report.run.weight_figures import (
    ALIKE_LABEL,
    MAX_STEPS,
    OWN_LABEL,
    REVERSED_LABEL,
    TARGET_LABEL,
    prior_figure,
    weight_figure,
)


def test_layers_of_weights_add_up_to_everything() -> None:
    names = [f"past {number}" for number in range(50)]
    data = replace(run_data(learned("own", 30)), notes=noted(names, 30))
    history = weight_history(data)
    assert history is not None
    figure = weight_figure(history)
    assert len(figure.traces) == 1 + len(COLOURS) + 1
    labels = [key.label for key in figure.keys]
    assert labels[0] == TARGET_LABEL
    assert labels[-1] == "the rest (44 past runs)"
    np.testing.assert_allclose(np.array([trace["y"] for trace in figure.traces]).sum(axis=0), 100.0, atol=0.1)
    means = [history.means[label] for label in labels[1:-1]]
    assert means == sorted(history.means.values(), reverse=True)[: len(COLOURS)]
    assert figure.traces[0]["x"][0] == 0.5, "the first trial was not weighed"
    weights = [note.target_weight for note in data.notes if note is not None and note.target_weight is not None]
    assert f"{100 * (1 - np.mean(weights)):.0f}% of the weight" in figure.caption
    assert "first trial was chosen without weights" in figure.more


def test_many_trials_are_averaged_to_steps_that_keep_the_mean() -> None:
    data = replace(run_data(learned("own", 400)), notes=noted(["a", "b", "c"], 400))
    history = weight_history(data)
    assert history is not None
    figure = weight_figure(history)
    assert len(figure.traces[0]["x"]) == MAX_STEPS + 2
    assert f"{MAX_STEPS} steps" in figure.more
    sizes = [len(part) for part in np.array_split(np.arange(399), MAX_STEPS)]
    drawn = np.average(figure.traces[0]["y"][1:-1], weights=sizes)
    assert drawn == pytest.approx(100 * history.target.mean(), rel=1e-3)


def test_how_much_the_past_counted_is_drawn_as_probabilities_that_add_up() -> None:
    history = PriorHistory(
        np.array([1, 2, 3]), np.array([0.2, 0.5, 0.9]), np.array([0.3, 0.1, 0.0]), np.array([0.5, 0.4, 0.1])
    )
    figure = prior_figure(history)
    assert [key.label for key in figure.keys] == [OWN_LABEL, ALIKE_LABEL, REVERSED_LABEL]
    inner = np.array([area["y"][1:-1] for area in figure.traces])
    np.testing.assert_allclose(inner.sum(axis=0), 100.0)
    np.testing.assert_allclose(inner[1], [20.0, 50.0, 90.0])
    assert "67%" in figure.caption, "alike and reversed on average"
    assert "90%" in figure.caption, "in the last suggestion"


def test_weights_of_a_method_with_a_prior_are_not_called_a_vote() -> None:
    history = weight_history(usual())
    assert history is not None
    votes, prior = weight_figure(history), weight_figure(history, prior=True)
    assert votes.question != prior.question
    assert votes.traces == prior.traces
    assert "vote" in votes.more
    assert "vote" not in prior.more
    assert "coefficient" in prior.more
