"""The programs of benchmarks/adapters, as far as their libraries are installed here."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from recollect.bench import load
from recollect.bench.experiment.contestants import RunSetting, contestant_spec
from recollect.runs.run import Run

ADAPTERS = Path(__file__).parents[2] / "benchmarks" / "adapters"
PRINTING = """
import numpy as np
from protocol import serve

class Printing:
    def __init__(self, setting):
        print("a banner of the library")
        self.first = setting["candidates"][0]

    def ask(self):
        return {name: np.float64(value) for name, value in self.first.items()}

    def tell(self, config, value):
        print("told", value)

serve(Printing)
"""


def told(program: str, folder: Path, count: int) -> list[float]:
    """Let a program tune a task of own-glmnet with two past runs, and return the errors it found."""
    benchmark = load("own-glmnet")
    configs = benchmark.candidates or ()
    task, *others = (benchmark.task(name) for name in benchmark.tasks[:3])
    past = [Run(other.name, configs[:20], [other.evaluate(config) for config in configs[:20]]) for other in others]
    setting = RunSetting(benchmark.space, tuple(past), count, 0, configs)
    contestant = contestant_spec(f"command: {sys.executable} {program}", folder).create(setting)
    errors = []
    for _ in range(count):
        config = dict(contestant.ask())
        errors.append(task.evaluate(config))
        contestant.tell(config, errors[-1])
    contestant.close()  # type: ignore[attr-defined]  # OnCandidates has it
    return errors


def test_what_a_library_prints_is_no_answer_and_its_numpy_values_are(tmp_path: Path) -> None:
    (tmp_path / "printing.py").write_text(PRINTING)
    (tmp_path / "protocol.py").write_text((ADAPTERS / "protocol.py").read_text())
    assert len(told("printing.py", tmp_path, 3)) == 3


@pytest.mark.parametrize(
    ("program", "library"),
    [
        ("optuna_sampler.py TPESampler", "optuna"),
        ("smac3.py", "smac"),
        ("openbox_rgpe.py", "openbox"),
        ("openbox_rgpe.py 1", "openbox"),
        ("botorch_multitask.py 2", "botorch"),
        ("syne_tune_transfer.py copula", "syne_tune"),
        ("syne_tune_transfer.py box", "syne_tune"),
    ],
)
def test_an_adapter_tunes_a_task(program: str, library: str) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    errors = told(program, ADAPTERS, 12)
    assert len(errors) == 12
    assert min(errors) < max(errors)
