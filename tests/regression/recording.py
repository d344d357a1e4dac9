"""Record what recollect suggests, tabulates and reports, so that a change of behaviour cannot go unnoticed.

Only public names are used, so the record survives any change of the code behind them. ``make record`` renews it: do
that when behaviour is meant to change, and say in the changelog what changed.

Suggestions: every method of the catalog gets a fixed history with failures on a continuous, a mixed conditional and a
finite space, with and without past runs. It is asked for its first configuration, and for two at once after the
history, so that the second sees the first as pending. Tables and pages: made from a fixed file of results and a fixed
memory through the command line. Experiment: the errors that a small one finds.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
import math
import os
import platform
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import recollect
from recollect.cli.main import app

Config = dict[str, Any]
Case = tuple[str, str, bool]
"""Method, space, whether there are past runs."""

FOLDER = Path(__file__).parent / "recorded"
SUGGESTIONS, OUTPUTS = FOLDER / "suggestions.json", FOLDER / "outputs.json"
RESULTS = Path(__file__).parent / "results.csv.gz"

VARIANTS = (
    *("gp+paper", "gp-box+slack", "rgpe-taf+paper", "rgpe-taf+copula", "rgpe-nei+95+s100", "rgpe-mogp+none"),
    *("rgpe-mean+constant", "rgpe-ei+wide", "tstr-taf+wd+rho0.1", "kl+eta10", "smfo+copula"),
)
EXPENSIVE = ("ablr", "gcp-prior", "mtgp")
"""These learn for seconds: they are recorded with past runs on the finite space only."""

HISTORY = {False: 12, True: 6}
"""Trials told before the model is asked: beyond the initial design without past runs, few with them."""


def continuous() -> Any:
    """Three floats, one of them on a log scale."""
    return {"a": (0.0, 1.0), "b": (-2.0, 3.0), "c": (1e-4, 1e2, "log")}


def conditional() -> Any:
    """Floats, integers, categories, and two hyperparameters that only some categories have."""
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

    space = ConfigurationSpace()
    kind = Categorical("kind", ["linear", "rbf", "poly"])
    a, b = Float("a", (0.0, 1.0)), Float("b", (1e-3, 10.0), log=True)
    gamma, degree = Float("gamma", (1e-3, 1.0), log=True), Integer("degree", (2, 5))
    space.add(kind, a, b, gamma, degree)
    space.add(EqualsCondition(gamma, kind, "rbf"), EqualsCondition(degree, kind, "poly"))
    return space


def finite() -> list[Config]:
    """A grid of 60 candidates."""
    return [{"a": a / 9, "b": b / 5} for a, b in itertools.product(range(10), range(6))]


def spaces() -> dict[str, tuple[Any, list[Config] | None]]:
    """Search space and candidates, by name."""
    return {
        "continuous": (continuous(), None),
        "conditional": (conditional(), None),
        "finite": ({"a": (0.0, 1.0), "b": (0.0, 1.0)}, finite()),
    }


def value(config: Config, shift: float) -> float:
    """A smooth function of whatever the configuration has; ``shift`` makes tasks differ."""
    a, b = float(config["a"]), float(config["b"])
    total = (a - 0.3 - shift) ** 2 + 0.2 * math.cos(3 * b + 4 * shift)
    if "c" in config:
        total += 0.1 * (math.log10(config["c"]) - shift) ** 2
    bonus = {"linear": 0.3, "rbf": 0.0, "poly": 0.15 - shift, None: 0.0}[config.get("kind")]
    if "gamma" in config:
        bonus += 0.1 * (math.log10(config["gamma"]) + 1.5 + shift) ** 2
    return total + bonus + 0.05 * abs(config.get("degree", 3) - 3)


def points(space: Any, candidates: list[Config] | None, count: int, seed: int) -> list[Config]:
    """Fixed configurations: those that random search suggests."""
    optimizer = recollect.Optimizer(space, method="random", seed=seed, candidates=candidates)
    return optimizer.ask(count)


def past_runs(space: Any, candidates: list[Config] | None) -> list[recollect.Run]:
    """Four past runs of differing length and scale, one with failures, one constant."""
    runs = []
    for k, size in enumerate((15, 9, 12, 6)):
        configs = points(space, candidates, size, seed=100 + k)
        values: list[Any] = [10.0**k * value(config, 0.1 * k) for config in configs]
        if k == 2:
            values[3] = values[7] = recollect.FAILED
        runs.append(recollect.Run(f"task {k}", configs, [2.5] * size if k == 3 else values))
    return runs


def cases() -> Iterator[Case]:
    """Every method and variant on every space, with and without past runs."""
    for name, space, past in itertools.product((*recollect.methods(), *VARIANTS), spaces(), (False, True)):
        base = name.split("+")[0]
        if base in EXPENSIVE and (space != "finite" or not past):
            continue
        if base == "kl" and space == "conditional" and past:
            continue  # refused: it needs a space without categories
        yield name, space, past


def suggest(case: Case) -> list[Config]:
    """The first suggestion, and two at once after a fixed history."""
    name, space_name, past = case
    space, candidates = spaces()[space_name]
    runs = past_runs(space, candidates) if past else []
    make = lambda: recollect.Optimizer(space, runs, name, horizon=20, seed=3, candidates=candidates)  # noqa: E731
    first = make().ask()
    optimizer = make()
    for number, config in enumerate(points(space, candidates, HISTORY[past], seed=7)):
        optimizer.tell(config, recollect.FAILED if number in (2, 5) else value(config, 0.05))
    return [first, *optimizer.ask(2)]


def key(case: Case) -> str:
    """The case as a key of the record."""
    return f"{case[0]} / {case[1]} / {'past runs' if case[2] else 'no past runs'}"


def machine() -> str:
    """What the last bits of a suggestion depend on: libraries, and which of their code a processor runs."""
    packages = ("numpy", "scipy", "ConfigSpace", "scikit-learn", "plotly", "matplotlib", "jax")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in packages]
    return ", ".join([platform.machine(), *versions, f"last bits {last_bits()}"])


def last_bits() -> str:
    """A fingerprint of the rounding errors of some computations."""
    A = np.random.default_rng(0).normal(size=(80, 80))
    L = np.linalg.cholesky(A @ A.T + np.eye(80))
    results = (L, np.linalg.solve(L, A), np.exp(A), np.log1p(np.square(A)), np.sqrt(A @ A[0] - A.sum() + 1e3))
    return hashlib.sha256(b"".join(np.ascontiguousarray(result).tobytes() for result in results)).hexdigest()[:12]


def command(*words: str) -> str:
    """Run recollect's command line; return what it printed."""
    outcome = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def digest(page: Path) -> str:
    """A fingerprint of a page, without what differs from one making to the next: dates, folders, the version."""
    text = page.read_text().replace(str(page.parent), "FOLDER").replace(recollect.__version__, "VERSION")
    text = re.sub(r"\b6\d{10}\.\d+\b", "SECONDS", text)  # since the year 0
    text = re.sub(r"\b\d{4}-\d\d-\d\d(.\d\d:\d\d(:\d\d)?)?\b", "DATE", text)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def stored_memory(path: Path) -> None:
    """Three finished tasks in a memory, with fixed values, durations and a failure.

    They are added at once but lasted minutes, so each began before any other had ended, however slow the machine is.
    """
    memory = recollect.Memory(str(path))
    space, candidates = spaces()["conditional"]
    for run in past_runs(space, candidates)[:3]:
        trials = [recollect.Trial(t.config, t.value, t.state, seconds=60.0 * (1 + i)) for i, t in enumerate(run.trials)]
        memory.add(recollect.Run(run.task, trials=trials, space=recollect.compile_space(space)), "demo")


