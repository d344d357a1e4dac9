"""Optuna's trials, studies and distributions as recollect's, and back."""

from __future__ import annotations

import math
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, Constant, OrdinalHyperparameter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
    json_to_distribution,
)
from optuna.trial import FrozenTrial, TrialState, create_trial

from recollect import ConfigError, InputError, InputTypeError, SpaceError, State, compile_space
from recollect.space.sampling import uniform
from recollect.storage.optuna_conversion import (
    CompletedReports,
    config_of,
    distributions,
    finished_trials,
    fit_value,
    nearest,
    params_of,
    run_of_study,
    space_of_distributions,
    trial_of,
)

quick = settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
X = {"x": FloatDistribution(0.0, 1.0)}
START = datetime(2026, 1, 1)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def frozen(state: TrialState, values: Any = None, number: int = 0, **reports: float) -> FrozenTrial:
    """A trial as a storage might hand it out, unchecked."""
    end = START + timedelta(seconds=2.5 * (number + 1)) if state.is_finished() else None
    return FrozenTrial(
        number=number,
        state=state,
        value=None,
        values=values,
        datetime_start=START,
        datetime_complete=end,
        params={"x": 0.5},
        distributions=dict(X),
        user_attrs={},
        system_attrs={},
        intermediate_values={int(step[1:]): report for step, report in reports.items()},
        trial_id=number,
    )


def stored(known: dict[str, BaseDistribution], params: dict[str, Any]) -> dict[str, Any]:
    """What a database gives back: distributions went through JSON, values through floating point columns."""
    back = {}
    for name, value in params.items():
        column = float(known[name].to_internal_repr(value))
        back[name] = json_to_distribution(distribution_to_json(known[name])).to_external_repr(column)
    return back


def exactly(config: dict[str, Any]) -> dict[str, tuple[type, Any]]:
    return {name: (type(value), value) for name, value in config.items()}


CHOICES = st.lists(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 10**6), st.floats(-9, 9, allow_nan=False), st.text(max_size=5)),
    min_size=1,
    max_size=6,
    unique_by=lambda choice: (choice is None, choice),
)


@st.composite
def hyperparameters(draw: st.DrawFn, name: str) -> Any:
    kind = draw(st.sampled_from(["float", "log", "int", "log int", "categorical", "ordinal", "constant"]))
    if kind in ("float", "log"):
        low = draw(st.floats(1e-6, 10.0) if kind == "log" else st.floats(-100.0, 100.0))
        bounds = (round(low, 8), round(low, 8) + draw(st.sampled_from([0.5, 3.0, 1e3])))
        return (*bounds, "log") if kind == "log" else bounds
    if kind in ("int", "log int"):
        low = draw(st.integers(1, 50) if kind == "log int" else st.integers(-50, 50))
        bounds = (low, low + draw(st.integers(1, 10**6)))
        return (*bounds, "log") if kind == "log int" else bounds
    choices = draw(CHOICES)
    if kind == "constant":
        return Constant(name, choices[0])
    return CategoricalHyperparameter(name, choices) if kind == "categorical" else OrdinalHyperparameter(name, choices)


@quick
@given(data=st.data())
def test_a_configuration_that_went_through_optuna_is_the_same_value_for_value_and_type_for_type(data: Any) -> None:
    space = compile_space({name: data.draw(hyperparameters(name)) for name in ("a", "b", "c")})
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    known = distributions(space)
    for config in space.decode(uniform(space, 4, rng)):
        params = params_of(config, known)
        trial = create_trial(params=params, distributions=known, value=1.0)
        assert exactly(config_of(trial)) == exactly(config)
        assert exactly(stored(known, params)) == exactly(config)


def test_a_configuration_comes_back_the_same_from_a_real_database(tmp_path: Path) -> None:
    space = compile_space(
        {"lr": (1e-5, 1e-1, "log"), "n": (1, 9), "flag": [True, False], "what": [None, "a", 2, 2.5], "fix": 3}
    )
    config = {"lr": 0.00123, "n": 4, "flag": False, "what": None, "fix": 3}
    url = f"sqlite:///{tmp_path}/x.db"
    known = distributions(space)
    study = optuna.create_study(storage=url, study_name="s")
    study.add_trial(create_trial(params=params_of(config, known), distributions=known, value=0.25))
    (trial,) = run_of_study(optuna.load_study(study_name="s", storage=url)).trials
    assert exactly(trial.config) == exactly(config)
    assert trial.value == 0.25


