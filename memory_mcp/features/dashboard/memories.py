"""The room of memories: the table with search and filters, the reader of one memory, and what may be changed there."""

import itertools
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from typing import Any, Literal

from starlette.responses import Response

from memory_mcp.domain import KEYS_LIMIT, KINDS, NOTHING, PRIVACY_LEVELS, SHELVES
from memory_mcp.errors import InvalidInput, MemoryMCPError, MemoryNotFound
from memory_mcp.features.dashboard.fields import commas
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.features.dashboard.people import types
from memory_mcp.server.actions import browse, organize, upkeep
from memory_mcp.server.actions import memories as actions
from memory_mcp.server.actions.memories import RecallArguments
from memory_mcp.server.operation import Json
from memory_mcp.server.refusals import Refused

Change = tuple[Literal["same", "gone", "new"], str]

# Words of Latin letters and digits, of katakana and of kanji, blanks, and single characters of anything else: Japanese has no spaces
# between words.
_PIECE = re.compile(r"[A-Za-z0-9]+|[ァ-ヺー]+|[一-鿿々]+|\s+|.", re.DOTALL)
# What stayed between two changes belongs to them if it has at most so many characters: もなか → きなこ is one change, not two around な.
ISLAND = 2
_SENTENCE = re.compile(r"[^。．.!?！？\n]*[。．.!?！？\n]+|[^。．.!?！？\n]+")
# Comparing takes up to the square of the number of pieces.
PIECES_LIMIT = 1_500
FILTERS = ("date_range", "tags", "kind", "source", "session_id", "category", "privacy_level", "min_importance", "shelf")
HITS, HITS_TOKENS = 20, 20_000
EDITED = ("content", "source", "occurred_at", "tags", "importance", "category", "privacy_level", "expires_at")
ADDED = (*EDITED, "kind", "session_id", "supersedes")
# What a memory has of the one that it replaces, unless something else is written.
REPLACED_KEEP = ("content", "source", "tags", "importance", "category", "privacy_level")
CHOICES: Mapping[str, Any] = {"kinds": KINDS, "privacy_levels": PRIVACY_LEVELS, "shelves": SHELVES}
# What a page may say that it has done, after a redirect.
DONE = ("revised", "restored", "judged", "unlinked", "replaced", "unreplaced")
# Stored memories that may say what holds instead of another one.
MAY_HOLD, QUERY_LENGTH = 5, 300


logger = logging.getLogger(__name__)


def listing(visit: Visit) -> Response:
    """Show the table: what a search finds, or all memories that pass the filters, the latest first."""
    filters = {name: visit.field(name) for name in FILTERS}
    try:
        answer, error = _matching(visit, visit.field("q"), filters), None
    except InvalidInput as refused:
        answer, error = {"memories": []}, visit.refused(refused)
    shown = {**filters, "shelf": filters["shelf"] or "current"}
    is_filtered = any(value and (name, value) != ("shelf", "current") for name, value in filters.items())
    return visit.page(
        "memories.html",
        400 if error else 200,
        q=visit.field("q"),
        filters=shown,
        is_filtered=is_filtered,
        error=error,
        found=answer,
        **CHOICES,
    )


def _matching(visit: Visit, query: str, filters: Mapping[str, str]) -> Json:
    sent = {name: commas(value) if name == "tags" else value for name, value in filters.items() if value}
    if not query:
        return visit.perform(browse.list_memories, after=visit.field("after"), **sent)
    if sent.get("shelf") == "current":
        del sent["shelf"]
    if strange := [name for name in sent if name not in RecallArguments.model_fields]:
        raise InvalidInput("a search takes no {}", "", "Search without it, or list without search words", " and no ".join(strange))
    recalled = visit.perform(actions.recall, query=query, top_k=HITS, max_tokens=HITS_TOKENS, detail="index", **sent)
    return {**recalled, "memories": recalled["hits"]}


def reader(visit: Visit) -> Response:
    """Show one memory with everything that is known of it."""
    key = visit.field("key")
    known, problem = _known(visit, key)
    past = visit.perform(upkeep.whole_history, key=key)
    is_trashed = "deleted_at" in known["memory"]
    linked: dict[str, Any] = (
        {"links": [], "in_all": 0} if is_trashed or not visit.offers("memory_links") else visit.perform("memory_links", key=key)
    )
    done = visit.field("done")
    return visit.page(
        "memory.html",
        known=known,
        memory=known["memory"],
        steps=_steps(known["memory"], past["versions"]),
        history=past,
        links=_distinct(linked["links"]),
        links_in_all=linked["in_all"] if linked["in_all"] > len(linked["links"]) else 0,
        done=done if done in DONE else None,
        as_of=visit.field("as_of"),
        problem=problem,
        **types(visit),
    )


