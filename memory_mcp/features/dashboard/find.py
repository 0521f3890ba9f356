"""One search for everything: pages and commands by their names, memories, and people and things. Scripts show it over any page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from starlette.responses import Response

from memory_mcp.domain import TokenScope
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.features.dashboard.looks import ICON_OF, OTHER_ICON
from memory_mcp.features.dashboard.words import WORDS
from memory_mcp.server.actions.memories import recall

OF_EACH = 6
# Further places: path, the name of its text, and the scopes that it needs.
PLACES: Sequence[tuple[str, str, tuple[TokenScope, ...]]] = (
    ("/memories/new", "add", ("write",)),
    ("/chat/one", "chat_begin", ("read", "write")),
    ("/memories?shelf=trash", "open_trash", ("read",)),
    ("/ask/context", "context", ("read",)),
    ("/ask/figures", "figures", ("read",)),
    ("/people/picture", "picture", ("read",)),
    ("/people/path", "path", ("read",)),
    ("/people/twice", "twice", ("read",)),
    ("/people/statistics", "statistics", ("read",)),
    ("/house#export", "export", ("export",)),
    ("/house#backups", "backup_now", ("admin",)),
)


@dataclass(frozen=True, slots=True)
class Place:
    """What a search leads to."""

    title: str
    address: str
    icon: str
    hint: str = ""


def overview(visit: Visit) -> Response:
    """Show what a few words lead to; without words, the pages and commands."""
    query = visit.field("q")
    groups = [("pages", list(_pages(visit, query.casefold())))]
    if query and visit.may("read"):
        groups += [("memories", _memories(visit, query)), ("people", _people(visit, query) if visit.has("/people") else [])]
    return visit.page("find.html", q=query, groups=[(name, places) for name, places in groups if places])


def _pages(visit: Visit, words: str) -> Iterator[Place]:
    further = [(path, name) for path, name, scopes in PLACES if visit.may(*scopes) and visit.has(path)]
    for path, name in [*visit.rooms, *further, *visit.house_rooms]:
        if any(words in text.casefold() for text in WORDS[name]):
            yield Place(visit.words(name), visit.url(path), ICON_OF[name])


def _memories(visit: Visit, query: str) -> list[Place]:
    found = visit.perform(recall, query=query, top_k=OF_EACH, detail="index")["hits"]
    own = [hit for hit in found if "pool" not in hit]
    why = Place(visit.words("find_why"), visit.url("/ask", q=query), ICON_OF["ask"])
    return [*(Place(hit["content"], visit.url("/memory", key=hit["key"]), icon="file-text", hint=hit["ago"]) for hit in own), why]


def _people(visit: Visit, query: str) -> list[Place]:
    found = visit.perform("list_entities", query=query, limit=OF_EACH)["entities"]
    return [
        Place(entity["name"], visit.url("/people/one", entity=entity["id"]), ICON_OF.get(entity["type"], OTHER_ICON)) for entity in found
    ]
