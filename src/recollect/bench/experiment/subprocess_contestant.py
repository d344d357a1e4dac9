"""A program as a contestant: it runs in an environment of its own and speaks JSON, one object per line.

The program reads from standard input and answers on standard output:

    {"space": {...}, "past": [...], "horizon": 50, "seed": 0, "candidates": [...] or null}    the first line, no answer
    {"ask": true}                                           answered by {"config": {...}}
    {"tell": {"config": {...}, "value": 0.25}}              no answer; the value of a failed evaluation is null

``space`` is in ConfigSpace's JSON format; a past run is ``{"task": ..., "configs": [...], "values": [...]}``. The input
ends with the run. What the program writes to standard error is shown if it fails.
"""

from __future__ import annotations

import json
import math
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from recollect.bench.experiment.contestants import RunSetting
from recollect.errors import InputError
from recollect.runs.run import Config
from recollect.space.serialization import to_json

SHOWN_CHARACTERS = 2000  # of what a program that failed has written
SECONDS_TO_END = 10.0


class SubprocessContestant:
    """A program that is asked and told."""

    def __init__(self, command: Sequence[str], setting: RunSetting) -> None:
        """Start the program and send it what the run is about."""
        self._command, self._space, pipe = " ".join(command), setting.space, subprocess.PIPE
        message = self._message(setting)
        # It is read and closed when the program has ended.
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=self._errors, text=True, encoding="utf-8"
            )
        except OSError as error:
            self._errors.close()
            raise InputError(f"{self._command}: the program cannot be started: {error.strerror or error}") from error
        try:
            self._send(message)
        except InputError:  # it has ended already, and nobody else can close what is open
            self.close()
            raise

    def ask(self) -> Config:
        """Return what the program answers."""
        self._send({"ask": True})
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._ended()
        try:
            answer = json.loads(line)
            config: Config = dict(answer["config"])
        except (ValueError, TypeError, KeyError) as error:
            expected = '{"config": {...}}'
            raise InputError(f"{self._command}: expected {expected} in one line, got {line[:200]!r}") from error
        return config

    def tell(self, config: Config, value: float) -> None:
        """Send the value; JSON has no nan."""
        self._send({"tell": {"config": self._legal([config])[0], "value": value if math.isfinite(value) else None}})

    def close(self) -> None:
        """End the program."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.close()
            self._process.wait(SECONDS_TO_END)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            self._process.stdout.close()
            self._errors.close()

    def _message(self, setting: RunSetting) -> dict[str, Any]:
        """Return what the run is about; evaluations that failed are left out of past runs."""
        past = [
            {
                "task": run.task,
                "configs": self._legal([trial.config for trial in run.usable]),
                "values": run.y.tolist(),
            }
            for run in setting.past
        ]
        candidates = None if setting.candidates is None else self._legal(setting.candidates)
        limits = {"horizon": setting.horizon, "seed": setting.seed, "candidates": candidates}
        return {"space": json.loads(to_json(setting.space)), "past": past, **limits}

    def _legal(self, configs: Sequence[Config]) -> list[Config]:
        """Return configurations exactly within the space: ConfigSpace rounds bounds, and a value may miss one so."""
        return self._space.decode(self._space.encode(configs))

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._ended() from error

    def _ended(self) -> InputError:
        """Return the error for a program that has ended: its code and the end of what it wrote."""
        code = self._process.wait()
        self._errors.seek(0)
        text = self._errors.read()[-SHOWN_CHARACTERS:].strip()
        return InputError(f"{self._command}: the program ended with code {code} in the middle of a run:\n{text}")
