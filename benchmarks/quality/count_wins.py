"""How often is each method the best of a benchmark, or not significantly behind the best?

    python benchmarks/quality/count_wins.py benchmarks/results/{grids,suite,forests}.csv.gz

A place is a benchmark after 10, 20 or 50 evaluations. Methods without suffix that have all runs on every benchmark are
compared with each other, by the test of all tables.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from recollect.bench.analysis.aggregate import BenchmarkResults, aggregate_runs
from recollect.bench.analysis.result_tables import compared_cells
from recollect.bench.experiment.results import load_results

AFTER = (10, 20, 50)


def complete_methods(benchmarks: Sequence[BenchmarkResults]) -> list[str]:
    """Return the methods without suffix that have all runs on every benchmark, sorted."""
    complete = [
        {name for name, result in found.methods.items() if not result.is_variant and not found.missing_text(result)}
        for found in benchmarks
    ]
    return sorted(set.intersection(*complete))


def count_places(benchmarks: Sequence[BenchmarkResults], methods: Sequence[str]) -> tuple[Counter[str], Counter[str]]:
    """Return at how many places each method is the best, and at how many the best or not significantly behind it."""
    best: Counter[str] = Counter()
    even: Counter[str] = Counter()
    for found in benchmarks:
        for after in AFTER:
            cells = compared_cells([found.methods[name] for name in methods], after)
            best.update(name for name, cell in zip(methods, cells, strict=True) if cell.mark == "best")
            even.update(name for name, cell in zip(methods, cells, strict=True) if cell.mark)
    return best, even


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    given = parser.parse_args()
    benchmarks = list(aggregate_runs(load_results(given.results)).benchmarks.values())
    methods = complete_methods(benchmarks)
    best, even = count_places(benchmarks, methods)
    print(f"{len(benchmarks)} benchmarks, {len(AFTER) * len(benchmarks)} places, {len(methods)} methods")
    for name in sorted(methods, key=lambda name: (-even[name], -best[name])):
        print(f"{name:<12} best {best[name]:2}, best or not significantly behind {even[name]:2}")


if __name__ == "__main__":
    main()
