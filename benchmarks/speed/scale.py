"""What do thousands of past runs and thousands of trials cost? All ratios are of one run, in processor time.

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/scale.py --parts long import start ask
    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/scale.py --parts throughput --postgres postgresql://me@host/name

    long         processor time of one trial of `minimize` with `random`, the median of 300 from 100 and from
                 ``--trials`` trials of one task on
    import       `recollect memory import` of ``--runs`` runs of 20 trials from JSON lines into SQLite
    start        from that memory to the first suggestion in a fresh process, with its peak of memory and the SQL
                 statements that it sends: with nothing cached, and with the index of runs and all fits cached; the
                 fastest of three
    ask          one `ask` at 20 observations with 100 past runs, and with ten times as many each up to ``--past``
    throughput   trials per second of a trivial objective with 1, 2, 4 and 8 workers, and the processor time, the
                 transactions and the SQL statements per trial of the process that hands them out

Past runs are synthetic and made in bulk: shifted bowls in four columns with noise. Where fits are said to be cached,
they are not computed, which would take hours, but one plausible fit stands for that of each past run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import event
from sqlalchemy.engine import Engine

from recollect import Optimizer, Run, compile_space, minimize, write_runs
from recollect.numerics.arrays import FloatArray
from recollect.optimizer.catalog import method
from recollect.optimizer.default_method import DEFAULT_METHOD
from recollect.optimizer.past_runs import align_past_runs, source_data
from recollect.surrogate.kernels import Hyperparameters
from recollect.transfer.fit_cache import FitCache
from recollect.transfer.source_fitting import _task

RANGES = {"lr": (1e-5, 1.0, "log"), "drop": (0.0, 0.9), "layers": (1, 6), "opt": ["adam", "sgd"]}
SPACE = compile_space(RANGES)
TRIALS = 20
STARTS = 3
MEASURED_TRIALS = 300  # from 100 trials on, and at the end


def made_runs(count: int) -> list[Run]:
    rng = np.random.default_rng(0)
    runs = []
    for number in range(count):
        codes, centre = rng.random((TRIALS, 4)), rng.normal(0.4, 0.1, 4)
        columns = (10.0 ** (5.0 * codes[:, 0] - 5.0), 0.9 * codes[:, 1], 1 + np.floor(6 * codes[:, 2]).astype(int))
        rows = zip(*(column.tolist() for column in columns), (codes[:, 3] < 0.5).tolist(), strict=True)
        configs = [{"lr": lr, "drop": drop, "layers": n, "opt": "adam" if a else "sgd"} for lr, drop, n, a in rows]
        values = np.square(codes - centre).sum(axis=1) + rng.normal(0.0, 0.01, TRIALS)
        runs.append(Run(f"task {number}", configs, values.tolist()))
    return runs


def plausible_fit() -> FloatArray:
    return Hyperparameters.default(SPACE.kernel_shape.d).log()


def cache_fits(runs: list[Run], folder: Path, name: str) -> None:
    """Put a plausible fit of every run into the cache."""
    os.environ["RECOLLECT_CACHE"] = str(folder)
    settings, shape = method(name).sources, SPACE.kernel_shape
    data = source_data(align_past_runs(runs, SPACE, "minimize", method(name)))
    FitCache.default().put({_task(run, shape, settings).key(): plausible_fit() for run in data})


class EverythingCached:
    """A cache that has a plausible fit of every run."""

    def get(self, keys: Iterable[bytes]) -> dict[bytes, FloatArray]:
        return {key: plausible_fit() for key in keys}

    def put(self, fits: Mapping[bytes, FloatArray]) -> None:
        assert not fits


def long_task(trials: int) -> None:
    """Print the processor time of a trial early and late in one task."""
    for name in ("no memory", "SQLite"):
        times: list[float] = []

        def objective(config: dict[str, Any], times: list[float] = times) -> float:
            times.append(time.process_time())
            return float(config["drop"])

        with tempfile.TemporaryDirectory() as folder:
            where = None if name == "no memory" else Path(folder) / "m.db"
            count = trials + MEASURED_TRIALS
            minimize(objective, SPACE, trials=count, memory=where, task="t", method="random", progress=False)
        early, late = (1e3 * np.median(np.diff(times[begin : begin + MEASURED_TRIALS])) for begin in (100, trials))
        print(f"{name}: {early:.2f} ms per trial at 100 trials, {late:.2f} ms at {trials}, ratio {late / early:.2f}")


def import_runs(folder: Path, count: int, name: str) -> None:
    runs = made_runs(count)
    write_runs([Run(run.task, trials=run.trials, space=SPACE) for run in runs], folder / "runs.jsonl")
    cache_fits(runs, folder / "cache", name)
    command = [sys.executable, "-m", "recollect", "memory", "import", folder / "m.db", folder / "runs.jsonl"]
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, "--problem", "p"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = (folder / "m.db").stat().st_size / 1e6
    print(f"import of {count} runs of {TRIALS} trials: {spent:.1f} s of processor time, ", end="")
    print(f"{time.perf_counter() - begin:.1f} s in all; {size:.0f} MB")


START = """
import ast, json, sqlite3, sys, time
statements, connect = [], sqlite3.connect
def connect_and_count(database, *arguments, **options):
    connection = connect(database, *arguments, **options)
    if sys.argv[1] in str(database):  # not a cache
        connection.set_trace_callback(statements.append)
    return connection
