"""Axes for values and for hyperparameters."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.example_runs import (
    run_data,
    values_only,
)

from recollect import FAILED, Run
from recollect.analysis.importance import importance
from recollect.report.run.axes import HORIZONTAL_TICKS, hyperparameter_axes, round_log_values, value_axis
from recollect.space.space import compile_space


def test_values_far_apart_are_drawn_on_a_logarithmic_scale() -> None:
    wide, narrow = (value_axis(values_only(values)) for values in ([0.01, 5.0, FAILED], [1.0, 5.0]))
    assert wide.log
    assert wide.layout()["type"] == "log"
    assert wide.low < 0.01
    assert 5.0 < wide.failed < wide.high
    assert not narrow.log
    assert narrow.low < 1.0
    assert narrow.high > 5.0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.5, 0.5, [0.5, 1.0, 2.0]),
        (-3.1, -1.1, [0.001, 0.005, 0.02]),  # of 0.001, 0.002, 0.005, 0.01, 0.02 and 0.05 every second
        (-3.1, 1.1, [0.001, 0.1, 10.0]),  # powers of ten
        (0.05, 0.2, []),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_few_and_round(low: float, high: float, expected: list[float]) -> None:
    assert round_log_values(low, high, most=HORIZONTAL_TICKS) == pytest.approx(expected)


def test_a_horizontal_axis_has_as_many_labels_as_fit_on_a_narrow_screen() -> None:
    far_apart = Run("run", [{"x": float(i)} for i in range(3)], [0.001, 0.01, 0.09])
    layout = value_axis(far_apart).horizontal_layout()
    assert layout["type"] == "log"
    assert 2 <= len(layout["tickvals"]) == len(layout["ticktext"]) <= HORIZONTAL_TICKS


def test_of_many_hyperparameters_the_most_important_are_drawn() -> None:
    space = compile_space({f"h{number:02}": (0.0, 1.0) for number in range(20)})
    rng = np.random.default_rng(0)
    X = rng.random((50, 20))
    run = Run("own", space.decode(X), [abs(float(x[19]) - 0.2) for x in X], space=space)
    found = importance(run_data(run))
    assert found is not None
    drawn = [axis.name for axis in hyperparameter_axes(run_data(run), tuple(found.shares))]
    assert len(drawn) == 12
    assert drawn == sorted(drawn)
    assert "h19" in drawn
