"""One short run through every entry point, each in a fresh process: what must work with any supported version.

``make test-lowest`` runs this file with the lowest stated versions of all dependencies.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

OBJECTIVE = "f = lambda c: (c['x'] - 0.3) ** 2 + (c['k'] == 'b'); space = {'x': (0.0, 1.0), 'k': ['a', 'b']}\n"
LIBRARY = {
    "import": "import recollect; assert recollect.__version__",
    "minimize": OBJECTIVE + "r = recollect.minimize(f, space, trials=4, memory='m.db', task='one', progress=False)\n"
    "r = recollect.minimize(f, space, trials=4, memory='m.db', task='two', progress=False)\n"
    "assert len(r.run) == 4 and r.explain().past[0].task == 'one', r.explain()",
    "maximize": OBJECTIVE + "r = recollect.maximize(f, space, trials=4, progress=False); assert r.run.best.value > 0.5",
    "workers": OBJECTIVE + "r = recollect.minimize(f, space, trials=4, workers=2, progress=False)\n"
    "assert len(r.run.succeeded) == 4",
    "ask and tell": OBJECTIVE + "o = recollect.Optimizer(space, seed=0)\nfor _ in range(12):\n"
    "    c = o.ask(); o.tell(c, f(c))\nassert o.best.value < 0.5",
    "files": OBJECTIVE + "run = recollect.Run('t', [{'x': 0.5, 'k': 'a'}] * 2, [1.0, recollect.FAILED], space=space)\n"
    "recollect.write_runs([run], 'runs.jsonl'); assert recollect.read_runs('runs.jsonl')[0].values == [1.0, None]",
    "benchmarks": "b = recollect.bench.load('own-svm'); assert len(b.tasks) > 10",
    "Optuna": "import optuna\nfrom recollect.optuna import TransferSampler\noptuna.logging.set_verbosity(40)\n"
    "g = lambda t: t.suggest_float('x', 0, 1) ** 2\nold = optuna.create_study(); old.optimize(g, n_trials=6)\n"
    "new = optuna.create_study(sampler=TransferSampler(past=[old], seed=0)); new.optimize(g, n_trials=3)\n"
    "assert len(new.trials) == 3",
}
NEEDS = {
    "scikit-learn": (
        "sklearn",
        "from sklearn.datasets import load_iris; from sklearn.svm import SVC\n"
        "from recollect.sklearn import TransferSearchCV\n"
        "s = TransferSearchCV(SVC(), {'C': (0.1, 10.0, 'log')}, trials=3, memory='m.db', cv=2)\n"
        "assert s.fit(*load_iris(return_X_y=True)).best_score_ > 0.8",
    ),
    "neural": ("jax", "assert recollect.Optimizer({'x': (0.0, 1.0)}, method='ablr').ask()"),
}
COMMANDS = ("", "tune", "memory", "report", "dashboard", "demo", "methods", "bench", "bench run", "bench table")


def run(folder: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_runs(name: str, tmp_path: Path) -> None:
    run(tmp_path, "-c", "import recollect\n" + LIBRARY[name])


@pytest.mark.parametrize("name", NEEDS)
def test_what_needs_an_extra_runs_where_it_is_installed(name: str, tmp_path: Path) -> None:
    library, code = NEEDS[name]
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    run(tmp_path, "-c", "import recollect\n" + code)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str, tmp_path: Path) -> None:
    assert "Usage" in run(tmp_path, "-m", "recollect", *command.split(), "--help")


def test_a_program_is_tuned_listed_and_reported(tmp_path: Path) -> None:
    (tmp_path / "space.json").write_text('{"x": {"low": 0.0, "high": 1.0}}')
    (tmp_path / "program.py").write_text("import sys; print(float(sys.argv[1]) ** 2)")
    settings = ["--space", "space.json", "--memory", "m.db", "--problem", "p", "--task", "t", "--trials", "3"]
    run(tmp_path, "-m", "recollect", "tune", *settings, "--", sys.executable, "program.py", "{x}")
    assert "t" in run(tmp_path, "-m", "recollect", "memory", "list", "m.db")
    if find_spec("plotly") is not None:
        run(tmp_path, "-m", "recollect", "report", "--memory", "m.db", "--problem", "p", "--task", "t")
        assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")
