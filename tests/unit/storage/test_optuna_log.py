"""Optuna is quiet while the library works, and then as it was before."""

from __future__ import annotations

import threading

import optuna

from recollect.storage.optuna_log import quiet_optuna


def test_threads_that_keep_optuna_quiet_leave_its_level_as_it_was() -> None:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.INFO)
    first_is_in, second_is_in = threading.Event(), threading.Event()
    seen: list[int] = []

    def first() -> None:
        with quiet_optuna():
            first_is_in.set()
            second_is_in.wait(10)

    def second() -> None:
        first_is_in.wait(10)
        with quiet_optuna():
            second_is_in.set()
            threads[0].join(10)
            seen.append(optuna.logging.get_verbosity())  # the first one has left

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert seen == [optuna.logging.WARNING]
        assert optuna.logging.get_verbosity() == optuna.logging.INFO
    finally:
        optuna.logging.set_verbosity(before)
