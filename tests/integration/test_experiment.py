"""The command that runs a plan, as a process: killed without warning, out of disk, and to the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from recollect.bench.experiment import executors
from recollect.bench.experiment.append_file import open_lines
from recollect.bench.experiment.executors import LocalExecutor, run_with_retries
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey, RunSpec
from recollect.bench.experiment.plan import BenchmarkSpec, Plan, SourceSettings, load_plan
from recollect.bench.experiment.results import pack_results, read_results
from recollect.bench.experiment.runner import run_experiment
from recollect.cli.main import app

SMOKE = Path(__file__).parents[2] / "benchmarks" / "plans" / "smoke.toml"
PLAN = """
format = 1
methods = ["random", "gp", "gcp", "smfo"]
repetitions = 2
horizon = 11
[past]
evaluations = 11
[[benchmarks]]
name = "own-svm"
tasks = 3
"""
RUNS = 24


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "recollect", "bench", *options]


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def packed(folder: Path) -> bytes:
    pack_results(read_results(folder / "runs.csv"), folder / "packed.csv.gz")
    return (folder / "packed.csv.gz").read_bytes()


def test_killed_again_and_again_the_results_are_those_of_one_go(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    out = tmp_path / "killed"
    running = command("run", str(plan), "--jobs", "2", "--out", str(out))
    for count in (3, 14):  # lines of past runs and of results together
        process = subprocess.Popen(running, stderr=subprocess.DEVNULL, process_group=0)
        until = time.monotonic() + 60
        while lines(out / "past-own-svm.jsonl") + lines(out / "runs.csv") < count and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = subprocess.run(running, capture_output=True, text=True, check=True)
    found = re.search(r"(\d+) runs, (\d+) of them new", done.stdout)
    assert found is not None
    assert int(found[1]) == RUNS
    assert int(found[2]) < RUNS  # something was there already
    run_experiment(load_plan(plan), tmp_path / "whole", executor=LocalExecutor())
    assert packed(out) == packed(tmp_path / "whole")


def test_a_polite_kill_of_the_command_alone_ends_all_its_processes_with_a_sentence(tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(PLAN.replace('"smfo"', '"smfo", "rgpe-nei"').replace("repetitions = 2", "repetitions = 50"))
    running = command("run", str(plan), "--jobs", "2", "--out", str(out))
    process = subprocess.Popen(running, stderr=subprocess.PIPE, text=True, process_group=0)
    until = time.monotonic() + 60
    while lines(out / "past-own-svm.jsonl") < 3:
        assert time.monotonic() < until
        time.sleep(0.05)
    process.terminate()
    _, message = process.communicate(timeout=30)  # ends when the last process that may write to it has ended
    assert process.returncode == 128 + signal.SIGTERM
    assert f"completed runs are in {out}" in message
    assert "Traceback" not in message


def test_a_full_disk_stops_the_work_with_one_sentence_and_loses_nothing(tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "full"
    plan.write_text(PLAN.replace('"gp", "gcp", "smfo"', '"gp"'))
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)); from recollect.cli.main import main; main()"
    options = ["bench", "run", str(plan), "--out", str(out)]
    full = subprocess.run([sys.executable, "-c", limit, *options], capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert re.search(r"runs.csv: .*; what was written before is kept\n$", full.stderr)
    assert "Traceback" not in full.stderr
    before = (out / "runs.csv").read_text()
    assert before.endswith("\n")
    subprocess.run(command(*options[1:]), capture_output=True, check=True)
    assert (out / "runs.csv").read_text().startswith(before)
    assert len(read_results(out / "runs.csv")) == 12


def test_the_smallest_plan_runs_from_the_command_line(tmp_path: Path) -> None:
    out, cache = tmp_path / "smoke", os.environ | {"RECOLLECT_CACHE": str(tmp_path / "cache")}
    subprocess.run(command("run", str(SMOKE), "--out", str(out)), env=cache, capture_output=True, check=True)
    runs = read_results(out / "runs.csv")
    plan = load_plan(SMOKE)
    assert {run.key.method for run in runs} >= {"gp", "rgpe-taf", "rgpe-nei", "tstr-ei"}
    assert len(runs) == len(plan.methods) * sum(spec.tasks or 0 for spec in plan.benchmarks)
    for run in runs:
        assert run.regret.min() >= 0.0
        assert (run.weights is not None) == (run.key.method == "rgpe-nei")
        assert len(run.values) >= plan.horizon
        assert np.isfinite(run.values).all()


def test_the_number_of_processes_changes_neither_results_nor_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = ("random", "gp", "smfo", "tstr-ei", "rgpe-nei", "rgpe-taf")
    spec = BenchmarkSpec("forrester", tasks=3)
    plan = Plan(methods, (spec,), SourceSettings("gp", 11), horizon=11, weights=("rgpe-nei",))
    tables = []
    for processes in (1, 2):
        monkeypatch.setenv("RECOLLECT_CACHE", str(tmp_path / f"cache-{processes}"))
        out = tmp_path / str(processes)
        run_experiment(plan, out, executor=LocalExecutor(processes))
        tables.append(CliRunner().invoke(app, ["bench", "table", str(out)]))
    assert packed(tmp_path / "1") == packed(tmp_path / "2")
    assert tables[0].exit_code == 0
    assert tables[0].output == tables[1].output
    assert "rgpe-taf" in tables[0].output


def test_only_the_run_that_kills_its_process_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def deadly(spec: RunSpec) -> CompletedRun:
        if spec.seed == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return CompletedRun(spec.key, spec.seed, 0.0, 1.0, np.ones(1), None, 0.1, "0")

    monkeypatch.setattr(executors, "try_run", deadly)
    specs = [RunSpec(RunKey("b", "m", str(number), 0), BenchmarkSpec("forrester"), number, 5, 5) for number in range(8)]
    completed: list[int] = []
    failed = run_with_retries(
        specs,
        LocalExecutor(2),
        on_completed=lambda run: completed.append(run.seed),
        progress=lambda _done, _total: None,
    )
    assert sorted(completed) == [0, 2, 3, 4, 5, 6, 7]
    assert [failure.key.task for failure in failed] == ["1"]


def test_without_room_for_a_whole_line_the_file_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "work.csv"
    open_lines(path, "head\n")
    code = (
        "import sys, resource, signal; from pathlib import Path\n"
        "from recollect.bench.experiment.append_file import append_lines\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))\n"
        "path = Path(sys.argv[1]); append_lines(path, 'fits\\n')\n"
        "try: append_lines(path, 'a line that is too long\\n')\n"
        "except OSError as error: print(type(error).__name__, 'what was written before is kept' in str(error))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "StorageError True\n"
    assert path.read_text() == "head\nfits\n"
