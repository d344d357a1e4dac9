"""The contour of two hyperparameters: its colour bar."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.helpers.example_runs import usual

from recollect.report.run.axes import hyperparameter_axes
from recollect.report.run.contour_figure import CONTOURS, LOG_TICKS, contour_figure, log_ticks


@pytest.mark.parametrize(("low", "high"), [(2.3e-6, 0.86), (0.012, 0.25), (3.0, 70.0), (0.9, 1.1e7)])
def test_a_logarithmic_colour_bar_has_a_few_round_numbers_away_from_its_ends(low: float, high: float) -> None:
    ticks = log_ticks(np.array([[low, high]]))
    at, texts = ticks["tickvals"], ticks["ticktext"]
    assert 2 <= len(at) <= LOG_TICKS
    assert [float(text) for text in texts] == pytest.approx([10.0**place for place in at], rel=1e-3)
    assert all(text.strip("0.e-").replace("e", "")[0] in "125" for text in texts)
    margin = (math.log10(high) - math.log10(low)) / CONTOURS
    assert math.log10(low) + margin < min(at)
    assert max(at) < math.log10(high) - margin


def test_the_best_predictions_have_the_same_colour_in_both_directions() -> None:
    for direction, reverse in (("minimize", False), ("maximize", True)):
        data = usual(direction)  # type: ignore[arg-type]
        figure = contour_figure(data, hyperparameter_axes(data, ()), ())
        assert figure is not None
        assert figure.traces[0]["reversescale"] is reverse
        assert figure.traces[0]["colorscale"][0] == [0, "@blue"]