def outputs(folder: Path) -> dict[str, Any]:
    """Tables and pages of fixed results and of a fixed memory."""
    made: dict[str, Any] = {}
    for form in ("markdown", "latex", "csv"):
        made[f"table {form}"] = command("bench", "table", str(RESULTS), "--format", form).splitlines()
    page = folder / "page.html"
    command("bench", "report", str(RESULTS), "--out", str(page))
    made["bench report"] = digest(page)
    memory = folder / "memory.db"
    stored_memory(memory)
    command("report", "--memory", str(memory), "--problem", "demo", "--task", "task 1", "--out", str(page))
    made["run report"] = digest(page)
    command("report", "--memory", str(memory), "--out", str(page))
    made["memory report"] = digest(page)
    made["experiment"] = experiment(folder)
    return made


PLAN = """format = 1
methods = ["random", "gp", "smfo", "tstr-ei", "rgpe-taf"]
repetitions = 1
horizon = 6
[past]
method = "gp"
evaluations = 12
[[benchmarks]]
name = "own-svm"
tasks = 2
[[benchmarks]]
name = "forrester"
tasks = 2
"""


def experiment(folder: Path) -> list[str]:
    """The errors found by each run of a small experiment: everything but times and version."""
    import csv

    plan, out = folder / "plan.toml", folder / "experiment"
    plan.write_text(PLAN)
    command("bench", "run", str(plan), "--out", str(out))
    with (out / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    fields = ("benchmark", "method", "task", "repetition", "seed", "best", "worst", "values", "weights")
    return sorted(" | ".join(row[field] for field in fields) for row in rows)


def record() -> None:
    """Write both files anew."""
    FOLDER.mkdir(exist_ok=True)
    suggestions = {key(case): suggest(case) for case in cases()}
    content = {"machine": machine(), "suggestions": suggestions}
    SUGGESTIONS.write_text(json.dumps(content, indent=0, sort_keys=True) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        content = {"machine": machine(), "outputs": outputs(Path(folder))}
    OUTPUTS.write_text(json.dumps(content, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore", recollect.RecollectWarning)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["RECOLLECT_CACHE"] = cache
        record()
    sys.stdout.write(f"recorded in {FOLDER}\n")
