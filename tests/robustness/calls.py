"""Calls of the optimizer: random spaces, hostile values, hostile past runs over all methods."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.robustness import hostile

import recollect
from recollect import Optimizer, RecollectError, Run

QUICK = tuple(name for name in recollect.methods() if name not in ("ablr", "gcp-prior", "mtgp", "kl"))


def frozen(config: dict[str, Any]) -> tuple[Any, ...]:
    """The configuration as a value that can be compared and hashed; True and 1 differ."""
    return tuple(
        sorted((key, type(entry).__name__, entry if entry is not None else "") for key, entry in config.items())
    )


def suggestions(rng: np.random.Generator, _folder: Path) -> int:
    """On any legal space suggestions are legal, finite, not repeated, and the same for the same seed."""
    space, seed = hostile.legal_space(rng), int(rng.integers(100))
    method = hostile.pick(rng, QUICK)
    compiled = recollect.compile_space(space)
    count = int(min(rng.integers(2, 16), max(1, compiled.size())))
    order = rng.permutation(count)

    def drive() -> list[dict[str, Any]]:
        optimizer = Optimizer(space, method=method, seed=seed, horizon=count)
        asked: list[dict[str, Any]] = []
        for number in range(count):
            asked.append(optimizer.ask())
            value: Any = recollect.FAILED if order[number] == 0 else hostile.smooth(asked[-1])
            optimizer.tell(asked[-1], value)
        return asked

    first = drive()
    compiled.encode(first)  # raises for a configuration outside the space
    for config in first:
        assert all(not isinstance(v, float) or math.isfinite(v) for v in config.values()), config
    assert len(set(map(frozen, first))) == len(first), "a configuration was suggested twice"
    assert list(map(frozen, first)) == list(map(frozen, drive())), "the same seed gave other suggestions"
    return 4 * count


def refusals(rng: np.random.Generator, _folder: Path) -> int:
    """Hostile arguments of every public function: each call works or is refused with an error of recollect's own."""
    calls = 0

    def attempt(call: Callable[[], Any]) -> Any:
        nonlocal calls
        calls += 1
        try:
            return call()
        except RecollectError:
            return None

    def bad() -> Any:
        return hostile.pick(rng, hostile.VALUES)

    attempt(lambda: recollect.compile_space(hostile.any_space(rng)))
    attempt(lambda: Optimizer(hostile.any_space(rng), seed=bad(), horizon=bad()))
    attempt(lambda: Optimizer({"x": (0.0, 1.0)}, past=bad(), method=bad() if rng.random() < 0.3 else "gp"))
    attempt(lambda: Optimizer({"x": (0.0, 1.0)}, candidates=[{hostile.name(rng): bad()}, bad()]))
    attempt(lambda: Run(bad(), [{"x": bad()}, bad()], [bad(), bad()], direction=bad()))
    attempt(lambda: recollect.Trial({"x": bad()}, bad(), seconds=bad()))
    attempt(lambda: recollect.method(bad()))
    attempt(lambda: recollect.minimize(lambda _: bad(), {"x": (0.0, 1.0)}, trials=3, method="random", progress=False))
    optimizer = Optimizer({"x": (0.0, 1.0), "k": ["a", None, 2]}, direction=hostile.pick(rng, ["minimize", "maximize"]))
    for _ in range(12):
        config = attempt(optimizer.ask)
        told: Any = config if rng.random() < 0.5 else {"x": bad(), "k": bad()}
        value: Any = hostile.pick(rng, [bad(), 1e308, -1e308, float(rng.normal())])
        attempt(lambda told=told, value=value: optimizer.tell(told if rng.random() < 0.9 else bad(), value))
    count = bad()
    if not (isinstance(count, int) and count > 100):  # a list of 2**63 configurations would take for ever
        attempt(lambda: optimizer.ask(count))
    attempt(lambda: str(optimizer.explain()))
    return calls


def past_runs(rng: np.random.Generator, _folder: Path) -> int:
    """Hostile past runs: a method uses them, leaves them out with a warning, or refuses them."""
    space = hostile.legal_space(rng)
    scale = float(hostile.pick(rng, [1.0, 1e-300, 1e300, 1e12]))
    runs = []
    for number in range(int(rng.integers(1, 6))):
        shared = recollect.compile_space(space).size()
        size = int(min(rng.integers(1, 12), max(1, shared)))
        configs = Optimizer(space, method="random", seed=int(rng.integers(1000))).ask(size)
        if rng.random() < 0.3:
            configs = [{**config, hostile.name(rng): hostile.pick(rng, hostile.VALUES)} for config in configs]
        if rng.random() < 0.2:
            configs = [{k: v for k, v in config.items() if rng.random() < 0.7} for config in configs]
        style = int(rng.integers(4))
        values: list[Any] = [scale * hostile.smooth(config) for config in configs]
        if style == 0:
            values = [float(rng.choice([0.0, 1e308, -1e308, 1e-320])) for _ in configs]
        elif style == 1:
            values = [recollect.FAILED if rng.random() < 0.6 else value for value in values]
        elif style == 2:
            values = [4.5] * size
        runs.append(Run(hostile.name(rng) if rng.random() < 0.3 else f"task {number}", configs, values))
    optimizer = Optimizer(space, runs, hostile.pick(rng, QUICK), horizon=12, seed=int(rng.integers(100)))
    asked = []
    for _ in range(int(min(8, max(1, optimizer.space.size())))):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], scale * hostile.smooth(asked[-1]))
    assert len(set(map(frozen, asked))) == len(asked), "a configuration was suggested twice"
    assert str(optimizer.explain())
    return 2 * len(asked)
