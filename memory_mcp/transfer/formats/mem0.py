"""Reads an export of mem0 or OpenMemory: its memories as facts. langchain-community has no loader for them.

It reads the answer of mem0's `get_all` (an object with `results` and the `relations` of its graph, or a list), the list of OpenMemory's API (`items`), and
OpenMemory's backup: a zip with memories.jsonl.gz, which has the names of apps and categories, or memories.json, which has their ids.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, timedelta
from pathlib import PurePosixPath
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import import_rows
from memory_mcp.transfer.formats.import_rows import ImportItem, moment, objects, text_in
from memory_mcp.transfer.formats.json_stream import OTHER_FILES, items, lines
from memory_mcp.transfer.formats.sources import Source, blocks, blocks_of
from memory_mcp.transfer.formats.written_times import written_time
from memory_mcp.wording import sentence

FORM = "mem0"
PACKED, PLAIN = "memories.jsonl.gz", "memories.json"
LISTS = ("results", "memories", "items", "data")
DECOMPRESSED_LIMIT_BYTES = 1024**3
DELETED_STATES = frozenset({"deleted"})
VECTORS = frozenset({"vector", "embedding", "embeddings"})
# What has a field here, or is kept in `origin`; of the rest, nothing is left out but vectors and earlier states.
_READ = frozenset(
    "id hash memory content text user_id run_id agent_id created_at updated_at deleted_at state metadata metadata_ app app_id app_name "
    "categories category_ids history score".split()
)


def read(source: Source, me: str | None) -> Iterator[ImportItem]:
    """Yields a row for each memory with the user as its source. `me` replaces the user's id."""
    names = source.names()
    packed = [name for name in names if PurePosixPath(name).name == PACKED]
    chosen = packed or [name for name in names if len(names) == 1 or PurePosixPath(name).name == PLAIN]
    if not chosen:
        yield ImportItem(source.label, refused=sentence("It has neither {} nor {}.", PACKED, PLAIN))
    for name in names:
        if name not in chosen and PurePosixPath(name).name != PLAIN:
            yield ImportItem(name, left_out=OTHER_FILES)
    for name in chosen:
        try:
            for number, memory in enumerate(_memories(source, name), start=1):
                is_relation = isinstance(memory, dict) and "source" in memory and not _text(memory)
                read_entry = _relation if is_relation else _memory
                yield from read_entry(memory, f"{name}, {'relation' if is_relation else 'memory'} {number}", me)
        except (InvalidInput, EOFError, OSError) as error:
            yield ImportItem(name, refused=str(error))


def _memories(source: Source, name: str) -> Iterator[Any]:
    if name.endswith(".gz"):
        with source.open(name) as file, gzip.GzipFile(fileobj=file) as unpacked:
            for number, line in lines(blocks_of(unpacked, name, DECOMPRESSED_LIMIT_BYTES), name):
                yield _loaded(line, name, number)
        return
    backup: dict[str, Any] = {}
    with suppress(InvalidInput):  # it is raised once more, behind the memories before it
        for _ in items(blocks(source, name), name, frozenset(LISTS), backup):
            pass
    yield from _with_names(backup, items(blocks(source, name), name, frozenset(LISTS)))
    yield from objects(backup.get("relations"))


