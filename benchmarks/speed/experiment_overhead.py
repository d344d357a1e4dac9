"""How much does `recollect bench run` add to the time that runs spend in `Optimizer.ask` and `tell`?

    OPENBLAS_NUM_THREADS=1 python benchmarks/speed/experiment_overhead.py [--tasks 35] [--jobs 2]

Runs the real command, including the start of all processes, on the embedded benchmark own-svm-grid with four methods
and one repetition, after a first run has produced the past runs. Compares its time on all cores together with the sum
of the seconds per suggestion that it recorded.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN = """format = 1
methods = [{methods}]
repetitions = 1

[past]
method = "gp"
evaluations = 50

[[benchmarks]]
name = "own-svm-grid"
tasks = {tasks}
"""
METHODS = ("rgpe-taf", "rgpe-mean", "tstr-ei", "gcp")


def run(folder: Path, methods: tuple[str, ...], given: argparse.Namespace) -> float:
    """Seconds by the clock of a plan with these methods."""
    plan = folder / "plan.toml"
    plan.write_text(PLAN.format(methods=", ".join(f'"{method}"' for method in methods), tasks=given.tasks))
    command = [sys.executable, "-m", "recollect", "bench", "run", str(plan)]
    begin = time.perf_counter()
    subprocess.run(
        [*command, "--jobs", str(given.jobs), "--out", str(folder / "out")], check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=35)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(folder, ("gp",), given)  # makes the past runs, which are runs of gp
        seconds = run(folder, METHODS, given)
        with (folder / "out" / "runs.csv").open() as file:
            rows = [row for row in csv.DictReader(file) if row["method"] in METHODS]
    inside = sum(float(row["seconds"]) * len(row["values"].split()) for row in rows)
    whole = seconds * given.jobs
    print(f"{len(rows)} runs in {seconds:.1f} s with {given.jobs} jobs: {whole:.1f} s on all cores")
    print(f"in ask() and tell(): {inside:.1f} s; the harness adds {100 * (whole / inside - 1):.1f} %")


if __name__ == "__main__":
    main()
