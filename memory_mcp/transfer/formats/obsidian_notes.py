"""A note of an Obsidian vault: front matter and body, in the form that we write and in any form that we are given.

ObsidianLoader of langchain-community is not used: it makes text of the lists in a front matter, takes #words in code for
tags, and gives up every note at the first one that it can't parse.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import yaml

# In the front matter of every note that an export wrote: what kind of note it is.
MARK = "memory_mcp"
MEMORY, INDEX = "memory", "index"
# For whoever reads the vault; an import leaves them out.
FOR_READERS = frozenset({MARK, "date", "links", "aliases", "cssclasses"})
FRONT_MATTER_LIMIT = 2 * 1024 * 1024

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
# Printable to JSON; to YAML line breaks, or nothing that may stand there.
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_CODE = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)|(?<!`)(`+)(?!`).+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)
# Obsidian allows letters of every script in a tag and wants one that is no digit.
_TAG = re.compile(r"(?:(?<=\s)|^)#([\w/-]*[^\W\d][\w/-]*)", re.MULTILINE)
_LINK = re.compile(r"\[\[([^\]\[|#^]+)")


@dataclass(frozen=True, slots=True)
class Note:
    """`fields` are None where there is a front matter that can't be read: it stays in the `body`."""

    fields: Mapping[str, Any] | None
    body: str

    @property
    def mark(self) -> str | None:
        """What kind of note of ours it is; None for anybody else's."""
        return str(self.fields[MARK]) if self.fields and MARK in self.fields else None


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Without aliases: a few lines of them can stand for a billion values."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def written(fields: Mapping[str, Any], body: str) -> str:
    """A note of ours. Each field is a line of JSON, which YAML is able to read; the body is as it is, and a line feed."""
    lines = [f"{name}: {value.isoformat() if isinstance(value, date) else _as_yaml(value)}" for name, value in fields.items()]
    return "\n".join(["---", *lines, "---", body]) + "\n"


def note_of(text: str) -> Note:
    """A note as it lies in a vault."""
    front = _FRONT.match(text)
    if not front:
        return Note({}, text)
    try:
        fields = _fields(front[1])
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return Note(None, text)
    body = text[front.end() :]
    # An editor on Windows changes all line ends, ours with them.
    return Note(fields, body.replace("\r\n", "\n") if front[0].startswith("---\r\n") else body)


def tags_in(body: str) -> list[str]:
    """The #tags of a text, without what stands in code."""
    return list(dict.fromkeys(_TAG.findall(_CODE.sub(" ", body))))


def links_in(body: str) -> list[str]:
    """The notes that a text links to, without what stands in code."""
    return list(dict.fromkeys(link.strip() for link in _LINK.findall(_CODE.sub(" ", body)) if link.strip()))


def _fields(front: str) -> dict[str, Any]:
    if len(front) > FRONT_MATTER_LIMIT:
        raise ValueError("it is too long")
    found = yaml.load(front, _Loader)  # noqa: S506  a SafeLoader
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise TypeError("it is no mapping")
    return {str(name): _plain(value) for name, value in found.items() if value is not None}


def _plain(value: Any) -> Any:
    """A value of YAML as one of JSON: its times are text again."""
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(entry) for entry in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _as_yaml(value: Any) -> str:
    return _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
