"""Values, names and spaces that nobody expects."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

NAMES = (
    *(
        "x",
        "lr",
        "a b",
        "",
        " ",
        "a" * 600,
        "ü",
        "名前",
        "\u202egnp",
        "'; drop table trials; --",
        '"',
        "\\",
        "a/b",
        "../x",
    ),
    *("\n", "\t", "\x00", "\ud800", "<script>alert(1)</script>", "{x}", "%s", "None", "nan", "0", "task", "value"),
)
VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 0.0, -0.0, 1.5, 1e-320, 1e308, -1e308, math.inf, -math.inf, math.nan, 10**400, -(10**400), 2**63),
    *(True, False, None, "", "0.1", "nan", "1e5", b"1", (), (1,), (1, 2, 3, 4), [], [1], {}, {"a": 1}, set(), object()),
    *(1 + 2j, Decimal("0.1"), Fraction(1, 3), np.float32(0.1), np.float64("nan"), np.int64(3), np.bool_(True)),
    *(np.array(0.5), np.array([0.5]), np.array([]), np.str_("x"), range(3), lambda: 0.5, Exception("x"), type),
    *NAMES,
)


def pick(rng: np.random.Generator, options: Any) -> Any:
    """One of the options, as it is (NumPy would turn it into an array)."""
    return options[int(rng.integers(len(options)))]


def name(rng: np.random.Generator) -> str:
    """A name, mostly harmless."""
    return str(pick(rng, NAMES)) if rng.random() < 0.3 else f"p{rng.integers(1000)}"


def legal_space(rng: np.random.Generator) -> dict[str, Any]:
    """A space of one to six hyperparameters that recollect should accept."""
    space: dict[str, Any] = {}
    for number in range(int(rng.integers(1, 7))):
        low, width = float(rng.normal()), float(10.0 ** rng.uniform(-3, 4))
        whole = int(rng.integers(-5, 20))
        space[f"p{number}"] = pick(
            rng,
            [
                (round(low, 6), round(low + width, 6)),
                (10.0 ** int(rng.integers(-8, 0)), 10.0 ** int(rng.integers(1, 6)), "log"),
                (whole, whole + int(rng.integers(1, 40))),
                (1, int(rng.integers(2, 1000)), "log"),
                [f"c{i}" for i in range(int(rng.integers(1, 6)))],
                [None, True, 2.5, "x"],
                pick(rng, [3, "adam", 0.5]),
            ],
        )
    return space


def any_space(rng: np.random.Generator) -> Any:
    """A space in which something may be wrong."""
    if rng.random() < 0.1:
        return pick(rng, VALUES)
    space: dict[Any, Any] = dict(legal_space(rng))
    for _ in range(int(rng.integers(1, 3))):
        entry = pick(
            rng,
            [
                pick(rng, VALUES),
                (pick(rng, VALUES), pick(rng, VALUES)),
                (pick(rng, VALUES), pick(rng, VALUES), "log"),
                (1.0, 2.0, pick(rng, VALUES)),
                [pick(rng, VALUES) for _ in range(int(rng.integers(0, 4)))],
            ],
        )
        space[3 if rng.random() < 0.03 else name(rng)] = entry
    return space


def smooth(config: dict[str, Any]) -> float:
    """A value for any configuration: a sum over its entries."""
    total = 0.0
    for key, entry in config.items():
        usable = isinstance(entry, int | float) and not isinstance(entry, bool) and abs(entry) < 1e6
        total += math.sin((float(entry) if usable else len(str(type(entry)))) / 7) + 0.01 * len(key)
    return total
