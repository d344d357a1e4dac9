"""The predicted surface over two hyperparameters finds the valley of a known function."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.example_runs import run_data, values_only

from recollect import Run
from recollect.analysis.response_surface import response_surfaces
from recollect.runs.run import Direction


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("shift", [0.0, 1e-3])  # with the shift, values span orders of magnitude
def test_the_best_prediction_is_near_the_optimum(direction: Direction, shift: float) -> None:
    rng = np.random.default_rng(0)
    sign = 1.0 if direction == "minimize" else -1.0
    configs = [{"x": float(x), "y": float(y), "z": float(z)} for x, y, z in rng.random((60, 3))]
    values = [sign * ((c["x"] - 0.3) ** 2 + (c["y"] - 0.7) ** 2 + shift) for c in configs]
    data = run_data(Run("own", configs, values, space=dict.fromkeys("xyz", (0.0, 1.0)), direction=direction))
    surfaces = response_surfaces(data, ["x", "y", "z"])
    assert [(surface.first, surface.second) for surface in surfaces] == [("x", "y"), ("x", "z"), ("y", "z")]
    surface = surfaces[0]
    row, column = np.unravel_index(np.argmin(sign * surface.values), surface.values.shape)
    assert surface.positions[column] == pytest.approx(0.3, abs=0.1)
    assert surface.positions[row] == pytest.approx(0.7, abs=0.1)
    truth = sign * ((surface.positions[None, :] - 0.3) ** 2 + (surface.positions[:, None] - 0.7) ** 2 + shift)
    assert np.corrcoef(truth.ravel(), surface.values.ravel())[0, 1] > 0.9


def test_too_few_or_equal_values_have_no_surface() -> None:
    assert response_surfaces(run_data(values_only([1.0, 2.0])), ["x", "y"]) == []
    assert response_surfaces(run_data(values_only([1.0] * 20)), ["x", "y"]) == []
    assert response_surfaces(run_data(values_only(list(range(20)))), ["x"]) == []
