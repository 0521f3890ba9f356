"""Hooks of mkdocs for the site of docs/: what GitHub shows there by itself, and mkdocs does not."""

import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

_FENCE = re.compile(r"(^ *```.*?^ *``` *$)", re.MULTILINE | re.DOTALL)
# Not the first: a page without a heading at its top has its file's name as title.
_HEADING = re.compile(r"^(#{2,6}) +(.+?) *$", re.MULTILINE)
_LIST_BELOW_TEXT = re.compile(r"^(?![ \-|>#]|\d+\. )(.+)\n(?=- |\d+\. )", re.MULTILINE)
_LINK_OUT = re.compile(r"\]\(((?:\.\./)+[^)\s]+)\)")


class ListsAsOnGitHub(Extension):
    """Nests what is indented by two blanks, not only by four."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the library's name
        md.tab_length = 2


def on_config(config: MkDocsConfig) -> None:
    config.markdown_extensions.append(ListsAsOnGitHub())
    config.nav = [_expanded(entry, Path(config.docs_dir)) for entry in config.nav]


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: Any) -> str:
    source = Path(page.file.abs_src_path)
    if source.name.endswith(".ja.md"):
        english = source.with_name(source.name.replace(".ja.md", ".md")).read_text(encoding="utf-8")
        markdown = _with_anchors_of(english, markdown)
    markdown = _outside_fences(markdown, lambda part: _LIST_BELOW_TEXT.sub(r"\1\n\n", part))
    folder = posixpath.dirname(page.file.src_uri)
    return _LINK_OUT.sub(lambda link: f"]({_address(link[1], folder, config)})", markdown)


def _expanded(entry: Any, docs: Path) -> Any:
    """An entry of the navigation with the pages that a pattern stands for."""
    if isinstance(entry, dict):
        return {title: _expanded(inner, docs) for title, inner in entry.items()}
    if isinstance(entry, list):
        return [_expanded(inner, docs) for inner in entry]
    return sorted(path.relative_to(docs).as_posix() for path in docs.glob(entry)) if "*" in entry else entry


def _with_anchors_of(english: str, markdown: str) -> str:
    """A translation, whose headings are also reached by the links to the English ones: pages without a translation have such links."""
    slug = slugify(case="lower")
    anchors = iter([slug(title.replace("`", ""), "-") for part in _FENCE.split(english)[::2] for _, title in _HEADING.findall(part)])

    def anchored(heading: re.Match[str]) -> str:
        marks, title = heading.groups()
        anchor = next(anchors)
        return heading[0] if anchor == slug(title.replace("`", ""), "-") else f'{marks} <a id="{anchor}"></a>{title}'

    return _outside_fences(markdown, lambda part: _HEADING.sub(anchored, part))


def _outside_fences(markdown: str, change: Callable[[str], str]) -> str:
    return "".join(part if position % 2 else change(part) for position, part in enumerate(_FENCE.split(markdown)))


def _address(link: str, folder: str, config: MkDocsConfig) -> str:
    """Where a link leads: out of docs/ means to the repository."""
    path = posixpath.normpath(posixpath.join("docs", folder, link))
    return link if path.startswith("docs/") else f"{config.extra['repository']}/blob/main/{path}"
