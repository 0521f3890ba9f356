"""Merging two entities that are one, undoing that, and saying that two are distinct: the tool merge_entities and /api/graph/merges."""

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.errors import InvalidInput
from memory_mcp.features.graph import entity_edits
from memory_mcp.features.graph.analytics.analyses import Analyses
from memory_mcp.features.graph.merge_proposals import merge_proposals
from memory_mcp.features.graph.operations.entities import Entity, EntityMerge
from memory_mcp.features.graph.views import MERGES_LIMIT, entity_view, merge_view
from memory_mcp.language.labels import label
from memory_mcp.server.arguments import Arguments, Between, Flag, Text, WholeNumber, entity_name, http
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, Tool, operation
from memory_mcp.server.views import Count, Fraction, PersonaAnswer, heading, omit_empty
from memory_mcp.store.graph.entities import entity_merges

# The largest number of a merge, which is SQLite's.
MERGE_NUMBER_LIMIT = 2**63 - 1


class MergesArguments(Arguments):
    limit: Annotated[int, Between(1, MERGES_LIMIT), Field(description=f"1..{MERGES_LIMIT} to list"), http("How many of each.")] = 20


class EntityMerging(Arguments):
    entity: Annotated[
        Text, Field(description="who goes into the other, when the user agrees"), http("Who goes into the other: a name or an id.")
    ] = ""
    into: Annotated[Text, Field(description="who stays")] = ""
    undo: Annotated[WholeNumber, Field(description="number of a merge to take back")] = None
    distinct: Annotated[Flag, Field(description="they are two: propose them no more")] = False
    reason: Text = ""


class MergeEntitiesArguments(MergesArguments, EntityMerging):
    """What the tool takes: it lists, merges and undoes."""


class MergeProposal(TypedDict):
    entity: str
    entity_id: str
    into: str
    into_id: str
    type: str
    score: Fraction
    why: list[str]


class EntityMerges(PersonaAnswer):
    proposals: list[MergeProposal]
    proposals_in_all: Count
    merges: list[EntityMerge]


class EntityMerged(PersonaAnswer):
    merge: NotRequired[Count]
    undone: NotRequired[Count]
    into: NotRequired[Entity]
    entity: NotRequired[Entity]
    distinct: NotRequired[list[str]]


@operation(needs=["read", "write"], tool=Tool("merge_entities", "One entity, many names"))
def merge_entities(call: Call, arguments: MergeEntitiesArguments) -> Json:
    """List who may be one person or thing under two names (no arguments); merge two; undo a merge. Nothing is merged by itself."""
    if arguments.undo is None and not (arguments.entity.strip() or arguments.into.strip() or arguments.distinct):
        return _listed(call, arguments.limit)
    return _merged(call, arguments)


@operation(needs=["read"], route=Route("GET", "/api/graph/merges"), answer=EntityMerges)
def list_merges(call: Call, arguments: MergesArguments) -> Json:
    """List entities that may be one under two names, and the merges so far."""
    return _listed(call, arguments.limit)


@operation(needs=["read", "write"], route=Route("POST", "/api/graph/merges", body_required=True), answer=EntityMerged)
def merge(call: Call, arguments: EntityMerging) -> Json:
    """Merge two entities, undo a merge, or say that two are not the same."""
    if arguments.undo is None and not (arguments.entity.strip() or arguments.into.strip()):
        raise InvalidInput(
            "nothing to do", "neither entity and into nor undo was given", 'Send {"entity": "…", "into": "…"} or {"undo": 1}'
        )
    return _merged(call, arguments)


def _listed(call: Call, limit: int) -> Json:
    """List merge proposals, and the merges so far, undone ones too. Changes nothing.

    Raises:
        AnalysisUnfinished: there are too many entities to compare in time.
    """
    later = "Try again when less is going on; GET /api/graph/entity lists the merges of one"
    # The turn comes before the connection, because waiting for it must not hold the database.
    with call.reading() as persona, call.runtime.shared(Analyses).turn(later) as deadline, persona.database.read() as connection:
        proposed, total = merge_proposals(connection, limit, deadline)
        return {
            **heading(call, persona),
            "proposals": [
                {
                    "entity": proposal.merged.name,
                    "entity_id": proposal.merged.entity_id,
                    "into": proposal.kept.name,
                    "into_id": proposal.kept.entity_id,
                    "type": proposal.kept.type,
                    "score": proposal.score,
                    "why": list(proposal.why),
                }
                for proposal in proposed
            ],
            "proposals_in_all": total,
            "merges": [merge_view(done, call.settings.zone) for done in entity_merges.history(connection, limit)],
        }


def _merged(call: Call, arguments: EntityMerging) -> Json:
    """Merge `entity` into `into`, note that they are distinct, or undo a merge.

    Raises:
        InvalidInput, EntityNotFound: it can't be done; nothing was changed.
    """
    name, kept, number = arguments.entity.strip(), arguments.into.strip(), arguments.undo
    if number is not None:
        if name or kept or arguments.distinct:
            raise InvalidInput("undo was given with other arguments", "one call does one thing", "Send two calls")
        return _undone(call, number)
    if not (name and kept):
        raise InvalidInput("one of the two is missing", "a merge takes entity and into", "Name both")
    name, kept = entity_name(name, "entity"), entity_name(kept, "into")
    with call.changing() as persona:
        reason, privacy = label(arguments.reason, "reason"), call.settings.privacy
        if arguments.distinct:
            entity_edits.mark_distinct(persona, name, kept, reason=reason, now=call.now, privacy=privacy)
            return {**heading(call, persona), "distinct": [name, kept]}
        done = entity_edits.merge_entities(persona, name, kept, reason=reason, now=call.now, privacy=privacy)
        return {**heading(call, persona), "merge": done.number, "into": entity_view(done.kept, call.settings.zone)}


def _undone(call: Call, number: int) -> Json:
    with call.changing() as persona:
        if not 0 < number <= MERGE_NUMBER_LIMIT:
            raise InvalidInput("undo is {}", "it is the number of a merge", "Look at the merges that are listed", number)
        into, entity = entity_edits.undo_merge(persona, number, now=call.now)
        zone = call.settings.zone
        views = omit_empty(into=into and entity_view(into, zone), entity=entity and entity_view(entity, zone))
        return {**heading(call, persona), "undone": number, **views}
