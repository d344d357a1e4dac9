"""`task-prior` in the optimizer: limits, pending points, spaces of every kind, and past runs of any length."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

from recollect import FAILED, InputError, Optimizer, RecollectWarning, Run, method
from recollect.acquisition.functions import ExpectedImprovement
from recollect.optimizer.model import _prior_weights
from recollect.runs.usability import Unusable
from recollect.surrogate.gp import GP
from recollect.transfer.task_prior import TaskPrior, TaskPriorPosterior

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
GRID = [{"a": i / 7, "b": j / 7} for i in range(8) for j in range(8)]
RNG = np.random.default_rng(1)


def value(config: dict[str, Any], shift: float = 0.0) -> float:
    return float((config["a"] - 0.3 - shift) ** 2 + (config["b"] - 0.7 + shift) ** 2)


def past_runs(count: int, sign: float = 1.0, trials: int = 20) -> list[Run]:
    runs = []
    for i in range(count):
        configs = [GRID[g] for g in RNG.permutation(len(GRID))[:trials]]
        runs.append(Run(f"task {i}", configs, [sign * (1 + i) * value(c, 0.02 * i) for c in configs]))
    return runs


PAST = past_runs(4)


def drive(optimizer: Optimizer, trials: int) -> list[dict[str, Any]]:
    return drive_on(lambda config: value(config, 0.05), optimizer, trials)


def drive_on(function: Callable[[dict[str, Any]], float], optimizer: Optimizer, trials: int) -> list[dict[str, Any]]:
    asked = []
    for _ in range(trials):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], function(asked[-1]))
    return asked


def test_without_past_runs_it_is_plain_bayesian_optimization() -> None:
    both = [drive(Optimizer(SPACE, (), name, candidates=GRID, seed=3), 14) for name in ("task-prior", "gp")]
    assert both[0] == both[1]


def test_when_only_the_plain_process_counts_it_decides_as_gp_does() -> None:
    optimizer = Optimizer(SPACE, PAST, "task-prior", candidates=GRID)
    drive(optimizer, 6)
    model = optimizer._fit_model()
    assert isinstance(model.target, TaskPriorPosterior)
    assert isinstance(model.target.plain, GP)
    alone = replace(model.target, weights=np.append(np.zeros(len(model.target.processes)), 1.0))
    X = optimizer.space.encode(GRID)
    acquisition = method("task-prior").acquisition
    assert acquisition is not None
    scores = [
        rule.prepare(replace(model, target=target).ensemble(X[:1]), RNG).score(X)
        for rule, target in ((acquisition, alone), (ExpectedImprovement(), model.target.plain))
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-9)


def test_the_first_point_is_where_past_runs_are_best_on_average() -> None:
    optimizer = Optimizer(SPACE, PAST, "task-prior", candidates=GRID)
    first = optimizer.ask()
    prior = optimizer._transfer_context().prior
    assert prior is not None
    assert first == GRID[int(prior.functions(optimizer.space.encode(GRID)).mean(axis=0).argmin())]


def test_in_a_continuum_the_first_point_is_one_that_past_runs_evaluated() -> None:
    def uneven(config: dict[str, Any]) -> float:  # flat around its minimum, with large values far away
        return float((10 ** (3 * config["a"] - 4) - 0.01) ** 2 * 1000 + abs(round(10 * config["b"]) - 4) / 10)

    def best_of_first_run(seed: int) -> tuple[float, float]:
        """Return the best value of a run, and the first one of the next run on the same task."""
        configs = drive_on(uneven, Optimizer(SPACE, method="gp", horizon=10, seed=seed), 10)
        values = [uneven(config) for config in configs]
        first = Optimizer(SPACE, [Run("same", configs, values)], "task-prior", horizon=10, seed=seed).ask()
        assert first in configs
        return min(values), uneven(first)

    best, first = np.array([best_of_first_run(seed) for seed in range(4)]).T
    assert np.median(first) <= np.median(best) + 0.05


def test_where_no_past_configuration_is_legal_the_first_point_is_a_reference_point() -> None:
    past = [Run("elsewhere", [{"a": 1.02 + i / 100, "b": i / 8} for i in range(8)], [float(i) for i in range(8)])]
    optimizer = Optimizer(SPACE, past, "task-prior")
    first = optimizer.ask()
    prior = optimizer._transfer_context().prior
    assert prior is not None
    assert first in optimizer.space.decode(prior.reference)


def in_better_half(optimizer: Optimizer, configs: list[dict[str, Any]]) -> list[bool]:
    prior = optimizer._transfer_context().prior
    assert prior is not None
    median = np.median(prior.moments(prior.reference)[0])
    return [bool(promise < median) for promise in prior.moments(optimizer.space.encode(configs))[0]]


def stay_in_better_half(trials: int, name: Any = "task-prior", candidates: Any = GRID) -> Optimizer:
    optimizer = Optimizer(SPACE, PAST, name, candidates=candidates)
    good = [config for config in GRID if in_better_half(optimizer, [config])[0]]
    for config in good[:trials]:
        optimizer.tell(config, 1.0 + value(config))
    return optimizer


@pytest.mark.parametrize("candidates", [GRID, None])
def test_after_seven_results_where_past_runs_promise_much_they_are_tested_once_elsewhere(candidates: Any) -> None:
    optimizer = stay_in_better_half(7, candidates=candidates)
    test = optimizer.ask()
    assert in_better_half(optimizer, [test]) == [False]
    assert optimizer._last is not None
    assert optimizer._last.reason.startswith("testing past runs")
    optimizer.ask()
    assert not optimizer._last.reason.startswith("testing past runs")  # the pending point is a test, too


def test_past_runs_are_tested_where_least_is_known_of_the_half_that_they_call_worse() -> None:
    optimizer = stay_in_better_half(7)
    target = optimizer._fit_model().target
    free = [
        config for config in GRID if config not in optimizer.run.configs and not in_better_half(optimizer, [config])[0]
    ]
    variances = target.predict(optimizer.space.encode(free))[1]
    assert optimizer.ask() == free[int(variances.argmax())]


@pytest.mark.parametrize(("trials", "name"), [(6, "task-prior"), (7, "egp")])
def test_past_runs_are_not_tested_earlier_nor_by_a_method_without_a_guard(trials: int, name: str) -> None:
    optimizer = stay_in_better_half(trials, name)
    optimizer.ask()
    assert optimizer._last is not None
    assert not optimizer._last.reason.startswith("testing past runs")


@pytest.mark.parametrize("outcome", [1.0, FAILED])
def test_a_trial_elsewhere_is_a_test_even_if_it_failed(outcome: Any) -> None:
    optimizer = stay_in_better_half(7)
    elsewhere = next(config for config in GRID if not in_better_half(optimizer, [config])[0])
    optimizer.tell(elsewhere, outcome)
    optimizer.ask()
    assert optimizer._last is not None
    assert not optimizer._last.reason.startswith("testing past runs")


def space_of_kinds() -> ConfigurationSpace:
    space = ConfigurationSpace()
    kind, x, y = Categorical("kind", ["tree", "linear", "other"]), Float("x", (0.0, 1.0)), Float("y", (0.0, 1.0))
    space.add(kind, x, y, EqualsCondition(y, kind, "tree"))
    return space


OFFERED = [{"kind": "tree", "x": i / 9, "y": j / 9} for i in range(10) for j in range(10)]
OFFERED += [{"kind": kind, "x": i / 99} for kind in ("linear", "other") for i in range(100)]


def kind_value(config: dict[str, Any]) -> float:
    own = (config["x"] - 0.3) ** 2 + (config.get("y", 0.5) - 0.5) ** 2
    return own if config["kind"] == "tree" else 2.0 + own


TREES = sorted(OFFERED[:100], key=kind_value)


def past_of_kinds() -> list[Run]:
    """Four past runs in which only trees were any good."""
    rng = np.random.default_rng(0)
    configs = [[OFFERED[i] for i in rng.permutation(len(OFFERED))[:40]] for _ in range(4)]
    return [Run(f"past {i}", own, [kind_value(c) for c in own]) for i, own in enumerate(configs)]


TRYING = "trying a choice that no trial had"


def after_five_trees(prior: TaskPrior | None = None, candidates: Any = OFFERED) -> Optimizer:
    """Return a search whose sixth-last trial, of six trees, was its best one."""
    name = replace(method("task-prior"), prior=prior or TaskPrior(test_after=None))
    optimizer = Optimizer(space_of_kinds(), past_of_kinds(), name, candidates=candidates, seed=1)
    for config in TREES[:60:10]:
        optimizer.tell(config, kind_value(config))
    return optimizer


@pytest.mark.parametrize("candidates", [OFFERED, None])
def test_untried_choices_are_tried_one_by_one_while_the_search_gets_no_better(candidates: Any) -> None:
    optimizer = after_five_trees(candidates=candidates)
    asked: list[tuple[str, bool]] = []
    for _ in range(15):
        config = optimizer.ask()
        asked.append((config["kind"], optimizer.explain().reason == TRYING))
        optimizer.tell(config, 0.1 + kind_value(config))
    tried = [i for i, (_, is_test) in enumerate(asked) if is_test]
    assert tried[0] == 0
    assert all(number % 5 == 0 for number in tried)
    assert sorted(asked[i][0] for i in tried) == sorted({asked[i][0] for i in tried})
    assert {kind for kind, _ in asked} == {"tree", "linear", "other"}


def test_the_choice_that_is_tried_first_is_the_one_with_the_best_candidate() -> None:
    optimizer = after_five_trees()
    ensemble = optimizer._fit_model().ensemble(np.empty((0, 3)))
    options = [config for config in OFFERED if config["kind"] != "tree"]
    score = optimizer.method.acquisition.prepare(ensemble, np.random.default_rng(0)).score
    assert optimizer.ask() == options[int(score(optimizer.space.encode(options)).argmax())]


@pytest.mark.parametrize("tell", [TREES[-1], None])
def test_no_choice_is_tried_between_times_nor_without_the_setting(tell: Any) -> None:
    prior = TaskPrior(test_after=None, choice_every=5 if tell else 0)
    optimizer = after_five_trees(prior)
    if tell:
        optimizer.tell(tell, kind_value(tell))  # the sixth trial since the best
    optimizer.ask()
    assert optimizer.explain().reason != TRYING


def test_a_choice_counts_as_tried_while_it_is_pending_or_if_it_failed() -> None:
    optimizer = after_five_trees()
    first = optimizer.ask()["kind"]
    second = {"linear": "other", "other": "linear"}[first]
    for i in range(3):
        optimizer.tell(TREES[90 + i], kind_value(TREES[90 + i]))
    optimizer.tell({"kind": second, "x": 0.0}, FAILED)  # the tenth trial since the best, the pending one included
    optimizer.ask()
    assert optimizer.explain().reason != TRYING


def test_choices_are_not_tried_every_minus_one_trials() -> None:
    with pytest.raises(InputError, match="got -1"):
        TaskPrior(choice_every=-1)


def test_a_past_that_helps_beats_plain_search_and_one_that_misleads_does_not_hold_it_up() -> None:
    good = drive(Optimizer(SPACE, PAST, "task-prior", candidates=GRID), 4)
    assert min(value(c, 0.05) for c in good) < 0.01
    misled = drive(Optimizer(SPACE, past_runs(4, sign=-1.0), "task-prior", candidates=GRID), 12)
    ranked = sorted(value(config, 0.05) for config in GRID)
    assert min(value(c, 0.05) for c in misled[:5]) <= ranked[2]
    assert min(value(c, 0.05) for c in misled) == ranked[0]


def test_a_past_that_is_certainly_of_no_use_has_no_weight() -> None:
    optimizer = Optimizer(SPACE, PAST, "task-prior", candidates=GRID)
    drive(optimizer, 4)
    posterior = optimizer._fit_model().target
    assert isinstance(posterior, TaskPriorPosterior)
    useless = replace(posterior, weights=np.append(np.zeros(len(posterior.processes)), 1.0))
    weights, _ = _prior_weights(useless, optimizer.run.y)
    np.testing.assert_array_equal(weights.values, [0.0] * len(PAST) + [1.0])


def test_several_suggestions_at_once_are_spread() -> None:
    optimizer = Optimizer(SPACE, PAST, "task-prior")
    drive(optimizer, 4)
    X = optimizer.space.encode(optimizer.ask(4))
    gaps = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(4, 1)]
    assert gaps.min() > 1e-3


def test_a_pending_point_leaves_nothing_to_gain_there() -> None:
    optimizer = Optimizer(SPACE, PAST, "task-prior")
    drive(optimizer, 5)
    X = optimizer.space.encode(GRID)
    acquisition, model = method("task-prior").acquisition, optimizer._fit_model()
    assert acquisition is not None
    free = acquisition.prepare(model.ensemble(X[:0]), RNG).score(X)
    best = int(free.argmax())
    pending = acquisition.prepare(model.ensemble(X[[best]]), RNG).score(X)
    assert pending[best] < free[best] - 1.0


def test_conditional_spaces_and_failures_are_handled() -> None:
    space = ConfigurationSpace(seed=0)
    kind, a, b = Categorical("kind", ["x", "y"]), Float("a", (0.0, 1.0)), Float("b", (0.0, 1.0))
    space.add(kind, a, b)
    space.add(EqualsCondition(b, kind, "y"))

    def objective(config: dict[str, Any]) -> float:
        return float((config["a"] - 0.2) ** 2 + (0.3 if config["kind"] == "x" else (config["b"] - 0.5) ** 2))

    drawn = [dict(config) for config in space.sample_configuration(30)]
    past = [Run(f"task {i}", drawn[i::3], [objective(c) + i for c in drawn[i::3]]) for i in range(3)]
    optimizer = Optimizer(space, past, "task-prior")
    for number in range(8):
        config = optimizer.ask()
        optimizer.tell(config, FAILED if number in (0, 3) else objective(config))
    assert optimizer.best is not None
    assert optimizer.best.value is not None
    assert optimizer.best.value < 0.1


def test_past_runs_of_two_trials_and_of_many_take_part() -> None:
    dense = [{"a": a, "b": b} for a, b in RNG.random((400, 2))]
    runs = [Run("two", GRID[:2], [1.0, 2.0]), Run("many", dense, [value(c) for c in dense]), PAST[0]]
    optimizer = Optimizer(SPACE, runs, "task-prior")
    drive(optimizer, 3)
    assert [entry.coefficient is not None for entry in optimizer.explain().past] == [True] * 3


def test_a_method_has_one_way_to_use_past_runs() -> None:
    with pytest.raises(InputError, match="not several"):
        replace(method("rgpe-taf"), prior=TaskPrior())


def test_when_past_runs_neither_explain_nor_order_the_results_the_initial_design_is_completed() -> None:
    optimizer = Optimizer(SPACE, PAST, "task-prior", candidates=GRID)
    for config in GRID[::9]:
        optimizer.tell(config, float(np.sin(6.0 * config["a"])))
    optimizer.ask()
    assert optimizer._fit_model().no_useful_source
    assert optimizer.explain().reason.startswith("exploring")
    for config in GRID[1:4]:
        optimizer.tell(config, float(np.sin(6.0 * config["a"])))
    optimizer.ask()  # more than ten results: the model decides
    assert not optimizer.explain().reason.startswith("exploring")


def test_a_past_that_explains_the_results_is_not_doubted() -> None:
    optimizer = Optimizer(SPACE, PAST, "task-prior", candidates=GRID)
    drive(optimizer, 9)
    assert not optimizer._fit_model().no_useful_source


def shuffled(runs: list[Run]) -> list[Run]:
    rng = np.random.default_rng(2)
    return [Run(run.task, run.configs, rng.permutation(run.y)) for run in runs]


def test_copies_of_a_past_run_say_no_more_than_the_run() -> None:
    copies = [Run(f"copy {number}", list(PAST[0].configs), PAST[0].y) for number in range(20)]
    with pytest.warns(RecollectWarning, match="same results"):
        optimizer = Optimizer(SPACE, [*PAST, *copies], "task-prior", candidates=GRID, seed=2)
    assert [entry.unusable for entry in optimizer.past] == [None] * 4 + [Unusable.COPY] * 20
    assert drive(optimizer, 10) == drive(Optimizer(SPACE, PAST, "task-prior", candidates=GRID, seed=2), 10)
    assert all(entry.used for entry in Optimizer(SPACE, [*PAST, *copies], "rgpe-taf").past)


@pytest.mark.parametrize("candidates", [GRID, None])
def test_past_runs_that_have_nothing_in_common_are_left_out(candidates: list[dict[str, Any]] | None) -> None:
    past = shuffled(past_runs(12, trials=50))
    optimizer = Optimizer(SPACE, past, "task-prior", candidates=candidates, seed=3)
    with pytest.warns(RecollectWarning, match="nothing in common"):
        first = optimizer.ask()
    plain = Optimizer(SPACE, (), "gp", candidates=candidates, seed=3)
    assert first == plain.ask()
    for run in (optimizer, plain):
        run.tell(first, value(first))
    assert drive(optimizer, 9) == drive(plain, 9)
    assert {entry.unusable for entry in optimizer.past} == {Unusable.NO_AGREEMENT}
    explanation = optimizer.explain()
    assert not any(entry.used for entry in explanation.past)
    assert explanation.prior is None


def test_past_runs_that_agree_and_past_runs_of_egp_are_not_left_out() -> None:
    for past, name in ((past_runs(12, trials=50), "task-prior"), (shuffled(past_runs(12, trials=50)), "egp")):
        optimizer = Optimizer(SPACE, past, name, candidates=GRID, seed=3)
        drive(optimizer, 2)
        assert all(entry.used for entry in optimizer.past)


def test_one_run_of_noise_does_not_hide_what_the_others_say() -> None:
    noise = Run("noise", GRID, np.random.default_rng(0).normal(size=len(GRID)))
    prior = Optimizer(SPACE, [*PAST, noise], "task-prior", candidates=GRID)._transfer_context().prior
    assert prior is not None
    mean = prior.moments(prior.reference)[0]
    assert np.abs(mean).max() < 5.0
    best = GRID[int(mean.argmin())]
    assert value(best) < 0.05


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("odd", [1e155, -1e300, sys.float_info.max])
@pytest.mark.parametrize("count", [1, 4, 6])
def test_one_huge_value_in_a_past_run_spoils_nothing(odd: float, count: int) -> None:
    past = past_runs(count)
    values = [value(config) for config in GRID[:10]]
    optimizer = Optimizer(SPACE, [*past, Run("odd", GRID[:10], [*values[:9], odd])], horizon=6)
    asked = drive(optimizer, 6)
    assert len({tuple(config.values()) for config in asked}) == 6
