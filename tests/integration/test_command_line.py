"""The command line, run as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import recollect

COMMAND = Path(sys.executable).parent / "recollect"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_help_names_every_command() -> None:
    done = run("--help")
    assert done.returncode == 0
    for command in ("demo", "methods"):
        assert command in done.stdout


def test_the_version_is_the_packages() -> None:
    assert run("--version").stdout.strip() == f"recollect {recollect.__version__}"


def test_all_methods_are_listed() -> None:
    done = run("methods")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(recollect.methods())
    assert [line.split()[0] for line in done.stdout.splitlines() if "(the default" in line] == ["task-prior"]


@pytest.mark.parametrize("arguments", [["nonsense"], ["demo", "--trials", "three"], ["demo", "--trials", "1"]])
def test_wrong_arguments_give_code_2_and_no_traceback(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_demo_tunes_and_compares_on_data_that_are_not_in_the_memory(warm_python: Path) -> None:
    pytest.importorskip("sklearn", reason="the demo trains scikit-learn models")
    smaller = "from recollect.cli import demo; demo.HOLD_OUTS, demo.REPETITIONS, demo.REPLAY_TASKS = 2, 2, 3"
    code = f"{smaller}; demo.available_cores = lambda: 1; from recollect.cli.main import main; main()"
    done = subprocess.run(
        [warm_python, "-c", code, "demo", "--trials", "12"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    said = " ".join(done.stdout.split())
    for words in (
        "35 runs of this learner",
        "diabetes",
        "with past runs (task-prior)",
        "plain Bayesian optimization (gp)",
        "random search (random)",
        "Past runs against plain Bayesian optimization:",
        "Past runs against random search:",
        "Past runs with the largest weights",
        "of the weight in the last suggestion",
        "Best configuration of repetition 1",
        "35 datasets, each in turn new",
        "Gradient boosting with 10 hyperparameters",
        "past runs better, worse than gp",
        "Where to go next",
    ):
        assert words in said
    assert re.search(r"after this many trials\W+5\W+10\W+12\W", said)
    assert max(map(len, done.stdout.splitlines())) <= 80
