"""`minimize` with several worker processes."""

from __future__ import annotations

import math
import os
import signal
import time
from typing import Any

import pytest

from recollect import FailedTrialWarning, minimize


def test_workers_evaluate_at_the_same_time_and_survive_what_kills_them() -> None:
    def objective(config: dict[str, Any]) -> float:
        if config["n"] == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if config["n"] == 3:
            time.sleep(60)
        if config["n"] == 4:
            os._exit(7)
        if config["n"] == 5:
            raise ValueError("five")
        return float(os.getpid())

    with pytest.warns(FailedTrialWarning):
        result = minimize(
            objective,
            {"n": (1, 12)},
            trials=12,
            method="random",
            progress=False,
            workers=3,
            trial_seconds=1.5,
        )
    reasons = {trial.config["n"]: trial.notes[0] for trial in result.run.trials if not trial.ok}
    assert set(reasons) == {2, 3, 4, 5}
    assert "killed by signal 9 (SIGKILL)" in reasons[2]
    assert "time limit of 1.5 s" in reasons[3]
    assert reasons[4] == "its process ended with exit code 7"
    assert reasons[5] == "ValueError: five"
    processes = {trial.value for trial in result.run.succeeded}
    assert len(processes) >= 2
    assert os.getpid() not in processes


def test_a_warning_of_a_failed_trial_of_a_worker_points_to_the_call() -> None:
    with pytest.warns(FailedTrialWarning, match="trial 0 failed") as caught:
        minimize(lambda _config: math.nan, {"a": (0.0, 1.0)}, trials=1, workers=2, progress=False)
    assert [warning.filename for warning in caught] == [__file__]