def test_distributions_and_spaces_are_each_others_inverse_where_optuna_has_the_kind() -> None:
    known = {
        "a": FloatDistribution(-1.0, 2.5),
        "b": FloatDistribution(1e-4, 1e2, log=True),
        "c": IntDistribution(-3, 8),
        "d": IntDistribution(1, 100, log=True),
        "e": CategoricalDistribution(["x", None, True, 7, 2.5]),
        "f": CategoricalDistribution(["only"]),
    }
    assert distributions(space_of_distributions(known)) == known


def test_a_step_becomes_an_ordinal_whose_values_are_bitwise_those_of_optuna() -> None:
    known = FloatDistribution(-10.2, 10.2, step=0.1)
    space = space_of_distributions({"x": known})
    assert space.sizes.tolist() == [205]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    drawn = [study.ask({"x": known}).params for _ in range(60)]
    assert len(np.unique(space.encode(drawn))) > 30
    gaps = np.diff(space.encode([{"x": min(k * 0.1 - 10.2, 10.2)} for k in range(205)])[:, 0])
    assert np.allclose(gaps, gaps[0])


def test_integer_steps_single_values_and_steps_beyond_count() -> None:
    space = space_of_distributions(
        {
            "i": IntDistribution(3, 9, step=2),
            "one": FloatDistribution(2.0, 2.0),
            "log one": IntDistribution(4, 4, log=True),
            "short": FloatDistribution(0.0, 0.5, step=0.5),
            "fine": FloatDistribution(0.0, 1.0, step=1e-5),
            "wide": IntDistribution(0, 10**6, step=10),
        }
    )
    sizes = dict(zip(space.names, space.sizes.tolist(), strict=True))
    assert sizes == {"i": 4, "one": 1, "log one": 1, "short": 2, "fine": 0, "wide": 10**6 + 1}
    assert space.decode(space.default[None, :])[0]["one"] == 2.0


@pytest.mark.parametrize(
    ("distribution", "words"),
    [
        (FloatDistribution(1e-20, 1e-3, log=True), "13 decimals"),
        (IntDistribution(0, 2**60), "encoded exactly"),
        (CategoricalDistribution([1, True]), "differ"),
        (CategoricalDistribution([1.0, float("nan")]), "nan cannot be a choice"),
    ],
)
def test_a_distribution_that_no_space_can_express_is_refused_by_name(distribution: Any, words: str) -> None:
    with pytest.raises(SpaceError, match=words) as caught:
        space_of_distributions({"eta": distribution})
    assert "'eta'" in str(caught.value)


def test_choices_that_optuna_cannot_store_are_refused_by_name() -> None:
    space = compile_space({"layers": [(1, 2), (3,)]})
    with pytest.raises(SpaceError, match=r"'layers'.*\(1, 2\) \(tuple\)"):
        distributions(space)


def test_choices_that_are_numpy_scalars_are_stored_as_pythons_own() -> None:
    source = ConfigurationSpace()
    source.add(OrdinalHyperparameter("o", [np.int64(3), np.int64(5)]))
    known = distributions(compile_space(source))["o"]
    assert [type(choice) for choice in known.choices] == [int, int]  # type: ignore[attr-defined]


def test_params_leave_out_what_is_inactive_and_refuse_what_does_not_belong() -> None:
    known = {"a": FloatDistribution(0.0, 1.0), "c": CategoricalDistribution([None, "x"])}
    assert params_of({"a": None, "c": None}, known) == {"c": None}
    assert exactly(params_of({"a": np.float32(0.5), "c": np.str_("x")}, known)) == exactly({"a": 0.5, "c": "x"})
    with pytest.raises(ConfigError, match="parameters a, c, got 'b'"):
        params_of({"b": 1}, known)
    with pytest.raises(ConfigError, match="'a': expected a value of FloatDistribution"):
        params_of({"a": 1.5}, known)
    with pytest.raises(ConfigError, match=r"got 'y' \(str\)"):
        params_of({"c": "y"}, known)


