"""How long do ``import recollect`` and ``recollect --help`` take, compared with ``import numpy``?

python benchmarks/speed/import_time.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

REPEATS = 15
COMMANDS = {
    "import numpy": [sys.executable, "-c", "import numpy"],
    "import recollect": [sys.executable, "-c", "import recollect"],
    "recollect --help": [str(Path(sys.executable).parent / "recollect"), "--help"],
    "python alone": [sys.executable, "-c", "pass"],
}


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(REPEATS):
        for name, command in COMMANDS.items():
            begin = time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            times[name].append(time.perf_counter() - begin)
    base = statistics.median(times["import numpy"])
    for name, measured in times.items():
        middle = statistics.median(measured)
        print(f"{name:<18} {1000 * middle:6.0f} ms  {middle / base:5.2f} x import numpy")


if __name__ == "__main__":
    main()
