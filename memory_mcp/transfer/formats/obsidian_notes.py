"""Parses and formats the notes of an Obsidian vault: front matter, body, tags and links.

langchain-community's ObsidianLoader is not used: it turns lists in the front matter into text, takes #words in code for
tags, and fails for the whole vault at the first note that it can't parse.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import yaml

# The front matter key of every exported note; its value is the kind of note.
MARK = "memory_mcp"
MEMORY, INDEX = "memory", "index"
# Front matter for readers of the vault; an import ignores it.
READER_FIELDS = frozenset({MARK, "date", "links", "aliases", "cssclasses"})
# The name of an exported note ends with a digest of the key of its memory.
_DIGEST_CHARACTERS = 10
_NAME_WITH_DIGEST = re.compile(rf"\A(?:.* )?([0-9a-f]{{{_DIGEST_CHARACTERS}}})")
FRONT_MATTER_LIMIT = 2 * 1024 * 1024

# YAML, or between plus signs TOML.
_FRONT = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^\1[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
# JSON leaves these unescaped; in YAML they are line breaks or not allowed.
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
LONGEST_NUMBER_BITS = 1024  # a float holds no more, and Python writes no more than 4,300 digits

# Code between backticks ends within its paragraph, and within so many characters that a text of backticks alone is read in linear time.
_IN_CODE = (
    r"^[ \t]*(?P<fence>```+|~~~+).*?(?:^[ \t]*(?P=fence)[`~]*[ \t]*$|\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).){1,2000}?(?<!`)(?P=ticks)(?!`)"
)
_CODE = re.compile(_IN_CODE, re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(rf"(?P<comment>%%.*?%%)|{_IN_CODE}", re.MULTILINE | re.DOTALL)
# ![[picture.png]] shows a file; [[人/母#誕生日|母]] names a note by its path, a heading in it, and what is shown.
_NOTE_LINK = re.compile(
    rf"(?P<shows>!?)\[\[(?P<path>[^\]\[|#^\n]+)(?P<place>[#^][^\]\[|\n]*)?(?:\|(?P<alias>[^\]\[\n]*))?\]\]|{_IN_CODE}",
    re.MULTILINE | re.DOTALL,
)
_ATTACHMENT = re.compile(r"\.(?!md$)[A-Za-z0-9]{1,5}$")
# Placeholders of Obsidian's own templates and of the plugin Templater.
_PLACEHOLDER = re.compile(r"\{\{(?:date|time|title)(?::[^{}\n]*)?\}\}|<%(?:[^<%]|<(?!%)|%(?!>)){0,2000}%>")
_TEMPLATE_FOLDER = re.compile(r"\A[\W\d_]*(?:templates?|テンプレート|テンプレ)", re.IGNORECASE)
# Obsidian allows letters of every script in a tag and requires one character that is not a digit.
_TAG = re.compile(r"(?:(?<=\s)|^)#([\d/-]*+[^\W\d][\w/-]*+)", re.MULTILINE)
_LINK = re.compile(r"\[\[([^\]\[|#^]+)")


@dataclass(frozen=True, slots=True)
class Note:
    """A parsed note. `fields` is None if the front matter can't be parsed; it then stays in `body`."""

    fields: Mapping[str, Any] | None
    body: str

    @property
    def mark(self) -> str | None:
        """The kind of an exported note; None for any other note."""
        return str(self.fields[MARK]) if self.fields and MARK in self.fields else None


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """A loader that refuses aliases: a few lines of them can expand to a billion values."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def format_note(fields: Mapping[str, Any], body: str) -> str:
    """The text of an exported note. Each field is a line of JSON, which is valid YAML; the body is unchanged, plus a line feed."""
    lines = [f"{name}: {value.isoformat() if isinstance(value, date) else _as_yaml(value)}" for name, value in fields.items()]
    return "\n".join(["---", *lines, "---", body]) + "\n"


def parse_note(text: str) -> Note:
    """Parses the text of a note."""
    front = _FRONT.match(text)
    if not front:
        return Note({}, text)
    try:
        fields = _fields(front[2], is_toml=front[1] == "+++")
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return Note(None, text)
    body = text[front.end() :]
    # An editor on Windows changes all line endings, those of the export too.
    return Note(fields, body.replace("\r\n", "\n") if front[0].startswith(f"{front[1]}\r\n") else body)


def has_front_matter(head: bytes) -> bool:
    """Whether a file begins with a front matter that has fields."""
    return bool(parse_note(head.decode("utf-8-sig", errors="replace")).fields)


def tags_in(body: str) -> list[str]:
    """The #tags of a text outside of code."""
    return list(dict.fromkeys(_TAG.findall(_CODE.sub(" ", body))))


def links_in(body: str) -> list[str]:
    """The names of the notes that a text links to outside of code."""
    return list(dict.fromkeys(link.strip() for link in _LINK.findall(_CODE.sub(" ", body)) if link.strip()))


def digest(text: str) -> str:
    """The suffix that distinguishes notes of the same name."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]


def digests_in(body: str) -> dict[str, str]:
    """The digests of the exported notes that a text links to, each with the name of the note."""
    return {match[1]: name for name in links_in(body) if (match := _NAME_WITH_DIGEST.fullmatch(name))}


def is_template(path: str, text: str) -> bool:
    """Whether a note is a template for others: it is in a folder of templates, or has placeholders outside of code."""
    return any(map(_TEMPLATE_FOLDER.fullmatch, path.split("/")[:-1])) or _PLACEHOLDER.search(_CODE.sub(" ", text)) is not None


def without_comments(body: str) -> tuple[str, int]:
    """A text without its %%comments%% outside of code, and how many there were."""
    count = sum(match["comment"] is not None for match in _COMMENT.finditer(body))
    return (_COMMENT.sub(lambda match: "" if match["comment"] else match[0], body), count) if count else (body, 0)


def with_short_links(body: str) -> str:
    """A text with links that name notes without their folders: [[人/母|母]] → [[母]]. Embedded files become plain names."""
    return _NOTE_LINK.sub(_short_link, body)


def _short_link(match: re.Match[str]) -> str:
    if match["path"] is None:
        return match[0]
    name = match["path"].strip().rstrip("/").rpartition("/")[2].removesuffix(".md")
    if match["shows"] and _ATTACHMENT.search(name):
        return name
    alias = (match["alias"] or "").strip()
    return f"{match['shows']}[[{name}{match['place'] or ''}{f'|{alias}' if alias not in ('', name) else ''}]]"


def _fields(front: str, *, is_toml: bool) -> dict[str, Any]:
    if len(front) > FRONT_MATTER_LIMIT:
        raise ValueError("it is too long")
    value = tomllib.loads(front) if is_toml else yaml.load(front, _Loader)  # noqa: S506  a SafeLoader
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError("it is not a mapping")
    return {str(name): _plain(entry) for name, entry in value.items() if entry is not None}


def _plain(value: Any) -> Any:
    """Converts a YAML value to a JSON value: times become text again."""
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(entry) for entry in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER_BITS:
        raise ValueError("it has a number of hundreds of digits")
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def _as_yaml(value: Any) -> str:
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))
