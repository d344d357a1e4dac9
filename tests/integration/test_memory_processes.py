"""Reading and writing runs where it takes processes of their own, or time: limits, shells, locks."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from recollect import Memory, Run, write_runs
from recollect.errors import StorageError


def test_reading_tables_loads_no_heavy_library(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("C,value\n0.5,0.25\n2,0.5\n")
    code = (
        "import sys; from recollect import read_runs, write_runs\n"
        "runs = read_runs(sys.argv[1]); write_runs(runs, sys.argv[1] + '.jsonl'); read_runs(sys.argv[1] + '.jsonl')\n"
        "print({name.split('.')[0] for name in sys.modules} & {'pandas', 'optuna', 'mlflow', 'sqlalchemy', 'scipy'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "t.csv")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    code = (
        "import sys, resource, signal; from recollect import Run, write_runs\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))\n"
        "try: write_runs([Run('t', [{'x': 1}] * 99, [1.0] * 99)], sys.argv[1])\n"
        "except OSError as error: print(type(error).__name__, 'File too large' in str(error))"
    )
    path = tmp_path / "t.jsonl"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "StorageError True\n"
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_another_process_holds_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    holder = sqlite3.connect(tmp_path / "m.db", check_same_thread=False)
    holder.execute("begin exclusive")
    threading.Timer(0.5, holder.rollback).start()
    start = time.monotonic()
    memory.add(Run("one", [{"C": 0.1}], [1.0]), "svm")
    assert time.monotonic() - start > 0.3
    assert len(memory.runs()) == 1
    holder.close()


def test_a_killed_import_leaves_whole_runs_and_is_continued(tmp_path: Path) -> None:
    """The import is killed at several moments; what it has stored is whole, and the next one stores the rest."""
    runs = [
        Run(f"t{k}", [{"C": 0.5 + i, "k": k} for i in range(20)], [float(i) for i in range(20)]) for k in range(600)
    ]
    write_runs(runs, tmp_path / "runs.jsonl")
    command = [sys.executable, "-m", "recollect", "memory", "import", "m.db", "runs.jsonl", "--skip-existing"]
    counts = []
    for number in range(3):
        process = subprocess.Popen(
            [*command, "--problem", "p"], cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        deadline = time.monotonic() + 60
        while number < 2 and process.poll() is None and time.monotonic() < deadline:
            if (tmp_path / "m.db-journal").exists() and stored_count(tmp_path) > (counts or [-1])[-1]:
                process.kill()  # in the middle of a transaction
            time.sleep(0.002)
        process.communicate(timeout=60)
        counts.append(stored_count(tmp_path))
    assert counts[0] <= counts[1] <= counts[2] == 600
    memory = Memory(tmp_path / "m.db")
    assert memory.check() == []
    assert {len(run) for run in memory} == {20}
    assert [run.configs for run in memory.runs("p")] == [run.configs for run in runs]


def stored_count(folder: Path) -> int:
    """Return the number of runs in a memory, 0 while it is being created."""
    try:
        return len(Memory(folder / "m.db"))
    except StorageError:
        return 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_completion_can_be_installed_and_works_in_bash(tmp_path: Path) -> None:
    folder = str(Path(sys.executable).parent)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": folder + os.pathsep + os.environ["PATH"]}
    shown = subprocess.run([f"{folder}/recollect", "--help"], check=True, capture_output=True, text=True)
    assert "--install-completion" in shown.stdout
    install = ["bash", "-c", "recollect --install-completion; exit $?"]  # for the shell that it is started from
    subprocess.run(install, env=environment, check=True, capture_output=True)
    script = """source ~/.bashrc; COMP_WORDS=(recollect memory e); COMP_CWORD=2; _recollect_completion recollect
        echo "${COMPREPLY[@]}"; complete -p recollect"""
    done = subprocess.run(["bash", "-c", script], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["export", "complete -o default -F _recollect_completion recollect"]
