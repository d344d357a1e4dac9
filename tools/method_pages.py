"""Write the section "Measured" of the pages in ``docs/methods`` from the packed results.

python tools/method_pages.py
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from recollect.bench.analysis.aggregate import ExperimentResults, aggregate_runs
from recollect.bench.experiment.results import read_results
from recollect.optimizer.catalog import methods

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "methods"
RESULTS = [ROOT / "benchmarks" / "results" / f"{name}.csv.gz" for name in ("grids", "suite", "forests")]
AFTER = (5, 10, 20, 50)
REFERENCE = "gp"
HEADING = "\n## Measured\n"
# About the runs that are packed now; to be changed with them.
VERSIONS = """The runs were made with recollect 0.3.0 and earlier, whose `gp` began with ten points of a Latin
hypercube, as `gp+paper` does."""


def with_measurements(name: str, page: str) -> str:
    """Return the page of a method with a new section "Measured"; a method without packed results keeps its own."""
    rows = [f"| {benchmark} | " + " | ".join(cells) + " |" for benchmark, cells in _measurements(name)]
    return page.partition(HEADING)[0].rstrip() + "\n" + HEADING + "\n" + _section(name, rows) if rows else page


def _section(name: str, rows: list[str]) -> str:
    brackets = "" if name == REFERENCE else f"; in brackets\n[{REFERENCE}]({REFERENCE}.md), which has no past runs"
    head = " | ".join(f"after {after}" for after in AFTER)
    return "\n".join([
        f"Regret (0 is the best value of a task, 100 the worst), mean over tasks and repetitions{brackets}.",
        "[Results](../results.md) has the protocol, all methods side by side, and significance tests.",
        "",
        f"| benchmark | {head} |",
        "|---|" + "---:|" * len(AFTER),
        *rows,
        "",
        "From the packed results in `benchmarks/results`, by `python tools/method_pages.py`.",
        VERSIONS,
        "",
    ])  # fmt: skip


def _measurements(name: str) -> Iterator[tuple[str, list[str]]]:
    for results in map(_aggregate, RESULTS):
        for benchmark, outcome in results.benchmarks.items():
            if name in outcome.methods and REFERENCE in outcome.methods:
                own, plain = (outcome.methods[method].adtm for method in (name, REFERENCE))
                beside = [f" ({100 * plain[n - 1]:.2f})" if name != REFERENCE else "" for n in AFTER]
                yield benchmark, [f"{100 * own[n - 1]:.2f}{text}" for n, text in zip(AFTER, beside, strict=True)]


@cache
def _aggregate(path: Path) -> ExperimentResults:
    return aggregate_runs(read_results(path))


if __name__ == "__main__":
    for name in methods():
        path = FOLDER / f"{name}.md"
        path.write_text(with_measurements(name, path.read_text()))
