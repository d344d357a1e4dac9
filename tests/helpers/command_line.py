"""The command line in this process: what it printed, and its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from recollect.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str


Recollect = Callable[..., Done]


def command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recollect:
    """Return the command line as `main` runs it."""

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["recollect", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Done(int(ended.value.code or 0), out, err)

    return run
