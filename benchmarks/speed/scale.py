"""What do thousands of past runs and thousands of trials cost? All ratios are of one run, in processor time.

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/scale.py --parts long import start ask
    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/scale.py --parts throughput --postgres postgresql://me@host/name

    long         processor time of one trial of `minimize` with `random`, at 100 and at ``--trials`` trials of one task
    import       `recollect memory import` of ``--runs`` runs of 20 trials from JSON lines into SQLite
    start        from that memory to the first suggestion in a fresh process, fits cached, with its peak of memory
    ask          one `ask` at 20 observations with 100 past runs, and with ten times as many each up to ``--past``
    throughput   trials per second of a trivial objective with 1, 2, 4 and 8 workers

Past runs are synthetic and made in bulk: shifted bowls in four columns with noise. Their fits are not computed, which
would take hours, but one plausible fit is put into a cache of its own under the hash of each: what is measured
is a start whose fits are cached.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from recollect import Optimizer, Run, compile_space, minimize, write_runs
from recollect.optimizer.catalog import method
from recollect.optimizer.past_runs import align_past_runs, source_data
from recollect.surrogate.kernels import Hyperparameters
from recollect.transfer.fit_cache import FitCache
from recollect.transfer.source_fitting import _task

SPACE = compile_space({"lr": (1e-5, 1.0, "log"), "drop": (0.0, 0.9), "layers": (1, 6), "opt": ["adam", "sgd"]})
TRIALS, METHOD = 20, "rgpe-taf"


def made_runs(count: int) -> list[Run]:
    rng = np.random.default_rng(0)
    runs = []
    for number in range(count):
        codes, centre = rng.random((TRIALS, len(SPACE.names))), rng.normal(0.4, 0.1, len(SPACE.names))
        configs = SPACE.decode(np.where(SPACE.categorical, np.floor(codes * SPACE.sizes), codes))
        values = np.square(codes - centre).sum(axis=1) + rng.normal(0.0, 0.01, TRIALS)
        runs.append(Run(f"task {number}", configs, values.tolist(), space=SPACE))
    return runs


def cache_fits(runs: list[Run], folder: Path) -> None:
    """Put a plausible fit of every run into the cache."""
    os.environ["RECOLLECT_CACHE"] = str(folder)
    settings, shape = method(METHOD).sources, SPACE.kernel_shape
    data = source_data(align_past_runs(runs, SPACE, "minimize", method(METHOD)))
    theta = Hyperparameters.default(shape.d).log()
    FitCache.default().put({_task(run, shape, settings).key(): theta for run in data})


def long_task(trials: int) -> None:
    """Print the processor time of a trial early and late in one task."""
    for name in ("no memory", "SQLite"):
        times: list[float] = []

        def objective(config: dict[str, Any], times: list[float] = times) -> float:
            times.append(time.process_time())
            return float(config["drop"])

        with tempfile.TemporaryDirectory() as folder:
            where = None if name == "no memory" else Path(folder) / "m.db"
            minimize(objective, SPACE, trials=trials + 100, memory=where, task="t", method="random", progress=False)
        early, late = (1e3 * (times[start + 99] - times[start]) / 99 for start in (100, trials))
        print(f"{name}: {early:.2f} ms per trial at 100 trials, {late:.2f} ms at {trials}, ratio {late / early:.2f}")


def import_runs(folder: Path, count: int) -> None:
    runs = made_runs(count)
    write_runs(runs, folder / "runs.jsonl")
    cache_fits(runs, folder / "cache")
    command = [sys.executable, "-m", "recollect", "memory", "import", folder / "m.db", folder / "runs.jsonl"]
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, "--problem", "p"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = (folder / "m.db").stat().st_size / 1e6
    print(f"import of {count} runs of {TRIALS} trials: {spent:.1f} s of processor time, ", end="")
    print(f"{time.perf_counter() - begin:.1f} s in all; {size:.0f} MB")


START = """
import json, resource, sys, time
import recollect
recollect.Optimizer, recollect.Memory
begin = time.process_time(), time.perf_counter()
with recollect.Memory(sys.argv[1]) as memory:
    space = memory.run("task 0", "p").space
    past = memory.past(space, "p")
read = time.process_time()
optimizer = recollect.Optimizer(space, past, sys.argv[2])
optimizer.ask()
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([read - begin[0], time.process_time() - begin[0], time.perf_counter() - begin[1], memory, len(past)]))
"""


def start(folder: Path) -> None:
    command = [sys.executable, "-c", START, folder / "m.db", METHOD]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"the start failed:\n{done.stderr[-2000:]}")
    read, ready, wall, memory, count = json.loads(done.stdout.splitlines()[-1])
    print(f"start from {count} past runs, fits cached: reading {read:.1f} s, first suggestion after {ready:.1f} s of ")
    print(f"processor time ({wall:.1f} s in all), {memory:.0f} MB")


def ask(folder: Path, most: int) -> None:
    first = None
    for count in (10**power for power in range(2, 7) if 10**power <= most):
        runs = made_runs(count)
        cache_fits(runs, folder / f"cache {count}")
        optimizer = Optimizer(SPACE, runs, METHOD, horizon=50)
        for _ in range(20):
            config = optimizer.ask()
            optimizer.tell(config, float(np.square(SPACE.encode([config])[0][:3] - 0.4).sum()))
        begin = time.process_time()
        for _ in range(3):  # pending ones share a model, so a result is told before each
            config = optimizer.ask()
            optimizer.tell(config, 1.0)
        spent = (time.process_time() - begin) / 3
        first = first or spent
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"ask with {count} past runs: {1e3 * spent:.0f} ms, {spent / first:.1f} times that with 100; ", end="")
        print(f"{memory:.0f} MB", flush=True)


def throughput(addresses: list[str], trials: int) -> None:
    for address in addresses:
        for workers in (1, 2, 4, 8):
            with tempfile.TemporaryDirectory() as folder:
                where, task = address or Path(folder) / "m.db", f"{workers} {time.time_ns()}"
                begin = time.perf_counter()
                minimize(
                    lambda config: float(config["drop"]), SPACE, trials=trials, memory=where, problem="throughput",
                    task=task, method="random", workers=workers, progress=False,
                )  # fmt: skip
                rate = trials / (time.perf_counter() - begin)
            print(
                f"{'PostgreSQL' if address else 'SQLite'}, {workers} workers: {rate:.0f} trials per second", flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("long", "import", "start", "ask", "throughput")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts[:4])
    parser.add_argument("--trials", type=int, default=5000, help="of the long task")
    parser.add_argument("--runs", type=int, default=10_000, help="to import and to start from")
    parser.add_argument("--past", type=int, default=10_000, help="most past runs of the part ask")
    parser.add_argument("--postgres", help="URL of an empty PostgreSQL database for the part throughput")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "long" in given.parts:
            long_task(given.trials)
        if "import" in given.parts or "start" in given.parts:
            import_runs(folder, given.runs)
        if "start" in given.parts:
            start(folder)
        if "ask" in given.parts:
            ask(folder, given.past)
        if "throughput" in given.parts:
            throughput(["", given.postgres] if given.postgres else [""], 400)


if __name__ == "__main__":
    main()
