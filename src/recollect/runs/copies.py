"""Copies of trials and runs for code of users, which may change a configuration that it gets."""

from __future__ import annotations

from dataclasses import replace

from recollect.runs.run import Run, Trial


def copy_trial(trial: Trial) -> Trial:
    """Return an equal trial with a configuration of its own."""
    return replace(trial, config=dict(trial.config))


def copy_run(run: Run) -> Run:
    """Return an equal run whose trials have configurations of their own."""
    return run.with_trials(map(copy_trial, run.trials))