def _distinct(links: Sequence[Json]) -> list[Json]:
    """One link to each other memory, in their order: the one that can be taken back, or else the strongest. What replaced what is in the chain."""
    shown: dict[str, Json] = {}
    for link in links:
        key = link["memory"]["key"]
        if link["type"] == "newer" or (link["type"] != "reference" and key not in shown):
            shown[key] = link
    return list(shown.values())


def _known(visit: Visit, key: str) -> tuple[Json, Refused | None]:
    """What is known of a memory, as of a date if one is given; and why that date can't be used, if it can't."""
    try:
        return visit.perform(browse.get_memory, key=key, as_of=visit.field("as_of")), None
    except InvalidInput as refused:
        return visit.perform(browse.get_memory, key=key), visit.refused(refused)


def _steps(memory: Json, versions: list[Json]) -> list[Json]:
    """The revisions of a memory, the latest first: each with the version before it and what changed in the text."""
    states = [{**memory, "since": memory.get("updated_at", memory["created_at"])}, *versions]
    return [
        {"from": before, "to": after, "changes": changes(before["content"], after["content"])}
        for after, before in itertools.pairwise(states)
    ]


def changes(before: str, after: str) -> list[Change]:
    """What changed between two texts, as runs of words that stayed, came and went.

    Long texts are compared by sentences, and those of too many sentences as a whole.
    """
    for pattern in (_PIECE, _SENTENCE):
        old, new = pattern.findall(before), pattern.findall(after)
        if len(old) + len(new) <= PIECES_LIMIT:
            return _compared(old, new)
    return [("gone", before), ("new", after)] if before != after else [("same", after)]


