"""Ask and tell: the promises of `Optimizer` for plain methods."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ConfigSpace import (
    Categorical,
    ConfigurationSpace,
    EqualsCondition,
    Float,
    ForbiddenEqualsClause,
    ForbiddenInClause,
    Integer,
)

import recollect
from recollect import (
    FAILED,
    ConfigError,
    ExhaustedError,
    FailedTrialWarning,
    InputError,
    InputTypeError,
    Optimizer,
    Run,
    SpaceError,
)
from recollect.runs.run import Direction
from recollect.space.space import Space

FLAT = {"a": (0.0, 1.0), "b": (-5.0, 5.0)}
METHODS = ["random", "gp"]


def bowl(config: dict[str, Any]) -> float:
    return (config["a"] - 0.3) ** 2 + 0.1 * (config["b"] - 1.0) ** 2


def conditional() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "poly", "rbf"])
    gamma, degree = Float("gamma", (1e-3, 1e3), log=True), Integer("degree", (2, 5))
    space.add(kernel, Float("C", (1e-3, 1e3), log=True), gamma, degree)
    space.add(EqualsCondition(gamma, kernel, "rbf"), EqualsCondition(degree, kernel, "poly"))
    return space


def conditional_value(config: dict[str, Any]) -> float:
    value = abs(math.log10(config["C"]) - 1)
    if config["kernel"] == "rbf":
        return value + abs(math.log10(config["gamma"]) + 1)
    return value + 2 + (config["degree"] if config["kernel"] == "poly" else 0)


def drive(optimizer: Optimizer, value: Callable[[dict[str, Any]], Any], trials: int) -> list[dict[str, Any]]:
    asked = []
    for _ in range(trials):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], value(asked[-1]))
    return asked


def keys(configs: list[dict[str, Any]]) -> set[tuple[tuple[str, Any], ...]]:
    return {tuple(sorted(config.items())) for config in configs}


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_suggestions_and_another_seed_others(method: str) -> None:
    runs = [drive(Optimizer(FLAT, method=method, seed=seed), bowl, 14) for seed in (3, 3, 4)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_global_random_state_is_neither_read_nor_changed() -> None:
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # type: ignore[index, union-attr] # noqa: NPY002
    drive(Optimizer(FLAT), bowl, 12)
    assert np.array_equal(before, np.random.get_state()[1])  # type: ignore[index] # noqa: NPY002


def test_gp_beats_random_search_on_a_bowl() -> None:
    best = {
        method: np.median([min(map(bowl, drive(Optimizer(FLAT, method=method, seed=s), bowl, 25))) for s in range(5)])
        for method in METHODS
    }
    assert best["gp"] < 0.1 * best["random"]


def test_gp_tunes_a_conditional_space() -> None:
    optimizer = Optimizer(conditional(), seed=1)
    asked = drive(optimizer, conditional_value, 40)
    assert all(("gamma" in c) == (c["kernel"] == "rbf") and ("degree" in c) == (c["kernel"] == "poly") for c in asked)
    assert min(map(conditional_value, asked)) < 0.3
    assert len(keys(asked)) == 40


def test_the_initial_design_is_the_default_and_four_points_of_a_sobol_sequence() -> None:
    optimizer = Optimizer(FLAT, seed=5)
    design = [optimizer.ask() for _ in range(5)]
    assert design[0] == {name: (low + high) / 2 for name, (low, high) in FLAT.items()}
    for name, (low, high) in FLAT.items():
        assert sorted(int(4 * (config[name] - low) / (high - low)) for config in design[1:]) == [0, 1, 2, 3]


def test_the_initial_design_of_the_paper_is_a_latin_hypercube_of_ten() -> None:
    optimizer = Optimizer(FLAT, seed=5, method="gp+paper")
    design = [optimizer.ask() for _ in range(10)]
    for name, (low, high) in FLAT.items():
        strata = sorted(int(10 * (config[name] - low) / (high - low)) for config in design)
        assert strata == list(range(10))


@pytest.mark.parametrize("method", METHODS)
def test_candidates_are_suggested_once_each_and_then_exhausted(method: str) -> None:
    grid = [{"a": a / 6, "b": float(b)} for a, b in itertools.product(range(5), range(-2, 3))]
    optimizer = Optimizer(FLAT, method=method, candidates=grid)
    asked = drive(optimizer, bowl, len(grid))
    assert keys(asked) == keys(grid)
    with pytest.raises(ExhaustedError, match="of the 25 candidates none is left"):
        optimizer.ask()


def test_what_is_left_is_counted_in_english() -> None:
    for taken, words in ((0, "2 candidates only 2 are left"), (1, "2 candidates only 1 is left"), (2, "2 .* none is")):
        optimizer = Optimizer(FLAT, method="random", candidates=[{"a": 0.0, "b": b} for b in (0.0, 1.0)])
        _ = optimizer.ask(taken) if taken else []
        with pytest.raises(ExhaustedError, match=words):
            optimizer.ask(3)


def test_candidates_come_back_in_the_very_form_they_were_given() -> None:
    grid = [{"lr": 0.1 * 3**k / 7**3} for k in range(6)]
    asked = drive(Optimizer({"lr": (1e-6, 1e1, "log")}, candidates=grid), lambda c: c["lr"], 6)
    assert sorted(c["lr"] for c in asked) == [c["lr"] for c in grid]


def test_asking_for_more_than_is_left_asks_for_nothing() -> None:
    optimizer = Optimizer(FLAT, candidates=[{"a": 0.1, "b": 0.0}, {"a": 0.2, "b": 0.0}])
    with pytest.raises(ExhaustedError, match=r"asked for 3 .* of the 2 .* only 2 are left"):
        optimizer.ask(3)
    assert optimizer.pending == []


def test_repeated_candidates_count_once() -> None:
    optimizer = Optimizer(FLAT, candidates=[{"a": 0.1, "b": 0.0}] * 3)
    optimizer.ask()
    with pytest.raises(ExhaustedError):
        optimizer.ask()


def test_a_finite_space_is_used_up_without_repetition() -> None:
    optimizer = Optimizer({"n": (1, 3), "k": ["a", "b"], "c": 7})
    asked = drive(optimizer, lambda c: float(c["n"]), 6)
    assert len(keys(asked)) == 6
    assert all(config["c"] == 7 for config in asked)
    with pytest.raises(ExhaustedError, match="configurations of the search space"):
        optimizer.ask()


@pytest.mark.parametrize("method", METHODS)
def test_a_float_range_of_few_numbers_is_used_up_without_decoding_what_was_suggested_before(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    optimizer = Optimizer({"x": (1e15, 1e15 + 1.0)}, method=method)
    assert len(keys(drive(optimizer, lambda c: c["x"] - 1e15, 9))) == 9
    decoded: list[int] = []
    decode = Space.decode
    monkeypatch.setattr(Space, "decode", lambda space, X: decoded.append(len(X)) or decode(space, X))
    with pytest.raises(ExhaustedError, match="practically exhausted"):
        optimizer.ask()
    assert sum(decoded) < 2000  # not all of the 16384 random draws


def test_a_space_of_one_point_gives_that_point_and_ends() -> None:
    optimizer = Optimizer({"only": "this"})
    assert optimizer.ask() == {"only": "this"}
    with pytest.raises(ExhaustedError):
        optimizer.ask()


def test_pending_points_are_never_suggested_twice() -> None:
    optimizer = Optimizer(FLAT, seed=2)
    drive(optimizer, bowl, 12)
    batch = optimizer.ask(8)
    assert len(keys(batch)) == 8
    spread = np.array([[c["a"], (c["b"] + 5) / 10] for c in batch])
    gaps = np.linalg.norm(spread[:, None] - spread[None], axis=2)[np.triu_indices(8, 1)]
    assert gaps.min() > 1e-3, "fantasies must push parallel suggestions apart"
    assert keys(optimizer.pending) == keys(batch)


def test_results_may_be_recorded_in_any_order() -> None:
    optimizer = Optimizer(FLAT, seed=2)
    batch = optimizer.ask(12)
    for config in reversed(batch):
        optimizer.tell(config, bowl(config))
    assert optimizer.pending == []
    assert optimizer.run.configs == batch[::-1]
    assert optimizer.ask() not in batch


def test_what_the_optimizer_hands_out_can_be_changed_without_changing_its_run() -> None:
    optimizer = Optimizer(FLAT, method="random")
    drive(optimizer, bowl, 3)
    before = [dict(config) for config in optimizer.run.configs]
    assert optimizer.best is not None
    for config in (optimizer.best.config, *optimizer.run.configs):
        config["a"] = "changed"
    assert optimizer.run.configs == before
    assert optimizer.best.config in before


def test_asking_for_everything_before_the_first_result_works() -> None:
    batch = Optimizer(FLAT).ask(25)
    assert len(keys(batch)) == 25


def test_a_count_gives_a_list_even_for_one() -> None:
    optimizer = Optimizer(FLAT)
    assert isinstance(optimizer.ask(1), list)
    assert isinstance(optimizer.ask(), dict)


@pytest.mark.parametrize("value", [FAILED, math.nan, math.inf, -math.inf])
def test_failures_are_kept_counted_and_not_suggested_again(value: Any) -> None:
    grid = [{"a": a / 20, "b": 0.0} for a in range(20)]
    optimizer = Optimizer(FLAT, candidates=grid)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedTrialWarning)
        asked = drive(optimizer, lambda c: value if c["a"] > 0.5 else bowl(c), 20)
    assert len(keys(asked)) == 20
    assert len(optimizer.run) == 20
    assert optimizer.best is not None
    assert optimizer.best.value == min(bowl(c) for c in grid if c["a"] <= 0.5)


def test_a_value_that_is_not_finite_gives_a_warning() -> None:
    optimizer = Optimizer(FLAT)
    with pytest.warns(FailedTrialWarning, match="nan is not finite"):
        optimizer.tell(optimizer.ask(), math.nan)


def test_failures_do_not_change_the_model() -> None:
    plain, failing = Optimizer(FLAT, seed=1), Optimizer(FLAT, seed=1)
    for config in plain.ask(10):
        plain.tell(config, bowl(config))
        failing.tell(config, bowl(config))
    failing.tell({"a": 0.9, "b": 4.0}, FAILED)
    plain.ask()
    failing.ask()
    for optimizer in (plain, failing):
        assert optimizer.explain().failed == (optimizer is failing)
    models = [plain._model, failing._model]
    assert all(model is not None and model.target.n == 10 for model in models)


def test_the_search_settles_beside_a_region_that_always_fails() -> None:
    optimizer = Optimizer(FLAT, seed=0)
    asked = drive(optimizer, lambda c: FAILED if c["a"] < 0.35 else bowl(c), 40)
    failed = [config["a"] < 0.35 for config in asked]
    assert np.mean(failed[5:15]) < 0.6, "one failure must warn of its surroundings"
    assert optimizer.best is not None
    assert optimizer.best.value is not None
    assert optimizer.best.value < 0.01


def test_a_run_in_which_everything_fails_continues() -> None:
    optimizer = Optimizer(FLAT)
    asked = drive(optimizer, lambda _: FAILED, 15)
    assert len(keys(asked)) == 15
    assert optimizer.best is None
    assert "no trial has succeeded" in str(optimizer.explain())


def test_the_same_configuration_may_be_recorded_again() -> None:
    optimizer = Optimizer(FLAT, seed=3)
    rng = np.random.default_rng(0)
    for config in optimizer.ask(10):
        for _ in range(3):
            optimizer.tell(config, bowl(config) + 0.05 * rng.normal())
    assert len(optimizer.run) == 30
    asked = drive(optimizer, bowl, 5)
    assert min(map(bowl, asked)) < 0.1


def test_configurations_of_ones_own_are_taken_in_and_shorten_the_design() -> None:
    optimizer = Optimizer(FLAT, seed=3)
    own = [{"a": 0.3, "b": 1.0 + k / 10} for k in range(10)]
    for config in own:
        optimizer.tell(config, bowl(config))
    optimizer.ask()
    assert optimizer.explain().reason == "highest acquisition value"
    assert optimizer.best is not None
    assert optimizer.best.config == own[0]


def test_maximization_mirrors_minimization() -> None:
    down, up = Optimizer(FLAT, seed=7), Optimizer(FLAT, seed=7, direction="maximize")
    assert drive(down, bowl, 16) == drive(up, lambda c: -bowl(c), 16)
    assert up.best is not None
    assert up.best.value == max(v for v in up.run.values if v is not None)
    assert up.explain().predicted_mean == pytest.approx(-down.explain().predicted_mean)  # type: ignore[operator]


def test_a_resumed_run_repeats_nothing_and_follows_the_same_design() -> None:
    whole = Optimizer(FLAT, seed=9)
    asked = drive(whole, bowl, 8)
    resumed = Optimizer(FLAT, seed=9, run=Run("t", asked[:5], [bowl(c) for c in asked[:5]]))
    assert drive(resumed, bowl, 3) == asked[5:]
    assert resumed.run.configs == asked
    more = drive(resumed, bowl, 10)
    assert len(keys(asked + more)) == 18


@pytest.mark.parametrize("wrong", ["a", 3, [Run("t")], {}])
def test_what_is_no_run_cannot_be_resumed(wrong: Any) -> None:
    with pytest.raises(InputTypeError, match=r"run must be a recollect\.Run, got (str|int|list|dict)"):
        Optimizer(FLAT, run=wrong)


def test_a_run_of_the_other_direction_cannot_be_resumed() -> None:
    with pytest.raises(InputError, match="'minimize', but this optimizer has 'maximize'"):
        Optimizer(FLAT, run=Run("t", [{"a": 0.5, "b": 0.0}], [1.0]), direction="maximize")


@pytest.mark.parametrize("scale", [1e300, 1e-12, 1e307])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_huge_and_tiny_ranges_of_values_are_tuned_all_the_same(scale: float, offset: float) -> None:
    optimizer = Optimizer(FLAT, seed=1)
    asked = drive(optimizer, lambda c: offset + scale * bowl(c) / 4, 25)
    assert min(map(bowl, asked)) < 0.05
    assert optimizer.explain().notes == ()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e308, -1e308])
def test_a_constant_objective_is_explored_without_complaint(value: float, direction: Direction) -> None:
    asked = drive(Optimizer(FLAT, seed=1, direction=direction), lambda _: value, 20)
    assert len(keys(asked)) == 20


def test_one_wild_outlier_does_not_stop_the_search() -> None:
    asked = drive(Optimizer(FLAT, seed=1), lambda c: 1e300 if c["a"] > 0.9 else bowl(c), 20)
    assert len(keys(asked)) == 20


def test_forbidden_combinations_are_never_suggested() -> None:
    space = conditional()
    space.add(ForbiddenEqualsClause(space["kernel"], "poly"))
    asked = drive(Optimizer(space, seed=1), conditional_value, 20)
    assert all(config["kernel"] != "poly" for config in asked)


def test_an_explanation_says_what_drove_the_suggestion() -> None:
    optimizer = Optimizer(FLAT, seed=1)
    assert "nothing has been suggested" in str(optimizer.explain())
    drive(optimizer, bowl, 5)
    assert optimizer.explain().reason == "point 5 of the initial design"
    optimizer.ask()
    told = optimizer.explain()
    assert told.reason == "highest acquisition value"
    assert told.predicted_mean is not None
    assert min(v for v in optimizer.run.values if v is not None) - 3 < told.predicted_mean < 3
    assert "predicted value:" in str(told)


def test_bad_arguments_are_refused_with_what_was_expected() -> None:
    for horizon in (0, -1):
        with pytest.raises(InputError, match="horizon must be at least 1"):
            Optimizer(FLAT, horizon=horizon)
    with pytest.raises(InputTypeError, match="horizon must be an integer"):
        Optimizer(FLAT, horizon=2.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="seed must be at least 0"):
        Optimizer(FLAT, seed=-1)
    with pytest.raises(InputError, match=r"no method 'gpp'.*rgpe-taf"):
        Optimizer(FLAT, method="gpp")
    with pytest.raises(InputError, match="direction must be"):
        Optimizer(FLAT, direction="down")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least one configuration"):
        Optimizer(FLAT, candidates=[])
    with pytest.raises(ConfigError):
        Optimizer(FLAT, candidates=[{"a": 2.0, "b": 0.0}])
    with pytest.raises(InputTypeError, match="candidates must be a list"):
        Optimizer(FLAT, candidates=np.array(0.5))  # type: ignore[arg-type]
    with pytest.raises(InputTypeError, match="past must be a list"):
        Optimizer(FLAT, past=np.array(0.5))  # type: ignore[arg-type]
    with pytest.raises(SpaceError):
        Optimizer({})
    with pytest.raises(InputError, match="count must be at least 1"):
        Optimizer(FLAT).ask(0)


@pytest.mark.parametrize(
    "config", [{"a": 0.5}, {"a": 0.5, "b": 0.0, "c": 1}, {"a": 1.5, "b": 0.0}, {"a": "x", "b": 0.0}]
)
def test_telling_a_configuration_outside_the_space_changes_nothing(config: dict[str, Any]) -> None:
    optimizer = Optimizer(FLAT)
    with pytest.raises(ConfigError) as caught:
        optimizer.tell(config, 1.0)
    assert caught.value.number is None  # there is only one configuration, so a number would say nothing
    assert len(optimizer.run) == 0


@pytest.mark.parametrize("value", ["0.1", None, [0.1], True])
def test_telling_something_that_is_no_number_changes_nothing(value: Any) -> None:
    optimizer = Optimizer(FLAT)
    config = optimizer.ask()
    with pytest.raises(InputTypeError, match=r"expected a number or recollect\.FAILED"):
        optimizer.tell(config, value)
    assert len(optimizer.run) == 0
    assert optimizer.pending == [config]


@pytest.mark.parametrize("seconds", ["1", math.nan, True, -5])
def test_telling_seconds_that_are_no_number_changes_nothing(seconds: Any) -> None:
    optimizer = Optimizer(FLAT)
    config = optimizer.ask()
    with pytest.raises((InputError, InputTypeError), match="seconds"):
        optimizer.tell(config, 1.0, seconds=seconds)
    assert (len(optimizer.run), optimizer.pending) == (0, [config])


def test_telling_a_list_instead_of_a_dict_is_refused() -> None:
    with pytest.raises(InputTypeError, match="must be a dict"):
        Optimizer(FLAT).tell([0.5, 0.0], 1.0)  # type: ignore[arg-type]


def test_methods_are_listed_and_found_by_name() -> None:
    assert {"random", "gp"} <= set(recollect.methods())
    assert recollect.method("gp").name == "gp"


def test_a_configuration_that_somebody_else_evaluates_is_not_suggested_and_is_pending() -> None:
    opt = Optimizer({"a": (0, 4)}, method="gp")
    opt.expect({"a": 2})
    opt.expect({"a": 2})
    assert opt.pending == [{"a": 2}]
    assert {"a": 2} not in opt.ask(4)
    opt.tell({"a": 2}, 1.0)
    assert {"a": 2} not in opt.pending
    assert opt.run.configs == [{"a": 2}]


def test_announced_configurations_change_suggestions_as_suggested_ones_do() -> None:
    space = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    run = Run("t", [{"a": i / 9, "b": (i * i % 10) / 9} for i in range(10)], [float(i % 4) for i in range(10)])
    asked, other = Optimizer(space, method="gp", run=run), Optimizer(space, method="gp", run=run)
    first = asked.ask()
    other.expect(first)
    assert asked.ask() == other.ask()
    assert other.ask() != first


def test_a_cancelled_configuration_may_be_suggested_again() -> None:
    opt = Optimizer({"a": (0, 3)}, method="random")
    asked = opt.ask(4)
    with pytest.raises(ExhaustedError):
        opt.ask()
    opt.cancel(asked[1])
    assert opt.ask() == asked[1]
    opt.tell(asked[1], 0.5)
    with pytest.raises(InputError, match="not pending"):
        opt.cancel(asked[1])


def test_a_batch_that_cannot_be_completed_leaves_nothing_pending() -> None:
    space, letters = ConfigurationSpace(), [f"c{i}" for i in range(200)]
    space.add(*(Categorical(name, letters) for name in "ab"))
    space.add(*(ForbiddenInClause(space[name], letters[1:]) for name in "ab"))  # one of 40,000 is left
    optimizer = Optimizer(space, method="random")
    with pytest.raises(ExhaustedError):
        optimizer.ask(3)
    assert optimizer.pending == []
    assert optimizer.ask() == {"a": "c0", "b": "c0"}


def test_configurations_far_from_the_box_are_told_apart() -> None:
    configs = [{"a": 0.5 + i / 100, "b": i / 100} for i in range(6)]
    past = [Run(f"t{k}", configs, [(i - 2 - k) ** 2 for i in range(6)]) for k in range(3)]
    optimizer = Optimizer(FLAT, past, "gp-box")
    one, other = {"a": 0.0, "b": -5.0}, {"a": 1.0, "b": 5.0}
    optimizer.expect(one)
    optimizer.expect(other)
    optimizer.tell(other, 3.0)
    assert optimizer.pending == [one]
    optimizer.cancel(one)
    assert optimizer.pending == []


def test_a_failed_trial_without_all_values_is_resumed() -> None:
    run = Run("t", [{"a": 0.1, "b": 0.0}, {"a": 0.5}], [1.0, FAILED], space=FLAT)
    optimizer = Optimizer(FLAT, run=run)
    assert len(optimizer.run) == 2
    drive(optimizer, bowl, 8)
    with pytest.raises(ConfigError, match="configuration 0: the run to resume: 'b'"):
        Optimizer(FLAT, run=Run("t", [{"a": 0.5}], [1.0]))
