"""The reference of the command line, generated from the program itself.

Commands are those of Click, which Typer brings or depends on, depending on its version: hence no type for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from recollect.cli.main import app

HEAD = """# Command reference

Generated from `recollect --help` and the help of every command. The page
[The command line](command-line.md) explains the commands with examples.
"""


def command_reference() -> str:
    """Return the page: one section for each command, with its help text, arguments and options."""
    return "\n".join([HEAD, *_sections(typer.main.get_command(app), ("recollect",))])


def _sections(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    context = command.context_class(command, info_name=" ".join(path))
    yield f"## `{' '.join(path)}`\n"
    yield f"{_prose(command.help)}\n"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n"
    yield from _parameters(command, context)
    if command.epilog:
        yield f"```text\n{_text(command.epilog)}\n```\n"
    for name, child in getattr(command, "commands", {}).items():
        yield from _sections(child, (*path, name))


def _parameters(command: Any, context: Any) -> Iterator[str]:
    rows = [record for parameter in command.get_params(context) if (record := parameter.get_help_record(context))]
    if rows:
        yield "| argument or option | meaning |\n|---|---|"
        for name, meaning in rows:
            yield f"| `{_cell(name)}` | {_cell(meaning)} |"
        yield ""


def _cell(text: str) -> str:
    return " ".join(_text(text).split()).replace("|", "\\|")


def _text(text: str) -> str:
    return text.replace("\b", "").strip("\n")


def _prose(text: str | None) -> str:
    """Return a help text as Markdown; a block that keeps its lines in the terminal keeps them here."""
    blocks = re.split(r"\n\s*\n", (text or "").strip())
    return "\n\n".join(f"```text\n{_text(block)}\n```" if block.startswith("\b") else block for block in blocks)