@pytest.mark.parametrize(
    ("distribution", "value", "fitted"),
    [
        (FloatDistribution(0.0, 1.0), 1.0 + 5e-14, 1.0),
        (FloatDistribution(0.0, 1.0), 1, 1.0),
        (FloatDistribution(0.0, 1.0, step=0.1), 0.3, 0.30000000000000004),
        (IntDistribution(1, 9, step=2), 5.0, 5),
        (IntDistribution(0, 2**62), 2**62 - 1, 2**62 - 1),
        (CategoricalDistribution([True, "a"]), 1, True),
    ],
)
def test_a_value_is_given_as_its_distribution_has_it(distribution: BaseDistribution, value: Any, fitted: Any) -> None:
    found = fit_value("p", distribution, value)
    assert found == fitted
    assert type(found) is type(fitted)
    assert distribution._contains(distribution.to_internal_repr(found))


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (FloatDistribution(0.0, 1.0), 1.0 + 1e-9),
        (FloatDistribution(0.0, 1.0, step=0.1), 0.35),
        (IntDistribution(1, 9, step=2), 4),
        (IntDistribution(1, 9), 4.5),
        (IntDistribution(0, 10**8), 10**8 + 1),
        (IntDistribution(0, 1), True),
        (FloatDistribution(0.0, 1.0), "0.5"),
        (FloatDistribution(0.0, 1.0), math.nan),
    ],
)
def test_a_value_that_does_not_belong_is_refused(distribution: BaseDistribution, value: Any) -> None:
    with pytest.raises(ConfigError, match="'p': expected a value of"):
        fit_value("p", distribution, value)


@quick
@given(
    low=st.integers(-1000, 1000),
    steps=st.integers(1, 50),
    step=st.integers(1, 7),
    value=st.floats(-2000.0, 2000.0),
)
def test_the_nearest_value_is_allowed_and_none_is_nearer(low: int, steps: int, step: int, value: float) -> None:
    allowed = [low + k * step for k in range(steps + 1)]
    for distribution, slack in ((IntDistribution(low, allowed[-1], step=step), 0.5), (_halved(low, steps, step), 0.0)):
        found = nearest(distribution, value)
        assert distribution._contains(distribution.to_internal_repr(found))
        scale = 1 if isinstance(distribution, IntDistribution) else 0.5
        assert abs(found - value) <= min(abs(scale * choice - value) for choice in allowed) + slack + 1e-9


def _halved(low: int, steps: int, step: int) -> FloatDistribution:
    return FloatDistribution(low / 2, (low + steps * step) / 2, step=step / 2)


def test_a_completed_trial_keeps_value_and_seconds_and_a_failed_one_has_a_note() -> None:
    done = trial_of(frozen(TrialState.COMPLETE, [0.25]))
    assert done is not None
    assert (done.config, done.value, done.state, done.seconds) == ({"x": 0.5}, 0.25, State.OK, 2.5)
    failed = trial_of(frozen(TrialState.FAIL, number=7))
    assert failed is not None
    assert failed.state is State.FAILED
    assert failed.notes == ("trial 7 failed in Optuna",)


@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.WAITING])
def test_a_trial_that_has_not_finished_is_none(state: TrialState) -> None:
    assert trial_of(frozen(state)) is None


@pytest.mark.parametrize(
    ("values", "value", "note"),
    [
        (["0.5"], 0.5, ()),
        ([np.float32(0.5)], 0.5, ()),
        (["high"], None, ("the value 'high' is not a number",)),
        ([None], None, ("the value None is not a number",)),
        ([], None, ("completed without a value",)),
        (None, None, ("completed without a value",)),
        ([math.nan], None, ("the objective returned nan",)),
        ([-math.inf], None, ("the objective returned -inf",)),
    ],
)
def test_values_of_any_kind_become_a_number_or_a_failure_with_its_reason(values: Any, value: Any, note: Any) -> None:
    trial = trial_of(frozen(TrialState.COMPLETE, values))
    assert trial is not None
    assert (trial.value, trial.notes) == (value, note)
    assert trial.ok is (value is not None)


def test_several_values_are_refused() -> None:
    with pytest.raises(InputError, match="trial 3 has 2 values"):
        trial_of(frozen(TrialState.COMPLETE, [1.0, 2.0], number=3))


def test_clocks_that_went_backwards_give_no_seconds() -> None:
    trial = frozen(TrialState.COMPLETE, [1.0])
    trial.datetime_complete = START - timedelta(seconds=1)
    read = trial_of(trial)
    assert read is not None
    assert read.seconds is None


def test_parameters_are_read_as_their_distribution_has_them() -> None:
    trial = frozen(TrialState.COMPLETE, [1.0])
    trial.params = {"x": np.int64(1), "flag": 1, "odd": "what no distribution knows"}
    trial.distributions = {"x": X["x"], "flag": CategoricalDistribution([True, False]), "odd": IntDistribution(0, 3)}
    assert exactly(config_of(trial)) == exactly({"x": 1.0, "flag": True, "odd": "what no distribution knows"})


