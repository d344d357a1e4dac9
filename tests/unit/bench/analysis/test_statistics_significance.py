"""Wilcoxon marks, average ranks and critical differences: against scipy, published tables and hand-made examples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from recollect import InputError
from recollect.bench.analysis.statistics import (
    Repetition,
    compare_with_best,
    critical_difference,
    indistinguishable_groups,
    rank_test,
    signed_rank,
)


def as_tasks(rows: dict[str, list[float]]) -> dict[str, dict[Repetition, float]]:
    return {method: {(f"t{task:02}", 0): value for task, value in enumerate(values)} for method, values in rows.items()}


@pytest.mark.parametrize("count", [1, 2, 5, 6, 9, 25, 50])
def test_without_ties_the_p_value_is_scipys_exact_one(count: int) -> None:
    first, second = np.random.default_rng(count).random((2, count))
    assert signed_rank(first, second + 0.1) == pytest.approx(wilcoxon(first, second + 0.1, method="exact").pvalue)


@pytest.mark.parametrize("seed", range(5))
def test_with_ties_the_p_value_is_that_of_enumerating_all_signs(seed: int) -> None:
    differences = np.random.default_rng(seed).integers(-3, 4, 9) / 4
    kept = differences[differences != 0]
    ranks = rankdata(np.abs(kept))
    sums = np.array([ranks[np.array(signs)].sum() for signs in itertools.product([False, True], repeat=len(kept))])
    seen = ranks[kept > 0].sum()
    expected = min(1.0, 2 * min((sums <= seen).mean(), (sums >= seen).mean()))
    assert signed_rank(differences, np.zeros(9)) == pytest.approx(expected)


def test_with_many_ties_and_zeros_the_p_value_is_close_to_scipys_approximation() -> None:
    rng = np.random.default_rng(8)
    for shift in (0.0, 0.05, 0.1, 0.2):
        first, second = rng.integers(0, 8, (2, 50)) / 10
        differences = np.round(first - shift - second, 12)  # scipy takes rounding for a difference
        expected = wilcoxon(differences, zero_method="wilcox", method="asymptotic").pvalue
        assert signed_rank(first - shift, second) == pytest.approx(expected, abs=0.01)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=15))
def test_swapping_the_methods_changes_nothing_and_p_stays_in_its_range(pairs: list[tuple[int, int]]) -> None:
    first, second = [a / 20 for a, _ in pairs], [b / 20 for _, b in pairs]
    different = sum(a != b for a, b in pairs)
    p = signed_rank(first, second)
    assert p == pytest.approx(signed_rank(second, first))
    assert min(1.0, 2.0 ** (1 - different)) <= p + 1e-12
    assert p <= 1


def test_no_difference_is_not_significant() -> None:
    assert signed_rank([0.1, 0.2], [0.1, 0.2]) == 1.0
    assert signed_rank([], []) == 1.0
    assert signed_rank([0.1 + 0.2] * 9, [0.3] * 9) == 1.0  # rounding is no difference


def test_five_differences_are_too_few_and_six_are_enough() -> None:
    assert signed_rank([0.1] * 5, [0.0] * 5) == pytest.approx(1 / 16)
    assert signed_rank([0.1] * 6, [0.0] * 6) == pytest.approx(1 / 32)


def test_values_that_are_not_pairs_of_finite_numbers_are_refused() -> None:
    for first in ([float("nan")], [float("inf")], [[1.0]]):
        with pytest.raises(InputError, match="pairs of finite numbers"):
            signed_rank(first, np.zeros(np.shape(first)))


def test_the_lowest_mean_is_best_and_the_others_are_tested_against_it() -> None:
    base = [0.01 * task for task in range(8)]
    regrets = as_tasks(
        {
            "worse": [value + 0.05 + 0.001 * task for task, value in enumerate(base)],
            "best": base,
            "mixed": [value + 0.01 * (-1) ** task * (task + 1) + 0.006 for task, value in enumerate(base)],
        }
    )
    result = compare_with_best(regrets)
    assert {method: comparison.mark for method, comparison in result.items()} == {
        "worse": "",
        "best": "best",
        "mixed": "even",
    }
    assert result["worse"].p == pytest.approx(2 / 2**8)
    assert result["mixed"].p >= 0.05
    assert [comparison.tasks for comparison in result.values()] == [8, 8, 8]
    assert compare_with_best(regrets, 0.001)["worse"].mark == "even"


def test_one_outlier_makes_a_mean_worse_but_not_significantly() -> None:
    regrets = as_tasks({"steady": [0.1] * 20, "outlier": [0.1] * 19 + [0.9]})
    assert compare_with_best(regrets)["outlier"].mark == "even"


def test_equal_methods_are_all_best() -> None:
    result = compare_with_best(as_tasks({"one": [0.1, 0.2], "same": [0.1, 0.2], "tied": [0.2, 0.1]}))
    assert [comparison.mark for comparison in result.values()] == ["best", "best", "best"]
    assert all(comparison.p == 1.0 for comparison in result.values())


def test_a_method_with_few_easy_tasks_is_not_best_but_compared_on_those() -> None:
    regrets = as_tasks({"full": [0.0, 0.0, *[0.3] * 8], "also": [0.1, 0.2, *[0.4] * 8]})
    regrets["few"] = {("t00", 0): 0.0, ("t01", 0): 0.0, ("elsewhere", 0): 0.0}
    result = compare_with_best(regrets)
    assert result["full"].mark == "best"
    assert result["also"].mark == ""
    assert (result["few"].mark, result["few"].tasks, result["few"].p) == ("even", 2, 1.0)
    regrets["few"] = {("elsewhere", 0): 0.0}
    assert (compare_with_best(regrets)["few"].mark, compare_with_best(regrets)["few"].tasks) == ("", 0)


def test_fewer_repetitions_neither_help_nor_harm() -> None:
    bad = {(f"t{number:02}", repetition): repetition == number % 5 for number in range(12) for repetition in range(5)}
    five = {run: 0.5 * float(here) for run, here in bad.items()}
    once = {run: regret for run, regret in five.items() if run[1] == 0}  # 0 on nine tasks, where five have 0.1
    behind = {run: regret + 0.01 for run, regret in once.items()}
    result = compare_with_best({"five": five, "once": once, "behind": behind})
    assert {method: (comparison.mark, comparison.tasks) for method, comparison in result.items()} == {
        "five": ("best", 12),
        "once": ("even", 12),
        "behind": ("", 12),
    }
    assert (result["once"].p, result["behind"].p) == (1.0, pytest.approx(2 / 2**12))
    assert rank_test({"five": five, "once": once}).ranks.tolist() == [1.5, 1.5]


def test_methods_without_any_common_task_are_ranked_by_what_they_have() -> None:
    result = compare_with_best({"one": {("a", 0): 0.3}, "two": {("b", 0): 0.1}})
    assert (result["two"].mark, result["one"].mark, result["one"].tasks) == ("best", "", 0)


def test_a_method_alone_is_the_best_and_none_is_refused() -> None:
    assert compare_with_best({"one": {("a", 0): 0.3}})["one"].mark == "best"
    for nothing in ({}, {"one": {}}):
        with pytest.raises(InputError, match="methods with a run each"):
            compare_with_best(nothing)


def test_critical_differences_are_those_of_demsars_table() -> None:
    table = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
    for methods, q in table.items():
        assert critical_difference(methods, 14) == pytest.approx(q * np.sqrt(methods * (methods + 1) / 84), rel=5e-4)
    assert critical_difference(4, 14, 0.10) == pytest.approx(2.291 * np.sqrt(20 / 84), rel=5e-4)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)  # his example, section 3.2.4


@pytest.mark.parametrize(("methods", "tasks", "alpha"), [(1, 5, 0.05), (3, 0, 0.05), (3, 5, 0.0), (3, 5, 1.0)])
def test_impossible_comparisons_are_refused(methods: int, tasks: int, alpha: float) -> None:
    with pytest.raises(InputError, match="critical_difference"):
        critical_difference(methods, tasks, alpha)


def test_friedman_is_scipys_with_ties_and_ranks_are_sorted() -> None:
    rng = np.random.default_rng(2)
    rows = {name: (rng.integers(0, 6, 30) / 5 + shift).tolist() for name, shift in (("c", 0.4), ("a", 0.0), ("b", 0.2))}
    result = rank_test(as_tasks(rows))
    assert result.methods == ("a", "b", "c")
    table = np.array([rows[name] for name in result.methods])
    np.testing.assert_allclose(result.ranks, rankdata(np.round(table, 12), axis=0).mean(axis=1))
    assert result.p == pytest.approx(friedmanchisquare(*np.round(table, 12)).pvalue)
    assert result.tasks == 30
    assert result.critical_difference == critical_difference(3, 30)


def test_methods_that_always_tie_do_not_differ() -> None:
    result = rank_test(as_tasks({"b": [0.1, 0.2], "a": [0.1, 0.2], "c": [0.1, 0.2]}))
    assert (result.p, result.ranks.tolist(), result.groups) == (1.0, [2.0, 2.0, 2.0], (("a", "b", "c"),))


def test_ranks_are_taken_on_common_tasks() -> None:
    result = rank_test({"a": {("x", 0): 0.1, ("y", 0): 0.9}, "b": {("x", 0): 0.2, ("z", 0): 0.0}})
    assert (result.methods, result.tasks, result.ranks.tolist()) == (("a", "b"), 1, [1.0, 2.0])
    with pytest.raises(InputError, match="a run that all have"):
        rank_test({"a": {("x", 0): 0.1}, "b": {("x", 1): 0.1}})
    with pytest.raises(InputError, match="two or more methods"):
        rank_test({"a": {("x", 0): 0.1}})


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([1.0, 1.5, 2.4, 4.0], ("ab", "bc")),
        ([1.0, 1.5, 1.9, 4.0], ("abc",)),
        ([1.0, 2.0, 3.0, 4.0], ()),  # a difference of 1 is one
        ([1.0, 1.0, 3.0, 3.5], ("ab", "cd")),
    ],
)
def test_groups_of_indistinguishable_methods_are_as_large_as_possible(
    ranks: list[float], expected: tuple[str, ...]
) -> None:
    assert indistinguishable_groups("abcd", ranks, 1.0) == tuple(tuple(group) for group in expected)
