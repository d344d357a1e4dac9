"""``recollect bench`` as a user runs it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import recollect
from recollect.cli.main import main

NOWHERE = "http://127.0.0.1:9"  # a proxy that does not answer: as good as no network
SHARED = Path(os.environ.get("RECOLLECT_DATA") or "no folder named")


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return the function that runs ``recollect bench`` with these arguments and a data folder of its own."""
    monkeypatch.setenv("RECOLLECT_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("RECOLLECT_DATA", "")
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, NOWHERE)

    def command(*arguments: str) -> Done:
        monkeypatch.setattr("sys.argv", ["recollect", "bench", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        output = capsys.readouterr()
        return Done(int(ended.value.code or 0), output.out, output.err)

    return command


def test_the_list_has_a_line_for_every_benchmark(run: Run) -> None:
    done = run("list")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line for line in done.stdout.splitlines()}
    assert set(recollect.bench.names()) <= set(lines)
    assert lines["svm"].split()[1:4] == ["38", "4", "2"]
    assert "to fetch" in lines["svm-grid"]
    assert "github.com/nicoschilling/ECML2016" in lines["svm-grid"]
    assert "offline" in lines["hartmann-6"]


def test_the_list_can_be_printed_as_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "xgboost").mkdir()
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert tuple(rows) == recollect.bench.names()
    assert rows["xgboost"] == {
        "name": "xgboost",
        "title": "XGBoost, forests",
        "tasks": 38,
        "hyperparameters": 10,
        "conditional": 4,
        "agreement": None,
        "licence": "as stated on the figshare page",
        "source": "https://figshare.com/articles/5882230",
        "derived": "",
        "offline": True,
        "note": "",
    }
    assert not rows["glmnet"]["offline"]
    assert rows["svm-grid"]["agreement"] == 0.37
    assert "rbv2_svm" in rows["svm4d_yahpo"]["derived"]


@pytest.mark.parametrize("name", ["adaboost-grid", "glmnet", "lcbench"])
def test_offline_is_one_sentence_and_code_2(run: Run, name: str, tmp_path: Path) -> None:
    done = run("fetch", name)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert "cannot be reached" in done.stderr
    assert "--from" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_nobody_publishes_is_not_fetched_but_copied(run: Run, tmp_path: Path) -> None:
    done = run("fetch", "svm4d_yahpo")
    assert done.returncode == 2
    assert "rbv2_svm" in done.stderr
    assert "--from" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_fetching_a_benchmark_without_data_reports_that_it_needs_none(run: Run) -> None:
    done = run("fetch", "branin")
    assert done.returncode == 0
    assert done.stdout == "branin needs no data: it comes with recollect\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fetch", "svmgrid"], "did you mean 'svm-grid'"),
        (["fetch", "svm-grid", "--from", "nowhere"], "nowhere: there is no such file or folder"),
        (["fetch", "svm-grid", "--from", __file__], "expected a folder or a complete tar archive"),
        (["show", "svm-grid"], "recollect bench fetch svm-grid"),
        (["show"], "expected the name of a benchmark, or --table PATH"),
        (["show", "branin", "--table", "t.csv"], "expected the name of a benchmark, or --table PATH"),
        (["show", "--table", "nowhere.csv"], "nowhere.csv: there is no such file"),
    ],
)
def test_errors_are_one_sentence_and_exit_code_2(run: Run, arguments: list[str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert message in done.stderr


def test_a_table_is_shown_as_it_was_understood(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text(
        "task,kernel,gamma,rounds,error\na,rbf,0.001,3,0.1\na,rbf,10,5,0.2\na,rbf,0.1,9,0.3\na,linear,,4,0.4\n"
    )
    lines = [line.strip() for line in run("show", "--table", str(table)).stdout.splitlines()]
    assert lines[0] == "mine: table mine.csv"
    assert "tasks: 1 (a)" in lines
    assert "configurations: 4, the same for all tasks" in lines
    assert "kernel: one of ['linear', 'rbf']" in lines
    assert "gamma: a number in [0.001, 10.0], log scale; only if kernel == 'rbf'" in lines
    assert "rounds: an integer in [3, 9]" in lines


def test_a_local_copy_is_fetched_and_then_found(run: Run, tmp_path: Path) -> None:
    source = SHARED / "schilling_adaboost_original.tar.gz"
    if not source.exists():
        pytest.skip(f"RECOLLECT_DATA names no folder with {source.name}")
    done = run("fetch", "adaboost-grid", "--from", str(source))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"adaboost-grid: {tmp_path / 'adaboost-grid'}\n"
    again = run("fetch", "adaboost-grid")  # there already: no network needed
    assert (again.returncode, again.stdout) == (0, done.stdout)
    assert "tasks: 50 (A9A," in run("show", "adaboost-grid").stdout
