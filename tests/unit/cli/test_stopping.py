"""Stopping a command: signals are handled while it runs and restored afterwards."""

from __future__ import annotations

import signal

import pytest
import typer

from recollect.cli.stopping import stoppable


def test_a_system_without_sighup_is_stopped_by_sigterm(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(signal, "SIGHUP")
    with pytest.raises(typer.Exit) as ended, stoppable(lambda: "nothing is stored"):
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.exit_code == 128 + signal.SIGTERM
    assert "nothing is stored" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
