"""Markdown pages of the repository: their code blocks, links and anchors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "benchmarks" / "README.md", ROOT / "examples" / "README.md"]
)
FENCE = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)


def code_blocks(text: str) -> list[tuple[str, str]]:
    """Return the code blocks of a page in order, as language and text."""
    return re.findall(r"```(python|sh)\n(.*?)```", text, flags=re.DOTALL)


def python_code(page: Path) -> str:
    """Return all Python code of a page as one script."""
    return "\n\n".join(text for language, text in code_blocks(page.read_text()) if language == "python")


def execute(language: str, code: str, folder: Path, *, python: Path = Path(sys.executable)) -> str:
    """Run a code block as a user would, in a folder; a block that starts with a file name is written there instead."""
    if named := re.match(r"# (\S+\.py)\n", code):
        (folder / named[1]).write_text(code)
        return ""
    path = os.pathsep.join([str(python.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [python, "-W", "error", "-c", code] if language == "python" else ["sh", "-euc", code]
    environment = os.environ | {"PATH": path, "COLUMNS": "120"}
    process = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, f"{code}\n{process.stdout}{process.stderr}"
    return process.stdout


def links(text: str) -> list[str]:
    """Return the targets of all relative links and images of a page."""
    prose = FENCE.sub("", text)
    targets = re.findall(r"\]\(([^)\s]+)\)", prose) + re.findall(r'<img src="([^"]+)"', prose)
    return [target for target in targets if "://" not in target]


def anchors(text: str) -> set[str]:
    """Return the anchors of all headings of a page, as GitHub builds them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), flags=re.MULTILINE)
    plain = [re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", heading) for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}
