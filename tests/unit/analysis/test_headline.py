"""What a run says first, and that pages, summaries and explanations say the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.example_runs import learned, run_data, usual, values_only

import recollect
from recollect import FAILED
from recollect.analysis.headline import headline, median_trials, transfer_gain
from recollect.analysis.run_data import PairedRun, RunData, read_run_data, run_data_of
from recollect.analysis.run_progress import expectation
from recollect.analysis.run_summary import run_summary
from recollect.analysis.source_usefulness import rank_agreement, verdict, weight_history
from recollect.analysis.trial_records import TrialRecord
from recollect.report.page import render
from recollect.report.run.run_page import page_of_run


def test_the_headline_has_the_best_trial_by_its_number() -> None:
    data = run_data(values_only([3.0, FAILED, 1.0, 2.0]), stored_numbers=(0, 2, 5, 7))
    head = headline(data)
    assert (head.best_value, head.best_number, head.best_config) == (1.0, 5, data.run.trials[2].config)
    assert head.counts == {"finished": 3, "failed": 1, "pruned": 0, "running": 0}
    assert headline(run_data(values_only([FAILED]))).best_number is None


@pytest.mark.parametrize(
    ("planned", "states", "state"),
    [
        (2, ["finished", "failed"], "complete"), (3, ["finished", "finished"], "stopped"),
        (3, ["finished", "finished", "running"], "running"), (None, ["finished", "finished"], "recorded"),
    ],
)  # fmt: skip
def test_the_state_follows_from_the_plan_and_the_trials(planned: int | None, states: list[str], state: str) -> None:
    run = values_only([1.0 if own == "finished" else FAILED for own in states if own != "running"])
    records = tuple(TrialRecord(number, own, {}) for number, own in enumerate(states))  # type: ignore[arg-type]
    settings = {} if planned is None else {"method": "gp", "trials": planned}
    data = run_data(run, settings=settings, stored=records, stored_numbers=tuple(range(len(run))))
    assert headline(data).state == state


@pytest.mark.parametrize(
    ("change", "use"),
    [
        ({}, "used"), ({"settings": {"method": "gp", "trials": 20}}, "ignored"),
        ({"past": (), "notes": (None,) * 20}, "none"), ({"past": (), "notes": (None,) * 20, "settings": {}}, "unknown"),
    ],
)  # fmt: skip
def test_it_is_said_whether_past_runs_were_used(change: dict[str, Any], use: str) -> None:
    assert headline(replace(usual(), **change)).past_use == use


def steps(count: int, best: int) -> list[float]:
    """Values of which trial ``best`` (from 1) is the first good one."""
    return [0.0 if number + 1 >= best else 10.0 for number in range(count)]


def compared(own: int, others: list[int], origin: str) -> RunData:
    past = [replace_task(f"past {place}", steps(30, best)) for place, best in enumerate(others)]
    origins = {run.task: origin for run in past}
    return run_data(values_only(steps(30, own)), past, origins=origins)


def replace_task(task: str, values: list[float]) -> recollect.Run:
    run = values_only(values)
    return recollect.Run(task, trials=run.trials, space=run.space)


def test_the_gain_is_the_median_of_past_runs_without_transfer_and_its_bootstrap_interval() -> None:
    needed = [4, 8, 19, 19, 20, 22, 25]
    gain = transfer_gain(compared(6, needed, "without transfer"))
    assert gain is not None
    assert (gain.own, gain.without, gain.runs, gain.compared) == (6, 19, 7, "without transfer")
    assert gain.sentence == "As good after 6 trials as without past runs after 19"
    rng = np.random.default_rng(12)  # another stream than the code's
    medians = np.median(rng.choice(np.array(needed), size=(20_000, 7)), axis=1)
    assert gain.interval is not None
    np.testing.assert_allclose(gain.interval, np.quantile(medians, [0.05, 0.95]), atol=1)
    assert gain.helped is (gain.interval[0] > 6)


def test_a_run_that_was_slower_than_past_runs_says_so() -> None:
    gain = transfer_gain(compared(19, [6, 6, 6], "with transfer"))
    assert gain is not None
    assert not gain.helped
    assert gain.sentence == "As good after 19 trials as past runs were after 6"


def test_the_same_task_without_past_runs_is_the_better_comparison() -> None:
    data = compared(6, [20, 20, 20], "without transfer")
    paired = replace(data, paired=PairedRun("alone", "gp", values_only(steps(30, 12))))
    gain = transfer_gain(paired)
    assert gain is not None
    assert (gain.own, gain.without, gain.interval) == (6, 12, None)
    never = replace(data, run=values_only([10.0] * 29 + [9.0]), paired=paired.paired)
    missed = transfer_gain(never)
    assert missed is not None
    assert (missed.own, missed.helped) == (None, False)
    assert "Not as good in 30 trials" in missed.sentence


@pytest.mark.parametrize("change", [{"past": (), "notes": (None,) * 20}, {"settings": {"method": "gp", "trials": 20}}])
def test_without_past_runs_there_is_no_gain(change: dict[str, object]) -> None:
    assert transfer_gain(replace(usual(), **change)) is None  # type: ignore[arg-type]


def test_pages_sentences_and_explanations_have_the_same_numbers() -> None:
    past = [learned(f"past {number}", 15, seed=number + 1) for number in range(3)]
    space = past[0].space
    assert space is not None
    target = learned("target", 12, seed=9, failed=(4,))
    values = {str(trial.config): trial.value for trial in target.trials}

    def objective(config: dict[str, object]) -> float:
        return values.get(str(config)) or float(str(config["cost"]).__len__())

    result = recollect.minimize(objective, space, past=past, trials=8, seed=3, problem="p", task="target")
    data = run_data_of(result)
    head, explanation, history = headline(data), result.explain(), weight_history(data)
    assert (explanation.trials, explanation.failed) == (len(data.run), head.counts["failed"])
    assert explanation.best_value == head.best_value == result.best_value
    assert head.past_runs == len(explanation.past)
    assert history is not None
    measured = {entry.task: entry.mean_weight for entry in explanation.past}
    for task, mean in history.means.items():
        assert mean == pytest.approx(measured[task], abs=0.01)
    page = render(page_of_run(data))
    gain, expected = head.gain, expectation(data)
    assert gain is not None
    assert expected is not None
    assert gain.without == median_trials(expected.needed)
    words = page.replace("<b>", "").replace("</b>", "")
    assert f"{gain.sentence}." in words
    assert f"{head.best_value:.4g}" in run_summary(data, history)[1]
    assert f"trial {head.best_number}." in run_summary(data, history)[1]


def tuned_in(memory: Path, method: str, trials: int = 9) -> recollect.Result:
    """Tune two tasks without past runs, then one that learns from them; values differ, but some are equal."""
    given: dict[str, Any] = {"memory": memory, "problem": "p", "progress": False}
    space = {"x": (0.0, 1.0), "y": (0.0, 1.0), "kind": ["a", "b"]}

    def objective(shift: float) -> Callable[[dict[str, Any]], float]:
        return lambda config: round(abs(config["x"] - shift) + config["y"] + (config["kind"] == "b"), 1)

    for number in range(2):
        recollect.minimize(objective(number / 10), space, task=f"t{number}", method="random", trials=12, **given)
    return recollect.minimize(objective(0.15), space, task="target", method=method, trials=trials, **given)


@pytest.mark.parametrize("method", ["rgpe-taf", "rgpe-mean", "task-prior", "tstr-taf+wd", "wac", "random"])
@pytest.mark.parametrize("trials", [3, 9])
def test_explanations_command_line_and_pages_give_one_verdict(method: str, trials: int, tmp_path: Path) -> None:
    memory = tmp_path / "runs.db"
    result = tuned_in(memory, method, trials)
    with recollect.Memory(memory) as opened:
        data = read_run_data(opened, "p", "target")
    assert data.method is not None
    agreement, explanation = rank_agreement(data, data.method), result.explain()
    for entry, share in zip(explanation.past, agreement.shares, strict=True):
        if entry.misranked is not None and explanation.pairs:
            assert share == pytest.approx(1.0 - entry.misranked / explanation.pairs)
    history = weight_history(data)
    if history is not None:
        assert history.means == {entry.task: pytest.approx(entry.mean_weight) for entry in explanation.past}
    if not data.method.transfers:
        return
    assert verdict(data, agreement, history) == explanation.summary
    assert headline(data, agreement).verdict == headline(run_data_of(result), agreement).verdict == explanation.summary
    words = unescape(re.sub("<[^>]*>", "", render(page_of_run(data))))
    assert explanation.summary in words
    assert explanation.summary in " ".join(str(explanation).splitlines()), "which the command line prints"


def test_a_run_that_was_resumed_is_explained_by_all_its_trials(tmp_path: Path) -> None:
    """A process knows the weights behind its own suggestions only; the notes on the trials know all."""
    memory = tmp_path / "runs.db"
    tuned_in(memory, "rgpe-mean", 5)
    result = tuned_in(memory, "rgpe-mean", 9)
    with recollect.Memory(memory) as opened:
        data = read_run_data(opened, "p", "target")
    assert data.method is not None
    history = weight_history(data)
    assert history is not None
    assert len(history.trials) > 4, "of both processes"
    assert result.explain().target.mean_weight == pytest.approx(history.target.mean())
    assert verdict(data, rank_agreement(data, data.method), history) == result.explain().summary
