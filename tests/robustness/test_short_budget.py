"""Every area of the harness, a few attempts in every test run; ``python -m tests.robustness`` attacks longer."""

from __future__ import annotations

import pytest
from tests.robustness import kills
from tests.robustness.areas import AREAS
from tests.robustness.harness import run_area

ATTEMPTS = {"imports": 100, "past-runs": 4, "databases": 2}
"""Of the areas whose attempts are short; those of the others take seconds, or make dozens of calls each."""


@pytest.fixture
def _quick_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill less often, and wait less for the lock of a journal whose owner was killed (Optuna: 30 s)."""
    monkeypatch.setattr(kills, "TRIALS", 12)
    monkeypatch.setattr(kills, "KILLS", 4)
    monkeypatch.setattr(kills, "LOCK_SECONDS", 3)


@pytest.mark.usefixtures("_quick_kills")
@pytest.mark.parametrize("name", list(AREAS))
def test_an_area_withstands_a_short_attack(name: str) -> None:
    tally = run_area(AREAS[name], attempts=ATTEMPTS.get(name, 1))
    if tally.skipped:
        pytest.skip(tally.skipped)
    assert tally.tried > 0
    assert not tally.failures, "\n".join(tally.failures)
