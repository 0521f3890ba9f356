"""Reads memory.json of the MCP reference memory server: each entity, each observation as a fact, and each relation as a fact that states it.

langchain-community has no loader for it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memory_mcp.domain import StatedRelation
from memory_mcp.language.names import NAME_LIMIT
from memory_mcp.language.relation_notation import STANDARD_TYPES, format_relation, type_of_word
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.fact_lists import SENTENCES
from memory_mcp.transfer.formats.import_rows import ImportItem, objects, text_in
from memory_mcp.transfer.formats.json_stream import each_file, ends_in, lines, position_of
from memory_mcp.transfer.formats.recognition import JSON_SUFFIXES, Head
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.transfer.formats.text_files import TEXT_SUFFIXES, decoded
from memory_mcp.wording import sentence

FORM = "mcp-memory"
_DECODER = json.JSONDecoder()
_FENCES = re.compile(r"^[ \t]{0,3}```.*$", re.MULTILINE)
_IN_FENCE = re.compile(
    r"\ufeff?(?:[^`\n]{0,300}\n){0,6}```\w{0,9}\s{0,9}\{\s{0,9}\"(?:entities\"\s{0,9}:|type\"\s{0,9}:\s{0,9}\"(?:entity|relation)\")"
)
# Of a text no more is read after so many places where it is no JSON: each error counts the lines before it.
UNREADABLE_PLACES = 1_000


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """Why no JSON could be read where it seemed to begin, or else `is_sentence`."""

    why: str
    is_sentence: bool = False


def read(source: Source, me: str | None) -> Iterator[ImportItem]:  # noqa: ARG001  the file has no authors
    """Yields a row for each observation, such as "健太: 苺が好き". The file has no times."""

    is_text = ends_in(*TEXT_SUFFIXES)

    def graph(name: str) -> Iterator[ImportItem]:
        for number, text in _texts(source, name):
            for further, value in _values(_FENCES.sub("", text) if is_text(name) else text):
                where = sentence("{}, line {}", name, number + further)
                is_sentence = is_text(name) and isinstance(value, _Unreadable) and value.is_sentence
                yield from [ImportItem(where, left_out=SENTENCES)] if is_sentence else _read_value(value, where)

    yield from each_file(source, graph, ends_in(*JSON_SUFFIXES, *TEXT_SUFFIXES))


def is_in_fence(head: Head) -> bool:
    """Whether a text has a graph in its first code fence, with few sentences before it, and nothing but further fences behind it."""
    if not _IN_FENCE.match(head.text):
        return False
    with head.opened() as file:
        outside = _FENCES.split(decoded(file.read(), head.name))[2::2]
    return not any(map(str.strip, outside))


def is_answer(value: object) -> bool:
    """Whether this is what `read_graph` answers, as it is or in what a client keeps of a tool's answer."""
    return any(_is_graph(graph) for graph in _unwrapped(value))


def _texts(source: Source, name: str) -> Iterator[tuple[int, str]]:
    """The lines of a file with the number of each, or the whole of one whose first line is no JSON by itself."""
    every = lines(blocks(source, name), name)
    first = next(every, None)
    if first is None:
        return
    try:
        _DECODER.raw_decode(first[1].lstrip())
    except (ValueError, RecursionError):
        number, parts = first[0], [first[1]]
        for following, line in every:  # without the blank ones, so that each keeps its number
            parts.append("\n" * (following - number) + line)
            number = following
        yield first[0], "".join(parts)
    else:
        yield first
        yield from every


def _values(text: str) -> Iterator[tuple[int, Any]]:
    """The objects of a text, each with how many lines are before it, and what can't be read up to the end of its line. Brackets that close nothing
    are passed over."""
    at = counted = line = unreadable = 0
    while (at := _first_of_value(text, at)) < len(text) and unreadable < UNREADABLE_PLACES:
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            unreadable += 1
            yield line, _Unreadable(position_of(error), is_sentence=text[at] not in "{[")
            following = text.find("\n", at)
            at = following if following >= 0 else len(text)
        else:
            yield line, value
    if at < len(text):
        yield line, _Unreadable("so much before it can't be read that the rest is not looked at")


