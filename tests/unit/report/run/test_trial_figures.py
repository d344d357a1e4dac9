"""Figures of single trials: the timeline says how many workers there were, and how many trials ran at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tests.helpers.example_runs import run_data, values_only

from recollect.analysis.trial_records import TrialRecord
from recollect.report.run.trial_figures import timeline_figure

BEGAN = datetime(2026, 1, 1)


@pytest.mark.parametrize(
    ("workers", "rows", "words"),
    [
        (("a", "b"), ["a", "b"], "on 2 workers, busy"),
        (("a", "a"), ["a, slot 1", "a, slot 2"], "on 1 worker, up to 2 at once, busy"),
        ((None, None), ["slot 1", "slot 2"], "up to 2 at once, busy"),
    ],
    ids=["two workers", "one worker with two slots", "unknown workers"],
)
def test_the_timeline_has_a_row_for_each_trial_at_once(
    workers: tuple[str | None, ...], rows: list[str], words: str
) -> None:
    data = run_data(values_only([1.0, 2.0]))
    records = tuple(
        TrialRecord(
            number, "finished", {}, 1.0, started=BEGAN, ended=BEGAN + timedelta(seconds=4 + number), worker=name
        )
        for number, name in enumerate(workers)
    )
    figure = timeline_figure(replace(data, stored=records))
    assert figure is not None
    assert figure.layout["yaxis"]["ticktext"] == rows
    assert words in figure.caption
    assert "90%" in figure.caption, "nine of ten seconds"