def _compared(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    runs: list[Change] = []
    old_end = new_end = 0
    for begin, new_begin, length in blocks:
        same = "".join(old[begin : begin + length])
        is_inside = begin and new_begin and begin + length < len(old) and new_begin + length < len(new)
        if is_inside and len(same) <= ISLAND:
            continue
        gone, came = "".join(old[old_end:begin]), "".join(new[new_end:new_begin])
        changed: list[Change] = [("gone", gone), ("new", came), ("same", same)]
        runs += [run for run in changed if run[1]]
        old_end, new_end = begin + length, new_begin + length
    return runs


def edit(visit: Visit) -> Response:
    """Show the form to correct a memory."""
    memory = visit.perform(browse.get_memory, key=visit.field("key"))["memory"]
    return _edit_page(visit, 200, memory, _as_written(visit, memory))


def revise(visit: Visit) -> Response:
    """Correct a memory, unless it has changed since the form was opened."""
    memory = visit.perform(browse.get_memory, key=visit.field("key"))["memory"]
    before = _as_written(visit, memory)
    written = {name: visit.field(name) if name in visit.fields else before[name] for name in EDITED}
    if visit.field("revision") != str(memory["revision"]):
        return _edit_page(visit, 409, memory, written, problem="changed_meanwhile")
    changed: dict[str, Any] = {name: value for name, value in written.items() if value != before[name] and name != "tags"}
    if (tags := commas(written["tags"])) != commas(before["tags"]):
        changed["tags"] = tags
    if changed.get("expires_at") == "":
        changed["expires_at"] = "never"
    try:
        if changed:
            visit.perform(actions.correct, key=memory["key"], reason=visit.field("reason"), **changed)
    except InvalidInput as refused:
        return _edit_page(visit, 400, memory, written, error=visit.refused(refused))
    return visit.redirect("/memory", key=memory["key"], done="revised" if changed else "")


def _edit_page(
    visit: Visit, status: int, memory: Json, written: Mapping[str, str], *, problem: str | None = None, error: Refused | None = None
) -> Response:
    return visit.page("edit.html", status, memory=memory, written=written, problem=problem, error=error, **CHOICES)


def _as_written(visit: Visit, memory: Json) -> dict[str, str]:
    """The fields of a memory as the form has them."""
    fields = {**memory, "tags": visit.words.comma.join(memory.get("tags", [])), "importance": f"{memory['importance']:g}"}
    return {name: str(fields.get(name, "")).replace("\r\n", "\n").strip() for name in EDITED}


def judge(visit: Visit) -> Response:
    """Say what a memory that a page shows was worth."""
    visit.perform("judge", keys=[visit.field("key")], verdict=visit.field("verdict"))
    return visit.redirect("/memory", key=visit.field("key"), done="judged")


def unlink(visit: Visit) -> Response:
    """Take back that one memory is newer than another."""
    visit.perform(organize.unlink, newer=visit.field("newer"), earlier=visit.field("earlier"))
    return visit.redirect("/memory", key=visit.field("key"), done="unlinked")


def replace(visit: Visit) -> Response:
    """Let one stored memory replace another, or none any more."""
    key, earlier = visit.field("key"), visit.field("earlier")
    visit.perform(actions.correct, key=key, supersedes=earlier)
    return visit.redirect("/memory", key=key, done="unreplaced" if earlier == NOTHING else "replaced")


def restore_version(visit: Visit) -> Response:
    """Give a memory the text of an earlier revision again."""
    visit.perform(upkeep.restore_version, key=visit.field("key"), revision=visit.field("revision"))
    return visit.redirect("/memory", key=visit.field("key"), done="restored")


def forget_selected(visit: Visit) -> Response:
    """Put memories into the trash."""
    keys = visit.fields.get("key", [])
    visit.perform(actions.forget, keys=keys, reason=visit.field("reason"))
    return visit.redirect("/memories/done", what="forgotten", key=keys)


def restore_selected(visit: Visit) -> Response:
    """Take memories out of the trash."""
    keys = visit.fields.get("key", [])[:KEYS_LIMIT]
    for key in keys:
        with suppress(MemoryNotFound, InvalidInput):  # the next page shows which are still in the trash
            visit.perform(actions.revise, key=key, restore=True)
    return visit.redirect("/memories/done", what="restored", key=keys)


def erase(visit: Visit) -> Response:
    """Show what would be erased for good, and what would remain elsewhere; with the code of that list, erase it."""
    keys = visit.fields.get("key", [])
    if not keys:
        return visit.redirect("/memories", shelf="trash")
    removed = {"remove_kept": "true"} if visit.field("remove_kept") else {}
    answer = visit.perform(upkeep.purge_by_route, keys=keys, confirm=visit.field("confirm"), **removed)
    return visit.page("purge.html", answer=answer, keys=keys)


def done(visit: Visit) -> Response:
    """Show which memories were forgotten or restored, and offer to undo it."""
    what = "restored" if visit.field("what") == "restored" else "forgotten"
    answer = visit.perform(actions.recall, keys=visit.fields.get("key", []), detail="index", max_tokens=HITS_TOKENS)
    moved = [hit for hit in answer["hits"] if ("deleted_at" in hit) == (what == "forgotten")]
    rest = [hit for hit in answer["hits"] if hit not in moved]
    may_undo = visit.may("read", "write") if what == "forgotten" else visit.may("delete")
    return visit.page("done.html", what=what, moved=moved, rest=rest, may_undo=may_undo)


def new(visit: Visit) -> Response:
    """Show the form to add a memory, or to say what holds now instead of an earlier one."""
    written = {name: visit.field(name) for name in ADDED}
    replaced = _readable(visit, visit.field("supersedes"))
    if replaced:
        kept = {name: value for name, value in _as_written(visit, replaced).items() if name in REPLACED_KEEP}
        written |= {name: written[name] or value for name, value in kept.items()}
    return visit.page("new.html", written=written, replaced=replaced, instead=_instead_of(visit, replaced), error=None, **CHOICES)


def add(visit: Visit) -> Response:
    """Store a memory that the visitor wrote."""
    written = {name: visit.field(name) for name in ADDED}
    sent: dict[str, Any] = {name: commas(value) if name == "tags" else value for name, value in written.items() if value}
    try:
        stored = visit.perform(actions.remember, **{"content": "", **sent})
    except InvalidInput as refused:
        error, replaced = visit.refused(refused), _readable(visit, visit.field("supersedes"))
        return visit.page("new.html", 400, written=written, replaced=replaced, instead=[], error=error, **CHOICES)
    return visit.page(
        "added.html",
        stored=stored,
        is_replacement=bool(written["supersedes"]),
        earlier=_readable(visit, visit.field("supersedes")),
        memory=_readable(visit, stored["key"]),
    )


def _instead_of(visit: Visit, replaced: Json | None) -> list[Json]:
    """The stored memories that say most like the one to be replaced, and replace none."""
    if not replaced or not visit.may("read", "write"):
        return []
    query = replaced["content"][:QUERY_LENGTH]
    try:
        hits = visit.perform(actions.recall, query=query, top_k=MAY_HOLD + 1, max_tokens=HITS_TOKENS)["hits"]
    except MemoryMCPError as error:  # the form is needed without them, too
        logger.warning("what may replace a memory was not found: %s", error)
        return []
    return [hit for hit in hits if hit["key"] != replaced["key"] and "pool" not in hit and "supersedes" not in hit][:MAY_HOLD]


def _readable(visit: Visit, key: str) -> Json | None:
    """A memory; None without a key, and for visitors who may not read it."""
    memory: Json | None = visit.perform(browse.get_memory, key=key)["memory"] if key and visit.may("read") else None
    return memory
