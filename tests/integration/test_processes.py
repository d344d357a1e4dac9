"""Worker processes: every item is answered, a dead or slow process costs its own item only, and none is left."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from recollect import processes
from recollect.errors import InputError, RecollectError
from recollect.processes import (
    ProcessDiedError,
    ProcessPool,
    ProcessStartError,
    TimeLimitError,
    is_worker,
    run_in_processes,
)


def results(function: Callable[[Any], Any], items: Any, **settings: Any) -> dict[Any, Any]:
    """Return what became of each item: its answer, or the exception."""
    finished = run_in_processes(function, items, **settings)
    return {item: future.exception() or future.result() for item, future in finished}


def started_processes() -> set[int]:
    """Return the processes that this one has started and that have not been reaped."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


linux_only = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")


@pytest.mark.parametrize("processes", [1, 3])
def test_every_item_is_answered_once(processes: int) -> None:
    assert results(math.factorial, range(7), processes=processes) == {n: math.factorial(n) for n in range(7)}


@linux_only
def test_an_item_that_exceeds_the_limit_is_stopped_and_the_others_are_answered() -> None:
    before, start = started_processes(), time.monotonic()
    slow = "__import__('time').sleep(300)"
    answers = results(eval, ["1 + 1", slow, "2 + 2"], processes=1, time_limit=1.0)
    assert (answers["1 + 1"], answers["2 + 2"]) == (2, 4)
    assert isinstance(answers[slow], TimeLimitError)
    assert time.monotonic() - start < 60
    assert started_processes() == before


def test_what_the_function_raises_is_raised_where_the_answer_is_read() -> None:
    answers = results(math.sqrt, [4.0, -1.0], processes=2)
    assert answers[4.0] == 2.0
    assert isinstance(answers[-1.0], ValueError)


def test_an_exception_that_cannot_be_rebuilt_arrives_as_text() -> None:
    class TwoPartsError(Exception):
        def __init__(self, first: str, second: str) -> None:
            super().__init__(first + second)

    def fail(_item: int) -> None:
        raise TwoPartsError("what ", "happened")

    (error,) = results(fail, [1], processes=2).values()
    assert isinstance(error, RuntimeError)
    assert "what happened" in str(error)


def test_a_process_that_dies_costs_its_own_item_only() -> None:
    def die(item: int) -> int:
        if item == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        if item == 3:
            os._exit(3)
        return item

    answers = results(die, range(8), processes=2)
    assert {item: answer for item, answer in answers.items() if item not in (2, 3)} == {
        n: n for n in (0, 1, 4, 5, 6, 7)
    }
    assert [answers[item].exit_code for item in (2, 3)] == [-signal.SIGKILL, 3]
    assert all(isinstance(answers[item], ProcessDiedError) for item in (2, 3))


@linux_only
def test_leaving_the_loop_ends_the_processes() -> None:
    before = started_processes()
    for _ in run_in_processes(time.sleep, [0.0, 300.0, 300.0], processes=2):
        break
    assert started_processes() == before


@linux_only
def test_closing_a_pool_while_its_workers_start_leaves_none() -> None:
    before = started_processes()
    pool = ProcessPool(math.factorial, 2)
    futures = [pool.submit(number) for number in range(4)]
    pool.close()
    assert started_processes() == before
    assert all(future.done() for future in futures)


@linux_only
def test_a_worker_that_died_while_idle_is_replaced() -> None:
    with ProcessPool(lambda _item: os.getpid(), 1) as pool:
        first = pool.submit(0).result()
        os.kill(first, signal.SIGKILL)
        os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)  # it has ended; the pool finds out by itself
        assert pool.submit(0).result() != first


def test_workers_know_that_they_are_and_use_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(_item: int) -> tuple[bool, str | None]:
        return is_worker(), os.environ.get("OMP_NUM_THREADS")

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert not is_worker()
    assert results(look, [0], processes=2) == {0: (True, "1")}
    with ProcessPool(look, 1, one_thread=False) as pool:
        assert pool.submit(0).result() == (True, None)


