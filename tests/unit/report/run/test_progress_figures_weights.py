"""The figure of weights over trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.example_runs import (
    learned,
    noted,
    run_data,
)

from recollect.analysis.source_usefulness import weight_history
from recollect.report.figure import COLOURS
from recollect.report.run.progress_figures import MAX_STEPS, TARGET_LABEL, weight_figure


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
    assert f"{100 * (1 - np.mean(weights)):.0f} % of the weight" in figure.caption
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