sqlite3.connect = sqlite3.dbapi2.connect = connect_and_count
import recollect
space = recollect.compile_space(ast.literal_eval(sys.argv[3]))
recollect.Optimizer, recollect.Memory
begin = time.process_time(), time.perf_counter()
with recollect.Memory(sys.argv[1]) as memory:
    past = memory.past(space, "p")
read = time.process_time()
optimizer = recollect.Optimizer(space, past, sys.argv[2])
optimizer.ask()
spent, wall = time.process_time() - begin[0], time.perf_counter() - begin[1]
with open("/proc/self/status") as file:  # resource.getrusage has the peak of the parent process, too
    (memory,) = [int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")]
print(json.dumps([spent, read - begin[0], wall, memory, len(past), len(statements)]))
"""


def start(folder: Path, name: str) -> None:
    for case in ("nothing cached", "fits and index cached"):
        results = []
        for _ in range(STARTS):
            cache = folder / ("none" if case == "nothing cached" else "cache")
            if case == "nothing cached":
                shutil.rmtree(cache, ignore_errors=True)
            else:
                started(folder, name, cache)  # writes the index
            results.append(started(folder, name, cache))
        spent, read, wall, memory, count, statements = min(results)
        print(f"{name}: start from {count} past runs, {case}: reading {read:.1f} s, first suggestion after ", end="")
        print(f"{spent:.1f} s of processor time ({wall:.1f} s in all), {memory:.0f} MB, {statements} SQL statements")


def started(folder: Path, name: str, cache: Path) -> list[float]:
    """Return processor time to the first suggestion, of reading, time, peak of memory, past runs, SQL statements."""
    command = [sys.executable, "-c", START, folder / "m.db", name, repr(RANGES)]
    environment = os.environ | {"RECOLLECT_CACHE": str(cache)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        sys.exit(f"the start failed:\n{done.stderr[-2000:]}")
    return list(json.loads(done.stdout.splitlines()[-1]))


def ask(most: int, name: str) -> None:
    first = None
    FitCache.default = EverythingCached  # type: ignore[assignment,method-assign]
    for count in (10**power for power in range(2, 7) if 10**power <= most):
        runs = made_runs(count)
        begin = time.process_time()
        optimizer = Optimizer(SPACE, runs, name, horizon=50)
        prepared = time.process_time() - begin
        times = []
        for _ in range(23):
            begin = time.process_time()
            config = optimizer.ask()
            times.append(time.process_time() - begin)
            optimizer.tell(config, float(np.square(SPACE.encode([config])[0][:3] - 0.4).sum()))
        spent = float(np.mean(times[20:]))
        first = first or spent
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name}: ask with {count} past runs: {1e3 * spent:.0f} ms at 20 to 22 observations, ", end="")
        print(
            f"{spent / first:.1f} times that with 100; all 23: {sum(times):.1f} s, the longest {max(times):.2f} s; ",
            end="",
        )
        print(f"preparation {prepared:.1f} s; {memory:.0f} MB", flush=True)
        del runs, optimizer


def throughput(addresses: list[str], trials: int) -> None:
    sent: Counter[str] = Counter()
    event.listen(Engine, "before_cursor_execute", lambda *_: sent.update(["statements"]))
    event.listen(Engine, "commit", lambda *_: sent.update(["transactions"]))
    for address in addresses:
        for workers in (1, 2, 4, 8):
            with tempfile.TemporaryDirectory() as folder:
                where, task = address or Path(folder) / "m.db", f"{workers} {time.time_ns()}"
                begin, before = time.perf_counter(), time.process_time()
                sent.clear()
                minimize(
                    lambda config: float(config["drop"]), SPACE, trials=trials, memory=where, problem="throughput",
                    task=task, method="random", workers=workers, progress=False,
                )  # fmt: skip
                rate, spent = trials / (time.perf_counter() - begin), time.process_time() - before
            print(f"{'PostgreSQL' if address else 'SQLite'}, {workers} workers: {rate:.0f} trials per second, ", end="")
            print(f"{1e3 * spent / trials:.1f} ms of this process, ", end="")
            print(f"{sent['transactions'] / trials:.1f} transactions and ", end="")
            print(f"{sent['statements'] / trials:.1f} SQL statements per trial", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("long", "import", "start", "ask", "throughput")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts[:4])
    parser.add_argument("--trials", type=int, default=5000, help="of the long task")
    parser.add_argument("--runs", type=int, default=10_000, help="to import and to start from")
    parser.add_argument("--past", type=int, default=10_000, help="most past runs of the part ask")
    parser.add_argument("--method", default=DEFAULT_METHOD, help="of the parts start and ask")
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database for the part throughput")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "long" in given.parts:
            long_task(given.trials)
        if "import" in given.parts or "start" in given.parts:
            import_runs(folder, given.runs, given.method)
        if "start" in given.parts:
            start(folder, given.method)
        if "ask" in given.parts:
            ask(given.past, given.method)
        if "throughput" in given.parts:
            throughput(["", given.postgres] if given.postgres else [""], 1200)


if __name__ == "__main__":
    main()
