"""Every file in examples/ runs as a user runs it, in a folder of its own, and prints what it promises."""

from __future__ import annotations

import os
import re
import subprocess
import uuid
from pathlib import Path

import pytest

import recollect

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.usefixtures("warm_path")
NUMBER = r"-?\d+\.\d+"


def run(folder: Path, *command: str | Path, trials: int | None = None) -> str:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
    environment |= {} if trials is None else {"TRIALS": str(trials)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(re.match(r"trial \d+: ", line) for line in done.stderr.splitlines()), done.stderr
    return done.stdout


def example(name: str, folder: Path, *arguments: str, trials: int | None = None) -> str:
    return run(folder, "warm-python", EXAMPLES / name, *arguments, trials=trials)


def rows(text: str, names: list[str]) -> dict[str, list[float]]:
    """Return the numbers behind each of these names at the start of a line."""
    found = {}
    for name in names:
        (line,) = re.findall(rf"^{re.escape(name)}\s+(.*)$", text, flags=re.MULTILINE)
        found[name] = [float(number) for number in re.findall(r"\d+\.\d+|\b\d+\b", line)]
    return found


def test_every_example_is_tested_and_listed() -> None:
    there = {path.name for path in EXAMPLES.iterdir() if path.name not in ("README.md", "ruff.toml", "__pycache__")}
    listed = set(re.findall(r"^\| \[([\w.]+)", (EXAMPLES / "README.md").read_text(), flags=re.MULTILINE))
    tested = set(re.findall(r'example\("([\w.]+)"', Path(__file__).read_text())) | {"shell_command"}
    assert there == listed
    assert there == tested


def test_links_of_the_list_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", (EXAMPLES / "README.md").read_text()):
        assert (EXAMPLES / target).exists()


def test_support_vector_machines_over_datasets(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    text = example("svc_over_datasets.py", tmp_path)
    found = rows(text, ["iris", "wine", "breast cancer", "digits 0 to 4", "digits 5 to 9"])
    assert [numbers[0] for numbers in found.values()] == [0, 1, 2, 3, 4]
    for _, *accuracies in (numbers[:5] for numbers in found.values()):
        assert accuracies == sorted(accuracies)
        assert accuracies[-1] > 0.9
    assert len(recollect.Memory(tmp_path / "svc.db").runs("Pipeline(StandardScaler, SVC): accuracy")) == 5


def test_gradient_boosting_over_datasets(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    text = example("xgboost_or_boosting.py", tmp_path)
    found = rows(text, ["iris", "wine", "breast cancer", "diabetes"])
    assert [numbers[0] for numbers in found.values()] == [0, 1, 2, 3]
    for _, *losses in found.values():
        assert losses == sorted(losses, reverse=True)
    memory = recollect.Memory(tmp_path / "boosting.db")
    for run in memory.runs(text.splitlines()[0]):
        assert len(run.succeeded) == 12
        assert found[run.task][-1] == pytest.approx(run.best.value, abs=1e-4)  # type: ignore[union-attr]


def test_a_shell_command(tmp_path: Path) -> None:
    text = run(tmp_path, "sh", EXAMPLES / "shell_command" / "run.sh", trials=4)
    (best,) = re.findall(r"^frequency 12: 4 trials, 0 failed.*\nbest value (\S+)", text, flags=re.MULTILINE)
    command = re.findall(r"^best command:\n  (.*)$", text, flags=re.MULTILINE)[-1]
    assert run(tmp_path, *command.split()).splitlines()[-1] == f"error: {float(best):.6f}"
    assert len(re.findall(r"^ridge +frequency \d+ +4 +0 ", text, flags=re.MULTILINE)) == 3


def test_an_optuna_database(tmp_path: Path) -> None:
    text = example("optuna_database.py", tmp_path, trials=12)
    assert "past runs: monday (12 trials), tuesday (12 trials), wednesday (12 trials)" in text
    first = {name: found for name, found, _ in re.findall(rf"^(.+?)\s+first ({NUMBER}), (best.*)$", text, flags=re.M)}
    assert first.keys() == {"recollect.minimize", "TransferSampler", "without past runs"}
    assert first["TransferSampler"] == first["recollect.minimize"]  # the same past, hence the same portfolio
    assert float(first["TransferSampler"]) < float(first["without past runs"])


def test_parallel_workers_on_postgresql(tmp_path: Path, postgres: str) -> None:
    import psycopg

    name = f"n{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    text = example("parallel_postgresql.py", tmp_path, postgres.rsplit("/", 1)[0] + f"/{name}", "2", trials=6)
    counts = [int(count) for count in re.findall(r"^worker \d evaluated (\d+) trials$", text, flags=re.MULTILINE)]
    assert len(counts) == 2
    assert sum(counts) == 6
    assert "6 trials in all, best " in text


def test_ask_and_tell(tmp_path: Path) -> None:
    text = example("ask_and_tell.py", tmp_path)
    (failed,) = re.findall(r"^24 trials, (\d+) failed$", text, flags=re.MULTILINE)
    assert int(failed) < 12
    assert re.search(rf"^best {NUMBER} with \{{.*'batch'", text, flags=re.MULTILINE)
    assert re.search(r"^last week +20 ", text, flags=re.MULTILINE)


def test_a_conditional_space(tmp_path: Path) -> None:
    text = example("conditional_space.py", tmp_path)
    for line in re.findall(rf"^{NUMBER}  (\{{.*\}})$", text, flags=re.MULTILINE):
        assert ("gamma" in line) == ("'radial'" in line)
        assert ("degree" in line) == ("'polynomial'" in line)
    assert "now: 15 trials, 0 failed" in text
    assert "before: In the 15 configurations kept, the default was filled in for 'kernel' (15)." in text


def test_an_import_from_csv(tmp_path: Path) -> None:
    text = example("import_from_csv.py", tmp_path)
    assert "adult: 5 trials, 0 failed, best 0.872" in text
    assert "bank: 5 trials, 1 failed, best 0.912" in text
    assert re.search(rf"^credit: first {NUMBER}, best {NUMBER}$", text, flags=re.MULTILINE)
    kept = recollect.Memory(tmp_path / "tuning.db").run("credit", "trees")
    assert (len(kept), kept.direction) == (10, "maximize")
