"""The pages of the API reference: one entry for every public name, generated from the packages' ``__all__``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

PUBLIC_MODULES = (
    *("recollect", "recollect.optuna", "recollect.sklearn", "recollect.trackers", "recollect.bench"),
    "recollect.transfer",
)
NOT_AN_OBJECT = {"recollect.__version__", "recollect.bench", "recollect.transfer"}


@dataclass(frozen=True)
class ApiPage:
    """A page of the reference.

    Attributes:
        title: Its heading.
        introduction: What the names on it are for, as Markdown.
        names: The public names on it, in the order of the page; a prefix that ends with a dot stands for all that
            begin with it.
    """

    title: str
    introduction: str
    names: tuple[str, ...]


PAGES: Mapping[str, ApiPage] = {
    "api/tuning.md": ApiPage(
        "Tune a function",
        "[minimize][recollect.minimize] and [maximize][recollect.maximize] evaluate an objective, store its trials in "
        "a [memory](runs.md) and return a [Result][recollect.Result]. The tutorial: "
        "[Tune a function](../tutorials/tune-a-function.md).",
        ("recollect.minimize", "recollect.maximize", "recollect.Result"),
    ),
    "api/ask-and-tell.md": ApiPage(
        "Ask and tell",
        "For loops of your own: an [Optimizer][recollect.Optimizer] suggests configurations and learns from results.",
        ("recollect.Optimizer", "recollect.Explanation", "recollect.Influence"),
    ),
    "api/runs.md": ApiPage(
        "Runs and memories",
        "What has been tried, and where it is stored. The guides: [Memory](../memory.md) and "
        "[Past runs from elsewhere](../importing.md).",
        (
            *("recollect.Memory", "recollect.Run", "recollect.Trial", "recollect.State", "recollect.FAILED"),
            *("recollect.read_runs", "recollect.write_runs"),
        ),
    ),
    "api/spaces-and-methods.md": ApiPage(
        "Spaces and methods",
        "What can be tried, and how the next trial is chosen. The guide: [Methods](../methods.md).",
        ("recollect.Space", "recollect.compile_space", "recollect.methods", "recollect.method", "recollect.Method"),
    ),
    "api/optuna-and-scikit-learn.md": ApiPage(
        "Optuna and scikit-learn",
        "recollect inside other libraries. The guides: [Optuna](../optuna.md) and [scikit-learn](../scikit-learn.md).",
        ("recollect.optuna.", "recollect.sklearn."),
    ),
    "api/trackers.md": ApiPage(
        "Trackers",
        "Callbacks that report every trial to MLflow or Weights & Biases. The guide: [Callbacks](../callbacks.md).",
        ("recollect.trackers.",),
    ),
    "api/benchmarks-and-weights.md": ApiPage(
        "Benchmarks and weights",
        "For research: benchmarks that can be tuned in milliseconds, and the weights of past runs by themselves. The "
        "guides: [Benchmarks](../benchmarks.md) and [Methods](../methods.md#weights).",
        ("recollect.bench.", "recollect.transfer."),
    ),
    "api/errors-and-more.md": ApiPage(
        "Errors and further names",
        "Everything that recollect raises on purpose is a [RecollectError][recollect.RecollectError].",
        ("recollect.RecollectError", "recollect.RecollectWarning", "recollect."),
    ),
}


def public_names() -> list[str]:
    """Return the public names of all public modules, with their modules."""
    names = [f"{module}.{name}" for module in PUBLIC_MODULES for name in importlib.import_module(module).__all__]
    return [name for name in names if name not in NOT_AN_OBJECT]


def names_by_page() -> dict[str, list[str]]:
    """Assign every public name to the first page that wants it."""
    remaining, pages = public_names(), dict[str, list[str]]()
    for uri, page in PAGES.items():
        chosen: list[str] = []
        for wanted in page.names:
            chosen += [name for name in remaining if name == wanted or (wanted[-1] == "." and name.startswith(wanted))]
            remaining = [name for name in remaining if name not in chosen]
        pages[uri] = chosen
    return pages


def api_reference() -> dict[str, str]:
    """Return the pages as Markdown for mkdocstrings, by their addresses."""
    entries = names_by_page()
    return {
        uri: "\n\n".join([f"# {page.title}", page.introduction, *(f"::: {name}" for name in entries[uri]), ""])
        for uri, page in PAGES.items()
    }
