"""The scikit-learn search outside this process: the code of its pages, other processes, missing extras."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from recollect.integrations.sklearn.names import data_name, pickled

ROOT = Path(__file__).parents[2]
IRIS = load_iris(return_X_y=True)


def test_the_code_of_the_page_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "scikit-learn.md").read_text(), flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in blocks:
        exec(code, names)
    shown = capsys.readouterr().out
    assert len(blocks) == 5
    for line in re.findall(r"print\(.*\)  # (.*)", blocks[-2]):
        assert re.search(re.escape(line).replace(r"\.\.\.", r"\S*"), shown), f"the page shows {line}"
    assert re.search("178 x 13 float64 [0-9a-f]{12}-[0-9a-f]{12} 8 0.9", shown)
    assert len(names["search"].explanation_.past) == 1


def test_the_code_of_the_worked_example_tunes_on_three_data_sets_in_turn(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sequence.md").read_text(), flags=re.DOTALL)
    exec(code, {})
    rows = re.findall(r": (\d) past runs, regret after 10 trials (0\.\d{3})", capsys.readouterr().out)
    assert [int(past) for past, _ in rows] == [0, 1, 2]


def test_names_are_the_same_in_another_process() -> None:
    code = (
        "from sklearn.datasets import load_iris; from sklearn.linear_model import LogisticRegression\n"
        "from recollect.integrations.sklearn.names import data_name, pickled\n"
        "print(data_name(*load_iris(return_X_y=True), {}), pickled((LogisticRegression(C=2), {'a': {'b', 'c'}})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    here = data_name(*IRIS, {}), pickled((LogisticRegression(C=2), {"a": {"b", "c"}}))
    assert done.stdout.strip() == " ".join(here)


def test_without_scikit_learn_the_missing_extra_is_named() -> None:
    code = "import sys; sys.modules['sklearn'] = None; import recollect.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingExtraError: TransferSearchCV needs scikit-learn: pip install 'recollect[sklearn]'" in done.stderr
