"""The history of a run says the same as the run itself, trial after trial, and its copies are independent."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Run, Trial
from recollect.numerics.arrays import row_key
from recollect.optimizer.history import INITIAL_ROWS, History
from recollect.runs.run import State

VALUES = st.integers(-3, 3).map(float)  # with many ties
TRIALS = st.one_of(
    VALUES.map(lambda value: Trial({"x": 0.5}, value)),
    st.just(Trial({"x": 0.5}, None, State.FAILED)),
    st.just(Trial({"x": 0.5}, None, State.PRUNED)),
    VALUES.map(lambda value: Trial({"x": 0.5}, None, State.PRUNED, estimate=value)),
)
PLACES = st.floats(0.0, 1.0) | st.just(np.nan)  # nan: far from the space searched


@given(entries=st.lists(st.tuples(PLACES, TRIALS), max_size=20), direction=st.sampled_from(["minimize", "maximize"]))
def test_it_agrees_with_the_run_of_its_trials(
    entries: list[tuple[float, Trial]], direction: Literal["minimize", "maximize"]
) -> None:
    history = History(Run("t", space={"x": (0.0, 1.0)}, direction=direction), 1)
    for x, trial in entries:
        history.append(np.array([x]), trial, row_key(np.array([x])))
    run = Run("t", trials=[trial for _, trial in entries], space={"x": (0.0, 1.0)}, direction=direction)
    assert (history.run.trials, history.run.direction, history.direction) == (run.trials, direction, direction)
    assert history.best is run.best
    assert (len(history), history.usable) == (len(run), len(run.usable))
    assert len(history.failed) == sum(trial.state is State.FAILED and not np.isnan(x) for x, trial in entries)
    rows = [x for x, trial in entries if trial.learned_value is not None]
    kept = [(x, y) for x, y in zip(rows, run.y, strict=True) if not np.isnan(x)]
    X, y = history.modelled()
    assert [(float(a), float(b)) for a, b in zip(X[:, 0], y, strict=True)] == kept
    assert history.can_be_modelled() == bool(kept)


def test_room_grows_without_losing_a_row() -> None:
    history, count = History(Run(space={"x": (0.0, 1.0)}), 1), 5 * INITIAL_ROWS + 1
    for number in range(count):
        history.append(
            np.array([number / count]),
            Trial({"x": number / count}, float(-number)),
            row_key(np.array([number / count])),
        )
    X, y = history.modelled()
    np.testing.assert_array_equal(X[:, 0], np.arange(count) / count)
    np.testing.assert_array_equal(y, -np.arange(count))
    assert all(row_key(x) in history for x in X)
    assert row_key(np.array([2.0])) not in history


@pytest.mark.parametrize("failed", [False, True])
def test_a_copy_is_independent(failed: bool) -> None:
    trial = Trial({"x": 0.5}, None, State.FAILED) if failed else Trial({"x": 0.5}, 1.0)
    history = History(Run(space={"x": (0.0, 1.0)}), 1)
    history.append(np.array([0.25]), trial, b"first")
    other = history.copy()
    other.append(np.array([0.75]), trial, b"second")
    assert (len(history), len(history.run), len(history.failed), len(history.modelled()[1])) == (
        1,
        1,
        int(failed),
        int(not failed),
    )
    assert len(other.run) == 2
    assert b"second" in other
    assert b"second" not in history
