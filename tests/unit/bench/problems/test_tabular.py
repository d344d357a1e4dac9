"""Benchmarks as such, and those that are tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import recollect
from recollect.bench.benchmark import About, Benchmark, Task
from recollect.bench.problems.tabular import distances, shared_table, task_tables
from recollect.errors import ConfigError, InputError

ABOUT = About("a test", "", "", "", "table")
CONFIGS: list[dict[str, Any]] = [
    {"kernel": "rbf", "gamma": 1.0, "cost": 10},
    {"kernel": "linear", "cost": 10},
    {"kernel": "linear", "cost": 1000},
    {"kernel": "rbf", "gamma": 8.0, "cost": 500},
]


def conditional_space() -> recollect.Space:
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

    space = ConfigurationSpace()
    kernel, gamma = Categorical("kernel", ["linear", "rbf"]), Float("gamma", (0.0, 10.0))
    space.add(kernel, gamma, Integer("cost", (1, 1000)))
    space.add(EqualsCondition(gamma, kernel, "rbf"))
    return recollect.compile_space(space)


@pytest.fixture
def shared() -> Benchmark:
    errors = {"a": [0.4, 0.3, 0.2, 0.1], "b": [0.0, 1.0, 2.0, 3.0]}
    return shared_table("test", conditional_space(), configs=CONFIGS, errors=errors, about=ABOUT)


@pytest.mark.parametrize("number", range(4))
def test_a_listed_configuration_has_its_error(shared: Benchmark, number: int) -> None:
    assert shared.task("a").evaluate(CONFIGS[number]) == (0.4, 0.3, 0.2, 0.1)[number]
    assert shared.task("b").evaluate(CONFIGS[number]) == float(number)


def test_the_form_of_a_configuration_does_not_matter(shared: Benchmark) -> None:
    task = shared.task("b")
    assert task.evaluate({"cost": 10.0, "gamma": np.float64(1), "kernel": "rbf"}) == 0.0
    assert task.evaluate({"cost": np.int64(10), "kernel": "linear", "gamma": None}) == 1.0


def test_many_encoded_points_are_evaluated_as_one_by_one(shared: Benchmark) -> None:
    X = shared.space.encode(CONFIGS)[[2, 0, 2]]
    assert shared.task("b").evaluate_many(X).tolist() == [2.0, 0.0, 2.0]
    assert shared.task("b").evaluate_many(X[:0]).shape == (0,)


def test_best_worst_and_candidates_are_those_of_the_table(shared: Benchmark) -> None:
    assert (shared.task("a").best, shared.task("a").worst) == (0.1, 0.4)
    assert shared.candidates == tuple(CONFIGS)
    assert shared.task("b").candidates == tuple(CONFIGS)


@pytest.mark.parametrize(
    ("config", "nearest"),
    [
        ({"kernel": "linear", "cost": 900}, CONFIGS[2]),
        ({"kernel": "rbf", "gamma": 1.5, "cost": 11}, CONFIGS[0]),
        ({"kernel": "rbf", "gamma": 9.9, "cost": 10}, CONFIGS[3]),  # 0.89 away in gamma, 0.49 in cost
    ],
)
def test_a_configuration_that_is_not_listed_is_refused_with_the_nearest(
    shared: Benchmark, config: dict[str, Any], nearest: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="table of 4 configurations") as refused:
        shared.task("a").evaluate(config)
    assert str(refused.value).endswith(f"the nearest is {nearest}")


def test_distances_count_choices_and_activity_as_one() -> None:
    space = conditional_space()
    X = space.encode(CONFIGS)
    by_hand = {0: 0.0, 1: 2.0, 2: 2.0, 3: 0.7}
    cost = np.abs(X[:, space.names.index("cost")] - X[0, space.names.index("cost")])
    assert distances(space, X, X[0]) == pytest.approx([by_hand[i] + cost[i] for i in range(4)])


@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"kernel": "poly", "cost": 10}, "one of"),
        ({"kernel": "linear"}, "missing"),
        ({"kernel": [1], "cost": 10}, "one of"),
    ],
)
def test_a_configuration_outside_the_space_is_refused_as_the_space_does(
    shared: Benchmark, config: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        shared.task("a").evaluate(config)


def test_true_is_not_taken_for_one() -> None:
    table = shared_table(
        "t", recollect.compile_space({"x": (0, 3)}), configs=[{"x": 1}], errors={"a": [0.5]}, about=ABOUT
    )
    with pytest.raises(ConfigError):
        table.task("a").evaluate({"x": True})


@pytest.mark.parametrize("point", [[0.5, 1.0], [np.nan] * 3, [0.5, 7.0, 0.5]])
def test_encoded_points_that_are_no_row_are_refused(shared: Benchmark, point: list[float]) -> None:
    with pytest.raises(InputError, match=r"expected encoded points|is not among them"):
        shared.task("a").evaluate_many(np.array([point]))


def test_tasks_with_tables_of_their_own_say_so_themselves() -> None:
    tables = {"a": (CONFIGS[:2], [1.0, 2.0]), "b": (CONFIGS[1:], [3.0, 4.0, 5.0])}
    benchmark = task_tables("own", conditional_space(), tables=tables, about=ABOUT)
    assert benchmark.candidates is None
    assert benchmark.task("b").candidates == tuple(CONFIGS[1:])
    assert benchmark.task("b").evaluate(CONFIGS[1]) == 3.0
    with pytest.raises(InputError, match="not among them"):
        benchmark.task("b").evaluate(CONFIGS[0])


@pytest.mark.parametrize(
    ("configs", "errors", "complaint"),
    [
        (CONFIGS, {"a": [1.0]}, "expected 4 errors"),
        (CONFIGS, {"a": [1.0, 2.0, np.nan, 3.0]}, "task 'a', configuration 2: expected a finite error"),
        (CONFIGS, {}, "at least one task"),
        ([], {"a": []}, "at least one configuration"),
        ([*CONFIGS, CONFIGS[1]], {"a": [0.0] * 5}, "configurations 1 and 4 of the table are the same"),
    ],
)
def test_bad_tables_are_refused(configs: list[Any], errors: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        shared_table("bad", conditional_space(), configs=configs, errors=errors, about=ABOUT)


def test_a_task_is_created_once_and_only_when_used() -> None:
    created = []

    def make(name: str) -> Task:
        created.append(name)
        return Task(name, lambda _: 0.0, lambda X: np.zeros(len(X)), 0.0, 1.0)

    benchmark = Benchmark("b", recollect.compile_space({"x": (0.0, 1.0)}), ("one", "two"), None, ABOUT, make)
    assert created == []
    assert benchmark.task("two") is benchmark.task("two")
    assert created == ["two"]
    assert benchmark.task("two").candidates is None


@pytest.mark.parametrize(("name", "hint"), [("tow", "did you mean 'two'"), ("zzz", "there are 2: one and two")])
def test_an_unknown_task_is_refused_with_close_matches(name: str, hint: str) -> None:
    tables = {"one": (CONFIGS, np.ones(4)), "two": (CONFIGS, np.ones(4))}
    benchmark = task_tables("b", conditional_space(), tables=tables, about=ABOUT)
    with pytest.raises(InputError, match=f"benchmark 'b' has no task '{name}'; {hint}"):
        benchmark.task(name)


def test_a_benchmark_is_tuned_by_the_optimizer_on_its_candidates(shared: Benchmark) -> None:
    optimizer = recollect.Optimizer(shared.space, method="random", candidates=shared.candidates, seed=0)
    task = shared.task("b")
    for _ in range(4):
        config = optimizer.ask()
        optimizer.tell(config, task.evaluate(config))
    assert optimizer.run.y.min() == task.best
