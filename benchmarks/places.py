"""How often each method is the best of a benchmark, or not significantly behind it.

    python benchmarks/places.py benchmarks/results/{grids,suite,forests}.csv.gz

A place is a benchmark after 10, 20 or 50 evaluations. Methods without suffix that have all runs on every benchmark are
compared with each other, by the test of all tables.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from recollect.bench.results import gather
from recollect.bench.study import make_study, short_of
from recollect.bench.tables import mark_cells

AFTER = (10, 20, 50)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    given = parser.parse_args()
    benchmarks = make_study(gather(given.results)).outcomes.values()
    complete = [
        {name for name, outcome in found.items() if "+" not in name and not short_of(outcome, found.values())}
        for found in benchmarks
    ]
    methods = sorted(set.intersection(*complete))
    best: Counter[str] = Counter()
    even: Counter[str] = Counter()
    for found in benchmarks:
        for after in AFTER:
            cells = mark_cells([found[name] for name in methods], after)
            best.update(name for name, cell in zip(methods, cells, strict=True) if cell.mark == "best")
            even.update(name for name, cell in zip(methods, cells, strict=True) if cell.mark)
    print(f"{len(benchmarks)} benchmarks, {len(AFTER) * len(benchmarks)} places, {len(methods)} methods")
    for name in sorted(methods, key=lambda name: (-even[name], -best[name])):
        print(f"{name:<12} best {best[name]:2}, best or not significantly behind {even[name]:2}")


if __name__ == "__main__":
    main()
