"""A real browser for the tests: Chromium, headless, driven by Playwright, offline.

Where there is none it is installed, if that is possible without asking anybody: on Debian, as root. Otherwise the tests
are skipped, and say why.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser.pages import Opened, new_page, wait_until_drawn
from tests.browser.servers import served

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
PATIENCE = 60_000  # milliseconds: the machine may be busy with other things


def find_browser() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


def install_browser() -> None:
    """Install Chromium; of several processes that want to, one does, and the others wait."""
    with (Path(tempfile.gettempdir()) / "recollect-tests-chromium.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if find_browser() is None:
            quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]):
                subprocess.run(command, env=quiet, capture_output=True, check=False, timeout=600)


@pytest.fixture(scope="session")
def browser_path() -> str:
    found = find_browser()
    if found is None and os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get"):
        install_browser()
        found = find_browser()
    if found is None:
        pytest.skip("no Chromium here, and it can be installed by the tests only as root on Debian")
    return found


@pytest.fixture(scope="session")
def browser(browser_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    playwright = pytest.importorskip("playwright.sync_api", reason="the browser is driven by Playwright")
    with playwright.sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("browser"), executable_path=browser_path, args=list(FLAGS), headless=True
        )
        context.set_offline(True)
        context.set_default_timeout(PATIENCE)
        yield context
        context.close()


@pytest.fixture(scope="session")
def open_file(browser: BrowserContext) -> Callable[[Path], Opened]:
    """Return the function that opens a file and waits until all its figures are drawn."""

    def opened(path: Path) -> Opened:
        found = new_page(browser)
        found.page.goto(path.as_uri())
        wait_until_drawn(found.page)
        return found

    return opened


@pytest.fixture(scope="module")
def opened(open_file: Callable[[Path], Opened], file: Path) -> Opened:
    """Return the page that a module's fixture ``file`` has made."""
    return open_file(file)


@pytest.fixture(scope="module")
def server(file: Path) -> Iterator[str]:
    """Serve the memory that a module's fixture ``file`` has made; yields the address."""
    with served(file) as (url, process):
        yield url
        assert process.poll() is None, "it is still there"


@pytest.fixture(scope="module")
def show(browser: BrowserContext) -> Iterator[Callable[[str], Opened]]:
    """Return the function that opens an address; the browser reaches this machine meanwhile."""
    browser.set_offline(False)

    def opened(url: str) -> Opened:
        found = new_page(browser)
        found.page.goto(url)
        return found

    yield opened
    browser.set_offline(True)
