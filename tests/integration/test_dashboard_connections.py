"""Half-open connections neither lock anybody out of the dashboard nor fill its log."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from tests.helpers.dashboard import example

from recollect import Memory

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")
pytest.importorskip("resource", reason="limits of open files are set on Unix")

HALF_A_REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
START = """
import resource, sys
from recollect.cli.main import main
from recollect.report.dashboard import connections
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
connections.REQUEST_SECONDS = float(sys.argv[2])
sys.argv = ["recollect", "dashboard", sys.argv[1], "--port", "0", "--no-browser"]
main()
"""


@contextmanager
def dashboard(tmp_path: Path, seconds: float = 60.0) -> Iterator[int]:
    """Start a dashboard that may open 256 files and gives requests some seconds to arrive; yields its port."""
    with Memory(tmp_path / "tuning.db") as memory:
        memory.add(example("first"), "svm")
    command = [sys.executable, "-c", START, str(tmp_path / "tuning.db"), str(seconds)]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log) as process:
        try:
            assert process.stdout is not None
            address = re.search(rb"http://[\d.]+:(\d+)", process.stdout.readline())
            assert address is not None
            yield int(address[1])
        finally:
            process.kill()


def status(port: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_half_open_connections_lock_nobody_out_and_do_not_fill_the_log(tmp_path: Path) -> None:
    with dashboard(tmp_path) as port, ExitStack() as connections:
        for _ in range(400):
            connection = connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            connection.sendall(HALF_A_REQUEST)
        assert status(port) == 200
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as broken:
                broken.sendall(b"\0\r\n\r\n")
                broken.recv(1000)
        assert status(port) == 200
    assert (tmp_path / "log").stat().st_size < 10_000


def test_a_connection_that_sends_no_request_in_time_is_closed_and_another_is_not(tmp_path: Path) -> None:
    with dashboard(tmp_path, seconds=1.0) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(HALF_A_REQUEST)
            with suppress(ConnectionResetError):
                assert connection.recv(1) == b"", "it is closed without an answer"
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(HALF_A_REQUEST + b"\r\n")
            assert connection.recv(15).startswith(b"HTTP/1.1 200")
