"""How good is Bayesian optimization without past runs, compared with other optimizers?

    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/plain.py run --out plain.csv --seeds 20 --contestants gp random
    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/plain.py run --out plain.csv --seeds 20 \\
        --contestants optuna-gp optuna-tpe --python PEERS/bin/python
    python benchmarks/quality/plain.py report plain.csv

Contestants: any method of recollect, and ``optuna-gp``, ``optuna-tpe``, ``smac``, ``smac-forest`` and ``skopt``, which
run in the interpreter ``--python`` (a virtual environment of their own, see docs/plain-bo.md). That process only
suggests (plain_peers.py); all values are computed here. Problems (plain_problems.py): functions whose optimum is moved
at random with the seed, three of them also with noise, tables of real errors, one task per seed, and forests fitted to
such tables (``--data DIR`` for those that do not come with recollect). On a table, recollect chooses among its rows; a
peer searches the whole space, and the nearest row that it has not seen is evaluated. A finished run is one line
appended to ``--out``, so an interrupted comparison resumes.

Regret is the distance to the optimum; on tables and forests, 100 x the normalized regret. Under noise it is the
noise-free value at the best observation. The time of suggestions is CPU time, so that other processes do not count.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from plain_problems import NAMES, Problem, make_problem

Runs = dict[tuple[str, str], dict[int, list[float]]]  # by problem and contestant, then by seed: regret after each trial
FIELDS = ("problem", "contestant", "seed", "seconds", "regrets")
AFTER = (10, 20, 50, 60, 100)
PEERS = ("optuna-gp", "optuna-tpe", "smac", "smac-forest", "skopt")
PEER_SCRIPT = Path(__file__).with_name("plain_peers.py")


def run_recollect(problem: Problem, method: str, seed: int) -> tuple[list[tuple[float, float]], float]:
    import recollect

    optimizer = recollect.Optimizer(
        problem.space, method=method, horizon=problem.trials, seed=seed, candidates=problem.candidates
    )
    observed, seconds = [], 0.0
    for _ in range(problem.trials):
        begin = time.process_time()
        config = optimizer.ask()
        seconds += time.process_time() - begin
        observed.append(problem.observe(config))
        optimizer.tell(config, observed[-1][0])
    return observed, seconds


class Peer:
    """Another interpreter that suggests, over lines of JSON."""

    def __init__(self, python: str) -> None:
        command = [python, str(PEER_SCRIPT)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def send(self, message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def run(self, problem: Problem, contestant: str, seed: int) -> tuple[list[tuple[float, float]], float]:
        start = {"parameters": problem.parameters, "trials": problem.trials}
        self.send({"contestant": contestant, "seed": seed, **start})
        observed, seconds = [], 0.0
        for _ in range(problem.trials):
            config, taken = self.receive()
            seconds += taken
            observed.append(problem.observe(config if problem.nearest is None else problem.nearest(config)))
            self.send(observed[-1][0])
        return observed, seconds


def best_regrets(observed: list[tuple[float, float]]) -> list[float]:
    """Return the regret at the best observation after each trial."""
    values, regrets = np.array(observed).T
    places = [int(values[: t + 1].argmin()) for t in range(len(values))]
    return [float(regrets[place]) for place in places]


def run(options: argparse.Namespace) -> None:
    """Run what the file does not have yet, all problems with one seed before the next seed."""
    finished = {(row[0], row[1], int(row[2])) for row in read_rows(options.out)} if options.out.exists() else set()
    if not finished:
        with options.out.open("a", newline="") as file:
            csv.writer(file).writerow(FIELDS)
    peer: Peer | None = None
    for seed in range(options.first_seed, options.seeds):
        for name in options.problems:
            for contestant in options.contestants:
                if (name, contestant, seed) in finished:
                    continue
                problem = make_problem(name, seed, options.data, options.trials)
                if contestant in PEERS:
                    peer = peer or Peer(options.python)
                    observed, seconds = peer.run(problem, contestant, seed)
                else:
                    observed, seconds = run_recollect(problem, contestant, seed)
                regrets = " ".join(f"{regret:.6g}" for regret in best_regrets(observed))
                with options.out.open("a", newline="") as file:
                    csv.writer(file).writerow((name, contestant, seed, f"{seconds:.4f}", regrets))


def read_rows(path: Path) -> list[list[str]]:
    """Return the finished runs in a file, which may be packed (.gz)."""
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def read_runs(paths: list[Path]) -> tuple[Runs, dict[str, list[float]]]:
    """Return the regrets of all runs, and the milliseconds per suggestion in each run of a contestant."""
    runs: Runs = {}
    pace: dict[str, list[float]] = {}
    for path in paths:
        for problem, contestant, seed, seconds, regrets in read_rows(path):
            values = [float(regret) for regret in regrets.split()]
            runs.setdefault((problem, contestant), {})[int(seed)] = values
            if math.isfinite(float(seconds)):  # nan where CPU time was not measured
                pace.setdefault(contestant, []).append(1000 * float(seconds) / len(values))
    return runs, pace


def report(options: argparse.Namespace) -> None:
    """Print medians, quartiles, mean ranks and times over the seeds that all contestants have."""
    runs, pace = read_runs(options.files)
    contestants = list(options.contestants or dict.fromkeys(contestant for _, contestant in runs))
    problems = [p for p in dict.fromkeys(p for p, _ in runs) if all((p, c) in runs for c in contestants)]
    for after in AFTER:
        print_table(runs, problems, contestants, after)
    print("\nms of CPU time per suggestion, median over runs")
    for contestant in contestants:
        times = pace.get(contestant, [math.nan])
        print(f"{contestant:<12}{np.median(times):8.1f}")


def print_table(runs: Runs, problems: list[str], contestants: list[str], after: int) -> None:
    """Print one row per problem, then the mean ranks with the critical difference of the Nemenyi test (p = 0.05).

    The Wilcoxon test compares the mean ranks of the first contestant and of another on each problem.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    from recollect.bench.analysis.statistics import signed_rank

    print(f"\nregret after {after} trials: median (quartiles)")
    print("".join(f"{text:<26}" for text in ("problem (seeds)", *contestants)))
    ranks = []
    for problem in problems:
        seeds = sorted(set.intersection(*(set(runs[problem, c]) for c in contestants)))
        rows = [[runs[problem, c][seed] for seed in seeds] for c in contestants]
        if min((len(run) for own in rows for run in own), default=0) < after:
            continue
        values = np.array([[run[after - 1] for run in own] for own in rows])
        cells = [f"{m:.3g} ({a:.2g} .. {b:.2g})" for a, m, b in np.percentile(values, [25, 50, 75], axis=1).T]
        print("".join(f"{text:<26}" for text in (f"{problem} ({len(seeds)})", *cells)))
        ranks.append(rankdata(values, axis=0).mean(axis=1))
    if len(ranks) > 2 and len(contestants) > 2:
        k = len(contestants)
        critical = studentized_range.ppf(0.95, k, np.inf) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * len(ranks)))
        p = friedmanchisquare(*np.array(ranks).T).pvalue
        means = ", ".join(f"{c} {r:.2f}" for c, r in zip(contestants, np.mean(ranks, axis=0), strict=True))
        print(f"mean rank over {len(ranks)} problems: {means}; Friedman p {p:.2g}, critical difference {critical:.2f}")
        first, *others = np.array(ranks).T
        tests = (f"{c} {signed_rank(first, own):.2g}" for c, own in zip(contestants[1:], others, strict=True))
        print(f"Wilcoxon test over problems, p of {contestants[0]} against {', '.join(tests)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runner = commands.add_parser("run", help="run what is missing in a file of results")
    runner.add_argument("--out", type=Path, required=True)
    runner.add_argument("--contestants", nargs="+", required=True)
    runner.add_argument("--problems", nargs="+", default=NAMES, choices=NAMES)
    runner.add_argument("--seeds", type=int, default=20)
    runner.add_argument("--first-seed", type=int, default=0)
    runner.add_argument("--trials", type=int, default=100, help="on functions and forests")
    runner.add_argument("--data", type=Path, default=None)
    runner.add_argument("--python", default=sys.executable, help="interpreter that has the peers")
    reporter = commands.add_parser("report", help="print what files of results say")
    reporter.add_argument("files", type=Path, nargs="+")
    reporter.add_argument("--contestants", nargs="+", default=None)
    options = parser.parse_args()
    {"run": run, "report": report}[options.command](options)


if __name__ == "__main__":
    main()
