"""Facts about the computer: cores, the user's folders, and signals that have to wait."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix
from platformdirs.windows import Windows

from recollect._system import available_cores, defer_signals, user_folder


def test_the_cores_that_this_process_may_use_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert available_cores() == 3


@pytest.mark.parametrize(("counted", "expected"), [(8, 8), (None, 1)])
def test_where_that_is_not_known_all_cores_count(
    monkeypatch: pytest.MonkeyPatch, counted: int | None, expected: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert available_cores() == expected


@pytest.mark.parametrize(
    ("system", "variables", "cache", "data"),
    [
        ("linux", {}, "/home/me/.cache/recollect", "/home/me/.local/share/recollect"),
        ("linux", {"XDG_CACHE_HOME": "/c", "XDG_DATA_HOME": "/d"}, "/c/recollect", "/d/recollect"),
        (
            *("linux", {"XDG_CACHE_HOME": "relative", "XDG_DATA_HOME": "relative"}),
            *("/home/me/.cache/recollect", "/home/me/.local/share/recollect"),
        ),
        ("darwin", {}, "/home/me/Library/Caches/recollect", "/home/me/Library/Application Support/recollect"),
        ("win32", {}, "/local/recollect", "/local/recollect/data"),
        ("darwin", {"OWN_CACHE": "~/c", "OWN_DATA": "/d", "XDG_DATA_HOME": "/xdg"}, "/home/me/c", "/d"),
        ("win32", {"OWN_CACHE": "/c", "OWN_DATA": "~/d"}, "/c", "/home/me/d"),
    ],
)
def test_a_folder_follows_the_conventions_of_the_system_unless_a_variable_names_it(
    monkeypatch: pytest.MonkeyPatch, system: str, variables: dict[str, str], cache: str, data: str
) -> None:
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/home/me"} | variables).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("platformdirs.PlatformDirs", {"linux": Unix, "darwin": MacOS, "win32": Windows}[system])
    monkeypatch.setattr("platformdirs.windows.get_win_folder", lambda _: "/local")
    monkeypatch.setattr("recollect._system.sys.platform", system)
    assert (user_folder("cache", "OWN_CACHE"), user_folder("data", "OWN_DATA")) == (Path(cache), Path(data))


def test_without_a_home_the_folder_for_temporary_files_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(_path: str) -> str:
        raise RuntimeError("could not determine home directory")

    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("platformdirs.PlatformDirs", Unix)
    monkeypatch.setattr("platformdirs.unix._expand_user", homeless)
    temporary = Path(tempfile.gettempdir())
    assert user_folder("cache", "OWN_CACHE") == temporary / "recollect"
    assert user_folder("data", "OWN_DATA") == temporary / "recollect-data"


def test_signals_wait_until_the_block_is_through() -> None:
    done = []

    @defer_signals()
    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("the block went on")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["the block went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_signals_without_a_handler_and_errors_pass_as_they_would() -> None:
    @defer_signals()
    def failing() -> None:
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        raise ValueError("from inside")

    with pytest.raises(ValueError, match="from inside"):
        failing()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_outside_the_main_thread_nothing_changes() -> None:
    seen = []

    def look() -> None:
        with defer_signals():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
