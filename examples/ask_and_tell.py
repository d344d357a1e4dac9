"""Write your own loop around `recollect.Optimizer`: parallel work, results and failures.

    python examples/ask_and_tell.py

Three configurations are evaluated at a time, and each new suggestion takes the other two into
account. Some trainings run out of memory: they are reported as `recollect.FAILED`, and the search
avoids their region.
"""

from __future__ import annotations

import math
import random
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import recollect

SPACE = {"lr": (1e-5, 1.0, "log"), "batch": (8, 512, "log"), "optimizer": ["adam", "sgd"]}
TRIALS, PARALLEL = 24, 3


def train(config: dict) -> float:
    """Stand in for training; a large batch does not fit into memory."""
    time.sleep(random.uniform(0.01, 0.05))
    if config["batch"] > 256:
        raise MemoryError(f"batch {config['batch']}")
    best_lr = 1e-3 if config["optimizer"] == "adam" else 1e-1
    return (
        0.1
        + math.log10(config["lr"] / best_lr) ** 2 / 10
        + abs(math.log2(config["batch"] / 64)) / 50
    )


def past_run() -> recollect.Run:
    """Return a run of last week, as you would load it from your own records."""
    rng = random.Random(0)
    configs = [
        {
            "lr": 10 ** rng.uniform(-5, 0),
            "batch": rng.randint(8, 256),
            "optimizer": rng.choice(SPACE["optimizer"]),
        }
        for _ in range(20)
    ]
    return recollect.Run("last week", configs, [train(config) * 1.1 for config in configs])


def main() -> None:
    optimizer = recollect.Optimizer(SPACE, past=[past_run()], horizon=TRIALS, seed=0)
    with ThreadPoolExecutor(PARALLEL) as pool:
        running = {pool.submit(train, config): config for config in optimizer.ask(count=PARALLEL)}
        started = len(running)
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                config = running.pop(future)
                try:
                    optimizer.tell(config, future.result())
                except MemoryError:
                    optimizer.tell(config, recollect.FAILED)
                if started < TRIALS:
                    config = optimizer.ask()
                    running[pool.submit(train, config)] = config
                    started += 1
    run = optimizer.run
    print(f"{len(run)} trials, {len(run) - len(run.succeeded)} failed")
    print(f"best {optimizer.best.value:.4f} with {optimizer.best.config}")
    print(optimizer.explain())


if __name__ == "__main__":
    main()
