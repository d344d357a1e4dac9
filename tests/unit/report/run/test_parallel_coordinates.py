"""Trials as lines through their hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.helpers.example_runs import (
    LEARNER,
    PLAIN,
    run_data,
)

from recollect import FAILED, Run
from recollect.report.run.axes import hyperparameter_axes
from recollect.report.run.parallel_coordinates import FAILED_POSITION, OFF_POSITION, parallel_coordinates_figure


def test_lines_go_through_all_hyperparameters_and_end_at_the_rank() -> None:
    configs: list[dict[str, Any]] = [
        {"cost": 0.1, "depth": 1, "kernel": "linear"},
        {"cost": 1000.0, "depth": 9, "kernel": "radial", "gamma": 0.1},
        {"cost": 10.0, "depth": 5, "kernel": "radial", "gamma": 10.0},
    ]
    data = run_data(Run("own", configs, [3.0, 1.0, FAILED], space=LEARNER))
    drawn = hyperparameter_axes(data)
    assert [axis.name for axis in drawn] == ["cost", "depth", "kernel", "gamma"]
    figure = parallel_coordinates_figure(data, drawn)
    assert figure is not None
    pale, others, failed, best = (trace["x"][:5] for trace in figure.traces)
    assert others == [0.0, pytest.approx(0.056, abs=1e-3), 0.25, OFF_POSITION, 1.0]
    assert best == [1.0, pytest.approx(0.944, abs=1e-3), 0.75, 0.5, 0.0]
    assert failed[-1] == FAILED_POSITION
    assert [key.label for key in figure.keys] == ["the best trial", "failed (1)", "the other 1"]
    assert pale == [], "until trials are selected"
    hover = figure.traces[1]["customdata"]
    assert hover[:4] == [[0, "cost: 0.1"], [0, "depth: 1"], [0, "kernel: linear"], [0, "gamma: inactive"]]
    assert figure.brush is not None
    assert figure.brush["numbers"] == [0, 1, 2]
    assert figure.brush["lines"] == [[0], [2], [1]]
    assert figure.brush["positions"][3] == [None, 0.5, 1.0], "a trial that does not use it is in no range"
    labels = {(entry["y"], entry["text"]) for entry in figure.layout["annotations"]}
    assert {(0, "0.1"), (0, "10"), (0, "1000"), (2, "linear"), (3, "off"), (4, "1 (best)"), (4, "no value")} <= labels


def test_the_sentence_names_what_the_best_trials_share() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    configs = [{"x": float(x), "y": float(y)} for x, y in X]
    data = run_data(Run("own", configs, [abs(x - 0.5) for x in X[:, 0]], space=PLAIN))
    figure = parallel_coordinates_figure(data, hyperparameter_axes(data))
    assert figure is not None
    best = np.sort(X[np.argsort(np.abs(X[:, 0] - 0.5))[:6], 0])
    assert f"The best 6 of 60 trials lie close together in x ({best[0]:.4g} to {best[-1]:.4g})" in figure.caption
