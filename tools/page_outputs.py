"""Run the code of pages and renew the output that they show: the ``text`` block that follows a code block.

python tools/page_outputs.py docs/tutorials/*.md
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.helpers.documents import execute

BLOCK = re.compile(r"```(python|sh)\n(.*?)```(\n\n```text\n.*?```)?", flags=re.DOTALL)


def renew_outputs(page: Path) -> None:
    """Execute the code blocks of a page in order, in an empty folder, and write what they print into the page."""
    with tempfile.TemporaryDirectory() as folder:

        def run(match: re.Match[str]) -> str:
            language, code, shown = match.groups()
            output = execute(language, code, Path(folder)).rstrip()
            block = f"```{language}\n{code}```"
            return f"{block}\n\n```text\n{_without_trailing_blanks(output)}\n```" if shown else block

        page.write_text(BLOCK.sub(run, page.read_text()))


def _without_trailing_blanks(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        renew_outputs(Path(name))
