"""Run the shorter measurements that need no data of their own, one after the other (``make bench``)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MEASUREMENTS = (
    ("speed/import_time.py",),
    ("speed/gp_fit.py",),
    ("speed/ranking_weights.py",),
    ("quality/acquisition_search.py",),
    ("speed/suggestion.py",),
    ("speed/suggestion_with_past_runs.py", "--parts", "finite", "xgboost", "--seeds", "1"),
    ("speed/memory_start.py", "--peer"),
    ("speed/experiment_overhead.py", "--tasks", "12"),
    ("quality/standard_functions.py", "--seeds", "5", "--jobs", "2"),
)


def main() -> None:
    for script, *arguments in MEASUREMENTS:
        print(f"\n== benchmarks/{' '.join((script, *arguments))}", flush=True)
        subprocess.run([sys.executable, str(HERE / script), *arguments], check=True)


if __name__ == "__main__":
    main()
