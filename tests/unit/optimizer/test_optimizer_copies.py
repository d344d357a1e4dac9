"""One optimizer in several threads, and optimizers that are pickled and copied."""

from __future__ import annotations

import copy
import itertools
import pickle
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from recollect import Optimizer, Run

SPACE = {"a": (0.0, 1.0), "k": ["u", "v"]}
COPIERS: dict[str, Callable[[Optimizer], Optimizer]] = {
    "pickle": lambda optimizer: pickle.loads(pickle.dumps(optimizer)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def value(config: dict[str, Any]) -> float:
    return (config["a"] - 0.3) ** 2 + (config["k"] == "u")


def past() -> list[Run]:
    asked = [Optimizer(SPACE, method="random", seed=seed).ask(6) for seed in range(2)]
    return [Run(f"past {n}", configs, [n + value(config) for config in configs]) for n, configs in enumerate(asked)]


def drive(optimizer: Optimizer, trials: int) -> list[dict[str, Any]]:
    asked = []
    for _ in range(trials):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], value(asked[-1]))
    return asked


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("frequent_switches")
@pytest.mark.parametrize(("method", "per_thread"), [("random", 100), ("gp", 6)])
def test_threads_share_an_optimizer_and_nothing_is_lost_or_suggested_twice(method: str, per_thread: int) -> None:
    candidates = [{"a": n / 1000, "k": "u"} for n in range(4 * per_thread)]
    optimizer = Optimizer(SPACE, method=method, candidates=candidates)

    def work(_: int) -> list[dict[str, Any]]:
        asked = []
        for _ in range(per_thread // 2):
            asked += (configs := optimizer.ask(2))
            assert all(config in candidates for config in optimizer.pending)
            for config in configs:
                optimizer.tell(config, value(config))
            optimizer.explain()
        return asked

    with ThreadPoolExecutor(4) as threads:
        asked = list(itertools.chain.from_iterable(threads.map(work, range(4))))
    by_a = sorted(asked, key=lambda config: config["a"])
    assert by_a == candidates
    assert sorted(optimizer.run.configs, key=lambda config: config["a"]) == candidates
    assert optimizer.pending == []


@pytest.mark.parametrize("copier", COPIERS)
@pytest.mark.parametrize("method", ["random", "gp", "tstr-taf", "rgpe-taf"])
def test_a_copy_makes_the_same_suggestions_and_is_independent(method: str, copier: str) -> None:
    optimizer = Optimizer(SPACE, past(), method, seed=3)
    for trials in (0, 7):
        drive(optimizer, trials)
        announced = {"a": 0.125 * (trials + 1) / 8, "k": "v"}
        optimizer.expect(announced)
        twin = COPIERS[copier](optimizer)
        before = (len(twin.run), twin.pending, str(twin.explain()))
        suggested = drive(optimizer, 2)
        assert (len(twin.run), twin.pending, str(twin.explain())) == before
        assert drive(twin, 2) == suggested
        assert str(twin.explain()) == str(optimizer.explain())


@pytest.mark.parametrize("copier", COPIERS)
def test_a_copy_has_candidates_of_its_own(copier: str) -> None:
    optimizer = Optimizer(SPACE, method="random", candidates=[{"a": 0.1, "k": "u"}, {"a": 0.2, "k": "u"}])
    optimizer.ask()
    twin = COPIERS[copier](optimizer)
    assert optimizer.ask() == twin.ask()
