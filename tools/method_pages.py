"""Write the section "Measured" of the pages in ``docs/methods`` from the packed results of the great comparison.

python tools/method_pages.py
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from recollect.bench.analysis.aggregate import aggregate_runs, common_runs
from recollect.bench.experiment.experiment_run import CompletedRun
from recollect.bench.experiment.results import read_results
from recollect.optimizer.catalog import methods

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "methods"
RESULTS = ROOT / "benchmarks" / "results" / "great.csv.xz"
AFTER = (5, 10, 20, 50)
REFERENCE = "gp"
WRITTEN = ("task-prior", "egp")  # by hand, from other studies as well
HEADING = "\n## Measured\n"


def with_measurements(name: str, page: str) -> str:
    """Return the page of a method with a new section "Measured", unless that is written by hand."""
    if name in WRITTEN:
        return page
    rows = [f"| {benchmark} | {runs} | " + " | ".join(cells) + " |" for benchmark, runs, cells in _measurements(name)]
    return page.partition(HEADING)[0].rstrip() + "\n" + HEADING + "\n" + _section(name, rows)


def _section(name: str, rows: list[str]) -> str:
    beside = f"; in\nbrackets [{REFERENCE}]({REFERENCE}.md), which has no past runs, in the same runs"
    brackets = "" if name == REFERENCE else beside
    head = " | ".join(f"after {after}" for after in AFTER)
    return "\n".join([
        f"Regret (0 is the best value of a task, 100 the worst), mean over tasks and repetitions{brackets}.",
        "[Results](../results.md) has the protocol, all methods side by side, and significance tests.",
        "",
        f"| benchmark | runs | {head} |",
        "|---|---:|" + "---:|" * len(AFTER),
        *rows,
        "",
        "From the packed results in `benchmarks/results`, by `python tools/method_pages.py`.",
        "",
    ])  # fmt: skip


def _measurements(name: str) -> Iterator[tuple[str, int, list[str]]]:
    """Return the number of runs and the regrets of every benchmark, on the runs that the reference has, too."""
    own, reference = _runs()[name], _runs()[REFERENCE]
    shared = {run.key.benchmark for run in own}
    pair = own if name == REFERENCE else own + [run for run in reference if run.key.benchmark in shared]
    for benchmark, outcome in aggregate_runs(common_runs(pair)).benchmarks.items():
        regret, plain = (outcome.methods[method].adtm for method in (name, REFERENCE))
        beside = [f" ({100 * plain[n - 1]:.2f})" if name != REFERENCE else "" for n in AFTER]
        cells = [f"{100 * regret[n - 1]:.2f}{text}" for n, text in zip(AFTER, beside, strict=True)]
        yield benchmark, len(outcome.methods[name].curves), cells


@cache
def _runs() -> dict[str, list[CompletedRun]]:
    found: dict[str, list[CompletedRun]] = {}
    for run in read_results(RESULTS):
        found.setdefault(run.key.method, []).append(run)
    return found


if __name__ == "__main__":
    for name in methods():
        path = FOLDER / f"{name}.md"
        path.write_text(with_measurements(name, path.read_text()))
