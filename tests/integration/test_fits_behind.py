"""Fits of past runs behind the suggestions, in real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
import numpy as np
from dataclasses import replace
import recollect
from recollect.transfer import source_fitting
from recollect.transfer.screening import Screening

source_fitting.MIN_PARALLEL_SECONDS = 0.0  # other processes fit, however little there is to do
rng = np.random.default_rng(0)
space = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
past = []
for task in range(40):
    configs = [{"a": float(a), "b": float(b)} for a, b in rng.random((6, 2))]
    past.append(recollect.Run(f"task {task}", configs, [config["a"] + 0.01 * task * config["b"] for config in configs]))
method = replace(recollect.method("rgpe-taf"), screening=Screening(12, first_seconds=1e-9))
optimizer = recollect.Optimizer(space, past, method)
for _ in range(int(sys.argv[1])):
    config = optimizer.ask()
    print(config["a"], config["b"])
    optimizer.tell(config, config["a"])
"""


def suggestions(folder: Path, count: int) -> list[str]:
    environment = os.environ | {"RECOLLECT_CACHE": str(folder), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=environment)
    assert done.stderr == ""  # the thread behind says nothing, even if the program ends while it is at work
    return done.stdout.splitlines()


def test_other_processes_fit_behind_and_the_program_may_end_at_any_time(tmp_path: Path) -> None:
    one = suggestions(tmp_path / "one", 1)
    three = suggestions(tmp_path / "three", 3)
    assert three[:1] == one
    assert suggestions(tmp_path / "three", 3) == three  # with fits from the cache