def test_a_study_becomes_a_run_of_its_name_and_direction() -> None:
    study = optuna.create_study(direction="maximize", study_name="svm on iris")
    study.add_trial(create_trial(params={"x": 0.5}, distributions=X, value=3.0))
    study.add_trial(create_trial(params={"x": 0.7}, distributions=X, state=TrialState.FAIL))
    study.ask()
    run = run_of_study(study)
    assert (run.task, run.direction, run.values, run.space) == ("svm on iris", "maximize", [3.0, None], None)
    assert run.y.tolist() == [-3.0]
    assert run_of_study(study, "other").task == "other"


def test_a_study_with_several_objectives_and_what_is_no_study_are_refused() -> None:
    with pytest.raises(InputError, match="has 2 objectives"):
        run_of_study(optuna.create_study(directions=["minimize", "minimize"]))
    with pytest.raises(InputTypeError, match=r"expected an optuna.Study, got 'svm' \(str\)"):
        run_of_study("svm")  # type: ignore[arg-type]


@pytest.mark.parametrize(("sign", "direction"), [(1, "minimize"), (-1, "maximize")])
def test_a_pruned_trial_has_among_the_values_the_place_of_its_report_among_the_reports(
    sign: int, direction: Any
) -> None:
    completed = [
        frozen(TrialState.COMPLETE, [sign * value], number, s2=sign * 100.0 * value)
        for number, value in enumerate((4.0, 1.0, 3.0, 2.0, 5.0))
    ]
    for report, value in ((50.0, 1.0), (250.0, 2.6), (300.0, 2.6), (350.0, 3.4), (1000.0, 5.0)):
        pruned = frozen(TrialState.PRUNED, number=9, s0=0.0, s2=sign * report)
        trial = finished_trials([*completed, pruned], direction)[-1][1]
        assert trial.estimate == pytest.approx(sign * value)
        assert (trial.state, trial.value) == (State.PRUNED, None)


def test_a_pruned_trial_is_judged_by_what_had_been_completed_before_it_only() -> None:
    early = frozen(TrialState.COMPLETE, [1.0], 0, s0=1.0)
    pruned = frozen(TrialState.PRUNED, None, 1, s0=3.0)
    late = frozen(TrialState.COMPLETE, [9.0], 2, s0=9.0)
    values = {trial.number: read.learned_value for trial, read in finished_trials([late, pruned, early], "minimize")}
    assert values == {0: 1.0, 1: 1.0, 2: 9.0}
    assert [trial.number for trial, _ in finished_trials([late, pruned, early], "minimize")] == [2, 1, 0]


def test_a_pruned_trial_that_nothing_compares_with_has_no_estimate() -> None:
    other_step = frozen(TrialState.COMPLETE, [1.0], 0, s5=1.0)
    silent = frozen(TrialState.PRUNED, None, 1)
    undefined = frozen(TrialState.PRUNED, None, 2, s5=math.nan)
    unlike = frozen(TrialState.PRUNED, None, 3, s4=1.0)
    trials = [trial for _, trial in finished_trials([other_step, silent, undefined, unlike], "minimize")]
    assert [trial.state for trial in trials] == [State.OK, State.PRUNED, State.PRUNED, State.PRUNED]
    assert [trial.learned_value for trial in trials] == [1.0, None, None, None]
    assert trial_of(frozen(TrialState.RUNNING)) is None


def test_ten_thousand_trials_half_of_them_pruned_are_read_in_seconds() -> None:
    trials = [
        frozen(TrialState.PRUNED, None, n, s0=float(n % 97)) if n % 2 else frozen(TrialState.COMPLETE, [1.0], n, s0=1.0)
        for n in range(10_000)
    ]
    before = time.process_time()
    assert len(finished_trials(trials, "minimize")) == 10_000
    assert time.process_time() - before < 3.0


def test_what_was_completed_before_can_be_handed_on() -> None:
    completed = CompletedReports("minimize")
    finished_trials([frozen(TrialState.COMPLETE, [2.0], 0, s0=1.0)], "minimize", completed=completed)
    ((_, trial),) = finished_trials([frozen(TrialState.PRUNED, None, 1, s0=3.0)], "minimize", completed=completed)
    assert trial.estimate == 2.0
