"""The examples in the API reference run: docstrings of public names, with the names that their readers have."""

from __future__ import annotations

import dataclasses
import doctest
import inspect
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import griffe
import numpy as np
import optuna
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import recollect
from recollect.optimizer.method import TargetModel

PUBLIC_MODULES = (
    *("recollect", "recollect.optuna", "recollect.sklearn", "recollect.trackers", "recollect.bench"),
    "recollect.transfer",
)
PUBLIC = {
    f"{module}.{name}": pkgutil.resolve_name(f"{module}:{name}")
    for module in PUBLIC_MODULES
    for name in pkgutil.resolve_name(module).__all__
}
EXAMPLES = {
    name: doctest.DocTestParser().get_examples(inspect.getdoc(entry) or "")
    for name, entry in PUBLIC.items()
    if callable(entry)
}
WITH_EXAMPLES = [name for name, examples in EXAMPLES.items() if examples]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, a past study and a memory."""
    folder = tmp_path_factory.mktemp("reader")
    folder.joinpath("svm.csv").write_text("task,C,error\na,0.1,0.5\na,1.0,0.2\nb,0.1,0.4\nb,1.0,0.3\n")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    studies = f"sqlite:///{folder / 'studies.db'}"
    optuna.create_study(storage=studies, study_name="iris").optimize(_objective, n_trials=3)
    recollect.Memory(folder / "tuning.db").add(
        recollect.Run("cancer", [{"C": 0.1}, {"C": 1.0}], [0.5, 0.2]), problem="svm"
    )
    return folder


@pytest.fixture(scope="module")
def names(folder: Path) -> dict[str, Any]:
    """Return what a reader of the examples has at hand: an objective, a space, past runs, data."""
    space = {"lr": (1e-5, 1e-1, "log"), "depth": (1, 8)}
    configs = [{"lr": 1e-3, "depth": depth} for depth in (1, 4, 8)]
    past = [recollect.Run("old", configs, [0.1, 0.4, 0.8], space=space)]
    optimizer = recollect.Optimizer(space, past)
    optimizer.tell(optimizer.ask(), 0.5)
    X, y = load_iris(return_X_y=True)
    names: dict[str, Any] = {"recollect": recollect, "optuna": optuna, "np": np, "SVC": SVC, "TargetModel": TargetModel}
    names |= {"space": space, "past": past, "optimizer": optimizer, "X": X, "y": y, "objective": _objective}
    names |= {"memory": recollect.Memory(folder / "past.db"), "dataclasses": dataclasses}
    names["memory"].add(past[0])
    names |= {"train": lambda lr, **_: abs(np.log10(lr) + 3), "error": lambda config: abs(np.log10(config["C"]))}
    names["accuracy"] = lambda config: -names["error"](config)
    names |= {"base": np.array([[0.1, 0.2, 0.3, 0.4]]), "loo": np.array([0.4, 0.1, 0.2, 0.3])}
    return names | {name.rpartition(".")[2]: entry for name, entry in PUBLIC.items()}


def _objective(trial: optuna.Trial) -> float:
    return trial.suggest_float("x", -1.0, 1.0) ** 2


@pytest.mark.parametrize("name", [name for name, entry in PUBLIC.items() if "Example" in (inspect.getdoc(entry) or "")])
def test_an_example_is_a_section_of_the_site_and_not_a_paragraph(name: str) -> None:
    sections = griffe.Docstring(inspect.getdoc(PUBLIC[name]) or "").parse("google")
    examples = [section for section in sections if section.kind is griffe.DocstringSectionKind.examples]
    assert [kind for kind, _ in examples[0].value] == [griffe.DocstringSectionKind.examples]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_example_of_a_public_name_runs_and_shows_what_it_says(
    name: str, folder: Path, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    own = dict(names)
    if name == "recollect.transfer.rgpe_weights":
        own["y"] = np.array([0.1, 0.2, 0.3, 0.4])
    for example in EXAMPLES[name]:
        if doctest.SKIP in example.options:  # needs a server
            continue
        shown = _run(example.source, own)
        assert not example.want or repr(shown) == example.want.strip()


def _run(source: str, names: dict[str, Any]) -> object:
    evaluate: Callable[..., object] = exec
    try:
        code = compile(source, "example", "eval")
        evaluate = eval
    except SyntaxError:
        code = compile(source, "example", "exec")
    return evaluate(code, names)


def test_the_reference_has_examples() -> None:
    assert {"recollect.minimize", "recollect.Optimizer", "recollect.optuna.TransferSampler"} <= set(WITH_EXAMPLES)
