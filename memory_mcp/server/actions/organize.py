"""Listing what could be tidied, merging memories, and undoing that: the tool `organize` and the routes /api/organize."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, NotRequired

import apsw
from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.domain import Memory
from memory_mcp.errors import InvalidInput
from memory_mcp.language.budget import preview
from memory_mcp.language.labels import few, label
from memory_mcp.personas.registry import Persona
from memory_mcp.relate import links as newer_links
from memory_mcp.remember.merge import MERGE, UNDO, Merged, merge, undo
from memory_mcp.server.arguments import Arguments, Between, Text, TextList, http
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, Tool, operation
from memory_mcp.server.views import Count, PersonaAnswer, heading, local, omit_empty, outcome_view
from memory_mcp.store import memories, memory_merges
from memory_mcp.store.graph import consistency, memory_links
from memory_mcp.store.timestamps import from_text
from memory_mcp.upkeep.memory_proposals import proposals

SHOWN, SHOWN_LIMIT = 10, 50
NOTHING_TO_DO = InvalidInput("nothing to do", "neither merge nor undo was given", 'Send {"merge": ["…"], "into": "…"} or {"undo": "…"}')


class ProposalsArguments(Arguments):
    top_k: Annotated[int, Between(1, SHOWN_LIMIT), Field(description="1..50 of each kind to list"), http("How many of each kind.")] = SHOWN


class Tidying(Arguments):
    blank_means_absent: ClassVar[bool] = False

    merge: Annotated[TextList, Field(description="keys to merge into one, when the user agrees"), http("The keys to merge.")] = []
    into: Annotated[Text, Field(description="the key that stays")] = ""
    undo: Annotated[Text, Field(description="operation_id of a merge to take back")] = ""
    reason: Text = ""


class OrganizeArguments(ProposalsArguments, Tidying):
    """What the tool takes: it lists, merges and undoes."""


Pair = Annotated[list[Any], Field(min_length=2, max_length=2)]


class Proposals(PersonaAnswer):
    compared: Count
    of: Count
    meaning: bool
    duplicates: list[dict[str, Any]]
    low_value: list[dict[str, Any]]
    faded: list[dict[str, Any]]
    counts: dict[str, Count]
    contradictions: list[Pair]
    opposed_relations: list[Pair]
    unsure_relations: list[dict[str, Any]]
    orphans: list[str]
    merges: list[dict[str, Any]]


class TidyingOutcome(TypedDict):
    key: str
    outcome: str
    reason: NotRequired[str]


class Tidied(PersonaAnswer):
    operation_id: NotRequired[str]
    undoes: NotRequired[str]
    outcomes: list[TidyingOutcome]


@operation(needs=["read", "write", "delete"], tool=Tool("organize", "Organize", destructive=True))
def organize(call: Call, arguments: OrganizeArguments) -> Json:
    """List duplicates, empty talk, faded memories, contradictions (no arguments); merge some into one; undo a merge. Nothing is merged
    by itself.
    """
    if arguments.merge or arguments.into.strip() or arguments.undo.strip():
        return _tidied(call, arguments)
    return _listed(call, arguments.top_k)


@operation(needs=["read"], route=Route("GET", "/api/organize"), answer=Proposals)
def list_proposals(call: Call, arguments: ProposalsArguments) -> Json:
    """List what could be tidied: duplicates, empty talk, faded memories, and the merges that can be undone."""
    return _listed(call, arguments.top_k)


@operation(needs=["read", "write", "delete"], route=Route("POST", "/api/organize", body_required=True), answer=Tidied)
def tidy(call: Call, arguments: Tidying) -> Json:
    """Merge memories into one of them, or undo a merge."""
    if not (arguments.merge or arguments.undo.strip()):
        raise NOTHING_TO_DO
    return _tidied(call, arguments)


class UnlinkArguments(Arguments):
    newer: Annotated[Text, http("The key of the memory that is said to be newer.", minLength=1)]
    earlier: Annotated[Text, http("The key of the one that is said to hold no longer.", minLength=1)]


class Unlinked(PersonaAnswer):
    newer: str
    earlier: str
    method: str


@operation(needs=["read", "write"], route=Route("POST", "/api/organize/unlink", body_required=True), answer=Unlinked)
def unlink(call: Call, arguments: UnlinkArguments) -> Json:
    """Take back that one memory is newer than another, which a rule or a chat model found. It is not found again."""
    call, newer = call.locate(arguments.newer.strip())
    earlier = call.locate(arguments.earlier.strip())[1]
    with call.changing() as persona:
        made_by = newer_links.undo(persona, newer, earlier, call.now)
        return {**heading(call, persona), "newer": arguments.newer, "earlier": arguments.earlier, "method": made_by}


def _tidied(call: Call, arguments: Tidying) -> Json:
    keys, into, undone = arguments.merge, arguments.into.strip(), arguments.undo.strip()
    if keys and undone:
        raise InvalidInput("merge and undo were both given", "one call does one of them", "Send two calls")
    if into and not keys:
        raise InvalidInput("into was given without merge", "", "Name in merge what is to be merged into it")
    with call.changing() as persona:
        merged = _merged(call, persona, keys, into, arguments.reason) if keys else undo(persona, undone, now=call.now)
        return {
            **heading(call, persona),
            **omit_empty(operation_id=merged.operation_id, undoes=undone),
            "outcomes": [outcome_view(outcome) for outcome in merged.outcomes],
        }


def _listed(call: Call, limit: int) -> Json:
    with call.reading() as persona:
        proposed = proposals(persona, call.models, call.settings, call.now, limit)
        with persona.database.read() as connection:
            recent = memory_merges.latest(connection, MERGE, UNDO, limit)
            graph, graph_counts = _of_graph(connection, call, limit)
        return {
            **heading(call, persona),
            "compared": proposed.compared,
            "of": proposed.of,
            "meaning": proposed.meaning,
            "duplicates": [
                {
                    "into": brief(group.kept, call),
                    "merge": [{**brief(alike.memory, call), "similarity": alike.similarity, "why": alike.why} for alike in group.similar],
                }
                for group in proposed.groups
            ],
            "low_value": [{**brief(memory, call), "why": why} for memory, why in proposed.low_value],
            "faded": [{**brief(memory, call), "retention": left} for memory, left in proposed.faded],
            "counts": {
                "duplicates": proposed.groups_count,
                "low_value": proposed.low_value_count,
                "faded": proposed.faded_count,
                **graph_counts,
            },
            **graph,
            "merges": [
                {
                    "operation_id": operation_id,
                    "into": row.key,
                    "merge": list(row.metadata.get("of", [])),
                    "at": local(from_text(row.timestamp), call.settings.zone),
                }
                for operation_id, row in recent
            ],
        }


def _of_graph(connection: apsw.Connection, call: Call, limit: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Return what might be wrong with the graph, and how much of each kind there is."""
    pairs, contradictions = memory_links.contradictions(connection, limit)
    by_id = memories.beginnings(connection, {memory for pair in pairs for memory in pair})
    opposed, opposed_count = consistency.opposed(connection, limit)
    unsure, unsure_count = consistency.unsure(connection, limit)
    orphans, orphans_count = consistency.orphans(connection, limit)
    made_by = memory_links.methods_of_newer(connection, pairs)
    shown = {
        "contradictions": [[brief(by_id[memory], call) | _outdated_by(by_id, made_by, memory, pair) for memory in pair] for pair in pairs],
        "opposed_relations": [[" > ".join(relation) for relation in pair] for pair in opposed],
        "unsure_relations": [{"relation": " > ".join(relation), "confidence": confidence} for relation, confidence in unsure],
        "orphans": orphans,
    }
    counts = dict(zip(shown, (contradictions, opposed_count, unsure_count, orphans_count), strict=True))
    return shown, counts


