"""Finished runs grouped for statistics: hand-made runs, by hand and against scipy."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rankdata

from recollect import InputError
from recollect.bench.results import Finished, Key, pack, read_runs
from recollect.bench.statistics import random_multiple
from recollect.bench.study import (
    Outcome,
    Study,
    common_runs,
    make_outcome,
    make_study,
    run_ranks,
    short_of,
    task_gaps,
    worst_gap,
)

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
) -> Finished:
    key = Key(benchmark, method, task, repetition)
    return Finished(key, 7, *ends, np.array(values), None, seconds, "0")


def found(study: Study, method: str) -> Outcome:
    outcome = study.find("toy", method)
    assert outcome is not None
    return outcome


def test_adtm_is_the_mean_over_tasks_of_the_mean_over_repetitions() -> None:
    runs = [
        run("gp", "a", [0.8, 0.9, 0.2], repetition=0),
        run("gp", "a", [0.6, 0.4, 0.4], repetition=1),
        run("gp", "b", [30.0, 20.0, 25.0], ends=(10.0, 50.0)),
    ]
    outcome = found(make_study(runs), "gp")
    assert outcome.tasks == ("a", "b")
    np.testing.assert_allclose(outcome.regrets, [[0.7, 0.6, 0.3], [0.5, 0.25, 0.25]])
    np.testing.assert_allclose(outcome.adtm, [0.6, 0.425, 0.275])
    assert outcome.area == pytest.approx((0.6 + 0.425 + 0.275) / 3)
    assert outcome.repetitions == (1, 2)
    assert outcome.seconds == 0.5
    assert outcome.at(2) == {"a": pytest.approx(0.6), "b": pytest.approx(0.25)}
    assert outcome.at(0) == outcome.at(4) == {}


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
    with pytest.raises(InputError, match="toy: expected a task and repetition that all its methods have"):
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
    study, other = make_study(runs), make_study([runs[place] for place in rng.permutation(len(runs))])
    assert list(study.outcomes) == list(other.outcomes) == ["one", "two"]
    for benchmark, outcomes in study.outcomes.items():
        assert list(outcomes) == list(other.outcomes[benchmark]) == ["gp", "random", "rgpe-taf"]
        for method, outcome in outcomes.items():
            np.testing.assert_array_equal(outcome.regrets, other.outcomes[benchmark][method].regrets)


def test_an_outcome_has_its_tasks_in_order_however_its_runs_come() -> None:
    curves = {
        ("b", 0): np.array([0.4]),
        ("a", 1): np.array([0.1]),
        ("b", 1): np.array([0.2]),
        ("a", 0): np.array([0.3]),
    }
    outcome = make_outcome("toy", "gp", curves=curves, seconds=0.1)
    assert outcome.tasks == ("a", "b")
    np.testing.assert_allclose(outcome.regrets, [[0.2], [0.3]])


def test_random_search_is_cut_and_its_multiples_computed_where_it_is_long_enough() -> None:
    values = np.random.default_rng(0).random((2, 50)).round(6)
    runs = [
        run("gp", "a", [0.5] * 5),
        run("random", "a", values[0].tolist()),
        run("random", "b", values[1, :49].tolist()),
    ]
    study = make_study(runs)
    assert study.horizons == {"toy": 5}
    assert set(study.outcomes["toy"]) == {"gp", "random", "random-2x", "random-4x", "random-10x"}
    once, twice, often = (found(study, name) for name in ("random", "random-2x", "random-4x"))
    np.testing.assert_array_equal(once.regrets[0], np.minimum.accumulate(values[0])[:5])
    assert twice.tasks == often.tasks == ("a",)  # the other run has 49 evaluations, not 50
    np.testing.assert_array_equal(twice.regrets[0], np.minimum.accumulate(values[0])[1:10:2])
    np.testing.assert_array_equal(often.regrets[0], random_multiple(values[0], 4)[:5])
    assert twice.regrets[0, 1] == once.regrets[0, 3]
    assert "2 times" in twice.remark
    assert once.remark == ""


def test_random_search_alone_has_the_papers_horizon() -> None:
    study = make_study([run("random", "a", np.linspace(1, 0.5, 500).tolist())])
    assert study.horizons == {"toy": 50}
    assert set(study.outcomes["toy"]) == {"random", "random-2x", "random-4x", "random-10x"}
    assert make_study([run("random", "a", [0.3, 0.2])]).horizons == {"toy": 2}


def test_a_table_too_small_for_ten_times_the_evaluations_has_no_multiples() -> None:
    study = make_study([run("gp", "a", [0.5] * 50), run("random", "a", np.linspace(1, 0.5, 200).tolist())])
    assert set(study.outcomes["toy"]) == {"gp", "random"}


def test_after_its_end_a_run_is_unknown_unless_it_has_found_the_best() -> None:
    runs = [
        run("gp", "a", [0.9] * 4),
        run("kl", "a", [0.5, 0.2]),
        run("kl", "b", [0.5, 0.0]),
        run("kl", "c", [0.1] * 4),
    ]
    outcome = found(make_study(runs), "kl")
    np.testing.assert_array_equal(outcome.regrets, [[0.5, 0.2, NAN, NAN], [0.5, 0, 0, 0], [0.1] * 4])
    assert outcome.at(4) == {"b": 0.0, "c": 0.1}
    assert math.isnan(outcome.area)


def test_packed_runs_are_compared_with_others_as_if_they_were_not_packed(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    kept = [run("gp", f"t{task}", rng.random(5).tolist(), ends=(0.1 / 3, 1.0)) for task in range(20)]
    pack(kept, tmp_path / "packed.csv.gz")
    same = [replace(one, key=one.key._replace(method="wac")) for one in read_runs(tmp_path / "packed.csv.gz")]
    study = make_study([*kept, *same])
    gp, wac = found(study, "gp"), found(study, "wac")
    np.testing.assert_array_equal(gp.regrets, wac.regrets)
    assert run_ranks([gp, wac]).ranks.tolist() == [[1.5] * 5] * 2


def test_the_best_is_recognised_with_the_digits_that_are_kept(tmp_path: Path) -> None:
    ends = (1 / 7, 1.0)
    pack([run("gp", "a", [0.5] * 3, ends=ends), run("kl", "a", [1 / 7], ends=ends)], tmp_path / "packed.csv")
    np.testing.assert_array_equal(found(make_study(read_runs(tmp_path / "packed.csv")), "kl").regrets, [[0.0] * 3])


def test_a_run_that_only_failed_so_far_counts_as_the_worst() -> None:
    outcome = found(make_study([run("gp", "a", [NAN, NAN, 0.3]), run("gp", "b", [NAN, NAN, NAN])]), "gp")
    np.testing.assert_array_equal(outcome.regrets, [[1, 1, 0.3], [1, 1, 1]])


def test_a_task_with_one_error_everywhere_has_no_regret() -> None:
    outcome = found(make_study([run("gp", "a", [0.4, 0.4], ends=(0.4, 0.4))]), "gp")
    np.testing.assert_array_equal(outcome.regrets, [[0.0, 0.0]])


def test_the_worst_gap_is_over_common_tasks_and_names_the_task() -> None:
    runs = [run("gp", task, [0.9, value]) for task, value in (("a", 0.1), ("b", 0.4), ("c", 0.2))]
    runs += [run("smfo", task, [0.0, 0.9]) for task in ("d",)]
    runs += [run("wac", task, [0.9, value]) for task, value in (("a", 0.2), ("b", 0.3), ("d", 0.9))]
    study = make_study(runs)
    gap = worst_gap(found(study, "wac"), found(study, "gp"), 2)
    assert gap is not None
    assert (gap.regret, gap.task, gap.tasks) == (pytest.approx(0.1), "a", 2)
    better = worst_gap(found(study, "gp"), found(study, "wac"), 2)
    assert better is not None
    assert (better.regret, better.task) == (pytest.approx(0.1), "b")
    assert worst_gap(found(study, "smfo"), found(study, "gp"), 2) is None


def test_gaps_are_between_the_runs_that_both_have() -> None:
    runs = [run("gp", "a", [value], repetition=repetition) for repetition, value in enumerate((0.0, 0.0, 0.9))]
    study = make_study([*runs, run("wac", "a", [0.8], repetition=2), run("wac", "b", [0.1])])
    assert task_gaps(found(study, "wac"), found(study, "gp"), 1) == {"a": pytest.approx(-0.1)}


def test_what_a_method_has_less_of_than_others_is_said() -> None:
    runs = [run("gp", task, [0.1], repetition=repetition) for task in "abc" for repetition in range(3)]
    runs += [run("kl", "a", [0.1], repetition=repetition) for repetition in range(3)]
    runs += [run("wac", task, [0.1]) for task in "abc"]
    runs += [run("smfo", task, [0.1], repetition=repetition) for task in "abc" for repetition in range(2)]
    runs += [run("smfo", "a", [0.1], repetition=2)]
    study = make_study(runs)
    outcomes = list(study.outcomes["toy"].values())
    assert {outcome.method: short_of(outcome, outcomes) for outcome in outcomes} == {
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
    study = make_study(runs)
    ranks = run_ranks([found(study, name) for name in ("wac", "gp", "kl")])
    assert (ranks.methods, ranks.tasks, ranks.runs) == (("wac", "gp", "kl"), 4, 7)
    best = np.minimum.accumulate(values, axis=3)[[2, 0, 1]].reshape(3, 8, 6)[:, :7]
    expected = np.mean([[rankdata(best[:, case, k]) for k in range(6)] for case in range(7)], axis=0).T
    np.testing.assert_allclose(ranks.ranks, expected)
    np.testing.assert_allclose(ranks.ranks.sum(axis=0), 6.0)


def test_ranks_by_hand_with_a_tie() -> None:
    runs = [run("gp", "a", [0.5, 0.1]), run("kl", "a", [0.5, 0.3]), run("wac", "a", [0.7, 0.2])]
    study = make_study(runs)
    ranks = run_ranks([found(study, name) for name in ("gp", "kl", "wac")]).ranks
    assert ranks.tolist() == [[1.5, 1.0], [1.5, 3.0], [3.0, 2.0]]


def test_ranks_need_methods_that_can_be_compared() -> None:
    study = make_study([run("gp", "a", [0.5]), run("kl", "b", [0.5])])
    with pytest.raises(InputError, match="two or more methods"):
        run_ranks([found(study, "gp")])
    with pytest.raises(InputError, match="gp, kl have none"):
        run_ranks([found(study, "gp"), found(study, "kl")])


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "at least one finished run"),
        ([run("gp", "a", [1.0]), run("gp", "a", [0.5])], "gp on toy, task a, repetition 0, comes twice"),
        ([run("gp", "a", [])], "has no evaluation"),
        (
            [run("gp", "a", [1.0]), run("kl", "a", [1.0], ends=(0.0, 2.0))],
            "kl on toy.* has 0 and 2, that of gp 0 and 1",
        ),
    ],
)
def test_runs_that_make_no_study_are_refused(runs: list[Finished], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_study(runs)
