"""Every area of the harness with a short budget, in every test run; ``python -m tests.robustness`` attacks longer."""

from __future__ import annotations

import pytest
from tests.robustness import kills
from tests.robustness.areas import AREAS
from tests.robustness.harness import run_area

SECONDS = 2.0


@pytest.fixture
def _quick_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill less often, and wait less for the lock of a journal whose owner was killed (Optuna: 30 s)."""
    monkeypatch.setattr(kills, "TRIALS", 12)
    monkeypatch.setattr(kills, "KILLS", 4)
    monkeypatch.setattr(kills, "LOCK_SECONDS", 3)


@pytest.mark.usefixtures("_quick_kills")
@pytest.mark.parametrize("name", list(AREAS))
def test_an_area_withstands_a_short_attack(name: str) -> None:
    attempts = 1 if name.startswith("kills-") else None  # one takes several seconds
    tally = run_area(AREAS[name], seconds=SECONDS, attempts=attempts)
    if tally.skipped:
        pytest.skip(tally.skipped)
    assert tally.tried > 0
    assert not tally.failures, "\n".join(tally.failures)
