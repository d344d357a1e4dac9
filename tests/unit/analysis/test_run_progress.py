"""What past runs let expect of a run without transfer."""

from __future__ import annotations

from collections import Counter

import numpy as np
from tests.helpers.example_runs import (
    learned,
    run_data,
    values_only,
)

from recollect import FAILED, Run
from recollect.analysis.run_data import (
    Origin,
)
from recollect.analysis.run_progress import expectation


def test_past_runs_are_brought_to_the_range_of_this_run() -> None:
    """Three runs of four trials: they are at 1, 0.5, 0.5, 0 and 0, 0, 0, 0 and 1, 1, 0.5, 0 of their own ranges."""
    past = [
        values_only([8.0, 6.0, 7.0, 4.0]),
        values_only([1.0, 2.0, 3.0, 5.0]),
        values_only([30.0, FAILED, 20.0, 10.0]),
    ]
    past = [Run(f"past {number}", trials=run.trials) for number, run in enumerate(past)]
    data = run_data(values_only([20.0, 0.0, 10.0, 5.0]), past)
    expected = expectation(data)
    assert expected is not None
    assert expected.median.tolist() == [20.0, 10.0, 10.0, 0.0]
    assert expected.better.tolist() == [10.0, 5.0, 5.0, 0.0]
    assert expected.worse.tolist() == [20.0, 15.0, 10.0, 0.0]
    assert expected.needed.tolist() == [4, 1, 4]
    assert expected.own_needed == 2
    assert expected.origins == ("unknown",) * 3


def test_past_runs_of_a_maximized_problem_rise() -> None:
    past = [Run("past", trials=values_only([1.0, 3.0, 2.0], "maximize").trials, direction="maximize")]
    expected = expectation(run_data(values_only([10.0, 20.0, 0.0], "maximize"), past))
    assert expected is not None
    assert expected.median.tolist() == [0.0, 20.0, 20.0]


def test_runs_without_transfer_are_preferred_and_others_are_named() -> None:
    past = [learned(f"past {number}", 12, seed=number) for number in range(5)]
    alone: dict[str, Origin] = {
        f"past {number}": "without transfer" if number < 3 else "with transfer" for number in range(5)
    }
    expected = expectation(run_data(learned("own", 12, seed=9), past, origins=alone))
    assert expected is not None
    assert (len(expected.origins), expected.without_transfer) == (3, True)
    mixed: dict[str, Origin] = {"past 0": "without transfer", "past 1": "with transfer", "past 2": "with transfer"}
    expected = expectation(run_data(learned("own", 12, seed=9), past, origins=mixed))
    assert expected is not None
    assert not expected.without_transfer
    assert Counter(expected.origins) == {"with transfer": 2, "without transfer": 1, "unknown": 2}


def test_long_runs_are_compared_with_short_past_runs_over_their_first_trials() -> None:
    past = [values_only([2.0, 1.0, 0.0]) for _ in range(4)]
    data = run_data(values_only([4.0, 2.0, 3.0, 0.0, 1.0, 1.0]), past)
    expected = expectation(data)
    assert expected is not None
    assert expected.median.tolist() == [4.0, 3.0, 2.0], "from the worst to the best of the first three values"
    assert (expected.length, expected.own_needed) == (3, 2)


def test_past_runs_that_stop_early_do_not_count_where_they_have_no_value() -> None:
    past = [values_only([3.0, 2.0, 1.0, 0.0]), values_only([9.0, 0.0]), values_only([4.0, 3.0, 2.0, 1.0])]
    expected = expectation(run_data(values_only([8.0, 6.0, 4.0, 0.0]), past))
    assert expected is not None
    np.testing.assert_allclose(expected.median, [8.0, 8.0 * 2 / 3, 8.0 / 3, 0.0])
