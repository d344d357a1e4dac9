"""The command ``recollect dashboard``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.helpers.dashboard import example

from recollect import Memory
from recollect.cli.main import main

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing.db"], "nothing.db: there is no such memory"),
        (["tuning.db", "--host", "0.0.0.0"], "others can reach '0.0.0.0', so a token is required"),
        (["tuning.db", "--token", ""], "token: expected one or more"),
        (["empty.db"], "empty.db: the file is empty"),
        (["tuning.db", "--token-file", "missing.txt"], "--token-file: expected a text file with a token"),
        (["tuning.db", "--token-file", "empty.db"], "token: expected one or more"),
        (["tuning.db", "--token", "t", "--token-file", "empty.db"], "got more than one"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory(tmp_path / "tuning.db") as memory:
        memory.add(example("first"), "svm")
    (tmp_path / "empty.db").touch()
    monkeypatch.setattr(sys, "argv", ["recollect", "dashboard", "--no-browser", "--port", "0", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.db", "tuning.db"]


@pytest.mark.parametrize("way", ["option", "variable", "file"])
def test_the_token_is_taken_from_an_option_a_variable_or_a_file(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(tmp_path / "tuning.db") as memory:
        memory.add(example("first"), "svm")
    tokens: list[str | None] = []
    monkeypatch.setattr("recollect.report.dashboard.server.serve", lambda *_, token, **__: tokens.append(token))
    (tmp_path / "token").write_text("s3cret\n")
    options = {"option": ["--token", "s3cret"], "variable": [], "file": ["--token-file", str(tmp_path / "token")]}
    if way == "variable":
        monkeypatch.setenv("RECOLLECT_TOKEN", "s3cret")
    command = ["recollect", "dashboard", str(tmp_path / "tuning.db"), "--host", "0.0.0.0", *options[way]]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, tokens) == (0, ["s3cret"])
