"""A run in a few sentences: how far it is, what it found, what past runs had to say, and the worst case."""

from __future__ import annotations

from recollect._text import plural
from recollect.analysis.run_data import RunData
from recollect.analysis.source_usefulness import WeightHistory
from recollect.transfer.weighting.base import slowdown_factor
from recollect.transfer.weighting.ranking_weights import RankingWeighting, TwoStageWeighting

NO_PAST_RUNS = "There were no past runs to learn from: this was plain Bayesian optimization."


def run_summary(data: RunData, history: WeightHistory | None) -> list[str]:
    """Return the sentences at the top of the page."""
    run, method, best = data.run, data.method, data.run.best
    planned = f" of {data.horizon:,} planned" if data.horizon is not None and data.horizon != len(run) else ""
    better = "Lower" if run.direction == "minimize" else "Higher"
    how = f", tuned by {method.name} ({method.summary})" if method is not None else ""
    failed = f"{data.failed or 'none'} of them failed" + (f" and {data.pruned} were pruned" if data.pruned else "")
    amount = f"{plural(len(run), 'trial')}{planned}, {failed}{how}. {better} values are better."
    found = "No trial has succeeded, so there is no best configuration."
    if best is not None:
        found = f"The best value is {best.value:.4g}, found in trial {data.numbers[run.trials.index(best)]}."
    return [amount, found, _past_sentence(data, history), worst_case(data)]


def worst_case(data: RunData) -> str:
    """Say how much past runs can slow the search down at worst (paper section 4.4)."""
    method, past, horizon = data.method, len(data.source_names), data.horizon
    if method is None or horizon is None:
        return "Worst case: unknown, since it is unknown how the run was tuned."
    if past == 0 or not method.transfers:
        return "Worst case: no past run was used, so none can have slowed the search down."
    weighting = method.weighting  # there is a bound if past runs are dropped with a probability that reaches 1
    if not isinstance(weighting, RankingWeighting | TwoStageWeighting) or weighting.dilution != "probabilistic":
        return (
            f"Worst case: no bound is known for {method.name}; misleading past runs may slow the search "
            "down until its end."
        )
    return (
        f"Worst case: however misleading the {plural(past, 'past run')}, this search needs at most "
        f"{slowdown_factor(horizon, past):.3g} times as many trials as one without them for the same guarantee on how "
        f"close it comes to the best (section 4.4 of the paper, for {plural(horizon, 'trial')}). Past runs that rank "
        "the trials badly are dropped far sooner than this bound assumes."
    )


def _past_sentence(data: RunData, history: WeightHistory | None) -> str:
    if data.method is not None and not data.method.transfers:
        return f"{data.method.name} does not use past runs."
    if not data.past and history is None:
        return NO_PAST_RUNS if data.settings else "It is unknown whether it learned from past runs."
    first = next((note for _, note in data.suggestions), None)
    portfolio = first is not None and "past runs" in first.reason
    start = f" It started with {first.reason}." if first is not None and portfolio else ""
    if history is None:
        return f"It could learn from {plural(len(data.source_names), 'past run')}; no weights were recorded.{start}"
    mean, last = 1.0 - float(history.target.mean()), 1.0 - float(history.target[-1])
    return (
        f"It could learn from {plural(len(data.source_names), 'past run')}: they had "
        f"{mean:.0%} of the weight on average, and {last:.0%} in the last suggestion.{start}"
    )
