"""`TransferSampler` passes the test cases that Optuna has for samplers, with and without past studies.

Not run: `MultiObjectiveSamplerTestCase`, which is for samplers of several objectives; `SingleOnlySamplerTestCase` is
its counterpart for those that refuse them. With past studies the cases on relative sampling are not run a second time:
they hand over a search space of their own, where the past has no say in what is asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler

from recollect.optuna import TransferSampler

pytest.importorskip("optuna.testing.pytest_samplers", reason="older versions of Optuna have no such test cases")
from optuna.testing.pytest_samplers import BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase


def past_study(shift: float) -> optuna.Study:
    study = optuna.create_study()
    known = {"x": FloatDistribution(-1.0, 1.0), "y": IntDistribution(3, 10)}
    for number in range(6):
        x, y = -1 + number / 3, 3 + number
        trial = optuna.create_trial(params={"x": x, "y": y}, distributions=known, value=(x - shift) ** 2 + 0.1 * y)
        study.add_trial(trial)
    return study


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(scope="module")
def past() -> list[optuna.Study]:
    return [past_study(0.2), past_study(-0.3)]


class TestWithoutPast(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: TransferSampler(seed=0)


@pytest.mark.filterwarnings("ignore:past:recollect.RecollectWarning")
class TestWithPast(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    """Most cases ask for other ranges than the past has, which is then left out with a warning."""

    @pytest.fixture
    def sampler(self, past: list[optuna.Study]) -> Callable[[], BaseSampler]:
        return lambda: TransferSampler(past=past, seed=0)
