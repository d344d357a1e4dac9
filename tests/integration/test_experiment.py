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

from recollect.bench.conduct import conduct
from recollect.bench.engines import Local
from recollect.bench.plan import load_plan
from recollect.bench.results import pack, read_runs

SMOKE = Path(__file__).parents[2] / "benchmarks" / "plans" / "smoke.toml"
PLAN = """
format = 1
methods = ["random", "gp", "gcp", "smfo"]
repetitions = 2
horizon = 12
[past]
evaluations = 12
[[benchmarks]]
name = "own-svm"
tasks = 4
"""
CELLS = 32


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "recollect", "bench", *options]


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def packed(folder: Path) -> bytes:
    pack(read_runs(folder / "runs.csv"), folder / "packed.csv.gz")
    return (folder / "packed.csv.gz").read_bytes()


def test_killed_again_and_again_the_results_are_those_of_one_go(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    out = tmp_path / "killed"
    running = command("run", str(plan), "--jobs", "2", "--out", str(out))
    for wanted in (3, 12, 20):  # lines of past runs and of results together
        process = subprocess.Popen(running, stderr=subprocess.DEVNULL, process_group=0)
        until = time.monotonic() + 60
        while lines(out / "past-own-svm.jsonl") + lines(out / "runs.csv") < wanted and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = subprocess.run(running, capture_output=True, text=True, check=True)
    found = re.search(r"(\d+) runs, (\d+) of them new", done.stdout)
    assert found is not None
    assert int(found[1]) == CELLS
    assert int(found[2]) < CELLS  # something was there already
    conduct(load_plan(plan), tmp_path / "whole", engine=Local())
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
    _, said = process.communicate(timeout=30)  # ends when the last process that may write to it has ended
    assert process.returncode == 128 + signal.SIGTERM
    assert f"recollect: interrupted; what was made is in {out}, and the same command goes on" in said
    assert "Traceback" not in said


def test_a_full_disk_stops_the_work_with_one_sentence_and_loses_nothing(tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.toml", tmp_path / "full"
    plan.write_text(PLAN.replace('"gp", "gcp", "smfo"', '"gp"'))
    limit = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limit += "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); from recollect.cli.main import main; main()"
    options = ["bench", "run", str(plan), "--out", str(out)]
    full = subprocess.run([sys.executable, "-c", limit, *options], capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert re.search(r"runs.csv: .*; what was written before is kept\n$", full.stderr)
    assert "Traceback" not in full.stderr
    before = (out / "runs.csv").read_text()
    assert before.endswith("\n")
    subprocess.run(command(*options[1:]), capture_output=True, check=True)
    assert (out / "runs.csv").read_text().startswith(before)
    assert len(read_runs(out / "runs.csv")) == 16


def test_the_smallest_plan_runs_from_the_command_line_with_the_same_tables_whatever_the_jobs(tmp_path: Path) -> None:
    files = []
    for jobs in ("1", "2"):
        out, cache = tmp_path / f"smoke-{jobs}", {**os.environ, "RECOLLECT_CACHE": str(tmp_path / f"cache-{jobs}")}
        running = command("run", str(SMOKE), "--jobs", jobs, "--out", str(out))
        subprocess.run(running, env=cache, capture_output=True, check=True)
        tables = subprocess.run(command("table", str(out)), capture_output=True, check=True)
        files.append((packed(out), tables.stdout))
    assert files[0] == files[1]
    runs = read_runs(out / "runs.csv")
    plan = load_plan(SMOKE)
    assert {run.key.method for run in runs} >= {"gp", "rgpe-taf", "rgpe-nei", "tstr-ei"}
    assert len(runs) == len(plan.methods) * sum(spec.tasks or 0 for spec in plan.benchmarks)
    for run in runs:
        assert run.regret.min() >= 0.0
        assert (run.weights is not None) == (run.key.method == "rgpe-nei")
        assert len(run.values) >= plan.horizon
        assert np.isfinite(run.values).all()
