"""The data behind the table of all trials and the panel of each."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.helpers.example_runs import hostile, run_data, usual, values_only

from recollect import FAILED
from recollect.analysis.source_usefulness import source_predictions
from recollect.analysis.trial_records import TrialRecord
from recollect.report.run.trial_explorer import MAX_SOURCES, explorer_data, trial_explorer
from recollect.runs.run import Direction
from recollect.tuning.suggestion_notes import SuggestionNote


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_equal_values_share_the_better_rank(direction: Direction) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    data = run_data(values_only([2 * sign, FAILED, sign, sign, 3 * sign, sign], direction))
    found = explorer_data(data, ["x", "y"], None, lambda _: None)
    assert [row[3] for row in found["trials"]] == [4, None, 1, 1, 5, 1]
    assert found["ranked"] == 5


def test_values_of_hyperparameters_keep_their_type_and_digits() -> None:
    record = TrialRecord(7, "running", {"a": 0.1 + 0.2, "b": 1.0, "c": 3, "d": "x", "e": None, "f": True})
    data = run_data(values_only([1.0]), stored=(record,), stored_numbers=(7,))
    (row,) = explorer_data(data, ["a", "b", "c", "d", "e", "f", "g"], None, lambda _: None)["trials"]
    assert row[-1] == ["0.30000000000000004", "1.0", "3", '"x"', "null", "true", None]


def test_the_panel_says_what_was_expected_and_what_past_runs_said() -> None:
    data = usual()
    note = SuggestionNote(
        "r", 0.25, {f"past {k}": 0.05 * k for k in range(9)}, frozenset(), (1.0, 0.5), {"past 8": 0.6}
    )
    data = replace(data, notes=(note, *data.notes[1:]))
    assert data.method is not None
    predictions = source_predictions(data, data.method)
    assert predictions is not None
    found = explorer_data(data, ["cost"], predictions, lambda task: f"/run?task={task}")
    detail = found["details"]["0"]
    assert detail["expected"] == [1.0, 0.5]
    assert detail["target"] == 0.25
    named = [found["sources"][place] for place, *_ in detail["weights"]]
    assert named == [f"past {k}" for k in range(8, 0, -1)]
    assert len(named) == MAX_SOURCES
    assert detail["weights"][0][1:3] == [0.4, 0.6]
    for place, _, _, rank in detail["weights"]:
        assert rank == predictions.rank(found["sources"][place], 0)
        assert 1 <= rank <= found["ranked"]
    assert found["links"][0] == "/run?task=past 0"


def test_predicted_ranks_are_permutations_of_the_trials() -> None:
    data = usual()
    assert data.method is not None
    predictions = source_predictions(data, data.method)
    assert predictions is not None
    ok = [number for number, trial in zip(data.numbers, data.run.trials, strict=True) if trial.ok]
    ranks = sorted(predictions.rank("past 3", number) or 0 for number in ok)
    assert ranks == list(range(1, len(ok) + 1))
    assert predictions.rank("past 3", 2) is None, "it failed"
    assert predictions.rank("elsewhere", 0) is None


def test_hostile_names_stay_data() -> None:
    text = trial_explorer(hostile(), None, lambda _: None).text
    block = text.partition('class="trials">')[2].partition("</script>")[0]
    assert "<" not in block
    assert json.loads(block)["trials"]
