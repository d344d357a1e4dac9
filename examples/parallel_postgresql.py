"""Several processes tune one task together; all they share is a PostgreSQL database.

    python examples/parallel_postgresql.py postgresql://user@localhost/tuning [workers]

It needs `pip install 'recollect[postgres]'` and a server. To try it with a temporary server:

    docker run --rm -p 5432:5432 -e POSTGRES_HOST_AUTH_METHOD=trust postgres
    python examples/parallel_postgresql.py postgresql://postgres@localhost/postgres

The workers could also run on many hosts: each calls `recollect.minimize` with the same memory,
problem and task. There is no coordinator. A worker may be killed, or join later. The environment
variable TRIALS changes the budget.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time

import recollect

SPACE = {"x": (-5.0, 10.0), "y": (0.0, 15.0)}
PROBLEM, TRIALS = "parallel example", int(os.environ.get("TRIALS", "24"))


def branin(config: dict[str, float]) -> float:
    time.sleep(0.1)  # stands in for training
    x, y = config["x"], config["y"]
    return (y - 0.129 * x**2 + 1.592 * x - 6.0) ** 2 + 9.602 * math.cos(x) + 10.0


def work(url: str, task: str) -> None:
    evaluated = []

    def objective(config: dict[str, float]) -> float:
        evaluated.append(config)
        return branin(config)

    recollect.minimize(
        objective, SPACE, trials=TRIALS, memory=url, problem=PROBLEM, task=task, seed=os.getpid()
    )
    print(len(evaluated))


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    url, workers = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
    task = time.strftime("run of %Y-%m-%d %H:%M:%S")
    command = [sys.executable, __file__, url, "work", task]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(workers)
    ]
    for number, worker in enumerate(processes, start=1):
        print(f"worker {number} evaluated {worker.communicate()[0].strip()} trials")
    if any(worker.returncode for worker in processes):
        sys.exit("a worker has failed")
    with recollect.Memory(url) as memory:
        run = memory.run(task, PROBLEM)
    print(f"{len(run)} trials in all, best {run.best.value:.3f} (the minimum is 0.398)")


if __name__ == "__main__":
    if sys.argv[2:3] == ["work"]:
        work(sys.argv[1], sys.argv[3])
    else:
        main()
