"""Aggregated runs: checked by hand and against scipy."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

from recollect import InputError
from recollect.bench.analysis.aggregate import (
    BenchmarkResults,
    ExperimentResults,
    MethodResult,
    aggregate_curves,
    aggregate_runs,
    average_ranks,
    common_runs,
    plain_method_ranks,
    task_differences,
)
from recollect.bench.analysis.statistics import random_multiple
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.bench.experiment.results import pack_results, read_results

NAN = float("nan")


def run(
    method: str,
    task: str,
    values: list[float],
    *,
    repetition: int = 0,
    benchmark: str = "toy",
    ends: tuple[float, float] = (0.0, 1.0),
    seconds: float = 0.5,
) -> CompletedRun:
    key = RunKey(benchmark, method, task, repetition)
    return CompletedRun(key, 7, *ends, np.array(values), None, seconds, "0")


def result_of(experiment: ExperimentResults, method: str) -> MethodResult:
    result = experiment.find("toy", method)
    assert result is not None
    return result


def test_adtm_is_the_mean_over_tasks_of_the_mean_over_repetitions() -> None:
    runs = [
        run("gp", "a", [0.8, 0.9, 0.2], repetition=0),
        run("gp", "a", [0.6, 0.4, 0.4], repetition=1),
        run("gp", "b", [30.0, 20.0, 25.0], ends=(10.0, 50.0)),
    ]
    result = result_of(aggregate_runs(runs), "gp")
    assert result.tasks == ("a", "b")
    np.testing.assert_allclose(result.regrets, [[0.7, 0.6, 0.3], [0.5, 0.25, 0.25]])
    np.testing.assert_allclose(result.adtm, [0.6, 0.425, 0.275])
    assert result.area == pytest.approx((0.6 + 0.425 + 0.275) / 3)
    assert result.repetition_range == (1, 2)
    assert result.seconds == 0.5
    assert result.task_regrets(2) == {"a": pytest.approx(0.6), "b": pytest.approx(0.25)}
    assert result.task_regrets(0) == result.task_regrets(4) == {}


def test_common_runs_are_of_tasks_and_repetitions_that_all_methods_of_the_benchmark_have() -> None:
    runs = [
        *(run("gp", task, [0.5], repetition=repetition) for task in "abc" for repetition in (0, 1)),
        *(run("kl", task, [0.4], repetition=0) for task in "ac"),
        run("kl", "b", [0.4], repetition=2),
        run("gp", "z", [0.3], benchmark="other"),
    ]
    kept = common_runs(iter(runs))
    assert [(one.key.method, one.key.task, one.key.repetition) for one in kept] == [
        ("gp", "a", 0), ("gp", "c", 0), ("kl", "a", 0), ("kl", "c", 0), ("gp", "z", 0)
    ]  # fmt: skip
    assert common_runs([]) == []


def test_a_benchmark_whose_methods_have_no_run_in_common_is_named() -> None:
    with pytest.raises(InputError, match="toy: expected a task and repetition"):
        common_runs([run("gp", "a", [0.5]), run("kl", "b", [0.5])])


def test_the_order_of_runs_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    runs = [
        run(method, f"t{task}", rng.random(5).tolist(), repetition=repetition, benchmark=benchmark)
        for benchmark in ("one", "two")
        for method in ("gp", "random", "rgpe-taf")
        for task in range(4)
        for repetition in range(3)
    ]
    experiment, other = aggregate_runs(runs), aggregate_runs([runs[place] for place in rng.permutation(len(runs))])
    assert list(experiment.benchmarks) == list(other.benchmarks) == ["one", "two"]
    for benchmark, results in experiment.benchmarks.items():
        assert list(results.methods) == list(other.benchmarks[benchmark].methods) == ["gp", "random", "rgpe-taf"]
        for method, result in results.methods.items():
            np.testing.assert_array_equal(result.regrets, other.benchmarks[benchmark].methods[method].regrets)


def test_tasks_are_sorted_whatever_the_order_of_runs() -> None:
    curves = {
        ("b", 0): np.array([0.4]),
        ("a", 1): np.array([0.1]),
        ("b", 1): np.array([0.2]),
        ("a", 0): np.array([0.3]),
    }
    result = aggregate_curves("toy", "gp", curves=curves, seconds=0.1)
    assert result.tasks == ("a", "b")
    np.testing.assert_allclose(result.regrets, [[0.2], [0.3]])


def test_random_search_is_cut_and_its_multiples_computed_where_it_is_long_enough() -> None:
    values = np.random.default_rng(0).random((2, 50)).round(6)
    runs = [
        run("gp", "a", [0.5] * 5),
        run("random", "a", values[0].tolist()),
        run("random", "b", values[1, :49].tolist()),
    ]
    experiment = aggregate_runs(runs)
    assert experiment.benchmarks["toy"].horizon == 5
    assert set(experiment.benchmarks["toy"].methods) == {"gp", "random", "random-2x", "random-4x", "random-10x"}
    once, twice, often = (result_of(experiment, name) for name in ("random", "random-2x", "random-4x"))
    np.testing.assert_array_equal(once.regrets[0], np.minimum.accumulate(values[0])[:5])
    assert twice.tasks == often.tasks == ("a",)  # the other run has 49 evaluations, not 50
    np.testing.assert_array_equal(twice.regrets[0], np.minimum.accumulate(values[0])[1:10:2])
    np.testing.assert_array_equal(often.regrets[0], random_multiple(values[0], 4)[:5])
    assert twice.regrets[0, 1] == once.regrets[0, 3]
    assert "2 times" in twice.remark
    assert once.remark == ""


def test_random_search_alone_has_the_papers_horizon() -> None:
    experiment = aggregate_runs([run("random", "a", np.linspace(1, 0.5, 500).tolist())])
    assert experiment.benchmarks["toy"].horizon == 50
    assert set(experiment.benchmarks["toy"].methods) == {"random", "random-2x", "random-4x", "random-10x"}
    assert aggregate_runs([run("random", "a", [0.3, 0.2])]).benchmarks["toy"].horizon == 2


def test_a_table_too_small_for_ten_times_the_evaluations_has_no_multiples() -> None:
    experiment = aggregate_runs([run("gp", "a", [0.5] * 50), run("random", "a", np.linspace(1, 0.5, 200).tolist())])
    assert set(experiment.benchmarks["toy"].methods) == {"gp", "random"}


def test_after_its_end_a_run_is_unknown_unless_it_has_found_the_best() -> None:
    runs = [
        run("gp", "a", [0.9] * 4),
        run("kl", "a", [0.5, 0.2]),
        run("kl", "b", [0.5, 0.0]),
        run("kl", "c", [0.1] * 4),
    ]
    result = result_of(aggregate_runs(runs), "kl")
    np.testing.assert_array_equal(result.regrets, [[0.5, 0.2, NAN, NAN], [0.5, 0, 0, 0], [0.1] * 4])
    assert result.task_regrets(4) == {"b": 0.0, "c": 0.1}
    assert math.isnan(result.area)


def test_packed_runs_are_compared_with_others_as_if_they_were_not_packed(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    kept = [run("gp", f"t{task}", rng.random(5).tolist(), ends=(0.1 / 3, 1.0)) for task in range(20)]
    pack_results(kept, tmp_path / "packed.csv.gz")
    same = [replace(one, key=one.key._replace(method="wac")) for one in read_results(tmp_path / "packed.csv.gz")]
    experiment = aggregate_runs([*kept, *same])
    gp, wac = result_of(experiment, "gp"), result_of(experiment, "wac")
    np.testing.assert_array_equal(gp.regrets, wac.regrets)
    assert average_ranks([gp, wac]).ranks.tolist() == [[1.5] * 5] * 2


def test_the_best_is_recognised_with_the_digits_that_are_kept(tmp_path: Path) -> None:
    ends = (1 / 7, 1.0)
    pack_results([run("gp", "a", [0.5] * 3, ends=ends), run("kl", "a", [1 / 7], ends=ends)], tmp_path / "packed.csv")
    np.testing.assert_array_equal(
        result_of(aggregate_runs(read_results(tmp_path / "packed.csv")), "kl").regrets, [[0.0] * 3]
    )


def test_a_run_that_only_failed_so_far_counts_as_the_worst() -> None:
    result = result_of(aggregate_runs([run("gp", "a", [NAN, NAN, 0.3]), run("gp", "b", [NAN, NAN, NAN])]), "gp")
    np.testing.assert_array_equal(result.regrets, [[1, 1, 0.3], [1, 1, 1]])


def test_a_task_with_one_error_everywhere_has_no_regret() -> None:
    result = result_of(aggregate_runs([run("gp", "a", [0.4, 0.4], ends=(0.4, 0.4))]), "gp")
    np.testing.assert_array_equal(result.regrets, [[0.0, 0.0]])


def test_differences_are_on_common_tasks() -> None:
    runs = [run("gp", task, [0.9, value]) for task, value in (("a", 0.1), ("b", 0.4), ("c", 0.2))]
    runs += [run("smfo", task, [0.0, 0.9]) for task in ("d",)]
    runs += [run("wac", task, [0.9, value]) for task, value in (("a", 0.2), ("b", 0.3), ("d", 0.9))]
    gp, smfo, wac = (result_of(aggregate_runs(runs), name) for name in ("gp", "smfo", "wac"))
    assert task_differences(wac, gp, 2) == {"a": pytest.approx(0.1), "b": pytest.approx(-0.1)}
    assert task_differences(gp, wac, 2) == {"a": pytest.approx(-0.1), "b": pytest.approx(0.1)}
    assert task_differences(smfo, gp, 2) == {}


def test_differences_are_between_the_runs_that_both_have() -> None:
    runs = [run("gp", "a", [value], repetition=repetition) for repetition, value in enumerate((0.0, 0.0, 0.9))]
    experiment = aggregate_runs([*runs, run("wac", "a", [0.8], repetition=2), run("wac", "b", [0.1])])
    assert task_differences(result_of(experiment, "wac"), result_of(experiment, "gp"), 1) == {"a": pytest.approx(-0.1)}


def test_missing_tasks_and_repetitions_are_counted() -> None:
    runs = [run("gp", task, [0.1], repetition=repetition) for task in "abc" for repetition in range(3)]
    runs += [run("kl", "a", [0.1], repetition=repetition) for repetition in range(3)]
    runs += [run("wac", task, [0.1]) for task in "abc"]
    runs += [run("smfo", task, [0.1], repetition=repetition) for task in "abc" for repetition in range(2)]
    runs += [run("smfo", "a", [0.1], repetition=2)]
    experiment = aggregate_runs(runs)
    results = experiment.benchmarks["toy"]
    assert {name: results.missing_text(result) for name, result in results.methods.items()} == {
        "gp": "",
        "kl": "1 task",
        "wac": "1 repetition",
        "smfo": "2 to 3 repetitions",
    }


def test_ranks_are_scipys_averaged_over_the_runs_that_all_have() -> None:
    rng = np.random.default_rng(5)
    values = rng.integers(0, 4, (3, 4, 2, 6)) / 4  # many ties
    runs = [
        run(method, f"t{task}", values[m, task, repetition].tolist(), repetition=repetition)
        for m, method in enumerate(("gp", "kl", "wac"))
        for task in range(4)
        for repetition in range(2)
        if (method, task, repetition) != ("kl", 3, 1)
    ]
    experiment = aggregate_runs(runs)
    ranks = average_ranks([result_of(experiment, name) for name in ("wac", "gp", "kl")])
    assert (ranks.methods, ranks.tasks, ranks.runs) == (("wac", "gp", "kl"), 4, 7)
    best = np.minimum.accumulate(values, axis=3)[[2, 0, 1]].reshape(3, 8, 6)[:, :7]
    expected = np.mean([[rankdata(best[:, case, k]) for k in range(6)] for case in range(7)], axis=0).T
    np.testing.assert_allclose(ranks.ranks, expected)
    np.testing.assert_allclose(ranks.ranks.sum(axis=0), 6.0)


def test_ranks_by_hand_with_a_tie() -> None:
    runs = [run("gp", "a", [0.5, 0.1]), run("kl", "a", [0.5, 0.3]), run("wac", "a", [0.7, 0.2])]
    experiment = aggregate_runs(runs)
    ranks = average_ranks([result_of(experiment, name) for name in ("gp", "kl", "wac")]).ranks
    assert ranks.tolist() == [[1.5, 1.0], [1.5, 3.0], [3.0, 2.0]]


def test_ranks_need_methods_that_can_be_compared() -> None:
    experiment = aggregate_runs([run("gp", "a", [0.5]), run("kl", "b", [0.5])])
    with pytest.raises(InputError, match="two or more methods"):
        average_ranks([result_of(experiment, "gp")])
    with pytest.raises(InputError, match="gp, kl have none"):
        average_ranks([result_of(experiment, "gp"), result_of(experiment, "kl")])


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "at least one finished run"),
        ([run("gp", "a", [1.0]), run("gp", "a", [0.5])], "toy gp a 0 occurs twice"),
        ([run("gp", "a", [])], "has no evaluation"),
        (
            [run("gp", "a", [1.0]), run("kl", "a", [1.0], ends=(0.0, 2.0))],
            "toy kl a 0 has 0 and 2, and the run toy gp a 0 has 0 and 1",
        ),
    ],
)
def test_runs_that_cannot_be_aggregated_are_refused(runs: list[CompletedRun], message: str) -> None:
    with pytest.raises(InputError, match=message):
        aggregate_runs(runs)


def test_methods_are_in_the_order_of_the_catalog_with_variants_after_what_they_vary() -> None:
    names = ["rgpe-taf+none", "own-idea", "random-10x", "rgpe-taf", "gp", "random-2x", "random", "rgpe-mean"]
    curves = {("a", 0): np.array([0.5])}
    methods = {name: aggregate_curves("toy", name, curves=curves, seconds=0.0) for name in names}
    assert [result.method for result in BenchmarkResults("toy", methods, 1).ordered] == [
        *("random", "random-2x", "random-10x", "gp", "rgpe-mean", "rgpe-taf", "rgpe-taf+none", "own-idea")
    ]


def test_methods_with_all_runs_are_complete_and_those_that_were_run_have_the_same_budget() -> None:
    runs = [run(method, task, [0.5] * 2) for method in ("gp", "wac", "gp+copula") for task in "ab"]
    runs += [run("random", task, np.linspace(1, 0.5, 20).tolist()) for task in "ab"]
    runs += [run("kl", "a", [0.5] * 2), run("smfo", "a", [0.5] * 2), run("smfo", "b", [0.5])]
    results = aggregate_runs(runs).benchmarks["toy"]
    run_methods = {"random", "gp", "gp+copula", "wac"}
    assert {result.method for result in results.complete} == run_methods | {"random-2x", "random-4x", "random-10x"}
    assert {result.method for result in results.same_budget} == run_methods
    assert results.reference is results.methods["gp"]
    ranks = plain_method_ranks(results)
    assert ranks is not None
    assert (ranks.methods, ranks.runs) == (("random", "gp", "wac"), 2)
    assert plain_method_ranks(aggregate_runs([run("gp", "a", [0.5]), run("wac", "b", [0.5])]).benchmarks["toy"]) is None
