"""A run in a few sentences."""

from __future__ import annotations

from dataclasses import replace

from tests.helpers.example_runs import (
    SETTINGS,
    learned,
    run_data,
    usual,
)

from recollect.analysis.run_summary import run_summary, worst_case
from recollect.analysis.source_usefulness import weight_history
from recollect.transfer.weighting.base import slowdown_factor


def test_the_worst_case_is_the_bound_of_the_paper_in_words() -> None:
    data = usual()
    assert f"the 9 past runs, this search needs at most {slowdown_factor(20, 9):.3g} times" in worst_case(data)
    assert "no bound is known" in worst_case(replace(data, settings={**SETTINGS, "method": "rgpe-taf+none"}))
    assert "no past run was used" in worst_case(replace(data, settings={**SETTINGS, "method": "gp"}))
    assert "no past run was used" in worst_case(replace(data, past=(), notes=(None,) * 20))
    assert "unknown" in worst_case(replace(data, settings={}))


def test_the_overview_says_what_was_done_and_found() -> None:
    data = usual()
    sentences = run_summary(data, weight_history(data))
    best = data.run.best
    assert best is not None
    assert sentences[0].startswith("20 trials, 2 of them failed, tuned by rgpe-taf")
    assert sentences[0].endswith("Lower values are better.")
    assert sentences[1] == f"The best value is {best.value:.4g}, found in trial {data.run.trials.index(best)}."
    assert "9 past runs" in sentences[2]
    assert "It started with point 1 of the portfolio learned from past runs." in sentences[2]
    alone = run_summary(run_data(learned("own", 3)), None)
    assert "3 trials of 20 planned, none of them failed" in alone[0]
    assert alone[2].startswith("There were no past runs")
    assert "Higher values" in run_summary(usual("maximize"), None)[0]
