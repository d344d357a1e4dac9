"""The numbers of the paper: checked against themselves, and against values copied by hand."""

from __future__ import annotations

import math

import pytest

from recollect.bench.paper.published import (
    BENCHMARKS,
    EVALUATIONS,
    LAYOUTS,
    MAIN_TABLES,
    PaperTableLayout,
    published_value,
)
from recollect.bench.paper.tst_bandwidth import RHO_OTHERS, RHO_PREFIX, RHO_TASKS
from recollect.optimizer.catalog import method

DASH = None


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("gp", [0.35, 0.68, 7.84, 1.09, 0.66, 1.13]),
        ("random-10x", [0.10, 0.46, 1.78, 0.88, DASH, DASH]),
        ("wac", [4.81, 2.84, 5.51, 1.75, 1.42, 1.90]),
        ("kl", [0.19, DASH, 3.78, DASH, 1.81, DASH]),
        ("ablr+copula", [0.19, 0.61, 5.18, 1.19, 0.72, 1.71]),
        ("tstr-taf", [0.17, 0.48, 2.95, 0.64, 0.73, 0.46]),
        ("rgpe-taf", [0.16, 0.38, 1.55, 0.67, 0.63, 0.45]),
        ("rgpe-taf+none", [0.15, 0.51, 1.61, 0.62, 0.71, 0.45]),
        ("rgpe-mogp+s100000", [0.17, 0.31, 1.83, 0.73, 0.40, 0.50]),
        ("rgpe-nei+unscaled", [2.70, 0.34, 3.05, 0.94, 0.49, 0.34]),
        ("rgpe-cfnei", [0.16, 0.54, 2.94, 0.68, 0.67, 0.44]),
        ("tstr-ei+rho-svm-grid", [0.17, 1.06, 3.57, 0.81, 0.61, 0.51]),
        ("tstr-taf+rho-lcbench", [0.16, 0.60, 1.58, 0.64, 0.75, 0.40]),
        ("mtgp", [DASH] * 6),
    ],
)
def test_numbers_after_50_evaluations_are_those_of_the_paper(name: str, numbers: list[float | None]) -> None:
    values = [published_value(name, benchmark, 50) for benchmark in BENCHMARKS]
    assert [number and number.value for number in values] == numbers


def test_earlier_evaluations_and_marks_are_those_of_the_main_tables() -> None:
    values = [published_value("rgpe-taf", "svm-grid", count) for count in EVALUATIONS]
    assert [number and number.value for number in values] == [2.95, 1.54, 0.91, 0.61, 0.45]
    assert [number and number.mark for number in values] == ["best", "even", "", "best", "even"]
    first = published_value("gp", "lcbench", 10)
    assert first is not None
    assert (first.value, first.mark) == (16.40, "")
    assert published_value("gp", "svm-grid", 25) is None
    assert published_value("gp", "own-svm", 50) is None


def test_where_tables_disagree_each_keeps_its_number() -> None:
    by_table = {
        layout.name: layout.published(row, "lcbench", 50)
        for layout in LAYOUTS
        for row in layout.rows
        if layout.name in ("transform", "rho") and row.method == "tstr-ei+rho-tasks"
    }
    assert {name: number and number.value for name, number in by_table.items()} == {"transform": 3.19, "rho": 3.24}


def test_random_multiples_are_random_search_read_further_on() -> None:
    for benchmark in ("glmnet", "svm", "lcbench", "xgboost"):
        for factor, early, late in ((2, 10, 20), (2, 20, 40), (4, 10, 40)):
            often, once = (
                published_value(f"random-{factor}x", benchmark, early),
                published_value("random", benchmark, late),
            )
            assert often is not None
            assert once is not None
            assert often.value == once.value


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.name}-{layout.benchmarks[0]}")
def test_every_row_is_whole_and_only_the_lowest_of_a_column_is_underlined(layout: PaperTableLayout) -> None:
    for row in layout.rows:
        assert len(row.values.split()) == len(layout.benchmarks) * len(layout.evaluations)
    for benchmark in layout.benchmarks:
        for count in layout.evaluations:
            for rows in layout.blocks if layout.separate_blocks else (layout.rows,):
                column = [layout.published(row, benchmark, count) for row in rows]
                lowest = min((number.value for number in column if number), default=math.inf)
                best = {number.value for number in column if number and number.mark == "best"}
                assert best == {lowest}


def test_every_method_is_in_the_catalog_or_made_out_of_runs_that_are() -> None:
    for row in (row for layout in LAYOUTS for row in layout.rows):
        family, _, chosen = row.method.partition("+rho-")
        if chosen:
            assert row.method in {
                f"{family}+{RHO_OTHERS}",
                f"{family}+{RHO_TASKS}",
                *(f"{family}+{RHO_PREFIX}{b}" for b in BENCHMARKS),
            }
        method("random" if family.startswith("random-") and family != "random-box" else family)


def test_the_three_main_tables_cover_the_six_benchmarks() -> None:
    assert tuple(name for layout in MAIN_TABLES for name in layout.benchmarks) == BENCHMARKS
