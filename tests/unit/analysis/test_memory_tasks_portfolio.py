"""What to try first on a new task."""

from __future__ import annotations

import numpy as np
from tests.helpers.example_memory import COMPILED, example_run, modelled, points

from recollect.analysis.memory_tasks import MIN_GAIN, recommended_portfolio


def test_the_portfolio_is_greedy_on_the_predictions_of_all_tasks() -> None:
    models = modelled(example_run("left", lambda c: c["x"]), example_run("right", lambda c: -c["x"], seed=1))
    portfolio = recommended_portfolio(models, size=3)
    tried = np.concatenate([COMPILED.encode(points(12, seed)) for seed in (0, 1)])
    lows, highs = (np.array([f(models.sources.data(k).y) for k in range(2)])[:, None] for f in (np.min, np.max))
    P = (models.sources.means(tried) - lows) / (highs - lows)
    best, expected, gaps = np.full(2, np.inf), [], []
    for _ in range(3):
        reached = np.minimum(best[:, None], P).sum(axis=0)
        expected.append(tried[int(np.argmin(reached))])
        best = np.minimum(best, P[:, int(np.argmin(reached))])
        gaps.append(np.clip(best, 0, 1).mean())
    assert np.allclose(COMPILED.encode(portfolio.configs)[:2], expected[:2])
    assert gaps[1] - gaps[2] < MIN_GAIN, "two opposite tasks need two configurations"
    assert np.allclose(portfolio.gaps, gaps[:2])
    assert portfolio.stopped
    assert (portfolio.best_for > 0).all()
    assert portfolio.best_for.sum() == 2
    assert portfolio.tasks == 2
