"""Noise, negation and normalisation of any benchmark."""

from __future__ import annotations

import numpy as np
import pytest

import recollect
from recollect.bench.benchmark import About, Benchmark
from recollect.bench.problems.synthetic import branin
from recollect.bench.problems.tabular import shared_table
from recollect.bench.problems.wrappers import negated, noisy, normalised
from recollect.errors import InputError

VALUES = np.array([0.25, 0.5, 0.125, 1.0])
CONFIGS = [{"x": x} for x in range(4)]


@pytest.fixture
def table() -> Benchmark:
    errors = {"a": VALUES, "b": 10 * VALUES, "constant": np.full(4, 0.3)}
    space = recollect.compile_space({"x": (0, 3)})
    return shared_table("t", space, configs=CONFIGS, errors=errors, about=About("T", "", "", "", "table"))


def values(benchmark: Benchmark, task: str) -> np.ndarray:
    return np.array([benchmark.task(task).evaluate(config) for config in CONFIGS])


def test_negation_turns_a_task_upside_down_in_its_range(table: Benchmark) -> None:
    upside = negated(table)
    assert values(upside, "a").tolist() == (1.125 - VALUES).tolist()
    assert (upside.task("a").best, upside.task("a").worst) == (0.125, 1.0)
    assert values(negated(upside), "b") == pytest.approx(values(table, "b"))


def test_normalisation_maps_best_to_0_and_worst_to_1(table: Benchmark) -> None:
    unit = normalised(table)
    assert values(unit, "b") == pytest.approx((VALUES - 0.125) / 0.875)
    assert (unit.task("b").best, unit.task("b").worst) == (0.0, 1.0)
    assert (values(unit, "b").min(), values(unit, "b").max()) == (0.0, 1.0)


def test_a_constant_task_is_normalised_to_0(table: Benchmark) -> None:
    task = normalised(table).task("constant")
    assert values(normalised(table), "constant").tolist() == [0.0] * 4
    assert (task.best, task.worst) == (0.0, 0.0)


def test_noise_is_normal_with_the_stated_share_of_the_range() -> None:
    plain = branin(2)
    task, clean = noisy(plain, 0.1, rng=np.random.default_rng(0)).task("1"), plain.task("1")
    X = np.random.default_rng(1).random((20_000, 2))
    noise = (task.evaluate_many(X) - clean.evaluate_many(X)) / (clean.worst - clean.best)
    assert noise.mean() == pytest.approx(0.0, abs=5 * 0.1 / np.sqrt(20_000))
    assert noise.std() == pytest.approx(0.1, rel=0.03)
    assert np.abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.04
    assert (task.best, task.worst) == (clean.best, clean.worst)


def test_noise_differs_from_call_to_call_and_repeats_with_the_seed(table: Benchmark) -> None:
    first, again, other = (noisy(table, 0.5, rng=np.random.default_rng(seed)) for seed in (3, 3, 4))
    once, twice = values(first, "a"), values(first, "a")
    assert not np.isclose(once, twice).any()
    values(again, "b")  # what is drawn for one task leaves the others alone
    assert (values(again, "a") == once).all()
    assert not np.isclose(values(other, "a"), once).any()
    assert not np.isclose(values(first, "b") / 10 - VALUES, once - VALUES).any()


def test_no_noise_changes_nothing(table: Benchmark) -> None:
    assert (values(noisy(table, 0.0, rng=np.random.default_rng(0)), "a") == VALUES).all()


@pytest.mark.parametrize("deviation", [-0.1, np.nan, np.inf])
def test_noise_that_makes_no_sense_is_refused(deviation: float, table: Benchmark) -> None:
    with pytest.raises(InputError, match="expected a finite deviation >= 0"):
        noisy(table, deviation, rng=np.random.default_rng(0))


def test_wrappers_keep_space_tasks_and_candidates_and_tell_in_the_name(table: Benchmark) -> None:
    wrapped = normalised(negated(table))
    assert wrapped.name == "t+negated+normalised"
    assert wrapped.about.title == "T, negated, normalised"
    assert (wrapped.space, wrapped.tasks, wrapped.candidates) == (table.space, table.tasks, table.candidates)
    assert wrapped.task("a").candidates == table.candidates
    X = wrapped.space.encode(CONFIGS)
    assert wrapped.task("a").evaluate_many(X).tolist() == values(wrapped, "a").tolist()
    with pytest.raises(InputError, match="has no task"):
        wrapped.task("c")
