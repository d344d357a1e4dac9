from __future__ import annotations

import numpy as np
import pytest

from recollect.bench.analysis.aggregate import MethodResult, aggregate_curves
from recollect.cli import demo

TASKS = [f"t{number:02}" for number in range(10)]


def outcome(method: str, levels: dict[int, float], *, spread: float = 0.0) -> MethodResult:
    """Regrets that fall to a level after so many trials, on ten tasks that differ a little."""
    curve = np.ones(demo.REPLAY_TRIALS)
    for point, level in sorted(levels.items()):
        curve[point - 1 :] = level
    curves = {(task, 0): curve + spread * (number - 4.5) for number, task in enumerate(TASKS)}
    return aggregate_curves("own-xgboost", method, curves=curves, seconds=0.0)


def test_the_verdict_says_where_past_runs_are_better_and_what_they_save() -> None:
    results = {
        demo.TRANSFER: outcome(demo.TRANSFER, {3: 0.2, 7: 0.1}),
        "gp": outcome("gp", {5: 0.4, 10: 0.3, 15: 0.1}),
    }
    text = demo.replay_verdict(results)
    assert "better after 5 and 10 trials, no clear difference after 20 trials" in text
    assert "after 7 trials" in text


def test_a_loss_is_stated_as_plainly() -> None:
    results = {demo.TRANSFER: outcome(demo.TRANSFER, {1: 0.5}), "gp": outcome("gp", {1: 0.2})}
    text = demo.replay_verdict(results)
    assert "worse after 5, 10 and 20 trials" in text
    assert "better" not in text
    assert "reach the error" not in text


def test_the_table_counts_datasets() -> None:
    results = {
        demo.TRANSFER: outcome(demo.TRANSFER, {1: 0.2}),
        "gp": outcome("gp", {1: 0.2}, spread=0.01),
        "random": outcome("random", {1: 0.6}),
    }
    table = demo.replay_table(results)
    columns = [list(column.cells) for column in table.columns]
    assert columns[0][-2:] == ["past runs better, worse than gp", "past runs better, worse than random"]
    assert columns[1] == ["20.00", "20.00", "60.00", "5, 5", "10, 0"]
    assert str(len(TASKS)) in str(table.title)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_datasets_are_tuned_as_an_experiment_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "REPLAY_BENCHMARK", "forrester")
    monkeypatch.setattr(demo, "REPLAY_TASKS", 3)
    monkeypatch.setattr(demo, "REPLAY_TRIALS", 4)
    monkeypatch.setattr(demo, "PAST_TRIALS", 5)
    monkeypatch.setattr(demo, "available_cores", lambda: 1)
    results = demo.replay_suite(seed)
    assert set(results) >= {"random", "gp", demo.TRANSFER}
    assert {len(outcome.tasks) for outcome in results.values()} == {3}
    assert {len(outcome.adtm) for outcome in results.values()} == {4}
    monkeypatch.setattr(demo, "NAMES", {"gp": "", demo.TRANSFER: ""})
    again = demo.replay_suite(seed)
    np.testing.assert_array_equal(results[demo.TRANSFER].adtm, again[demo.TRANSFER].adtm)