def _outdated_by(
    by_id: Mapping[int, Memory], made_by: Mapping[tuple[int, int], str], earlier: int, pair: tuple[int, int]
) -> dict[str, Any]:
    """What a memory that is linked as no longer so is shown with: the key of the newer one of the pair, what linked them, and whether that one can
    replace it: it replaces nothing else."""
    newer = pair[pair[0] == earlier]
    method = made_by.get((newer, earlier))
    return {"outdated_by": by_id[newer].key, "method": method, "may_be_replaced": not by_id[newer].supersedes} if method else {}


def _merged(call: Call, persona: Persona, keys: Sequence[str], into: str, reason: str) -> Merged:
    few(keys, "merge")
    if not into:
        raise InvalidInput("into is missing", "one of them has to stay", "Name its key with into")
    return merge(persona, [key.strip() for key in keys], into, reason=label(reason, "reason"), now=call.now, privacy=call.settings.privacy)


def brief(memory: Memory, call: Call) -> dict[str, Any]:
    """Return a memory as a list shows it, with what distinguishes it from others."""
    zone = call.settings.zone
    return omit_empty(
        key=memory.key,
        content=preview(memory.content),
        source=memory.source,
        session_id=memory.session_id,
        happened=local(memory.event_time, zone),
        tags=list(memory.tags),
        importance=memory.importance,
    )
