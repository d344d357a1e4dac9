"""Where the server listens."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from recollect.errors import InputError, MissingExtraError
from recollect.report.dashboard.read_only import open_read_only
from recollect.report.dashboard.server import check_installed, listen_address, serve

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")


def test_loopback_needs_no_token_and_any_other_place_does() -> None:
    assert listen_address().loopback
    assert listen_address("localhost", 0).loopback
    assert listen_address("127.0.0.2", 1).url == "http://127.0.0.2:1/"
    for host in ("0.0.0.0", "192.0.2.1"):
        with pytest.raises(InputError, match=f"others can reach '{re.escape(host)}', so a token is required"):
            listen_address(host, 8000)
    where = listen_address("0.0.0.0", 8000, token="t")
    assert not where.loopback
    assert where.url == "http://127.0.0.1:8000/"


@pytest.mark.parametrize("token", ["", " ", "a b ", "\u00e9", "a\nb"])
def test_a_token_that_cannot_be_sent_is_refused(token: str) -> None:
    with pytest.raises(InputError, match="token: expected"):
        listen_address(token=token)


@pytest.mark.parametrize("host", ["", "no such host.invalid", "\udcff"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(InputError, match="host: expected a name or an address of this machine"):
        listen_address(host, token="t")


def test_a_port_that_is_in_use_is_named(file: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"port {port} of 127\.0\.0\.1 is in use: choose another one with --port"):
            serve(open_read_only(str(file)), listen_address(port=port), token=None, on_start=lambda _: None)


def test_a_place_that_is_not_this_machine_is_named(file: Path) -> None:
    with pytest.raises(InputError, match="cannot listen there"):
        serve(
            open_read_only(str(file)), listen_address("192.0.2.1", 8000, token="t"), token="t", on_start=lambda _: None
        )


def test_a_missing_server_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    check_installed()
    monkeypatch.setattr("recollect.report.dashboard.server.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'recollect\[dashboard\]'"):
        check_installed()
