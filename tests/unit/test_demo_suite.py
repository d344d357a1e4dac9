from __future__ import annotations

import numpy as np
import pytest

from recollect.bench.study import Outcome, make_outcome
from recollect.cli import demo, demo_suite

TASKS = [f"t{number:02}" for number in range(10)]


def outcome(method: str, levels: dict[int, float], *, spread: float = 0.0) -> Outcome:
    """Regrets that fall to a level after so many trials, on ten tasks that differ a little."""
    curve = np.ones(demo_suite.TRIALS)
    for point, level in sorted(levels.items()):
        curve[point - 1 :] = level
    curves = {(task, 0): curve + spread * (number - 4.5) for number, task in enumerate(TASKS)}
    return make_outcome("own-xgboost", method, curves=curves, seconds=0.0)


def test_the_verdict_says_where_past_runs_are_better_and_what_they_save() -> None:
    found = {
        "rgpe-taf": outcome("rgpe-taf", {3: 0.2, 7: 0.1}),
        "gp": outcome("gp", {5: 0.4, 10: 0.3, 15: 0.1}),
    }
    said = demo_suite.replay_verdict(found)
    assert "better after 5 and 10 trials, no clear difference after 20 trials" in said
    assert "What it reaches after 20 trials is reached with past runs after 7." in said


def test_a_loss_is_said_as_plainly() -> None:
    found = {"rgpe-taf": outcome("rgpe-taf", {1: 0.5}), "gp": outcome("gp", {1: 0.2})}
    said = demo_suite.replay_verdict(found)
    assert "worse after 5, 10 and 20 trials" in said
    assert "better" not in said
    assert "is reached with past runs" not in said


def test_the_table_counts_data_sets() -> None:
    found = {
        "rgpe-taf": outcome("rgpe-taf", {1: 0.2}),
        "gp": outcome("gp", {1: 0.2}, spread=0.01),
        "random": outcome("random", {1: 0.6}),
    }
    table = demo_suite.replay_table(found, demo.NAMES)
    columns = [list(column.cells) for column in table.columns]
    assert columns[0][-2:] == ["past runs better, worse than gp", "past runs better, worse than random"]
    assert columns[1] == ["20.00", "20.00", "60.00", "5, 5", "10, 0"]
    assert str(len(TASKS)) in str(table.title)


@pytest.mark.parametrize("seed", [0, 3])
def test_the_data_sets_are_tuned_as_an_experiment_does(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_suite, "BENCHMARK", "forrester")
    monkeypatch.setattr(demo_suite, "TRIALS", 4)
    monkeypatch.setattr(demo_suite, "cores", lambda: 1)
    found = demo_suite.replay(seed, ("random", "gp", "rgpe-taf"), 5)
    assert set(found) >= {"random", "gp", "rgpe-taf"}
    assert {len(outcome.adtm) for outcome in found.values()} == {4}
    again = demo_suite.replay(seed, ("gp", "rgpe-taf"), 5)
    np.testing.assert_array_equal(found["rgpe-taf"].adtm, again["rgpe-taf"].adtm)
