"""Which hyperparameters mattered."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.example_runs import (
    LEARNER,
    PLAIN,
    learned,
    run_data,
    values_only,
)

from recollect import Run
from recollect.analysis.importance import importance


def test_the_hyperparameter_that_matters_comes_first() -> None:
    rng = np.random.default_rng(3)
    configs = [{"x": float(x), "y": float(y)} for x, y in rng.random((60, 2))]
    for name in ("x", "y"):
        run = Run("own", configs, [abs(config[name] - 0.3) for config in configs], space=PLAIN)
        found = importance(run_data(run))
        assert found is not None
        assert next(iter(found.shares)) == name
        assert found.shares[name] > 0.8
        assert sum(found.shares.values()) == pytest.approx(1.0)
        assert (found.best, found.trials) == (6, 60)


def test_importance_takes_conditions_and_maximizing() -> None:
    for direction in ("minimize", "maximize"):
        found = importance(run_data(learned("own", 80, direction=direction)))
        assert found is not None
        assert next(iter(found.shares)) == "cost"
        assert set(found.shares) <= set(LEARNER.names)


def test_importance_is_not_computed_from_too_little() -> None:
    assert importance(run_data(learned("own", 9))) is None
    assert importance(run_data(values_only([1.0] * 30))) is None
    assert importance(run_data(learned("own", 30, failed=range(25)))) is None
