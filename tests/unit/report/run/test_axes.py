"""Axes for values and for hyperparameters."""

from __future__ import annotations

import numpy as np
from tests.helpers.example_runs import (
    run_data,
    values_only,
)

from recollect import FAILED, Run
from recollect.analysis.importance import importance
from recollect.report.run.axes import hyperparameter_axes, value_axis
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
