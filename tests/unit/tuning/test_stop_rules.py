"""Rules that end a run before its budget is spent."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from recollect import FAILED, FailedTrialWarning, InputError, InputTypeError, Memory, Run, Stop, Trial, minimize
from recollect.tuning.stop_rules import Budget, no_improvement, same_failures, target_reached

SPACE = {"a": (0.0, 1.0)}


def run_of(values: list[Any], direction: Any = "minimize") -> Run:
    return Run("t", [{"a": index / 100} for index in range(len(values))], values, direction=direction)


def failed(*reasons: str) -> Run:
    return Run("t", trials=[Trial({"a": 0.1}, None, FAILED, notes=(reason,)) for reason in reasons])


@pytest.mark.parametrize(
    ("values", "patience", "stops"),
    [
        ([3.0, 2.0, 2.5], 1, True),
        ([3.0, 2.0, 2.5], 2, False),
        ([3.0, 2.0, 2.0, 2.0], 2, True),  # as good is not better
        ([3.0, FAILED, FAILED], 2, True),
        ([FAILED, FAILED, FAILED], 2, False),  # nothing to improve on: that is for max_failures
        ([3.0, 2.0, 1.0], 1, False),
        ([], 1, False),
    ],
)
def test_patience_counts_the_trials_since_the_last_improvement(values: list[Any], patience: int, stops: bool) -> None:
    budget = Budget(10, patience=patience)
    assert bool(no_improvement(budget, run_of(values))) == stops
    flipped = run_of([-v if isinstance(v, float) else v for v in values], "maximize")
    assert bool(no_improvement(budget, flipped)) == stops


@pytest.mark.parametrize(("direction", "target", "stops"), [("minimize", 1.0, True), ("maximize", 4.0, False)])
def test_a_target_is_reached_in_the_users_direction(direction: str, target: float, stops: bool) -> None:
    assert bool(target_reached(Budget(10, target=target), run_of([3.0, 1.0], direction))) == stops


def test_failures_for_the_same_reason_stop_a_run_even_if_numbers_in_the_reason_differ() -> None:
    budget, reasons = Budget(10, max_failures=3), [f"ValueError: lr {n / 7} too high, pid {n}" for n in range(3)]
    assert reasons[-1] in same_failures(budget, failed(*reasons), earlier=0)
    assert same_failures(budget, failed(*reasons[:2]), earlier=0) == ""
    assert same_failures(budget, failed("KeyError: 'x'", *reasons[1:]), earlier=0) == ""
    assert same_failures(budget, failed(*reasons), earlier=1) == ""  # one of them was there before this call
    assert same_failures(Budget(10, max_failures=None), failed(*reasons), earlier=0) == ""
    assert same_failures(budget, failed(*reasons).with_trial(Trial({"a": 0.5}, 1.0)), earlier=0) == ""


def broken(_config: dict[str, Any]) -> float:
    raise ValueError("no such file")


def test_a_function_that_always_fails_ends_after_five_trials_and_can_be_repaired() -> None:
    from optuna.storages import InMemoryStorage

    memory = Memory(InMemoryStorage())
    options: dict[str, Any] = {"memory": memory, "task": "t", "method": "random", "progress": False}
    with pytest.warns(FailedTrialWarning):
        result = minimize(broken, SPACE, trials=50, **options)
    assert len(result.run) == 5
    assert "no such file" in result.stopped
    repaired = minimize(lambda config: config["a"], SPACE, trials=8, **options)
    assert (len(repaired.run), len(repaired.run.succeeded)) == (8, 3)


def test_without_a_limit_failures_use_up_the_budget() -> None:
    with pytest.warns(FailedTrialWarning):
        result = minimize(broken, SPACE, trials=7, method="random", max_failures=None, progress=False)
    assert len(result.run) == 7


def test_patience_ends_a_run_and_says_so() -> None:
    values = itertools.chain([5.0, 4.0], itertools.repeat(4.5))
    options: dict[str, Any] = {"method": "random", "patience": 4, "progress": False}
    result = minimize(lambda _config: next(values), SPACE, trials=50, **options)
    assert len(result.run) == 6
    assert result.stopped == "no improvement in 4 trials"


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ({"patience": 0}, InputError),
        ({"patience": 2.5}, InputTypeError),
        ({"max_failures": 0}, InputError),
        ({"min_improvement": "x"}, InputTypeError),
        ({"first": [1]}, InputTypeError),
        ({"callbacks": [1]}, InputTypeError),
        ({"callbacks": print}, InputTypeError),
    ],
)
def test_options_that_make_no_sense_are_refused(option: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(option))):
        minimize(lambda config: config["a"], SPACE, trials=2, progress=False, **option)


def test_stop_is_no_error_of_recollect() -> None:
    from recollect import RecollectError

    assert not issubclass(Stop, RecollectError)
