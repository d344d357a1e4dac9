"""Trials and runs."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from recollect import FAILED, ConfigError, InputError, InputTypeError, MissingExtraError, Run, State, Trial, read_runs

SPACE = {"a": (0.0, 1.0), "b": ["u", "v"]}
CONFIGS = [{"a": 0.25, "b": "u"}, {"a": 0.5, "b": "v"}, {"a": 0.75, "b": "u"}]


def test_a_run_keeps_configs_and_values_in_order() -> None:
    run = Run("task", CONFIGS, [3.0, 1.0, 2.0])
    assert run.configs == CONFIGS
    assert run.values == [3.0, 1.0, 2.0]
    assert len(run) == 3
    assert run.best == Trial(CONFIGS[1], 1.0)


def test_failures_are_kept_and_left_out_of_the_arrays() -> None:
    run = Run("task", CONFIGS, [3.0, FAILED, math.nan], space=SPACE)
    assert [trial.state for trial in run.trials] == [State.OK, State.FAILED, State.FAILED]
    assert run.values == [3.0, None, None]
    assert run.y.tolist() == [3.0]
    assert run.X.shape == (1, 2)
    assert run.trials[2].notes == ("the objective returned nan",)


def test_maximization_turns_the_sign_of_y_and_nothing_else() -> None:
    run = Run("task", CONFIGS, [3.0, 1.0, 2.0], direction="maximize")
    assert run.y.tolist() == [-3.0, -1.0, -2.0]
    assert run.values == [3.0, 1.0, 2.0]
    assert run.best is not None
    assert run.best.value == 3.0


def test_the_first_of_equally_good_trials_is_best() -> None:
    best = Run("task", CONFIGS, [1.0, 1.0, 1.0]).best
    assert best is not None
    assert best.config == CONFIGS[0]


def test_a_run_without_success_has_no_best() -> None:
    assert Run().best is None
    assert Run("t", CONFIGS, [FAILED] * 3).best is None


def test_adding_a_trial_gives_a_new_run() -> None:
    run = Run("task", CONFIGS[:1], [3.0], space=SPACE)
    longer = run.with_trial(Trial(CONFIGS[1], 1.0))
    assert (len(run), len(longer)) == (1, 2)
    assert longer.space is run.space


def test_a_copy_of_a_run_equals_it_and_a_run_in_another_space_does_not() -> None:
    run = Run("task", CONFIGS, [3.0, 1.0, 2.0], space=SPACE)
    assert pickle.loads(pickle.dumps(run)) == copy.deepcopy(run) == run
    assert run != Run("task", CONFIGS, [3.0, 1.0, 2.0], space=SPACE | {"a": (0.0, 2.0)})
    assert run != Run("task", CONFIGS, [3.0, 1.0, 2.0])


def test_a_run_copies_what_it_was_given() -> None:
    config = {"a": 0.5, "b": "u"}
    run = Run("task", [config], [1.0])
    config["a"] = 0.9
    assert run.configs[0]["a"] == 0.5


@pytest.mark.parametrize("value", ["0.5", [0.5], True, np.array([0.5]), 1j, {}])
def test_a_value_that_is_not_a_number_is_refused(value: object) -> None:
    with pytest.raises(InputTypeError, match=r"values\[1\].*expected a number"):
        Run("task", CONFIGS[:2], [1.0, value])


class Tensor:
    """A number as other libraries have it: no `numbers.Real`, but with a value and, if it has any, dimensions."""

    def __init__(self, ndim: int) -> None:
        self.ndim = ndim

    def __float__(self) -> float:
        return 0.25


@pytest.mark.parametrize("value", [Tensor(0), Decimal("0.25")])
def test_numbers_of_other_libraries_are_numbers(value: object) -> None:
    assert Run("t", [{"a": 1}], [value]).values == [0.25]


@pytest.mark.parametrize("value", [Tensor(1), Decimal("snan"), np.array([0.25]), np.str_("0.25")])
def test_what_is_not_one_number_is_refused(value: object) -> None:
    with pytest.raises(InputTypeError):
        Run("t", [{"a": 1}], [value])


@pytest.mark.parametrize("value", [np.float32(0.5), np.array(0.5), np.int64(3), 3])
def test_numpy_scalars_are_numbers(value: float) -> None:
    assert Run("task", CONFIGS[:1], [value]).values == [float(value)]


def test_an_integer_too_large_for_a_float_is_a_failure() -> None:
    assert Run("task", CONFIGS[:1], [10**400]).trials[0].state is State.FAILED


def test_bad_runs_are_refused_with_the_reason() -> None:
    with pytest.raises(InputError, match="3 configs but 2 values"):
        Run("task", CONFIGS, [1.0, 2.0])
    with pytest.raises(InputError, match="expected both configs and values"):
        Run("task", CONFIGS)
    with pytest.raises(InputError, match="got both"):
        Run("task", CONFIGS, [1, 2, 3], trials=[Trial(CONFIGS[0], 1.0)])
    with pytest.raises(InputTypeError, match=r"configs\[0\] must be a dict"):
        Run("task", ["a"], [1.0])  # type: ignore[list-item]
    with pytest.raises(InputTypeError, match="task must be a string"):
        Run(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'minimize' or 'maximize'"):
        Run("task", direction="up")  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        Run("task", [{"a": 2.0, "b": "u"}], [1.0], space=SPACE)
    with pytest.raises(InputError, match="no space of its own"):
        _ = Run("task", CONFIGS, [1, 2, 3]).X


def test_a_trial_cannot_contradict_itself() -> None:
    with pytest.raises(InputError, match="failed trial has no value"):
        Trial({}, 1.0, State.FAILED)
    with pytest.raises(InputError, match="needs a finite value"):
        Trial({}, None)
    with pytest.raises(InputError, match="needs a finite value"):
        Trial({}, math.inf)
    for seconds in (math.nan, math.inf, -5, -1e-300):
        with pytest.raises(InputError, match="seconds"):
            Trial({}, 1.0, seconds=seconds)
    assert Trial({}, 1.0, seconds=0).seconds == 0.0


@pytest.mark.parametrize("value", ["0.5", b"1", True, set(), 1j, np.array([0.5]), object()])
def test_a_trial_of_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(InputTypeError, match="value"):
        Trial({}, value)
    with pytest.raises(InputTypeError, match="seconds"):
        Trial({}, 1.0, seconds=value)
    with pytest.raises(InputTypeError, match="must be a dict"):
        Trial(value, 1.0)
    with pytest.raises(InputTypeError, match="must be a dict"):
        Trial.of(value, 1.0)
    with pytest.raises(InputTypeError, match="state"):
        Trial({}, 1.0, value)


def test_the_numbers_of_a_trial_are_floats() -> None:
    trial = Trial({}, np.float32(0.5), seconds=np.int64(3))  # type: ignore[arg-type]
    assert (type(trial.value), type(trial.seconds)) == (float, float)


@pytest.mark.parametrize("wrong", [5, np.array(0.5), lambda: 0.5])
def test_a_run_of_what_is_no_list_is_refused(wrong: Any) -> None:
    with pytest.raises(InputTypeError, match="configs must be a list"):
        Run("task", wrong, [1.0])
    with pytest.raises(InputTypeError, match="values must be a list"):
        Run("task", CONFIGS, wrong)
    with pytest.raises(InputTypeError, match="trials must be a list"):
        Run("task", trials=wrong)
    with pytest.raises(InputTypeError, match=r"trials\[0\] must be a recollect.Trial"):
        Run("task", trials=[wrong])
    with pytest.raises(InputError, match="'minimize' or 'maximize'"):
        Run("task", direction=wrong)


def test_a_pruned_trial_has_no_value_but_may_have_an_estimate_that_models_learn_from() -> None:
    trials = [Trial({"a": 0.1}, 2.0), Trial({"a": 0.2}, None, State.PRUNED, estimate=1), Trial({}, None, State.PRUNED)]
    run = Run("task", trials=[*trials, Trial({"a": 0.4}, None, State.FAILED)], direction="maximize")
    assert run.values == [2.0, None, None, None]
    assert run.best == trials[0]
    assert run.y.tolist() == [-2.0, -1.0]
    assert run.usable == (trials[0], trials[1])
    assert (len(run.succeeded), len(run.pruned), len(run.failed)) == (1, 2, 1)
    with pytest.raises(InputError, match="pruned trial has no value"):
        Trial({}, 1.0, State.PRUNED)
    for state, estimate in ((State.OK, 1.0), (State.FAILED, 1.0), (State.PRUNED, math.nan)):
        with pytest.raises(InputError, match="only a pruned trial has an estimate"):
            Trial({}, 1.0 if state is State.OK else None, state, estimate=estimate)


def test_a_trial_without_a_result_may_lack_hyperparameters_but_has_no_others() -> None:
    run = Run("task", trials=[Trial({"a": 0.5, "b": "u"}, 1.0), Trial({"a": 0.5}, None, State.FAILED)], space=SPACE)
    assert len(run) == 2
    for config in ({"a": 2.0}, {"c": 1}):
        with pytest.raises(ConfigError, match="configuration 1"):
            Run("task", trials=[run.trials[0], Trial(config, None, State.FAILED)], space=SPACE)
    with pytest.raises(ConfigError, match=r"configuration 1.*missing"):
        Run("task", trials=[run.trials[1], Trial({"a": 0.5}, 1.0)], space=SPACE)


def test_a_frame_has_all_trials_and_can_be_read_again() -> None:
    trials = [
        Trial({"C": 0.5, "kernel": "rbf", "gamma": 2.0}, 1.5, seconds=3),
        Trial({"C": 0.1, "kernel": "linear"}, None, State.FAILED),
        Trial({"C": 0.2, "kernel": "linear"}, None, State.PRUNED),
    ]
    frame = Run("wine", trials=trials).to_frame()
    assert frame.index.tolist() == [0, 1, 2]
    assert list(frame.columns) == ["task", "C", "kernel", "gamma", "value", "state", "seconds"]
    assert frame["state"].tolist() == ["ok", "failed", "pruned"]
    assert frame["gamma"].isna().tolist() == [False, True, True]
    (again,) = read_runs(frame)
    assert (again.task, again.trials) == ("wine", tuple(trials))
    assert len(Run("empty").to_frame()) == 0
    with pytest.raises(InputError, match="'value' has the name of another column"):
        Run("task", [{"value": 1}], [1.0]).to_frame()


def test_without_pandas_the_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        Run("task", [{"a": 1}], [1.0]).to_frame()


def test_a_table_of_a_run_without_a_name_is_read_again() -> None:
    pytest.importorskip("pandas", reason="part of the extra train")
    run = Run("", [{"x": 0.5}, {"x": 1.5}], [1.0, 2.0])
    (again,) = read_runs(run.to_frame())
    assert (again.configs, again.values) == (run.configs, run.values)
