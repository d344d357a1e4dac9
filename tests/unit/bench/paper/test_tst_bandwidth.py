"""The bandwidth of TST-R: three strategies on hand-made scores, and results that they choose from hand-made runs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from recollect import InputError
from recollect.bench.analysis.aggregate import ExperimentResults, aggregate_runs
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.bench.paper.tst_bandwidth import (
    RHO_GRID,
    rho_from_benchmark,
    rho_from_other_benchmarks,
    rho_from_other_tasks,
    with_chosen_rho,
)
from recollect.transfer.weighting.ranking_weights import TwoStageWeighting

Ends = dict[str, dict[str, dict[str, float]]]  # method, benchmark, task: regret after the last of two evaluations


def results_of(ends: Ends, repetitions: int = 1) -> ExperimentResults:
    runs = [
        CompletedRun(RunKey(benchmark, method, task, repetition), 0, 0.0, 1.0, np.array([0.99, value]), None, 0.1, "0")
        for method, benchmarks in ends.items()
        for benchmark, tasks in benchmarks.items()
        for task, value in tasks.items()
        for repetition in range(repetitions)
    ]
    return with_chosen_rho(aggregate_runs(runs))


def end(experiment: ExperimentResults, benchmark: str, method: str) -> dict[str, float]:
    result = experiment.find(benchmark, method)
    assert result is not None
    return result.task_regrets(2)


# On svm 0.1 is best by far on task a only, 0.9 on the two others; on glmnet 0.9 is best.
ENDS: Ends = {
    "tstr-ei+rho0.1": {"svm": {"a": 0.0, "b": 0.4, "c": 0.4}, "glmnet": {"g": 0.6, "h": 0.6}},
    "tstr-ei+rho0.9": {"svm": {"a": 0.9, "b": 0.3, "c": 0.3}, "glmnet": {"g": 0.1, "h": 0.2}},
}


def test_each_task_gets_the_value_that_is_best_on_the_other_tasks() -> None:
    experiment = results_of(ENDS, repetitions=2)
    assert end(experiment, "svm", "tstr-ei+rho-tasks") == {"a": 0.9, "b": 0.4, "c": 0.4}
    result = experiment.find("svm", "tstr-ei+rho-tasks")
    assert result is not None
    assert (result.remark, result.repetition_range) == ("rho = 0.1 to 0.9", (2, 2))


def test_each_benchmark_gets_the_value_that_is_best_on_the_others() -> None:
    experiment = results_of(ENDS)
    assert end(experiment, "svm", "tstr-ei+rho-others") == {"a": 0.9, "b": 0.3, "c": 0.3}
    assert end(experiment, "glmnet", "tstr-ei+rho-others") == {"g": 0.6, "h": 0.6}


def test_the_best_of_one_benchmark_is_used_on_all() -> None:
    experiment = results_of(ENDS)
    assert end(experiment, "glmnet", "tstr-ei+rho-svm") == {"g": 0.6, "h": 0.6}
    assert end(experiment, "svm", "tstr-ei+rho-svm") == {"a": 0.0, "b": 0.4, "c": 0.4}
    assert end(experiment, "svm", "tstr-ei+rho-glmnet") == {"a": 0.9, "b": 0.3, "c": 0.3}
    result = experiment.find("svm", "tstr-ei+rho-glmnet")
    assert result is not None
    assert result.remark == "rho = 0.9"


def test_runs_without_a_value_have_the_default_unless_it_was_run_by_name() -> None:
    plain = {"tstr-ei": {"svm": {"a": 0.0, "b": 0.0}}, "tstr-ei+rho0.1": {"svm": {"a": 0.3, "b": 0.3}}}
    experiment = results_of(plain)
    assert end(experiment, "svm", "tstr-ei+rho-svm") == {"a": 0.0, "b": 0.0}
    result = experiment.find("svm", "tstr-ei+rho-svm")
    assert result is not None
    assert result.remark == "rho = 0.5"
    named = results_of(plain | {"tstr-ei+rho0.5": {"svm": {"a": 0.2, "b": 0.2}}})
    assert end(named, "svm", "tstr-ei+rho-svm") == {"a": 0.2, "b": 0.2}
    first = results_of({"tstr-ei+rho0.5+wd": {"svm": {"a": 0.2}}, "tstr-ei+wd": {"svm": {"a": 0.0}}})
    assert end(first, "svm", "tstr-ei+wd+rho-tasks") == {"a": 0.2}


def test_other_suffixes_make_other_families() -> None:
    experiment = results_of({"tstr-taf+copula+rho0.2": {"svm": {"a": 0.1}}, "tstr-taf": {"svm": {"a": 0.2}}})
    assert end(experiment, "svm", "tstr-taf+copula+rho-tasks") == {"a": 0.1}
    assert end(experiment, "svm", "tstr-taf+rho-tasks") == {"a": 0.2}
    result = experiment.find("svm", "tstr-taf+copula+rho-tasks")
    assert result is not None
    assert result.remark == "rho = 0.2, the only value run"
    assert experiment.find("svm", "tstr-taf+rho-svm") is None  # nothing to choose from


def test_values_are_compared_on_the_tasks_that_all_have() -> None:
    ends: Ends = {
        "tstr-ei+rho0.1": {"svm": {"a": 0.0, "b": 0.2, "z": 0.9}},
        "tstr-ei+rho0.2": {"svm": {"a": 0.1, "b": 0.3}},
    }
    experiment = results_of(ends)
    assert end(experiment, "svm", "tstr-ei+rho-tasks") == {"a": 0.0, "b": 0.2}
    assert end(experiment, "svm", "tstr-ei+rho-svm") == {"a": 0.0, "b": 0.2, "z": 0.9}


@pytest.mark.parametrize(
    ("ends", "absent"),
    [
        ({"tstr-ei+rho0.1": {"svm": {"a": 0.1}}, "tstr-ei+rho0.2": {"svm": {"a": 0.1}}}, "tstr-ei+rho-tasks"),
        ({"tstr-ei+rho0.1": {"svm": {"a": 0.1}}, "tstr-ei+rho0.2": {"svm": {"b": 0.1}}}, "tstr-ei+rho-svm"),
        ({"tstr-ei+rho0.1": {"svm": {"a": 0.1}}, "tstr-ei+rho0.2": {"svm": {"a": 0.1}}}, "tstr-ei+rho-others"),
        ({"rgpe-taf": {"svm": {"a": 0.1}}}, "rgpe-taf+rho-tasks"),
    ],
)
def test_impossible_choices_are_left_out(ends: Ends, absent: str) -> None:
    assert results_of(ends).find("svm", absent) is None


def test_benchmarks_with_different_values_share_what_they_have_in_common() -> None:
    ends = ENDS | {"tstr-ei+rho0.3": {"svm": {"a": 0.0, "b": 0.0, "c": 0.0}}, "tstr-ei+rho0.7": {"nn": {"n": 0.1}}}
    experiment = results_of(ends)
    assert end(experiment, "svm", "tstr-ei+rho-svm") == {"a": 0.0, "b": 0.4, "c": 0.4}  # 0.3 was not run on glmnet
    assert end(experiment, "svm", "tstr-ei+rho-tasks") == {"a": 0.0, "b": 0.0, "c": 0.0}
    assert experiment.find("nn", "tstr-ei+rho-svm") is None


# On svm rho = 0.1 is best by far on task a only; 0.5 is best on b and c. On glmnet 0.9 is best, on trees 0.5.
SCORES = {
    0.9: {"svm": {"a": 0.9, "b": 0.30, "c": 0.30}, "glmnet": {"g": 0.10}, "trees": {"t": 0.50, "u": 0.50}},
    0.1: {"svm": {"a": 0.0, "b": 0.40, "c": 0.40}, "glmnet": {"g": 0.60}, "trees": {"t": 0.30, "u": 0.30}},
    0.5: {"svm": {"a": 0.8, "b": 0.20, "c": 0.20}, "glmnet": {"g": 0.30}, "trees": {"t": 0.10, "u": 0.30}},
}


def test_other_benchmarks_count_the_same_however_many_tasks_they_have() -> None:
    assert rho_from_other_benchmarks(SCORES, "svm") == 0.5  # (0.3 + 0.2) / 2 against (0.1 + 0.5) / 2
    for left_out in ("trees", "glmnet", "never run"):
        means = {
            rho: np.mean([np.mean(list(tasks.values())) for name, tasks in results.items() if name != left_out])
            for rho, results in SCORES.items()
        }
        assert rho_from_other_benchmarks(SCORES, left_out) == min(means, key=lambda rho: means[rho])


def test_a_task_does_not_influence_its_own_bandwidth() -> None:
    assert rho_from_benchmark(SCORES, "svm") == 0.1
    assert rho_from_other_tasks(SCORES, "svm", "a") == 0.5
    assert rho_from_other_tasks(SCORES, "svm", "b") == 0.1


def test_a_benchmark_is_optimal_for_itself() -> None:
    assert [rho_from_benchmark(SCORES, name) for name in ("svm", "glmnet", "trees")] == [0.1, 0.9, 0.5]


@pytest.mark.parametrize("order", list(itertools.permutations((0.9, 0.1, 0.5))))
def test_the_smallest_of_tied_values_is_chosen_in_any_order(order: tuple[float, ...]) -> None:
    assert rho_from_benchmark({rho: {"svm": {"a": 0.25}} for rho in order}, "svm") == 0.1


def test_every_value_of_the_grid_is_a_bandwidth() -> None:
    assert len(RHO_GRID) == 13
    assert [TwoStageWeighting(rho).rho for rho in RHO_GRID] == sorted(RHO_GRID)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rho_from_benchmark({}, "svm"), "at least one value of rho"),
        (
            lambda: rho_from_benchmark(SCORES, "nn"),
            "no results on benchmark 'nn'; .*'svm', 'glmnet' and 'trees'",
        ),
        (lambda: rho_from_other_tasks(SCORES, "svm", "z"), "has no task 'z'; it has 'a', 'b' and 'c'"),
        (lambda: rho_from_other_tasks(SCORES, "glmnet", "g"), "tasks of 'glmnet' other than 'g', got none"),
        (lambda: rho_from_other_benchmarks({0.1: {"svm": {"a": 0.1}}}, "svm"), "other than 'svm'"),
        (lambda: rho_from_benchmark({0.1: {"s": {"a": 1.0}}, 0.2: {"s": {"b": 1.0}}}, "s"), "0.2 and 0.1 differ"),
        (lambda: rho_from_benchmark({0.1: {"s": {"a": float("nan")}}}, "s"), "got nan for task 'a' of 's'"),
        (lambda: rho_from_benchmark({0.1: {"s": {}}}, "s"), "got no task of 's'"),
    ],
)
def test_results_that_cannot_be_compared_are_refused(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]
