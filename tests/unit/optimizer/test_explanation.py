"""Explanations: plain data, and a short text with a table of the past runs."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from recollect import FAILED, Optimizer, RecollectWarning, Run
from recollect.acquisition.functions import MixtureImprovement

SPACE = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
GRID = [{"a": i / 7, "b": j / 4} for i in range(8) for j in range(5)]


def value(config: dict[str, Any]) -> float:
    return float((config["a"] - 0.3) ** 2 + config["b"])


def wrong(config: dict[str, Any]) -> float:
    return -value(config)


PAST = [
    Run("good", GRID[::3], [value(c) for c in GRID[::3]]),
    Run("bad", GRID[1::3], [wrong(c) for c in GRID[1::3]]),
    Run("extra column", [c | {"z": 1} for c in GRID[2::3]], [value(c) for c in GRID[2::3]]),
]


def tuned(method: str, trials: int, past: Any = PAST, **options: Any) -> Optimizer:
    optimizer = Optimizer(SPACE, past, method, candidates=GRID, **options)
    for _ in range(trials):
        config = optimizer.ask()
        optimizer.tell(config, value(config))
    return optimizer


def test_before_any_model_only_the_past_runs_themselves_are_described() -> None:
    shown = Optimizer(SPACE, PAST).explain()
    assert shown.reason == "nothing has been suggested yet"
    assert [entry.task for entry in shown.past] == ["good", "bad", "extra column"]
    assert [entry.observations for entry in shown.past] == [14, 13, 13]
    assert all((e.weight, e.share, e.misranked, e.dropped) == (None,) * 4 for e in shown.past)
    assert (shown.best_value, shown.predicted_mean) == (None, None)
    assert "best value none yet" in str(shown)


def test_misranked_pairs_and_drop_probabilities_are_those_of_the_weights() -> None:
    optimizer = tuned("rgpe-taf", 8)
    model, shown = optimizer._model, optimizer.explain()
    assert model is not None
    for i, entry in enumerate(shown.past):
        assert entry.misranked == model.weights.misranked[i]
        assert entry.drop_probability == pytest.approx(1 - model.weights.keep_probability[i])
        assert entry.dropped == model.weights.dropped[i]
    assert shown.past[0].misranked < shown.past[1].misranked  # type: ignore[operator]
    assert shown.target.observations == 8


def test_the_mean_weight_is_that_of_all_suggestions_by_models() -> None:
    optimizer, seen = Optimizer(SPACE, PAST, "rgpe-mean", candidates=GRID, horizon=12), []
    for _ in range(12):
        config = optimizer.ask()
        shown = optimizer.explain()
        if shown.past[0].weight is not None:
            seen.append([entry.weight for entry in (*shown.past, shown.target)])
        mean = [entry.mean_weight for entry in (*shown.past, shown.target)]
        assert mean == (pytest.approx(np.mean(seen, axis=0)) if seen else [None] * 4)
        optimizer.tell(config, value(config))
    assert shown.pairs == 11 * 10
    assert [entry.dropped for entry in shown.past] == [True] * 3
    assert shown.past[0].mean_weight > 0.15 > shown.past[1].mean_weight  # type: ignore[operator]


def test_one_trial_is_not_plural() -> None:
    assert "1 trial finished" in str(tuned("rgpe-taf", 1).explain())


def test_the_share_is_the_part_in_the_value_of_the_last_suggestion() -> None:
    optimizer = tuned("rgpe-mogp+none", 3)
    model = optimizer._model
    assert model is not None
    ensemble = model.ensemble(np.empty((0, 2)))
    (x,) = optimizer.space.encode([optimizer.run.configs[-1]])
    shares = MixtureImprovement().prepare(ensemble, np.random.default_rng(0)).shares(x)
    assert 0 < shares[-1] < 1
    shown = optimizer.explain()
    entries = [shown.past[i] for i in ensemble.active_sources]
    assert [e.share for e in (*entries, shown.target)] == pytest.approx(shares.tolist())


@pytest.mark.parametrize("method", ["rgpe-taf", "rgpe-nei", "rgpe-taf+copula", "tstr-ei", "smfo", "gp", "random"])
def test_the_text_has_a_line_for_every_past_run_the_most_influential_first(method: str) -> None:
    shown = tuned(method, 12).explain()
    lines = str(shown).splitlines()
    assert all(text in lines[0] for text in (f"method {method}:", "12 trials", f"best value {shown.best_value:.6g}"))
    assert lines[1] == f"last suggestion: {shown.reason}"
    head = next(i for i, line in enumerate(lines) if line.startswith("past run"))
    of = "" if shown.pairs is None else f" of {shown.pairs}"
    columns = ["past run", "observations", "mean weight", "last weight", f"misranked{of}", "p(drop)", "share"]
    assert [column for column in re.split(r"  +", lines[head]) if column] == columns
    table = lines[head + 1 : head + 5]
    assert table[-1].startswith("(this task)")
    assert {line.split("  ")[0] for line in table[:-1]} == {"good", "bad", "extra column"}
    first = sorted(shown.past, key=lambda entry: -(entry.mean_weight or 0.0))
    if first[0].mean_weight is not None:
        assert [line.split("  ")[0] for line in table[:-1]] == [entry.task for entry in first]
        for line, entry in zip(table, (*first, shown.target), strict=True):
            cells = re.split(r"  +", line)
            assert cells[2:4] == [f"{entry.mean_weight:.2f}", f"{entry.weight:.2f}"]
    assert any(line.startswith("extra column: ") and "'z'" in line for line in lines[head + 5 :])


def test_predictions_are_in_the_units_of_the_user_and_absent_under_ranks() -> None:
    for method in ("rgpe-nei", "rgpe-taf"):
        optimizer = Optimizer(SPACE, PAST, method, candidates=GRID, horizon=8)
        for config in GRID[::4]:
            optimizer.tell(config, 1000 + 5 * value(config))
        suggested = optimizer.ask()
        shown = optimizer.explain()
        assert shown.predicted_mean == pytest.approx(1000 + 5 * value(suggested), abs=2)
        assert shown.predicted_std is not None
        assert 0 < shown.predicted_std < 5
    shown = tuned("rgpe-taf+copula", 6).explain()
    assert (shown.predicted_mean, shown.predicted_std) == (None, None)


def test_a_past_run_that_was_left_out_says_so() -> None:
    with pytest.warns(RecollectWarning):
        optimizer = tuned("rgpe-taf", 4, [*PAST[:1], Run("short", GRID[:1], [1.0])])
    shown = optimizer.explain()
    assert [entry.used for entry in shown.past] == [True, False]
    (line,) = [line for line in str(shown).splitlines() if line.startswith("short ")]
    assert "left out" in line


@pytest.mark.parametrize(
    ("method", "state"), [("gp", "left out"), ("random", "left out"), ("gp-box", "used"), ("mtgp", "used")]
)
def test_past_runs_without_weights_are_used_or_left_out(method: str, state: str) -> None:
    shown = tuned(method, 4).explain()
    assert {entry.used for entry in shown.past} == {state == "used"}
    assert {entry.weight for entry in shown.past} == {None}
    lines = [line for line in str(shown).splitlines() if line.startswith(PAST[0].task)]
    assert [state in line for line in lines] == [True]


def test_failures_are_counted() -> None:
    optimizer = tuned("rgpe-taf", 3)
    optimizer.tell(optimizer.ask(), FAILED)
    assert (optimizer.explain().trials, optimizer.explain().failed) == (4, 1)
    assert "1 of them failed" in str(optimizer.explain())


def test_an_explanation_does_not_change_what_comes_next() -> None:
    quiet, asked = tuned("rgpe-taf", 5), tuned("rgpe-taf", 5)
    for _ in range(3):
        str(asked.explain())
    assert quiet.ask() == asked.ask()


def test_runs_of_the_same_name_are_distinguished() -> None:
    twins = [Run("same", r.configs, r.values) for r in PAST[:2]]
    shown = tuned("rgpe-mean+none", 10, twins).explain()
    apart = tuned("rgpe-mean+none", 10, PAST[:2]).explain()
    assert [e.weight for e in shown.past] == [e.weight for e in apart.past]
    assert shown.past[0].weight != shown.past[1].weight
