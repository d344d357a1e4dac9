"""The program's side of the protocol between `recollect bench run` and a contestant in another environment.

``serve(create)`` reads the setting of the run, calls ``create(setting)`` and passes on what is asked and told; a failed
evaluation is told as nan. What the library prints goes to standard error, so that it cannot be mistaken for an answer.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from typing import Any


def serve(create: Callable[[dict[str, Any]], Any]) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contestant = create(json.loads(sys.stdin.readline()))
    for line in sys.stdin:
        message = json.loads(line)
        if "ask" in message:
            answers.write(json.dumps({"config": plain(contestant.ask())}) + "\n")
            answers.flush()
        else:
            config, value = message["tell"]["config"], message["tell"]["value"]
            contestant.tell(config, math.nan if value is None else value)


def plain(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with values that JSON knows, instead of NumPy's."""
    return {name: value.item() if hasattr(value, "item") else value for name, value in config.items()}
