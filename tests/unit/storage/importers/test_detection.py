"""What read_runs recognises, what it refuses, and the examples of its documentation."""

from __future__ import annotations

import re
import shutil
import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest

from recollect.errors import InputError, RecollectWarning
from recollect.runs.run import Run
from recollect.storage.importers.detection import read_runs

ROOT = Path(__file__).parents[4]
DATA = ROOT / "tests" / "data" / "importers"
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "importing.md").read_text(), re.DOTALL)
TABLE = "C,kernel,value\n0.1,rbf,0.5\n1,poly,0.25\n10.5,rbf,0.125\n"


@pytest.mark.parametrize("source", [3, None, b"svm.csv", ["svm.csv"], {}, Run("t")])
def test_things_that_are_no_source_are_refused_with_what_is_understood(source: Any) -> None:
    with pytest.raises(InputError, match=r"expected an optuna\.Study, .* or 'wandb:' and entity/project; got "):
        read_runs(source)


@pytest.mark.parametrize("name", ["", " ", "none.csv", "no/such/file.db", "~/no-such-file.jsonl"])
def test_a_file_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"there is no such file; expected a \.csv, "):
        read_runs(name)


def test_files_and_folders_of_other_kinds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x,value\n1,2\n")
    with pytest.raises(InputError, match=r"notes\.txt: .*expected a \.csv, .* name its kind with kind="):
        read_runs(tmp_path / "notes.txt")
    assert read_runs(tmp_path / "notes.txt", kind="csv")[0].values == [2.0]
    with pytest.raises(InputError, match="a folder with neither MLflow's experiments nor a runhistory"):
        read_runs(tmp_path)
    with pytest.raises(
        InputError, match=r"kind must be one of csv, jsonl, json, smac, optuna, mlflow, wandb, got 'xlsx'"
    ):
        read_runs(tmp_path / "notes.txt", kind="xlsx")
    with pytest.raises(InputError, match="expected a file, but this is a folder"):
        read_runs(tmp_path, kind="csv")


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table songs (name text)")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"expected a database of Optuna or MLflow, got the tables songs"):
        read_runs(path)
    assert path.read_bytes() == before


def test_a_damaged_or_empty_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "bad.db"
    path.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with pytest.raises(InputError, match=r"bad\.db: the SQLite file cannot be read"):
        read_runs(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match=r"bad\.db: the file is empty"):
        read_runs(path)
    with pytest.raises(InputError, match=r"bad\.db: the file is empty"):
        read_runs(path, kind="optuna")
    assert path.read_bytes() == b""


def test_the_warning_points_at_the_line_that_asked(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,value,state\n1,,running\n2,1,ok\n")
    with pytest.warns(RecollectWarning) as told:
        read_runs(tmp_path / "t.csv")
    assert [warning.filename for warning in told] == [__file__]


def prepare(folder: Path) -> dict[str, Any]:
    """Put the files that the documentation speaks of into a folder; return the objects."""
    (folder / "svm.csv").write_text(TABLE)
    (folder / "trials.jsonl").write_text('{"C": 1, "value": 0.5}\n')
    (folder / "wandb.json").write_text('[{"config": {"C": 1}, "summary": {"val_loss": 0.5, "val_acc": 0.8}}]')
    (folder / "results.csv").write_text("run_id,dataset,C,accuracy\n1,iris,0.5,0.9\n2,wine,2,0.8\n")
    shutil.copytree(DATA / "smac-2.4", folder / "smac3_output" / "svm" / "0")
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(storage=f"sqlite:///{folder}/studies.db", study_name="iris")
    study.optimize(lambda trial: trial.suggest_float("C", 0, 1), n_trials=2)
    optuna.logging.set_verbosity(verbosity)
    return {"study": study, "frame": pd.read_csv(folder / "svm.csv")}


def track(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let MLflow keep one run in a folder."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    with warnings.catch_warnings(), monkeypatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        mlflow = pytest.importorskip("mlflow")
        client = mlflow.MlflowClient(tracking_uri=(folder / "mlruns").as_uri())
        run = client.create_run(client.create_experiment("svm")).info.run_id
        client.log_param(run, "C", 1)
        client.log_metric(run, "error", 0.5)
        client.set_terminated(run)


def test_the_examples_of_the_documentation_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = prepare(tmp_path)
    track(tmp_path, monkeypatch)
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        exec(compile(block, "docs/importing.md", "exec"), names)
    lines = [line.partition("#")[0].strip() for line in BLOCKS[0].splitlines() if line.startswith("read_runs")]
    counts = [[len(run) for run in eval(line, names)] for line in lines]
    assert counts == [[3], [1], [3], [2], [2], [2], [7], [1], [1]]
    maximized = eval(BLOCKS[2].strip().splitlines()[-1], names)
    assert [(run.task, run.direction, run.configs) for run in maximized] == [
        ("iris", "maximize", [{"C": 0.5}]),
        ("wine", "maximize", [{"C": 2.0}]),
    ]
