"""MkDocs hooks: pages that the repository has elsewhere, pages generated from the program, links and formulas.

`mkdocs.yml` names this file. Pages outside ``docs/`` (`CHANGELOG.md` and the like) become pages of the site, so nothing
is written twice. A link to a file that is no page of the site leads to the repository, or is plain text while the
project has no public address (`site_map`).
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from recollect.cli.formulas import BLOCK, INLINE
from recollect.cli.help_pages import page_title
from recollect.optimizer.default_method import DEFAULT_METHOD
from recollect.storage.studies import DEFAULT_PROBLEM

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from api_reference import api_reference  # noqa: E402
from command_reference import command_reference  # noqa: E402
from example_gallery import gallery  # noqa: E402
from site_map import BORROWED, is_placeholder, page_of, project_urls  # noqa: E402

FENCE = re.compile(r"(^```.*?^```)", flags=re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"[\w/-]+\.md")  # of a page: a reader of the site knows its title
FROM_ELSEWHERE = re.compile(r'<(?:script|img|iframe|link rel="stylesheet")[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
LINK = re.compile(r"(!?)\[([^]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def heading_anchor(text: str, separator: str = "-") -> str:
    """Return the anchor of a heading as GitHub builds it, so that links work there and on the site."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the addresses from `pyproject.toml`, and GitHub's anchors."""
    urls = project_urls()
    if not is_placeholder(urls["Documentation"]):
        config.site_url, config.repo_url = urls["Documentation"], urls["Source"]
    config.mdx_configs.setdefault("toc", {})["slugify"] = heading_anchor
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are borrowed or generated."""
    for name, source in BORROWED.items():
        text = gallery() if name == "examples.md" else (ROOT / source).read_text()
        files.append(File.generated(config, name, content=text))
    for name, text in ({"command-reference.md": command_reference()} | api_reference()).items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page for the site, and its formulas as MathML, which browsers show without a script."""
    origin = ROOT / BORROWED.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    source = config.repo_url
    if page.file.src_uri == "architecture.md":
        markdown = decisions_as_headings(markdown)
    markdown = BLOCK.sub(lambda match: f'<div class="formula">{convert(match[1], display="block")}</div>', markdown)
    markdown = INLINE.sub(lambda match: f"<span>{convert(match[1])}</span>", markdown)
    parts = FENCE.split(markdown)
    for index in range(0, len(parts), 2):
        parts[index] = LINK.sub(lambda match: _site_link(match, origin, page, files, source), parts[index])
    return "".join(parts)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001 - MkDocs passes it
    """Show defaults instead of the names of constants; refuse a page that loads something from elsewhere."""
    if found := FROM_ELSEWHERE.search(output):
        raise PluginError(f"{page.file.src_uri} loads something from elsewhere: {found[0]}")
    for name, value in {"DEFAULT_METHOD": DEFAULT_METHOD, "DEFAULT_PROBLEM": DEFAULT_PROBLEM}.items():
        output = output.replace(f">{name}<", f'>"{value}"<')
    return output


def decisions_as_headings(architecture: str) -> str:
    """Give each decision a heading of its own: ``* *Title.* Reasons`` becomes a heading and a paragraph."""
    head, mark, decisions = architecture.partition("## Decisions\n")
    decisions = re.sub(r"^\*\*(.+)\*\*$", r"### \1", decisions, flags=re.MULTILINE)
    bullet = re.compile(r"^\* \*(.+?)\*(.*?)(?=^\* |^#|\Z)", flags=re.MULTILINE | re.DOTALL)

    def heading(match: re.Match[str]) -> str:
        title, reasons = " ".join(match[1].split()), re.sub(r"\n  ", "\n", match[2]).strip()
        text = reasons if title.endswith(".") else f"{title}{'' if reasons[:1] in ',.:' else ' '}{reasons}"
        return f"#### {title.rstrip('.')}\n\n{text}\n\n"

    return head + mark + bullet.sub(heading, decisions)


def _site_link(match: re.Match[str], origin: Path, page: Page, files: Files, source: str | None) -> str:
    image, text, target, anchor = match.groups(default="")
    if "://" in target or target.startswith("mailto:"):
        return match[0]
    path = (origin.parent / target).resolve()
    inside = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    if (uri := page_of(inside)) is not None and files.get_file_from_path(uri) is not None:
        shown = page_title(path.read_text()) if FILE_NAME.fullmatch(text) else text
        return f"{image}[{shown}]({os.path.relpath(uri, Path(page.file.src_uri).parent)}{anchor})"
    if path.is_relative_to(ROOT / "docs") or not path.exists():
        return match[0]  # a broken link: MkDocs reports it
    return f"[{text}]({source}/blob/main/{inside}{anchor})" if source else _plain(text)


def _plain(text: str) -> str:
    return text if "`" in text or " " in text else f"`{text}`"
