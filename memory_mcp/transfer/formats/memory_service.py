"""Reads the JSON export of mcp-memory-service, or what its API lists: each memory as a fact, its type as the category; each mistake note as an
experience.

langchain-community has no loader for it.
"""

from collections.abc import Iterator
from typing import Any

from memory_mcp.language.labels import LABEL_LIMIT, split_labels
from memory_mcp.store.experience_text import Experience
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, fields_of, moment, text_in
from memory_mcp.transfer.formats.json_stream import each_file, ends_in, items
from memory_mcp.transfer.formats.playbook import experience_fields, verdicts
from memory_mcp.transfer.formats.recognition import JSON_SUFFIXES
from memory_mcp.transfer.formats.sources import Source, blocks
from memory_mcp.wording import sentence

FORM = "mcp-memory-service"
LIST, HASH = "memories", "content_hash"
# The parts of a mistake note, as `mistake_note_add` writes them; one of pattern and context may be empty, and is the task then.
_PATTERN, _FURTHER_PARTS = "Pattern: ", ("\nContext: ", "\nWrong: ", "\nRight: ")
_READ = frozenset(
    {"content", HASH, "tags", "memory_type", "metadata", "created_at", "created_at_iso", "updated_at", "updated_at_iso", "embedding"}
)


def read(source: Source, me: str | None) -> Iterator[ImportItem]:  # noqa: ARG001  the export has no authors
    """Yields a row for each memory. Its hash identifies it."""

    def memories(name: str) -> Iterator[ImportItem]:
        beside: dict[str, Any] = {}
        for number, memory in enumerate(items(blocks(source, name), name, frozenset({LIST}), beside), start=1):
            machine = text_in(fields_of(beside.get("export_metadata")).get("source_machine"))  # the export begins with it
            yield from _memory(memory, sentence("{}, memory {}", name, number), machine)

    yield from each_file(source, memories, ends_in(*JSON_SUFFIXES))


def is_export(first: object) -> bool:
    """Whether this is the export, or an entry of its list."""
    if not isinstance(first, dict):
        return False
    listed = first.get(LIST)
    return HASH in first or (isinstance(listed, list) and ("export_metadata" in first or is_export(next(iter(listed), None))))


def _mistake(content: str) -> list[str] | None:
    """Pattern, context, what was wrong and what is right; None where the content is no mistake note."""
    parts, rest = [], content.removeprefix(_PATTERN)
    if rest == content:
        return None
    for mark in _FURTHER_PARTS:
        part, found, rest = rest.partition(mark)
        if not found:
            return None
        parts.append(part.strip())
    return [*parts, rest.strip()] if any(parts[:2]) else None


def _memory(memory: Any, where: str, machine: str) -> Iterator[ImportItem]:
    if not isinstance(memory, dict) or not text_in(memory.get("content")).strip():
        yield ImportItem(where, refused="It has no text (content).")
        return
    if memory.get("embedding"):
        yield ImportItem(where, left_out="vectors")
    metadata, hash_ = memory.get("metadata"), text_in(memory.get(HASH))
    further = {**import_rows.unread(memory, _READ), **(metadata if isinstance(metadata, dict) else {})}
    if mistake := _mistake(memory["content"].strip()):
        pattern, context, wrong, right = mistake
        experience = Experience(" ".join((context or pattern).split()), sign=pattern, lesson=wrong, instead=right)
        seen = moment(memory.get("updated_at")) or moment(memory.get("created_at")) or "1970-01-01T00:00:00+00:00"
        fields: dict[str, Any] = {
            **experience_fields(experience),
            "feedback": verdicts({"failed": further.pop("failure_count", 1)}, seen, FORM),
        }
    else:
        fields = {"content": memory["content"], "kind": "fact"}
    listed = memory.get("tags")
    created = moment(memory.get("created_at")) or moment(memory.get("created_at_iso"))
    yield from import_rows.memory_rows(
        where,
        FORM,
        (hash_ or memory["content"],),
        created_at=created,
        updated_at=(moment(memory.get("updated_at")) or moment(memory.get("updated_at_iso"))) if created else None,
        **fields,
        category=text_in(memory.get("memory_type")).strip()[:LABEL_LIMIT],
        tags=listed if isinstance(listed, list) else split_labels(text_in(listed)),
        metadata={FORM: further} if further else None,
        origin={"hash": hash_, "machine": machine},
    )
