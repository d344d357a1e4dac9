"""Forests that are built in several processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recollect.bench.data.openml_bot import bot_space
from recollect.bench.problems.forest_benchmark import ForestBuild, TuneSettings, build_forests
from recollect.bench.problems.forest_model import load_forest
from recollect.space.sampling import uniform

SETTINGS = TuneSettings(candidates=2, folds=2, trees=5, final_trees=12)
SPACE = bot_space("glmnet")


def test_two_processes_build_the_same_forests_as_one(tmp_path: Path) -> None:
    points = [uniform(SPACE, 60, np.random.default_rng(task)) for task in range(2)]
    data = {f"task {task}": (X, 0.1 + (X[:, 0] - 0.4) ** 2) for task, X in enumerate(points)}
    seen: list[tuple[int, int]] = []
    build_forests(SPACE, data, build=ForestBuild(SETTINGS, folder=tmp_path / "one"))
    build_forests(SPACE, data, jobs=2, build=ForestBuild(SETTINGS, lambda *now: seen.append(now), tmp_path / "two"))
    assert seen == [(0, 2), (1, 2), (2, 2)]
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "two").iterdir())
    for name in names:
        one, other = load_forest(tmp_path / "one" / name), load_forest(tmp_path / "two" / name)
        np.testing.assert_array_equal(one[0].words, other[0].words)
        np.testing.assert_array_equal(one[0].value, other[0].value)
        assert one[1] == other[1]
