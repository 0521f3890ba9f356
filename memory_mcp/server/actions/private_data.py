"""The private data in a persona's memories: what was replaced before storing, and what is stored as it is."""

from collections import Counter
from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from memory_mcp.server.arguments import Arguments, Between, WholeNumber, http
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, operation
from memory_mcp.server.views import Count, Moment, ReadingAnswer, heading, local, omit_empty
from memory_mcp.store import memories
from memory_mcp.upkeep.privacy_scan import private_data

SCANNED, SCANNED_LIMIT = 1_000, 5_000
LISTED = 200


class ScanArguments(Arguments):
    before: Annotated[WholeNumber, http("`next` of the page before.")] = None
    limit: Annotated[int, Between(1, SCANNED_LIMIT), http("How many memories are looked through.")] = SCANNED


class FoundData(TypedDict):
    """What one memory holds of one kind. `sample`: its first two characters."""

    key: str
    kind: str
    how: Literal["replaced", "stored", "uncertain"]
    count: Annotated[int, Field(ge=1)]
    stored_at: Moment
    sample: NotRequired[str]
    in_trash: NotRequired[bool]


class PrivacyScan(ReadingAnswer):
    """`counts`: memories by kind and by what was found, `rules`: what config.json says of each kind, `looked_through`: how many
    memories.
    """

    looked_through: Count
    counts: dict[str, dict[str, Count]]
    rules: dict[str, str]
    findings: list[FoundData]
    next: NotRequired[Annotated[int, Field(ge=1)]]


@operation(needs=["read", "admin"], route=Route("GET", "/api/privacy"), answer=PrivacyScan)
def scan(call: Call, arguments: ScanArguments) -> Json:
    """Look for private data in stored memories, the last stored first: what was replaced, what stands there, and what may be private."""
    with call.reading() as persona, persona.database.read() as connection:
        page = memories.page_back(connection, arguments.before, arguments.limit)
        head = heading(call, persona)
    counts: dict[str, Counter[str]] = {}
    findings: list[Json] = []
    for memory in page:
        for data in private_data(memory):
            counts.setdefault(data.kind, Counter())[data.how] += 1
            item = {
                "stored_at": local(memory.created_at, call.settings.zone),
                **omit_empty(in_trash=memory.deleted_at is not None or None),
            }
            findings.append(
                {"key": memory.key, "kind": data.kind, "how": data.how, "count": data.count, **omit_empty(sample=data.sample), **item}
            )
    return {
        **head,
        "looked_through": len(page),
        "counts": {kind: dict(how) for kind, how in sorted(counts.items())},
        "rules": call.settings.privacy.model_dump(),
        "findings": findings[:LISTED],
        **omit_empty(next=page[-1].id if len(page) == arguments.limit else None),
    }