def _loaded(line: str, name: str, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("line {} of {} is not JSON", "{}", "Fetch the export again", number, name, error) from error


def _with_names(backup: Mapping[str, Any], memories: Iterable[Any]) -> Iterator[Any]:
    """The memories of a backup, with the names of their categories and apps, which it stores in lists of their own."""
    categories = {text_in(entry.get("id")): text_in(entry.get("name")) for entry in objects(backup.get("categories"))}
    apps = {text_in(entry.get("id")): text_in(entry.get("name")) for entry in objects(backup.get("apps"))}
    linked: dict[str, list[str]] = {}
    for link in objects(backup.get("memory_categories")):
        linked.setdefault(text_in(link.get("memory_id")), []).append(text_in(link.get("category_id")))
    user = backup.get("user")
    user_id = text_in(user.get("user_id")) if isinstance(user, dict) else ""
    for memory in memories:
        if not isinstance(memory, dict):
            yield memory
            continue
        own_ids = memory.get("category_ids")
        ids = [*linked.get(text_in(memory.get("id")), []), *(own_ids if isinstance(own_ids, list) else [])]
        category_names = [categories.get(text_in(category_id), "") for category_id in ids]
        app = {"app": apps.get(text_in(memory.get("app_id")))} if apps else {}
        yield {"categories": category_names, **app, **memory, **({"user_id": user_id} if user_id else {})}


def _text(fields: Mapping[str, Any]) -> str | None:
    return next((fields[name] for name in ("memory", "content", "text", "fact") if isinstance(fields.get(name), str)), None)


def identity(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """What identifies a memory: its id or its hash, else its text."""
    return (text_in(fields.get("id")) or text_in(fields.get("hash")) or _text(fields) or "",)


def _relation(relation: Mapping[str, Any], where: str, me: str | None) -> Iterator[ImportItem]:
    """A relation of mem0's graph, which it drew from the memories itself."""
    user = text_in(relation.get("user_id"))
    ends = [text_in(relation.get("source")), text_in(relation.get("target")) or text_in(relation.get("destination"))]
    kind = text_in(relation.get("relationship")) or text_in(relation.get("relation"))
    if not (all(ends) and kind):
        yield ImportItem(where, refused="The relation lacks source, relationship or target.")
        return
    source, target = (me if me and end in (user, "user_id") else end for end in ends)
    yield ImportItem(where, {"relation": kind, "source": source, "target": target})


def _end_of(value: object) -> str | None:
    """When a memory expires. mem0's dates are days of UTC, and are included."""
    try:
        return f"{date.fromisoformat(text_in(value)) + timedelta(days=1)}T00:00:00+00:00"
    except (ValueError, OverflowError):
        return moment(value)


def _memory(memory: Any, where: str, me: str | None) -> Iterator[ImportItem]:
    fields = memory if isinstance(memory, dict) else {"memory": memory}
    text = _text(fields)
    if text is None:
        yield ImportItem(where, refused="It has no text (memory or content).")
        return
    if not text.strip():
        yield ImportItem(where, left_out=import_rows.WITHOUT_TEXT)
    created, updated = moment(fields.get("created_at")), moment(fields.get("updated_at"))
    day = written_time(fields.get("date"))
    expires = _end_of(fields.get("expiration_date"))
    is_deleted = fields.get("state") in DELETED_STATES
    deleted = (moment(fields.get("deleted_at")) or updated or created) if is_deleted else None
    if is_deleted and not deleted:
        yield ImportItem(where, refused="It is deleted, without a time of deletion.")
        return
    metadata = next((fields[name] for name in ("metadata", "metadata_") if isinstance(fields.get(name), dict) and fields[name]), None)
    beside = {"expiration_date": expires, "date": day, "fact": fields.get("fact") == text}
    read = _READ | VECTORS | {name for name, is_read in beside.items() if is_read}
    metadata = {**import_rows.unread(fields, read), **(metadata or {})}
    for kind, named in (("vectors", VECTORS), ("earlier states", {"history"})):
        if any(fields.get(name) for name in named):
            yield ImportItem(where, left_out=kind)
    app = text_in(fields.get("app")) or text_in(fields.get("app_name"))
    categories = fields.get("categories")
    yield from import_rows.memory_rows(
        where,
        FORM,
        identity(fields),
        text,
        source=me or text_in(fields.get("user_id")) or None,
        session_id=text_in(fields.get("run_id")) or None,
        occurred_at=day,
        created_at=created,
        updated_at=updated if created else None,
        deleted_at=deleted,
        expires_at=expires,
        kind="fact",
        tags=[*(categories if isinstance(categories, list) else []), app],
        metadata={FORM: metadata} if metadata else None,
        origin={"id": text_in(fields.get("id")), "agent": text_in(fields.get("agent_id")), "app": app, "state": fields.get("state")},
    )
