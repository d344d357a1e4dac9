"""The gallery: each example with its code and what it prints.

    python tools/example_gallery.py [NAME ...]      # runs the examples, writes docs/example-outputs/*.txt

The site's page is put together from these files when it is built.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES, OUTPUTS = ROOT / "examples", ROOT / "docs" / "example-outputs"
NEEDS_POSTGRESQL = {"parallel_postgresql.py"}
FOLDERS = {"shell_command": "run.sh"}


def example_files() -> dict[str, Path]:
    """Return the file that starts each example, by the example's name."""
    files = {path.name: path for path in sorted(EXAMPLES.glob("*.py"))}
    return files | {folder: EXAMPLES / folder / script for folder, script in FOLDERS.items()}


def gallery() -> str:
    """Return README of the examples, followed by the code and the output of each."""
    parts = [(EXAMPLES / "README.md").read_text()]
    for name, path in example_files().items():
        parts.append(f"## {name}\n\n```{'sh' if path.suffix == '.sh' else 'python'}\n{path.read_text().strip()}\n```\n")
        output = OUTPUTS / f"{Path(name).stem}.txt"
        parts.append(f"It prints\n\n```text\n{output.read_text().rstrip()}\n```\n")
    return "\n".join(parts)


def run_examples(names: Sequence[str] = ()) -> None:
    """Run each example, or those with these names, in an empty folder and store what it prints."""
    sys.path.insert(0, str(ROOT))
    from tests.helpers.servers import postgres_server

    OUTPUTS.mkdir(exist_ok=True)
    programs = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": programs + os.pathsep + os.environ["PATH"], "COLUMNS": "100"}
    for name, path in example_files().items():
        if names and name not in names:
            continue
        command = ["sh" if path.suffix == ".sh" else sys.executable, str(path)]
        with tempfile.TemporaryDirectory() as folder, ExitStack() as servers:
            if name in NEEDS_POSTGRESQL:
                command.append(servers.enter_context(postgres_server()))
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        text = re.sub(re.escape(str(EXAMPLES)), "examples", done.stdout)
        (OUTPUTS / f"{Path(name).stem}.txt").write_text("\n".join(map(str.rstrip, text.splitlines())) + "\n")


if __name__ == "__main__":
    run_examples(sys.argv[1:])
