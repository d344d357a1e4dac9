"""Run the harness: ``python -m tests.robustness [--seconds 60] [--area NAME]... [--seed 0] [--attempts N]``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from tests.robustness.areas import AREAS
from tests.robustness.harness import run_area


def main() -> int:
    """Attack each area for its share of the budget; print what was tried and what failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.robustness", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="time budget of all areas together")
    parser.add_argument("--area", action="append", choices=list(AREAS), help="only this area; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first attempt")
    parser.add_argument("--attempts", type=int, help="so many attempts per area instead of a time budget")
    arguments = parser.parse_args()
    chosen = [AREAS[name] for name in arguments.area or AREAS]
    failed = 0
    with tempfile.TemporaryDirectory() as cache:
        os.environ["RECOLLECT_CACHE"] = cache
        for area in chosen:
            share = arguments.seconds / len(chosen)
            tally = run_area(area, seconds=share, seed=arguments.seed, attempts=arguments.attempts)
            for failure in tally.failures[:5]:
                sys.stdout.write(f"{failure}\n")
            sys.stdout.write(f"{tally}\n")
            sys.stdout.flush()
            failed += len(tally.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
