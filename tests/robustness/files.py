"""Files from elsewhere, damaged: what `read_runs` imports, and the database behind a memory."""

from __future__ import annotations

import functools
import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from tests.robustness import hostile

import recollect

SPACE = {"lr": (1e-4, 1e-1, "log"), "layers": (1, 5), "act": ["relu", "tanh", None]}
SEEDS = Path(__file__).parents[1] / "data" / "importers"


def runs(count: int = 2, size: int = 5) -> list[recollect.Run]:
    """A few runs with failures and notes."""
    made = []
    for number in range(count):
        configs = recollect.Optimizer(SPACE, method="random", seed=number).ask(size)
        values: list[Any] = [hostile.smooth(config) for config in configs]
        values[1] = recollect.FAILED
        made.append(recollect.Run(f"task {number}", configs, values, space=SPACE))
    return made


@functools.cache
def originals() -> tuple[tuple[str, bytes], ...]:
    """Sound files of every kind, by name."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for suffix in (".csv", ".jsonl"):
            recollect.write_runs(runs(), folder / f"runs{suffix}")
        rows = [{"task": "a", "lr": 0.1, "layers": 2, "value": 0.5, "state": "ok", "seconds": 1.5}] * 3
        (folder / "rows.json").write_text(json.dumps(rows))
        (folder / "plain.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (folder / "runs.csv.gz").write_bytes(gzip.compress((folder / "runs.csv").read_bytes()))
        memory = recollect.Memory(str(folder / "memory.db"))
        for run in runs():
            memory.add(run, "demo")
        memory.close()
        found = [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())]
    found += [(path.name, path.read_bytes()) for path in sorted(SEEDS.rglob("*.json"))]
    return tuple(found)


def _mutated(rng: np.random.Generator, content: bytes) -> bytes:
    """Change, cut, double or replace parts of a file; structured changes where it is JSON or text."""
    style = rng.random()
    if style < 0.35:
        try:
            return json.dumps(_changed(rng, json.loads(content))).encode()
        except (ValueError, RecursionError):
            pass
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(data) + 1))
        piece = hostile.pick(
            rng,
            [
                bytes(rng.integers(0, 256, size=int(rng.integers(1, 9)), dtype=np.uint8)),
                str(hostile.pick(rng, hostile.NAMES)).encode("utf-8", "surrogatepass"),
                *(b"nan", b"1e999", b"-" * 50, b'"', b",", b"\n", b"\x00", b"{" * 2000, b"9" * 400, b"null"),
            ],
        )
        end = at + int(hostile.pick(rng, [0, len(piece), 40]))
        data[at:end] = piece
    if rng.random() < 0.15:
        del data[int(rng.integers(len(data) + 1)) :]
    return bytes(data)


def _changed(rng: np.random.Generator, tree: Any, depth: int = 0) -> Any:
    """A copy of a JSON value with one of its parts replaced by something hostile."""
    hostile_json = [None, True, 10**400, -1, 1.5, "", "nan", [], {}, [[]], {"__enum__": 5}, "x" * 1000, float("nan")]
    if depth > 6 or not isinstance(tree, list | dict) or not tree or rng.random() < 0.15:
        return hostile.pick(rng, hostile_json)
    if isinstance(tree, list):
        at = int(rng.integers(len(tree)))
        return [*tree[:at], _changed(rng, tree[at], depth + 1), *tree[at + 1 :]]
    key = hostile.pick(rng, list(tree))
    copy = dict(tree)
    copy[hostile.name(rng) if rng.random() < 0.1 else key] = _changed(rng, tree[key], depth + 1)
    return copy


def imports(rng: np.random.Generator, folder: Path) -> int:
    """A damaged file is read, or refused with an error of recollect's own; what was read can be learned from."""
    name, content = hostile.pick(rng, originals())
    path = folder / name
    path.write_bytes(_mutated(rng, content))
    found = recollect.read_runs(path)
    optimizer = recollect.Optimizer(SPACE, [run for run in found if run.direction == "minimize"], horizon=5)
    optimizer.tell(optimizer.ask(), 0.5)
    return 4


def databases(rng: np.random.Generator, folder: Path) -> int:
    """A database with changed cells spoils nothing but the trials and studies that they belong to."""
    path = folder / "memory.db"
    path.write_bytes(dict(originals())["memory.db"])
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")]
        for _ in range(int(rng.integers(1, 4))):
            table = hostile.pick(rng, [name for name in tables if name not in ("alembic_version", "version_info")])
            columns = [row[1] for row in connection.execute(f"pragma table_info({table})")]
            column = hostile.pick(rng, columns)
            value = hostile.pick(
                rng,
                [
                    None,
                    0,
                    -1,
                    10**15,
                    1.5,
                    "",
                    "{",
                    "[]",
                    '"x"',
                    "nan",
                    b"\x00\xff",
                    "[" * 5000,
                    "x" * 5000,
                    '{"a": NaN}',
                ],
            )
            rows = [row[0] for row in connection.execute(f"select rowid from {table}")]
            if rows:
                change = f"update or ignore {table} set {column} = ? where rowid = ?"
                try:
                    connection.execute(change, (value, hostile.pick(rng, rows)))
                except sqlite3.Error:
                    continue  # a constraint of the schema
        connection.commit()
    memory = recollect.Memory(str(path))
    try:
        for run in memory.runs("demo"):
            assert all(trial.value is None or np.isfinite(trial.value) for trial in run.trials)
    except recollect.RecollectError:
        pass
    finally:
        memory.close()
    settings: dict[str, Any] = {"trials": 3, "method": "random", "progress": False}
    result = recollect.minimize(hostile.smooth, SPACE, memory=str(path), problem="other", task="new", **settings)
    assert len(result.run) == 3, "a damaged study stopped another task"
    return 5
