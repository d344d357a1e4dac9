"""Which past runs a new run can learn from."""

from __future__ import annotations

import pytest

from recollect.runs.run import Run
from recollect.runs.usability import MAX_NAMED, Unusable, left_out_message, why_unusable

CONFIGS = [{"a": 0.1, "z": 1}, {"a": 0.2, "z": 2}, {"a": 0.3, "z": 3}]


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (Run("good", CONFIGS, [1.0, 2.0, 3.0]), None),
        (Run("two", CONFIGS, [1.0, None, 3.0]), None),
        (Run("up", CONFIGS, [1.0, 2.0, 3.0], direction="maximize"), Unusable.OTHER_DIRECTION),
        (Run("strange", [{"b": 1}, {"b": 2}], [1.0, 2.0]), Unusable.NO_SHARED_PARAMETER),
        (Run("strange and short", [{"b": 1}], [1.0]), Unusable.NO_SHARED_PARAMETER),
        (Run("short", CONFIGS, [1.0, None, None]), Unusable.TOO_FEW_TRIALS),
        (Run("empty"), Unusable.TOO_FEW_TRIALS),
    ],
    ids=lambda value: value.task if isinstance(value, Run) else None,
)
def test_a_run_is_usable_or_the_first_reason_against_it_is_named(run: Run, reason: Unusable | None) -> None:
    assert why_unusable(run, {"a", "c"}, "minimize") is reason


def test_directions_are_compared_only_where_one_is_given() -> None:
    assert why_unusable(Run("up", CONFIGS, [1.0, 2.0, 3.0], direction="maximize"), {"a"}) is None


def test_a_message_names_a_few_runs_and_counts_the_others() -> None:
    tasks = [f"task{number}" for number in range(MAX_NAMED + 3)]
    message = left_out_message(tasks, "why")
    assert f"task{MAX_NAMED - 1} and 3 more" in message
    assert f"task{MAX_NAMED}" not in message
    assert "more" not in left_out_message(tasks[:MAX_NAMED], "why")
