"""What is asked of the computer: cores, and folders of the user (see also the tests of cache and data folder)."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from recollect.system import UserFolder, cores, signals_wait

FOLDER = UserFolder("RECOLLECT_THINGS", "things", "recollect/things", "Things/recollect", ("XDG_THINGS", ".things"))


def test_the_cores_that_this_process_may_use_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert cores() == 3


@pytest.mark.parametrize(("counted", "expected"), [(8, 8), (None, 1)])
def test_where_that_is_not_known_all_cores_count(
    monkeypatch: pytest.MonkeyPatch, counted: int | None, expected: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: counted)
    assert cores() == expected


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "/home/me/.things/recollect"),
        ("linux", {"XDG_THINGS": "/elsewhere"}, "/elsewhere/recollect"),
        ("linux", {"XDG_THINGS": "not/absolute"}, "/home/me/.things/recollect"),
        ("freebsd14", {}, "/home/me/.things/recollect"),
        ("darwin", {"XDG_THINGS": "/elsewhere"}, "/home/me/Library/Things/recollect"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/recollect/things"),
        ("win32", {}, "/home/me/AppData/Local/recollect/things"),
        ("darwin", {"RECOLLECT_THINGS": "~/mine"}, "/home/me/mine"),
    ],
)
def test_a_folder_is_where_the_system_has_such_things_unless_named(
    monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    for name in ("RECOLLECT_THINGS", "XDG_THINGS", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert FOLDER.path() == Path(expected)


def test_signals_wait_until_the_block_is_through() -> None:
    done = []

    @signals_wait()
    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("the block went on")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == ["the block went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_signals_without_a_handler_and_errors_pass_as_they_would() -> None:
    @signals_wait()
    def failing() -> None:
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        raise ValueError("from inside")

    with pytest.raises(ValueError, match="from inside"):
        failing()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_outside_the_main_thread_nothing_changes() -> None:
    seen = []

    def look() -> None:
        with signals_wait():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
