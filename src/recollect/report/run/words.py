"""A run in sentences, computed from what is known of it; and the worst case in words."""

from __future__ import annotations

from recollect.optimizer.method import Method
from recollect.report.names import named
from recollect.report.run.values import counted, percent, shown
from recollect.report.run.weights import Weighed
from recollect.report.story import Story
from recollect.transfer.bound import slowdown_factor
from recollect.transfer.weighting import RankingWeighting, TwoStageWeighting

NO_PAST = "There were no past runs to learn from: this was plain Bayesian optimization."


def at_a_glance(story: Story, found: Weighed | None) -> list[str]:
    """Return sentences: what was done, what was found, what past runs had to do with it, the worst case."""
    return [_done(story), _found(story), *_taught(story, found), bound_words(story)]


def bound_words(story: Story) -> str:
    """Say how much past runs can slow the search down at worst (paper section 4.4)."""
    method, past, horizon = story.method, len(story.past), story.horizon
    if method is None or horizon is None:
        return "Worst case: how it was tuned is not known, so nothing can be said of it."
    if past == 0 or not method.transfers:
        return "Worst case: as no past run was used, none can have slowed the search down."
    if not _diluted(method):
        return (
            f"Worst case: for {named(method.name)} no bound is known; past runs that mislead may slow the search down "
            "for as long as it lasts."
        )
    factor = slowdown_factor(horizon, past)
    return (
        f"Worst case: however misleading the {counted(past, 'past run')}, this search needs at most {factor:.3g} times "
        "as many trials as one without them for the same guarantee on how close it comes to the best (section 4.4 of "
        f"the paper, for {counted(horizon, 'trial')}). Past runs that order the trials badly are dropped far sooner "
        "than that assumes."
    )


def _diluted(method: Method) -> bool:
    """Whether past runs are dropped with a probability that reaches 1 at the end."""
    weighting = method.weighting
    return isinstance(weighting, RankingWeighting | TwoStageWeighting) and weighting.dilution == "probabilistic"


def _done(story: Story) -> str:
    run = story.run
    failed = len(run) - len(run.succeeded)
    planned = f" of {story.horizon:,} planned" if story.horizon is not None and story.horizon != len(run) else ""
    better = "Lower" if run.direction == "minimize" else "Higher"
    how = f", tuned by {named(story.method.name)} ({story.method.summary})" if story.method is not None else ""
    return f"{counted(len(run), 'trial')}{planned}, {failed or 'none'} of them failed{how}. {better} values are better."


def _found(story: Story) -> str:
    best = story.run.best
    if best is None:
        return "No trial has succeeded, so there is no best configuration."
    return f"The best value is {shown(best.value)}, found in trial {story.run.trials.index(best) + 1}."


def _taught(story: Story, found: Weighed | None) -> list[str]:
    if story.method is not None and not story.method.transfers:
        return [f"{named(story.method.name)} does not look at past runs."]
    if not story.past and found is None:
        return [NO_PAST if story.settings else "Nothing is known of past runs that it may have learned from."]
    first = next((note for note in story.notes if note is not None), None)
    began = f" It began with {named(first.reason)}." if first is not None and "past runs" in first.reason else ""
    if found is None:
        return [f"It could learn from {counted(len(story.past), 'past run')}; no weights were noted.{began}"]
    past = 1.0 - float(found.target.mean())
    last = 1.0 - float(found.target[-1])
    return [
        f"It could learn from {counted(max(len(story.past), len(found.tasks)), 'past run')}: on average they had "
        f"{percent(past)} of the weight, in the last suggestion {percent(last)}.{began}"
    ]
