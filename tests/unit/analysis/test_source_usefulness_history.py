"""Weights of past runs over the trials of a run."""

from __future__ import annotations

from tests.helpers.example_runs import (
    run_data,
    values_only,
)

from recollect.analysis.source_usefulness import weight_history
from recollect.tuning.suggestion_notes import SuggestionNote


def test_how_often_a_past_run_was_dropped_is_counted_from_its_first_mention() -> None:
    notes = (
        SuggestionNote("portfolio"),
        SuggestionNote("", 0.4, {"early": 0.6}),
        SuggestionNote("", 1.0, {}, frozenset({"early"})),
        SuggestionNote("", 0.5, {"late": 0.5}, frozenset({"early"})),
        SuggestionNote("", 1.0, {}, frozenset({"early", "late"})),
    )
    found = weight_history(run_data(values_only([1.0] * 5), notes=notes))
    assert found is not None
    assert found.times_dropped("early") == (3, 4)
    assert found.times_dropped("late") == (1, 2)
    assert found.times_dropped("never named") == (0, 4)
    assert found.target_only == 2
    assert weight_history(run_data(values_only([1.0]), notes=(SuggestionNote("random"),))) is None
