"""A dashboard in a process of its own, on a real file; what it shows and how it is asked."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tests.browser.pages import Opened, table

from recollect import Run

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

SPACE: dict[str, Any] = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def runs(task: str, count: int = 6) -> Run:
    configs = [{"x": (7 * k % 11) / 10, "y": (3 * k % 11) / 10} for k in range(count)]
    return Run(task, configs, [(c["x"] - 0.3) ** 2 + c["y"] for c in configs], space=SPACE)


@contextmanager
def served(file: Path, *options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a memory; yields the address and the process."""
    command = [sys.executable, "-m", "recollect", "dashboard", str(file), "--port", "0", "--no-browser", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.match(r"(http://\S+)/ shows .*tuning\.db; press Ctrl-C to stop$", line)
            assert found is not None, line + (process.stderr.read() if process.stderr and not line else "")
            yield found[1], process
        finally:
            process.kill()


def ask(url: str, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Ask the server without a browser, byte by byte as given."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def best_table(page: Page) -> Locator:
    return table(page, "Which configuration was best")


def only_from(shown: Opened, server: str) -> bool:
    return all(url.startswith(f"{server}/") for url in shown.requests)
