"""The figure of how fast good values were found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.helpers.example_runs import (
    learned,
    run_data,
    values_only,
)

from recollect import FAILED, Run
from recollect.analysis.run_data import Origin, PairedRun
from recollect.report.run.progress_figures import QUESTION, QUESTION_ALONE, progress_figure
from recollect.runs.run import Direction


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_best_value_is_drawn_as_steps_in_the_users_units(direction: Direction) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    run = values_only([FAILED, 5 * sign, 3 * sign, 4 * sign, FAILED, 1 * sign, 2 * sign], direction)
    figure = progress_figure(run_data(run))
    assert figure is not None
    best = figure.traces[-1]
    assert best["line"]["shape"] == "hv"
    assert list(zip(best["x"], best["y"], strict=True)) == [(1, 5 * sign), (2, 3 * sign), (5, sign), (6, sign)]
    assert figure.question == QUESTION_ALONE
    assert figure.caption == f"The best value, {1 * sign:g}, was found in trial 5."
    failed = next(trace for trace in figure.traces if "failed" in trace["hovertemplate"])
    assert failed["x"] == [0, 4]
    assert all(sign * y > 5 for y in failed["y"]), "failed trials are worse than all others"
    assert [row[1].sort_key for row in figure.table.blocks[0]] == [None, 5 * sign, *[3 * sign] * 3, sign, sign]


def test_a_run_of_the_same_task_without_transfer_is_shown_as_it_is() -> None:
    paired = PairedRun("svm alone", "gp", values_only([9.0, 7.0, 5.0, 1.0]))
    figure = progress_figure(run_data(values_only([6.0, 4.0, 3.0]), [values_only([1.0, 0.0])], paired=paired))
    assert figure is not None
    assert figure.question == QUESTION
    assert figure.traces[0]["y"] == [9.0, 7.0, 5.0], "cut to the trials of this run"
    assert "(problem svm alone, method gp) had 5 after 3 trials; this run reached it after 2 trials" in figure.caption
    behind = progress_figure(run_data(values_only([6.0, 5.5]), paired=replace(paired, run=values_only([2.0]))))
    assert behind is not None
    assert "had 2 after 1 trial; this run never" in behind.caption


def test_of_a_long_run_not_every_trial_is_drawn_and_the_sentence_says_so() -> None:
    run = values_only([FAILED if number % 5 == 0 else float(number) for number in range(1000)])
    figure = progress_figure(run_data(run))
    assert figure is not None
    crosses, dots, best = (figure.traces[place] for place in (1, 0, 2))
    assert (len(dots["x"]), len(crosses["x"])) == (300, 100)
    assert best["x"] == [1, 999]
    assert "600 single trials are not drawn." in figure.more


def test_the_caption_compares_with_past_runs() -> None:
    past = [Run(f"past {number}", trials=values_only([8.0, 6.0, 7.0, 4.0]).trials) for number in range(3)]
    figure = progress_figure(run_data(values_only([20.0, 0.0, 10.0, 5.0]), past))
    assert figure is not None
    assert figure.question == QUESTION
    assert "needed 2 trials to come within 1%" in figure.caption
    assert "3 past runs needed 4 or more" in figure.caption
    assert "unknown" in figure.more
    short = progress_figure(run_data(values_only([4.0, 2.0, 3.0, 0.0, 1.0, 1.0]), [values_only([2.0, 1.0, 0.0])] * 4))
    assert short is not None
    assert "first 3 trials" in short.caption


def test_it_is_said_how_past_runs_were_tuned() -> None:
    past = [learned(f"past {number}", 12, seed=number) for number in range(5)]
    mixed: dict[str, Origin] = {"past 0": "without transfer", "past 1": "with transfer", "past 2": "with transfer"}
    figure = progress_figure(run_data(learned("own", 12, seed=9), past, origins=mixed))
    assert figure is not None
    assert "2 with transfer, 1 without transfer, 2 unknown" in figure.more
    plain: dict[str, Origin] = dict.fromkeys((run.task for run in past), "without transfer")
    figure = progress_figure(run_data(learned("own", 12, seed=9), past, origins=plain))
    assert figure is not None
    assert "tuned without transfer" in figure.more
    assert any("5 past runs without transfer" in key.label for key in figure.keys)
