"""How long do the pages of 10,000 trials and of 1,000 tasks take, to build and to open?

    PYTHONPATH=. OPENBLAS_NUM_THREADS=1 python benchmarks/speed/large_pages.py [--trials 10000] [--tasks 1000]

A SQLite memory has one task with many trials and a problem with many tasks of twelve trials each, all different, in a
space of four hyperparameters; one trial in twenty failed. Building is the processor time from reading the memory to the
HTML, in one process: with an empty cache of models, and again. Opening is the time in Chromium, driven by Playwright,
until the first two figures are drawn and the tables can be used: processor time of the page's main thread, and by the
clock; each is the shortest of three. The clock depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.browser.conftest import FLAGS, find_browser
from tests.browser.pages import fastest_opening

from recollect import FAILED, Memory, Run
from recollect.report.memory.memory_page import memory_page
from recollect.report.page import Page, render, write_page
from recollect.report.run.run_page import run_page
from recollect.runs.run import Trial
from recollect.space.space import compile_space

SPACE = compile_space({"lr": (1e-4, 1.0, "log"), "width": (8, 256), "depth": (1, 9), "momentum": (0.0, 0.99)})
TRIALS_PER_TASK, FAILURE_RATE = 12, 0.05


def drawn(task: str, count: int, seed: int) -> Run:
    """A run of random configurations; the best learning rate differs from task to task."""
    rng = np.random.default_rng(seed)
    optimum = rng.normal(-2.0, 0.5)
    trials = []
    for config in SPACE.decode(rng.random((count, len(SPACE.names)))):
        value = abs(np.log10(config["lr"]) - optimum) + 10 / config["width"] + 0.1 * float(rng.random())
        trials.append(Trial.of(config, FAILED if rng.random() < FAILURE_RATE else value))
    return Run(task, trials=trials, space=SPACE)


def fill(path: Path, *, trials: int, tasks: int) -> Memory:
    memory = Memory(path)
    memory.add(drawn("long", trials, 0), "one task")
    for number in range(tasks):
        memory.add(drawn(f"dataset {number}", TRIALS_PER_TASK, number), "many tasks")
    return memory


def build(page: Callable[[], Page], path: Path) -> float:
    """Write a page; return the processor time in seconds."""
    begun = time.process_time()
    write_page(render(page()), path)
    return time.process_time() - begun


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--tasks", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        os.environ["RECOLLECT_CACHE"] = str(folder / "cache")
        memory = fill(folder / "tuning.db", trials=options.trials, tasks=options.tasks)
        pages: dict[str, Callable[[], Page]] = {
            f"{options.trials:,} trials": lambda: run_page(memory, "one task", "long"),
            f"{options.tasks:,} tasks": lambda: memory_page(memory, "many tasks", jobs=1),
        }
        browser = driver.chromium.launch_persistent_context(
            folder / "browser", executable_path=find_browser(), args=list(FLAGS), headless=True
        )
        print("page          | built first | again  | size   | opened (processor) | opened (clock) | load per core")
        for label, page in pages.items():
            path = folder / "page.html"
            first, again = build(page, path), build(page, path)
            opening = fastest_opening(browser, path)
            print(
                f"{label:13} | {first:9.2f} s | {again:4.2f} s | {path.stat().st_size / 1e6:3.1f} MB | "
                f"{opening.processor:16.2f} s | {opening.clock:12.2f} s | {opening.load:.1f}",
                flush=True,
            )
        browser.close()


if __name__ == "__main__":
    main()
