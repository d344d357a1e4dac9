"""The neural methods without their extra: one sentence, before anything is evaluated."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CODE = """
import sys
sys.modules["jax"] = None  # as if it were not installed
import recollect
past = [recollect.Run("a", [{"x": 0.1}, {"x": 0.9}], [1.0, 2.0])]
recollect.Optimizer({"x": (0.0, 1.0)}, (), sys.argv[1]).ask()  # without past runs no network is needed
try:
    recollect.Optimizer({"x": (0.0, 1.0)}, past, sys.argv[1])
except recollect.MissingExtraError as error:
    print(error)
    assert isinstance(error, ImportError)
"""


@pytest.mark.parametrize("method", ["ablr", "ablr+copula", "gcp-prior"])
def test_without_jax_the_neural_methods_say_what_to_install(method: str, warm_python: Path) -> None:
    run = subprocess.run([warm_python, "-c", CODE, method], capture_output=True, text=True, check=False)
    name = method.partition("+")[0]
    assert run.stdout == f"method {name} needs jax, which is not installed: pip install 'recollect[neural]'\n"
    assert run.stderr == ""
