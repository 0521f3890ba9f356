"""The rooms of what was done, and of private data in what is stored."""

from collections.abc import Collection, Mapping, Sequence

from starlette.responses import Response

from memory_mcp.domain import KEYS_LIMIT
from memory_mcp.errors import InvalidInput, MemoryNotFound
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.server.actions import browse, memories, private_data, records

# Memories of usual length that a page looks through in a fifth of a second.
SCANNED = 500
SHOWN_TOKENS = 20_000


def log(visit: Visit) -> Response:
    """Show what was done to the persona's memories, and the server's events to visitors who may see them."""
    chosen = visit.field("operation")
    listed = visit.perform(records.list_operations, operation=chosen, before=visit.field("before"))
    events = visit.perform(records.list_events)["events"] if visit.admission.personas is None else []
    said, gone = contents(visit, [done["key"] for done in listed["operations"] if "key" in done])
    return visit.page("log.html", listed=listed, chosen=chosen, events=events, said=said, gone=gone)


def contents(visit: Visit, keys: Sequence[str]) -> tuple[Mapping[str, str], Collection[str]]:
    """The current texts of the first of these memories, by key, and the keys of memories that are no more; empty for visitors who may
    not read.
    """
    if not keys or not visit.may("read"):
        return {}, ()
    recalled = visit.perform(memories.recall, keys=list(dict.fromkeys(keys))[:KEYS_LIMIT], detail="index", max_tokens=SHOWN_TOKENS)
    return {hit["key"]: hit["content"] for hit in recalled["hits"]}, recalled.get("missing", ())


def privacy(visit: Visit) -> Response:
    """Show what a scan of the stored memories finds, a part of them at a time."""
    scanned = visit.perform(private_data.scan, before=visit.field("before"), limit=SCANNED)
    may_apply = visit.may(*memories.revise.needs)
    return visit.page("privacy.html", found=scanned, may_apply=may_apply, applied=visit.field("applied"))


def apply_rules(visit: Visit) -> Response:
    """Store a memory again with the text that it has, under the rules of today."""
    key = visit.field("key")
    content = visit.perform(browse.get_memory, key=key)["memory"]["content"]
    try:
        visit.perform(memories.revise, key=key, content=content)
    except (InvalidInput, MemoryNotFound) as refused:
        return visit.refusal(refused)
    return visit.redirect("/house/privacy", applied=key, before=visit.field("before"))
