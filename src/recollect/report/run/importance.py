"""Which hyperparameters mattered: Optuna's PED-ANOVA (Watanabe, Bansal, Hutter, IJCAI 2023).

It asks how differently the best trials are distributed from all of them, one hyperparameter at a time. Of Optuna's
evaluators it is the one that needs no further library, takes conditional hyperparameters and is quick with many trials.
Trials that a tuner chose lie where it expected good values, so it tells what mattered among those.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recollect.errors import ConfigError
from recollect.history.optuna_runs import distributions, params_of
from recollect.history.run import Run
from recollect.history.storage import quiet
from recollect.report.figure import Figure, Spec, decimals, name_axis, rows_height
from recollect.report.names import IN_HOVER, listed, named
from recollect.report.run.values import counted, percent
from recollect.report.story import Story
from recollect.report.table import Column, Table, number, word
from recollect.space.space import Space

if TYPE_CHECKING:
    from optuna.study import Study

FEWEST = 10  # trials with a value: of fewer, no part can be called the best
BEST, PART = 5, 0.1  # the best are at least so many, and at least this part
MOST = 30  # hyperparameters in the figure
HOVER = "<b>%{customdata}</b><br>importance %{x:.1f} %<extra></extra>"
QUESTION = "Which hyperparameters set the best trials apart?"


@dataclass(frozen=True, slots=True)
class Importance:
    """Parts that add up to 1, the largest first; best: how many trials counted as the best, of how many."""

    parts: dict[str, float]
    best: int
    trials: int


def importance(story: Story) -> Importance | None:
    """Return the importance of hyperparameters; None with too few trials or values that are all equal."""
    if story.space is None or len(story.run.succeeded) < FEWEST or story.run.y.min() == story.run.y.max():
        return None
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    count = len(story.run.succeeded)
    quantile = max(PART, BEST / count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few trials, which the page says itself
        study = _study(story.run, story.space)
        parts = get_param_importances(study, evaluator=PedAnovaImportanceEvaluator(target_quantile=quantile))
    varying = {name for name, varies in zip(story.space.names, story.space.varying, strict=True) if varies}
    found = {name: float(part) for name, part in parts.items() if name in varying}
    if not found or not sum(found.values()) > 0:
        return None
    ordered = sorted(found, key=lambda name: (-found[name], name))
    return Importance({name: found[name] for name in ordered}, int(np.ceil(quantile * count)), count)


def importance_figure(found: Importance, story: Story) -> Figure:
    """Return a bar for each hyperparameter."""
    names = list(found.parts)[:MOST]
    percent = 100.0 * np.array([found.parts[name] for name in names])
    bars: Spec = {
        "type": "bar",
        "orientation": "h",
        "x": decimals(percent),
        "y": list(range(len(names))),
        "customdata": [named(name, IN_HOVER) for name in names],
        "marker": {"color": "@blue"},
        "width": 0.6,
        "hovertemplate": HOVER,
    }
    return Figure(
        QUESTION,
        _seen(found, story),
        (bars,),
        {
            "xaxis": {"title": {"text": "importance (%)"}, "range": [0, max(105.0 * percent.max() / 100.0, 1.0)]},
            "yaxis": name_axis(names),
        },
        Table(
            "Importance of hyperparameters",
            (Column("name", numeric=False), Column("importance in %")),
            (tuple((word(named(name)), number(100.0 * part, ".1f")) for name, part in found.parts.items()),),
        ),
        height=rows_height(len(names)),
    )


def _study(run: Run, space: Space) -> Study:
    """Return the trials that succeeded and belong to the space as a study of Optuna's."""
    from optuna import create_study
    from optuna.storages import InMemoryStorage
    from optuna.trial import create_trial

    known = distributions(space)
    trials = []
    for trial in run.succeeded:
        config = {name: value for name, value in trial.config.items() if name in known}
        try:
            params = params_of(config, known)
        except ConfigError:  # a value of another space
            continue
        trials.append(
            create_trial(params=params, distributions={name: known[name] for name in params}, value=trial.value)
        )
    with quiet():
        study = create_study(storage=InMemoryStorage(), direction=run.direction)
    study.add_trials(trials)
    return study


def _seen(found: Importance, story: Story) -> str:
    first, *others = found.parts
    sentence = f"{named(first)} sets the best {found.best} of {counted(found.trials, 'trial')} apart most"
    sentence += f", with {percent(found.parts[first])} of what tells them from the others"
    if others and found.parts[others[0]] > 0:
        sentence += f"; then comes {named(others[0])}, with {percent(found.parts[others[0]])}"
    assert story.space is not None
    pairs = zip(story.space.names, story.space.varying, strict=True)
    left = [name for name, varies in pairs if varies and name not in found.parts]
    return (
        f"{sentence}. Computed by Optuna's PED-ANOVA, which compares where the best trials lie with where all of them "
        "lie, one hyperparameter at a time: it sees neither what acts only together nor what was hardly varied, and "
        f"with few trials it is rough.{f' Not assessed: {listed(left)}.' if left else ''}"
    )