def test_a_function_of_a_script_without_a_main_guard_is_sent_by_value(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
from recollect.processes import run_in_processes

def double(number):
    return 2 * number

print(sorted(future.result() for _, future in run_in_processes(double, [1, 2, 3], processes=2)))
""")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["[2, 4, 6]", ""]


def script_output(folder: Path, code: str) -> str:
    (folder / "script.py").write_text(code)
    script = [sys.executable, "-P", str(folder / "script.py")]
    done = subprocess.run(script, capture_output=True, text=True, cwd=folder, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_nothing_in_the_working_folder_is_run(tmp_path: Path) -> None:
    for module in ("random", "numpy", "socket", "cloudpickle"):
        (tmp_path / f"{module}.py").write_text("raise SystemExit('a file of the working folder was run')")
    code = "from recollect.processes import run_in_processes\n"
    code += "print([future.result() for _, future in run_in_processes(abs, [-1], processes=2)])"
    assert script_output(tmp_path, code) == "[1]\n"


def test_a_worker_that_cannot_start_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.processes.WORKER", "raise SystemExit(3)")
    (error,) = results(abs, [1], processes=2).values()
    assert isinstance(error, ProcessStartError)
    assert "exit code 3" in str(error)


def test_a_worker_that_the_system_does_not_start_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (error,) = results(abs, [1], processes=2).values()
    assert isinstance(error, ProcessStartError)


def test_a_function_that_cannot_be_rebuilt_is_an_error_in_words(tmp_path: Path) -> None:
    module = types.ModuleType("only_here")
    exec("def function(item): return item", vars(module))
    sys.modules["only_here"] = module
    try:
        (error,) = results(module.function, [1], processes=2).values()
    finally:
        del sys.modules["only_here"]
    assert isinstance(error, RecollectError)
    assert "only_here" in str(error)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_functions_of_the_main_script_are_sent_by_value_from_processes_of_multiprocessing(
    tmp_path: Path, method: str
) -> None:
    code = f"""
import multiprocessing
from recollect import minimize

def error(config):
    return helper(config["x"])

def helper(x):
    return (x - 0.3) ** 2

def tune(queue):
    result = minimize(error, {{"x": (0.0, 1.0)}}, trials=3, method="random", workers=2, progress=False)
    queue.put([trial.ok for trial in result.run.trials])

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    queue = context.Queue()
    process = context.Process(target=tune, args=(queue,))
    process.start()
    print(queue.get(timeout=60))
    process.join()
"""
    assert script_output(tmp_path, code) == "[True, True, True]\n"


@linux_only
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT, signal.SIGTERM])
def test_workers_and_what_they_started_end_with_their_parent_and_say_nothing(number: signal.Signals) -> None:
    code = """
import os, subprocess, time
from recollect.processes import ProcessPool

def work(busy):
    child = subprocess.Popen(["sleep", "300"])
    print(os.getpid(), child.pid, flush=True)
    sum(range(10**12)) if busy else child.wait()  # busy: holds the global lock for hours

pool = ProcessPool(work, 3)
pool.submit(False), pool.submit(True)
time.sleep(300)
"""
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # shells ignore it in the background, and children inherit that
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", code], stdout=pipe, stderr=pipe, text=True) as parent:
        assert parent.stdout is not None
        pids = [pid for _ in range(2) for pid in parent.stdout.readline().split()]
        parent.send_signal(number)
        _, errors = parent.communicate(timeout=60)  # until all that share its standard error have ended
    assert errors == ""
    assert len(pids) == 4


def test_a_worker_that_does_not_connect_in_time_is_killed_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "START_SECONDS", 0.2)
    monkeypatch.setattr(processes, "WORKER", "import time; time.sleep(60)")
    with ProcessPool(abs, 1) as pool:
        with pytest.raises(ProcessStartError, match=r"within 0\.2 s"):
            pool.submit(-1).result()
        assert not pool._processes  # whose groups are killed at the end: another process may have the id by then
        assert not pool._guard._groups


@linux_only
def test_a_worker_whose_parent_is_killed_while_it_starts_says_nothing() -> None:
    code = """
import os, signal, threading
from recollect import processes
processes._accept = lambda listener, process: os.kill(os.getpid(), signal.SIGKILL)
processes.GroupGuard._tell = lambda *_: None  # it would kill the worker before it finds out
processes.ProcessPool(abs, 1).submit(1).result()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")


@linux_only
def test_a_watcher_that_starts_after_its_parent_was_killed_still_ends_the_processes(tmp_path: Path) -> None:
    slow = tmp_path / "slow-python"
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec "{sys.executable}" "$@"\n')
    slow.chmod(0o755)
    script = (
        "import os, signal, sys; from recollect._system import GroupGuard; sys.executable = sys.argv[1]; "
        "GroupGuard().start(['sleep', '300'], env=dict(os.environ), start_new_session=True); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    command = [sys.executable, "-c", script, str(slow)]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=60, check=False)  # until nobody holds the pipe
    assert done.returncode == -signal.SIGKILL


@linux_only
def test_a_watcher_that_was_killed_is_replaced() -> None:
    with ProcessPool(lambda _item: os.getpid(), 1) as pool:
        worker = pool.submit(0).result()
        assert pool._guard._watcher is not None
        for pid in (worker, pool._guard._watcher.pid):
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert pool.submit(0).result() != worker
        assert pool._guard._watcher is not None
        assert pool._guard._watcher.poll() is None


def test_no_item_is_no_work() -> None:
    assert results(math.factorial, [], processes=2) == {}


@pytest.mark.parametrize(("processes", "limit"), [(0, None), (0, 1.0), (1, 0.0), (1, math.nan)])
def test_senseless_settings_are_refused(processes: int, limit: float | None) -> None:
    with pytest.raises(InputError, match="expected"):
        results(math.factorial, [1], processes=processes, time_limit=limit)


def test_a_time_limit_may_be_longer_than_an_operating_system_waits_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert results(math.factorial, range(2), processes=1, time_limit=1e9) == {0: 1, 1: 1}
    monkeypatch.setattr(processes, "LONGEST_POLL", 0.01)
    assert results(time.sleep, [0.1], processes=1, time_limit=30.0) == {0.1: None}
    (outcome,) = results(time.sleep, [30], processes=1, time_limit=0.05).values()
    assert isinstance(outcome, TimeLimitError)
