"""MLflow's experiments as runs, from stores that MLflow itself wrote."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import InputError, MissingExtraError, RecollectWarning, StorageError
from recollect.runs.run import FAILED
from recollect.storage.importers.detection import read_runs

ALLOW = "MLFLOW_ALLOW_FILE_STORE"
HOUR = 1_700_000_000_000


@pytest.fixture(scope="module")
def mlflow() -> Any:
    """Return MLflow, which deprecates parts of SQLAlchemy and of itself while it is imported."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("mlflow")


class Log:
    """A tracking store that is being written."""

    def __init__(self, mlflow: Any, address: str) -> None:
        self.client = mlflow.MlflowClient(tracking_uri=address)

    def run(self, experiment: str, params: dict[str, Any], metrics: dict[str, float], **more: Any) -> str:
        status, parent, name = more.get("status", "FINISHED"), more.get("parent"), more.get("name")
        known = self.client.get_experiment_by_name(experiment)
        number = known.experiment_id if known else self.client.create_experiment(experiment)
        start = HOUR + 1000 * more.get("at", 0)
        tags = {} if parent is None else {"mlflow.parentRunId": parent}
        run = str(self.client.create_run(number, start_time=start, tags=tags, run_name=name).info.run_id)
        for key, value in params.items():
            self.client.log_param(run, key, value)
        for key, value in metrics.items():
            self.client.log_metric(run, key, value)
        if status != "RUNNING":
            self.client.set_terminated(run, status, end_time=start + 2500)
        return run


def fill(log: Log) -> None:
    log.run("svm", {"C": 1, "kernel": "rbf", "gamma": 0.5, "shrinking": True}, {"error": 0.25}, at=1)
    log.run("svm", {"C": 0.1, "kernel": "poly", "degree": 3, "shrinking": False}, {"error": 0.5}, at=2)
    log.run("svm", {"C": 10, "kernel": "rbf", "gamma": 1}, {}, at=3, status="FAILED")
    log.run("svm", {"C": 10, "kernel": "rbf", "gamma": 2}, {"error": 0.1}, at=4, status="KILLED")
    log.run("svm", {"C": 7, "kernel": "rbf"}, {"error": 0.1}, at=5, status="RUNNING")
    log.run("svm", {"C": 8, "kernel": "rbf"}, {}, at=6)
    log.run("svm", {"C": 9, "kernel": "rbf"}, {"error": math.nan}, at=7)
    best = log.run("forest", {"note": "search"}, {"error": 0.01}, at=1, name="iris")
    log.run("forest", {"trees": 10}, {"error": 0.3}, at=2, parent=best)
    log.run("forest", {"trees": 20}, {"error": 0.2}, at=3, parent=best)
    log.run("forest", {"trees": 30}, {"error": 0.9}, at=4)


def hollow(folder: Path) -> Path:
    """Return a folder that looks like a tracking store."""
    (folder / "0").mkdir()
    (folder / "0" / "meta.yaml").write_text("experiment_id: '0'\n")
    return folder


