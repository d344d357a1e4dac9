"""Slow, broken and hostile requests to a dashboard that runs in a process of its own."""

from __future__ import annotations

import atexit
import http.client
import re
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import quote

import numpy as np
from tests.robustness import hostile
from tests.robustness.files import originals
from tests.robustness.harness import Skip

_process = ExitStack()
_port: list[int] = []

PATHS = ("/", "/problem", "/run", "/static/x", "/..%2f..%2fetc/passwd", "/run?problem=demo&task=task%200", "/events")
METHODS = ("GET", "POST", "PUT", "HEAD", "OPTIONS", "TRACE", "get", "G" * 5000)


def _dashboard() -> int:
    """The port of the dashboard, which is started once."""
    if not _port:
        folder = Path(_process.enter_context(tempfile.TemporaryDirectory()))
        memory = folder / "memory.db"
        memory.write_bytes(dict(originals())["memory.db"])
        command = [sys.executable, "-m", "recollect", "dashboard", str(memory), "--port", "0", "--no-browser"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        _process.callback(process.wait)
        _process.callback(process.kill)
        atexit.register(_process.close)  # now: before temporary folders are removed
        assert process.stdout is not None
        address = re.search(r"http://[\d.]+:(\d+)", process.stdout.readline())
        if address is None:
            raise Skip("the dashboard did not start: is recollect[dashboard] installed?")
        _port.append(int(address[1]))
    return _port[0]


def _raw(rng: np.random.Generator) -> bytes:
    """A request that may be broken anywhere."""
    if rng.random() < 0.2:
        return bytes(rng.integers(0, 256, size=int(rng.integers(1, 3000)), dtype=np.uint8))
    names = str(hostile.pick(rng, hostile.NAMES)).encode("utf-8", "surrogatepass")
    path = hostile.pick(rng, PATHS) + ("?task=" + quote(names) if rng.random() < 0.5 else "")
    lines = [f"{hostile.pick(rng, METHODS)} {path} HTTP/1.{rng.integers(3)}".encode(), b"Host: 127.0.0.1"]
    for _ in range(int(rng.integers(0, 5))):
        header = hostile.pick(
            rng, [b"Cookie", b"Origin", b"Content-Length", b"Transfer-Encoding", b"Range", b"X" * 9000]
        )
        lines.append(header + b": " + hostile.pick(rng, [b"", b"-1", b"9" * 50, b"chunked", names, b"\xff"]))
    request = b"\r\n".join(lines) + b"\r\n\r\n"
    return request[: int(rng.integers(1, len(request) + 1))] if rng.random() < 0.3 else request


def requests(rng: np.random.Generator, _folder: Path) -> int:
    """Send broken requests over connections that stay half open; afterwards a page must still be served."""
    port = _dashboard()
    count = int(rng.integers(1, 40))
    with ExitStack() as connections:
        for _ in range(count):
            with suppress(OSError):  # a refused or reset connection is a fine answer
                connection = connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))
                connection.sendall(_raw(rng))
                if rng.random() < 0.3:
                    connection.settimeout(0.05)
                    connection.recv(100)
        page = http.client.HTTPConnection("127.0.0.1", port, timeout=8)
        page.request("GET", "/")
        answer = page.getresponse()
        assert answer.status == 200, f"after {count} broken requests a page was answered with {answer.status}"
        answer.read()
        page.close()
    return count + 1
