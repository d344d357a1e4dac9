"""Which tasks rank configurations alike."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr
from tests.helpers.example_memory import example_run, modelled, slope

from recollect.analysis.memory_tasks import similarity_order, task_similarity


def test_tasks_that_order_alike_oppositely_or_not_at_all() -> None:
    models = modelled(
        example_run("a"),
        example_run("a, stretched", lambda c: float(np.exp(3 * slope(c))), seed=1),
        example_run("upside down", lambda c: -slope(c), seed=2),
        example_run("flat", lambda _: 1.0),
        example_run("higher", lambda c: -slope(c), direction="maximize"),
    )
    similarity = task_similarity(models)
    assert similarity[0, 1] > 0.95
    assert similarity[0, 2] < -0.95
    assert similarity[0, 4] > 0.95, "higher is better there"
    assert np.isnan(similarity[3]).all()
    assert np.allclose(np.diag(similarity)[[0, 1, 2, 4]], 1)
    kept = [0, 1, 2, 4]
    reference = spearmanr(models.means[kept], axis=1).statistic
    assert np.allclose(similarity[np.ix_(kept, kept)], reference)


def test_similar_tasks_become_neighbours_and_flat_ones_come_last() -> None:
    groups = np.array([0, 1, 0, 1, 0, 1])
    similarity = np.where(groups[:, None] == groups[None], 0.9, -0.2)
    np.fill_diagonal(similarity, 1.0)
    similarity = np.pad(similarity, (0, 1), constant_values=np.nan)
    order = similarity_order(similarity)
    assert sorted(order) == list(range(7))
    assert order[-1] == 6
    assert len({*groups[order[:3]]}) == len({*groups[order[3:6]]}) == 1
    assert list(similarity_order(np.eye(2))) == [0, 1]
