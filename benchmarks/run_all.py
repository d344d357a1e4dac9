"""Run every measurement that needs no data of its own, one after the other: what ``make bench`` does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MEASUREMENTS = (
    ("imports.py",),
    ("gp_fit.py",),
    ("weights.py",),
    ("acquisition.py",),
    ("ask.py",),
    ("past_runs.py", "--parts", "finite", "xgboost", "--seeds", "1"),
    ("memory.py", "--peer"),
    ("harness.py", "--tasks", "12"),
    ("functions.py", "--seeds", "5", "--jobs", "2"),
)


def main() -> None:
    for script, *arguments in MEASUREMENTS:
        print(f"\n== benchmarks/{' '.join((script, *arguments))}", flush=True)
        subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)


if __name__ == "__main__":
    main()