@pytest.fixture(scope="module", params=["folder", "database"])
def store(request: pytest.FixtureRequest, mlflow: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder, then a database, that MLflow wrote."""
    place = tmp_path_factory.mktemp("mlflow") / ("mlruns" if request.param == "folder" else "mlflow.db")
    address = place.as_uri() if request.param == "folder" else f"sqlite:///{place}"
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv(ALLOW, "true")
        fill(Log(mlflow, address))
    return place


def test_experiments_and_parents_are_tasks_and_their_runs_trials(store: Path) -> None:
    before = sorted(store.rglob("*"))
    with pytest.warns(RecollectWarning) as told:
        runs = {run.task: run for run in read_runs(store)}
    assert [str(warning.message).partition(": ")[2] for warning in told] == [
        "left out runs that are still running (1), runs without the metric 'error' (1)"
    ]
    assert set(runs) == {"svm", "forest/iris", "forest"}
    svm = runs["svm"]
    assert svm.configs == [
        {"C": 1.0, "kernel": "rbf", "gamma": 0.5, "shrinking": True},
        {"C": 0.1, "kernel": "poly", "degree": 3, "shrinking": False},
        {"C": 10.0, "kernel": "rbf", "gamma": 1.0},
        {"C": 10.0, "kernel": "rbf", "gamma": 2.0},
        {"C": 9.0, "kernel": "rbf"},
    ]
    assert svm.values == [0.25, 0.5, None, None, None]
    assert [type(svm.configs[n][name]) for n, name in ((0, "C"), (0, "shrinking"), (1, "degree"))] == [float, bool, int]
    assert [trial.seconds for trial in svm.trials] == [2.5] * 5
    assert svm.trials[2].state is FAILED
    assert svm.trials[2].notes[0].endswith(" was FAILED")
    assert svm.trials[3].notes[0].endswith(" was KILLED")
    assert runs["forest/iris"].configs == [{"trees": 10}, {"trees": 20}]
    assert runs["forest/iris"].values == [0.3, 0.2]
    assert runs["forest"].values == [0.9]
    assert sorted(store.rglob("*")) == before
    assert ALLOW not in os.environ


def test_one_experiment_can_be_read_and_maximized(store: Path) -> None:
    runs = read_runs(f"mlflow:{store if store.is_dir() else f'sqlite:///{store}'}", task="forest", direction="maximize")
    assert [(run.task, run.direction) for run in runs] == [("forest/iris", "maximize"), ("forest", "maximize")]
    with pytest.raises(InputError, match=r"there is no experiment 'trees', only .*'svm'"):
        read_runs(store, task="trees")


def test_the_metric_must_be_one_that_is_there(store: Path) -> None:
    assert read_runs(store, task="forest", value="error")[0].values == [0.3, 0.2]
    with pytest.raises(InputError, match=r"there is no metric 'loss'; the metrics are: error"):
        read_runs(store, task="forest", value="loss")
    with pytest.raises(InputError, match=r"columns has no meaning here"):
        read_runs(store, columns={"C": "ignore"})


@pytest.fixture
def folder(mlflow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Log]]:
    """Yield a folder and the log that writes it."""
    with monkeypatch.context() as patch:
        patch.setenv(ALLOW, "true")
        yield tmp_path / "mlruns", Log(mlflow, (tmp_path / "mlruns").as_uri())


def test_several_metrics_are_listed_when_none_is_named(folder: tuple[Path, Log]) -> None:
    path, log = folder
    log.run("svm", {"C": 1}, {"error": 0.25, "auc": 0.75})
    log.run("svm", {"C": 2}, {"error": 0.5}, at=1)
    with pytest.raises(InputError, match=r"one of: auc, error"):
        read_runs(path)
    with pytest.warns(RecollectWarning, match=r"runs without the metric 'auc' \(1\)"):
        assert read_runs(path, value="auc")[0].values == [0.75]
    assert read_runs(path, value="error")[0].values == [0.25, 0.5]


def test_the_last_logged_value_of_a_metric_counts(folder: tuple[Path, Log]) -> None:
    path, log = folder
    run = log.run("svm", {"C": 1}, {"error": 0.9})
    log.client.log_metric(run, "error", 0.4, timestamp=HOUR * 2, step=7)
    assert read_runs(path)[0].values == [0.4]


def test_more_runs_than_fit_on_a_page_are_all_read(folder: tuple[Path, Log], monkeypatch: pytest.MonkeyPatch) -> None:
    path, log = folder
    for number in range(7):
        log.run("svm", {"C": number}, {"error": number / 10}, at=number)
        log.run(f"other {number}", {"C": number}, {"error": 1.0})
    monkeypatch.setattr("recollect.storage.importers.mlflow.PAGE_SIZE", 3)
    runs = read_runs(path)
    assert len(runs) == 8
    (svm,) = [run for run in runs if run.task == "svm"]
    assert svm.configs == [{"C": number} for number in range(7)]


def test_children_of_a_parent_that_was_deleted_stay_together(folder: tuple[Path, Log]) -> None:
    path, log = folder
    parent = log.run("svm", {}, {}, name="gone")
    log.run("svm", {"C": 1}, {"error": 0.5}, parent=parent)
    log.client.delete_run(parent)
    assert [run.task for run in read_runs(path)] == [f"svm/{parent}"]


def test_a_store_without_runs_is_refused(folder: tuple[Path, Log]) -> None:
    path, log = folder
    log.client.create_experiment("svm")
    with pytest.raises(InputError, match=r"expected runs, there are none in .*'svm'"):
        read_runs(path)


def test_what_the_user_said_about_folders_is_kept(mlflow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW, "false")
    with pytest.raises(StorageError, match=r"MLflow at .*maintenance mode"):
        read_runs(hollow(tmp_path))
    assert os.environ[ALLOW] == "false"


def test_a_server_that_does_not_answer_is_an_error_that_names_it(mlflow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(StorageError, match=r"MLflow at http://me:\*\*\*@127\.0\.0\.1:9: "):
        read_runs("mlflow:http://me:secret@127.0.0.1:9", task="svm")


def test_without_mlflow_the_command_that_installs_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'recollect\[mlflow\]'"):
        read_runs(hollow(tmp_path))


def _run_folder(path: Path) -> Path:
    return next(path.glob("*/*/meta.yaml")).parent


def _rewrite(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "an unknown status": lambda run: _rewrite(run / "meta.yaml", "status: 3", "status: 99"),
    "a tag that would run code": lambda run: (run / "meta.yaml").write_text("x: !!python/object/apply:os.abort []\n"),
    "yaml that is none": lambda run: (run / "meta.yaml").write_text("{[:"),
    "an empty meta.yaml": lambda run: (run / "meta.yaml").write_text(""),
    "a start that is text": lambda run: _rewrite(run / "meta.yaml", "start_time: ", "start_time: x"),
    "a huge start": lambda run: _rewrite(run / "meta.yaml", "start_time: ", "start_time: " + "9" * 400),
    "an infinite end": lambda run: _rewrite(run / "meta.yaml", "end_time: ", "end_time: .inf # "),
    "a metric that is text": lambda run: (run / "metrics" / "error").write_text("x y z\n"),
    "a parameter that is not UTF-8": lambda run: (run / "params" / "C").write_bytes(b"\xed\xa0\x80"),
    "a pipe": lambda run: os.mkfifo(run / "params" / "pipe"),
    "a pipe as meta.yaml": lambda run: ((run / "meta.yaml").unlink(), os.mkfifo(run / "meta.yaml")),
    "a link that leaves the folder": lambda run: (run / "params" / "host").symlink_to("/etc/hostname"),
    "a link to a folder elsewhere": lambda run: (run.parent / ("0" * 32)).symlink_to(run.parents[2]),
    "a link to itself": lambda run: (run / "params" / "loop").symlink_to(run / "params" / "loop"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_refused_and_never_left_or_waited_for(folder: tuple[Path, Log], damage: str) -> None:
    path, log = folder
    log.run("svm", {"C": 1}, {"error": 0.25})
    DAMAGE[damage](_run_folder(path))
    with pytest.raises((InputError, StorageError), match="MLflow"):
        read_runs(path)


def test_links_within_the_folder_are_followed_and_artifacts_are_not_read(folder: tuple[Path, Log]) -> None:
    path, log = folder
    log.run("svm", {"C": 1}, {"error": 0.25})
    run = _run_folder(path)
    (run / "params" / "D").symlink_to(run / "params" / "C")
    (run / "artifacts" / "host").symlink_to("/etc/hostname")
    assert read_runs(path)[0].configs == [{"C": 1, "D": 1}]
