"""Figures of hyperparameters: importance and slices."""

from __future__ import annotations

import numpy as np
from tests.helpers.example_runs import (
    run_data,
    usual,
    values_only,
)

from recollect.analysis.importance import Importance
from recollect.report.run.axes import hyperparameter_axes
from recollect.report.run.hyperparameter_figures import importance_figure, slice_figures


def test_slices_separate_numbers_from_choices_and_mark_failed_and_inactive_trials() -> None:
    data = usual()
    numeric, choices = slice_figures(data, hyperparameter_axes(data))
    assert [numeric.layout[name]["title"]["text"] for name in ("xaxis", "xaxis2", "xaxis3")] == [
        "cost",
        "depth",
        "gamma",
    ]
    assert choices.layout["xaxis"]["ticktext"] == ["linear", "radial"]
    failed = [trace for trace in numeric.traces if trace["marker"].get("symbol") == "x-thin-open"]
    assert len(failed) == 3
    assert all(len(trace["x"]) == 2 for trace in failed)
    highest = max(value for value in data.run.values if value is not None)
    assert min(failed[0]["y"]) > highest
    gamma = [x for trace in numeric.traces if trace["xaxis"] == "x3" for x in trace["x"]]
    assert sum(x < 0 for x in gamma) == sum("gamma" not in config for config in data.run.configs)
    assert "off" in numeric.layout["xaxis3"]["ticktext"]
    assert "off" not in numeric.layout["xaxis"]["ticktext"]
    assert "Crosses above all values" in numeric.more
    medians = {
        kernel: np.median([t.value for t in data.run.succeeded if t.config["kernel"] == kernel])  # type: ignore[type-var]
        for kernel in ("linear", "radial")
    }
    best = min(medians, key=lambda kernel: medians[kernel])
    assert choices.caption.startswith(f"For kernel, {best} has the best median value, {medians[best]:.4g}")


def test_the_strongest_trend_is_named() -> None:
    data = run_data(values_only([float(number) for number in range(12)]))
    (figure,) = slice_figures(data, hyperparameter_axes(data))
    assert figure.caption.startswith("Values rise most clearly with growing x (rank correlation +1.00).")
    few = run_data(values_only([1.0, 2.0, 3.0]))
    assert slice_figures(few, hyperparameter_axes(few))[0].caption.startswith("There are too few trials")


def test_the_most_important_hyperparameter_is_named_with_the_method() -> None:
    figure = importance_figure(Importance({"x": 0.9, "y": 0.1}, 6, 60, ("z",)))
    assert figure.caption.startswith("x sets the best 6 of 60 trials apart most")
    assert "PED-ANOVA" in figure.more
    assert "z" in figure.more
    assert figure.traces[0]["x"] == [90.0, 10.0]