def _first_of_value(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,}]":
        at += 1
    return at


def _read_value(value: Any, where: str) -> Iterator[ImportItem]:
    if isinstance(value, _Unreadable):
        yield ImportItem(where, refused=sentence("It is not JSON: {}.", value.why))
        return
    for part in _unwrapped(value):
        if _is_graph(part):
            for entity in objects(part.get("entities")):
                yield from _entity(entity, where)
            for relation in objects(part.get("relations")):
                yield from _relation(relation, where)
        elif isinstance(part, dict) and part.get("type") == "entity":
            yield from _entity(part, where)
        elif isinstance(part, dict) and part.get("type") == "relation":
            yield from _relation(part, where)
        else:
            yield ImportItem(where, refused="It is neither an entity nor a relation.")


def _is_graph(value: Any) -> bool:
    return isinstance(value, dict) and "type" not in value and ("entities" in value or "relations" in value)


def _unwrapped(value: Any, levels: int = 4) -> list[Any]:
    """What a tool's answer holds: its structured content, or what its texts say."""
    if not levels:
        return [value]
    match value:
        case {"structuredContent": dict() as inner} | {"result": dict() | list() as inner}:
            return _unwrapped(inner, levels - 1)
        case {"content": list(parts)} | list(parts):
            return [inner for part in parts for inner in _unwrapped(part, levels - 1)]
        case {"type": "text", "text": str(text)}:
            return [inner for _, part in _values(text) for inner in _unwrapped(part, levels - 1)]
    return [value]


def _entity(entity: dict[str, Any], where: str) -> Iterator[ImportItem]:
    name, kind = text_in(entity.get("name")).strip(), text_in(entity.get("entityType")).strip()
    if not name:
        yield ImportItem(where, refused="The entity has no name.")
        return
    type_ = type_of_word(kind, STANDARD_TYPES) if kind else None
    if len(name) <= NAME_LIMIT:  # a longer one would be no name in a text
        yield ImportItem(where, {"entity": name, **({"type": type_} if type_ else {})})
    further = import_rows.unread(entity, {"type", "name", "entityType", "observations"})
    listed = entity.get("observations")
    # An observation is a string, or an object with the string as `content`.
    entries = [entry if isinstance(entry, dict) else {"content": entry} for entry in listed] if isinstance(listed, list) else []
    observations = [entry for entry in entries if text_in(entry.get("content")).strip()]
    for _ in range(len(entries) - len(observations)):
        yield ImportItem(where, left_out="observations without a text")
    for entry in observations or [{}]:
        observation, own = text_in(entry.get("content")), import_rows.unread(entry, {"content"})
        content = f"{name}: {observation}" if observation else f"{name} ({kind})" if kind else name
        yield from import_rows.memory_rows(
            where,
            FORM,
            ("entity", name, observation),
            content,
            kind="fact",
            tags=[kind],
            metadata={FORM: {**further, **own}} if further or own else None,
            origin={"entity": name, "entity_type": kind},
        )


def _relation(relation: dict[str, Any], where: str) -> Iterator[ImportItem]:
    parts = [text_in(relation.get(part)).strip() for part in ("from", "relationType", "to")]
    if not all(parts):
        yield ImportItem(where, refused="The relation lacks from, relationType or to.")
        return
    stated = format_relation(StatedRelation(parts[0], "_".join(parts[1].split()), parts[2]))
    further = import_rows.unread(relation, {"type", "from", "relationType", "to"})
    if not stated:
        yield ImportItem(where, left_out="relations that the graph can't hold and a fact tells")
    yield from import_rows.memory_rows(
        where,
        FORM,
        ("relation", *parts),
        " ".join(parts),
        kind="fact",
        relations=[stated] if stated else None,
        metadata={FORM: further} if further else None,
        origin={"relation": dict(zip(("from", "type", "to"), parts, strict=True))},
    )
