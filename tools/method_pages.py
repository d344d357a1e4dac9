"""One page for each method: its entry of ``docs/methods.md``, and what was measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from recollect.bench.analysis.aggregate import ExperimentResults, aggregate_runs
from recollect.bench.experiment.results import read_results
from recollect.optimizer.catalog import CATALOG

ROOT = Path(__file__).parents[1]
RESULTS = [ROOT / "benchmarks" / "results" / f"{name}.csv.gz" for name in ("grids", "suite", "forests")]
AFTER = (5, 10, 20, 50)
REFERENCE = "gp"
ENTRY = re.compile(r"^### (\S+)\n(.*?)(?=^##)", flags=re.MULTILINE | re.DOTALL)


def split_methods(text: str) -> tuple[str, dict[str, str]]:
    """Split the page on methods into an overview and one page for each method.

    Returns:
        The overview, in which each entry is one sentence with a link, and the pages by their addresses.
    """
    summaries = {entry.name: entry for entry in CATALOG}
    head, mark, entries = text.partition("## The entries\n")
    pages = {}

    def shorten(match: re.Match[str]) -> str:
        name, body = match.groups()
        if name not in summaries:
            return match[0]
        pages[f"methods/{name}.md"] = method_page(name, f"{summaries[name].summary} ({summaries[name].paper})", body)
        return f"### {name}\n\n{summaries[name].summary}: [{name}](methods/{name}.md).\n\n"

    return head + mark + ENTRY.sub(shorten, entries), pages


def method_page(name: str, summary: str, body: str) -> str:
    """Return the page of one method; links of the entry are those of a page in a folder below."""
    entry = re.sub(r"\]\(#", "](../methods.md#", re.sub(r"\]\((?![#:]|\w+:)", "](../", body))
    return f"# {name}\n\n{summary[0].upper()}{summary[1:]}.\n\n{entry}\n\n## Measured\n\n{measured(name)}\n"


def measured(name: str) -> str:
    """Return a table of the method's mean regrets beside those of plain Bayesian optimization."""
    rows = [f"| {benchmark} | " + " | ".join(cells) + " |" for benchmark, cells in _measurements(name)]
    if not rows:
        return "The packed results of this repository have no runs of this method."
    head = " | ".join(f"after {after}" for after in AFTER)
    return "\n".join([
        f"Regret (0 is the best value of a task, 100 the worst), mean over tasks and repetitions; in brackets "
        f"[{REFERENCE}]({REFERENCE}.md), which has no past runs. From the packed results in `benchmarks/results`; "
        "[results](../results.md) has all methods, tests and the commands.",
        "",
        f"| benchmark | {head} |",
        "|---|" + "---:|" * len(AFTER),
        *rows,
    ])  # fmt: skip


def _measurements(name: str) -> Iterator[tuple[str, list[str]]]:
    for results in map(_aggregate, RESULTS):
        for benchmark, outcome in results.benchmarks.items():
            if name in outcome.methods and REFERENCE in outcome.methods:
                curves = [outcome.methods[method].adtm for method in (name, REFERENCE)]
                yield benchmark, [f"{100 * curves[0][n - 1]:.2f} ({100 * curves[1][n - 1]:.2f})" for n in AFTER]


@cache
def _aggregate(path: Path) -> ExperimentResults:
    return aggregate_runs(read_results(path))
