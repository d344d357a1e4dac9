"""Optimizers with more past runs than take part in a suggestion."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from recollect import FAILED, Optimizer, Run, method
from recollect.optimizer.method import Method
from recollect.transfer.screening import MIN_FIRST, Screening
from recollect.transfer.sources import SourceFit, Sources
from recollect.transfer.task_prior import TaskPrior

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
GRID = [{"a": i / 6, "b": j / 6} for i in range(7) for j in range(7)]
MODELLED = ["rgpe-taf", "tstr-ei", "task-prior"]


def value(config: dict[str, Any], shift: float = 0.0) -> float:
    return float((config["a"] - 0.3 - shift) ** 2 + (config["b"] - 0.7 + shift) ** 2)


def past_runs(count: int = 40) -> list[Run]:
    rng = np.random.default_rng(3)
    runs = []
    for i in range(count):
        configs = [GRID[g] for g in rng.permutation(len(GRID))[:6]]
        runs.append(Run(f"task {i}", configs, [value(c, 0.01 * i) for c in configs]))
    return runs


PAST = past_runs()


def screened(name: str, limit: int = 10) -> Method:
    return replace(method(name), screening=Screening(limit, first_seconds=1e-9), sources=SourceFit(restarts=0))


def drive(optimizer: Optimizer, trials: int) -> list[dict[str, Any]]:
    asked = []
    for _ in range(trials):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], value(asked[-1], 0.05))
    return asked


@pytest.mark.parametrize("name", MODELLED)
def test_up_to_the_limit_nothing_changes(name: str) -> None:
    runs = PAST[:10]
    at_limit, far = (drive(Optimizer(SPACE, runs, screened(name, limit), candidates=GRID), 6) for limit in (10, 1000))
    assert at_limit == far


@pytest.mark.parametrize("name", MODELLED)
def test_beyond_it_few_take_part_and_the_search_still_finds_what_past_runs_know(name: str) -> None:
    optimizer = Optimizer(SPACE, PAST, screened(name), candidates=GRID)
    asked = drive(optimizer, 10)
    assert min(value(config, 0.05) for config in asked) < 0.03
    explanation = optimizer.explain()
    assert len(explanation.past) == 10
    assert explanation.screening.startswith("10 of 40 past runs take part: ")
    assert explanation.screening in str(explanation)
    weights = [entry.weight for entry in (*explanation.past, explanation.target)]
    assert sum(weight for weight in weights if weight is not None) == pytest.approx(1.0)
    assert 0.0 <= sum(entry.mean_weight or 0.0 for entry in explanation.past) <= 1.0


@pytest.mark.parametrize("name", MODELLED)
def test_suggestions_repeat_with_the_seed_and_do_not_depend_on_the_cache(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("RECOLLECT_CACHE", str(tmp_path))
    cold = drive(Optimizer(SPACE, PAST, screened(name), candidates=GRID), 11)
    assert drive(Optimizer(SPACE, PAST, screened(name), candidates=GRID), 11) == cold  # fits cached
    copied = Optimizer(SPACE, PAST, screened(name), candidates=GRID)
    assert drive(copied, 5) == cold[:5]
    for other in (pickle.loads(pickle.dumps(copied)), copy.copy(copied), copy.deepcopy(copied)):
        assert drive(other, 6) == cold[5:]


def test_a_resumed_run_continues_as_it_would_have() -> None:
    optimizer = Optimizer(SPACE, PAST, screened("rgpe-taf"), candidates=GRID)
    drive(optimizer, 10)
    resumed = Optimizer(SPACE, PAST, screened("rgpe-taf"), candidates=GRID, run=optimizer.run)
    resumed.ask()
    optimizer.ask()
    assert resumed._transfer_context().choice.rows.tolist() == optimizer._transfer_context().choice.rows.tolist()  # type: ignore[union-attr]


def test_failures_are_no_results_and_do_not_change_who_takes_part() -> None:
    optimizer = Optimizer(SPACE, PAST, screened("rgpe-taf"), candidates=GRID)
    for _ in range(4):
        optimizer.tell(optimizer.ask(), FAILED)
    assert optimizer.explain().screening == "8 of 40 past runs take part: 8 at random"


def test_a_portfolio_without_a_model_does_not_start_small() -> None:
    optimizer = Optimizer(SPACE, PAST, screened("smfo"), candidates=GRID, horizon=5)
    drive(optimizer, 5)
    assert len(optimizer.explain().past) == 10


def test_runs_that_cannot_be_used_do_not_shift_the_weights() -> None:
    unusable = Run("short", [GRID[0]], [1.0])
    with pytest.warns(match="short"):
        optimizer = Optimizer(SPACE, [unusable, *PAST], screened("rgpe-taf"), candidates=GRID)
    drive(optimizer, 4)
    context = optimizer._transfer_context()
    assert context.sources is not None
    explanation = optimizer.explain()
    assert [entry.task for entry in explanation.past if entry.used] == list(context.sources.tasks)
    assert all((entry.weight is not None) == entry.used for entry in explanation.past)
    assert [entry.task for entry in explanation.past if not entry.used] == ["short"]


def test_the_first_suggestion_prepares_the_prior_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare, counts = TaskPrior.prepare, []

    def counted(self: TaskPrior, sources: Sources, *given: Any, **named: Any) -> Any:
        counts.append(len(sources))
        return prepare(self, sources, *given, **named)

    monkeypatch.setattr(TaskPrior, "prepare", counted)
    optimizer = Optimizer(SPACE, PAST, screened("task-prior"), candidates=GRID)
    optimizer.tell(optimizer.ask(), 0.5)
    assert counts == [MIN_FIRST]
    optimizer.ask()
    assert counts == [MIN_FIRST, 10]
