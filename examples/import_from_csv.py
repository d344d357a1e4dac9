"""Turn results in a spreadsheet into past runs: one line imports a CSV file into a memory.

    python examples/import_from_csv.py [tuning.db]

A row is a trial. The column "dataset" names its run, "accuracy" is maximized, and all other columns
except the remarks are hyperparameters.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import recollect

TABLE = """\
dataset,depth,rate,accuracy,remark
adult,2,0.3,0.841,
adult,6,0.1,0.872,
adult,9,0.01,0.793,slow
adult,5,0.2,0.869,
adult,7,0.05,0.866,
bank,3,0.3,0.893,
bank,6,0.1,0.912,
bank,8,0.02,,out of memory
bank,4,0.15,0.908,
bank,5,0.03,0.897,
"""
SPACE = {"depth": (1, 10), "rate": (0.005, 0.5, "log")}


def accuracy(config: dict) -> float:
    """Stand in for training."""
    return 0.9 - (config["depth"] - 6) ** 2 / 400 - math.log10(config["rate"] / 0.12) ** 2 / 15


def main() -> None:
    memory = recollect.Memory(sys.argv[1] if len(sys.argv) > 1 else "tuning.db")
    Path("results.csv").write_text(TABLE)
    columns = {"dataset": "task", "remark": "ignore"}
    runs = memory.import_(
        "results.csv", "trees", value="accuracy", direction="maximize", columns=columns
    )
    for run in runs:
        failed = len(run) - len(run.succeeded)
        print(f"{run.task}: {len(run)} trials, {failed} failed, best {run.best.value}")
    result = recollect.maximize(
        accuracy, SPACE, trials=10, memory=memory, problem="trees", task="credit"
    )
    print(f"credit: first {result.run.values[0]:.3f}, best {result.best_value:.3f}")
    print(result.best_config)


if __name__ == "__main__":
    main()
