"""Tables of a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from tests.helpers.example_runs import (
    PLAIN,
    cell_texts,
    run_data,
    usual,
    values_only,
)

from recollect import FAILED, Run
from recollect.analysis.source_usefulness import source_usefulness, weight_history
from recollect.optimizer.catalog import method
from recollect.report.run.run_tables import (
    failure_summary,
    failure_table,
    settings_table,
    source_summary,
    source_table,
    space_table,
)
from recollect.runs.run import Trial
from recollect.tuning.suggestion_notes import SuggestionNote


def test_reasons_of_failures_are_counted_and_shown() -> None:
    trials = [
        replace(
            Trial.of({"x": number / 10, "y": 0.5}, FAILED),
            notes=(("time limit",) if number < 3 else ("out of\nmemory",)),
        )
        for number in range(4)
    ]
    run = Run("own", trials=[*trials, Trial({"x": 0.9, "y": 0.5}, 1.0)], space=PLAIN)
    assert failure_summary(run).startswith("4 of 5 trials failed: time limit (3) and out of memory (1).")
    table = failure_table(run_data(run))
    assert table is not None
    assert [row[0].sort_key for row in table.blocks[0]] == [0, 1, 2, 3]
    assert 'href="#trial-0"' in str(table.blocks[0][0][0].content)
    assert cell_texts(table, 1)[-1] == "out of memory"
    assert cell_texts(table, 2)[1] == "x = 0.1, y = 0.5"
    assert failure_table(run_data(values_only([1.0]))) is None
    long = failure_table(run_data(values_only([FAILED] * 500)))
    assert long is not None
    assert len(long.blocks[0]) == 100
    assert long.notes == ("100 of 500 failed trials are shown.",)


def test_settings_and_space_are_shown_as_far_as_they_are_known() -> None:
    begun = datetime(2026, 1, 2, 3, 4, 5)
    data = replace(usual(), times=(begun, begun + timedelta(hours=2)))
    facts = dict(zip(cell_texts(settings_table(data), 0), cell_texts(settings_table(data), 1), strict=True))
    assert facts["method"].startswith("rgpe-taf: ranking weights")
    assert (facts["trials planned"], facts["seed"], facts["trials finished"]) == ("20", "7", "20, of which 2 failed")
    assert facts["versions"] == "recollect 0.1.0 and numpy 2.0"
    assert (facts["first trial started"], facts["time in all trials"]) == ("2026-01-02 03:04:05", "20 s")
    assert (
        dict(
            zip(
                *(cell_texts(settings_table(run_data(values_only([1.0]), settings={"seed": None})), c) for c in (0, 1)),
                strict=True,
            )
        )["seed"]
        == "none: fresh entropy"
    )
    unknown = settings_table(replace(data, settings={}))
    assert "unknown" in cell_texts(unknown, 1)
    assert "unknown" in unknown.notes[0]
    space = space_table(data)
    assert space is not None
    rows = {str(row[0].content): [str(cell.content) for cell in row[1:]] for row in space.blocks[0]}
    assert rows["cost"] == ["number, log scale", "0.1 to 1000", "always used"]
    assert rows["depth"] == ["integer", "1 to 9", "always used"]
    assert rows["kernel"] == ["choice", "linear and radial", "always used"]
    assert rows["gamma"][2] == "kernel == 'radial'"


def test_the_table_says_what_became_of_each_past_run() -> None:
    own = Run(
        "own", [{"x": 0.1, "y": 0.5}, {"x": 0.9, "y": 0.5}, {"x": 0.5, "y": 0.5}], [2.0, FAILED, 1.0], space=PLAIN
    )
    past = [
        Run("tried", [{"x": 0.1, "y": 0.5}, {"x": 0.7, "y": 0.1}], [0.0, 1.0]),
        Run("failed here", [{"x": 0.9, "y": 0.5}, {"x": 0.7, "y": 0.1}], [0.0, 1.0]),
        Run("not tried", [{"x": 0.45, "y": 0.5}, {"x": 0.7, "y": 0.1}], [0.0, 1.0]),
        Run("elsewhere", [{"x": 99.0, "y": 0.5}, {"x": 0.2, "y": 0.2}, {"x": 0.7, "y": 0.1}], [0.0, 1.0, 2.0]),
    ]
    notes = (
        SuggestionNote("portfolio"),
        SuggestionNote("", 0.5, {"tried": 0.3, "not tried": 0.2}, frozenset({"failed here"})),
        SuggestionNote("", 0.2, {"tried": 0.7, "given": 0.1}, frozenset({"failed here", "not tried"})),
    )
    data = run_data(own, past, notes=notes)
    found = source_usefulness(data, method("rgpe-taf"), weight_history(data))
    table = source_table(found, 2)
    rows = {str(row[0].content): [cell.content for cell in row] for row in table.blocks[0]}
    assert list(rows) == ["tried", "given", "not tried", "elsewhere", "failed here"], "by weight"
    assert rows["tried"][1:4] == ["2", "70.0", "50.0"]
    assert [rows[name][5] for name in ("tried", "not tried", "elsewhere")] == ["kept", "dropped", "kept"]
    assert [rows[name][6] for name in ("tried", "failed here", "not tried")] == ["0 of 2", "2 of 2", "1 of 2"]
    assert rows["tried"][7] == "2 of 2"
    assert rows["failed here"][7] == "tried, failed"
    assert rows["not tried"][7] == "\N{ALMOST EQUAL TO} 2 of 3", "a little worse than the best, which is close by"
    assert rows["elsewhere"][7] == "\N{EN DASH}", "its best configuration has no place in this space"
    assert rows["elsewhere"][8] == "67"
    assert "too far outside the range" in str(rows["elsewhere"][9])
    assert rows["given"][9] == "it is not in this memory"
    assert "3 took part and 2 were dropped" in source_summary(found, 2)
