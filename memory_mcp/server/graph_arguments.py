"""What may be asked of the graph, and how that is refused: the same for the tools and for the routes."""

from collections.abc import Collection, Sequence

from memory_mcp.errors import InvalidInput
from memory_mcp.graph.analytics.centrality import MEASURES
from memory_mcp.graph.analytics.growth import INTERVALS, Interval
from memory_mcp.graph.query.paths import ALGORITHMS, Algorithm
from memory_mcp.text.entity_types import type_of_word

DEPTH_LIMIT, PATH_LIMIT = 3, 6
NEIGHBOURS_LIMIT, SNAPSHOT_LIMIT = 100, 500
FORMATS = ("vis", "json")
# A description takes a sentence or two; every name that is known is compared with what is sought.
SOUGHT_LIMIT = 1_000


def within(value: int | None, name: str, least: int, most: int, default: int) -> int:
    """A whole number from `least` to `most`."""
    if value is None:
        return default
    if not least <= value <= most:
        raise InvalidInput(f"{name} is {value}", f"it runs from {least} to {most}", f"Leave it out for {default}")
    return value


def share(value: float | None, name: str = "min_confidence") -> float:
    """A number from 0 to 1; 0 where none is told."""
    if value is None:
        return 0.0
    if not 0 <= value <= 1:
        raise InvalidInput(f"{name} is {value}", "it runs from 0 to 1", "Leave it out for 0")
    return float(value)


def name(value: str, argument: str) -> str:
    """The name or id of an entity, or a description of it."""
    if not value.strip():
        raise InvalidInput(f"{argument} is empty", "it is the name of an entity", "Take a name from a memory, or look at graph_snapshot")
    if len(value) > SOUGHT_LIMIT:
        raise InvalidInput(f"{argument} has {len(value):,} characters", f"{SOUGHT_LIMIT:,} are the limit", "Send a name or an id")
    return value.strip()


def types(wanted: Sequence[str], known: Collection[str]) -> list[str]:
    """Types of entities by their names: `Person` for person, 人物 and 人."""
    found = []
    for one in wanted:
        type_ = type_of_word(one, known)
        if type_ is None:
            raise InvalidInput(f"there is no type {one[:80]!r}", f"known are {', '.join(known)}", "Take one of them, or none")
        found.append(type_)
    return found


def algorithm(value: str) -> Algorithm:
    """How a path is looked for."""
    wanted = value.strip().casefold() or "shortest"
    for known in ALGORITHMS:
        if known == wanted:
            return known
    raise InvalidInput(f"algorithm is {value[:80]!r}", f"it is one of {', '.join(ALGORITHMS)}", "Leave it out for shortest")


def form(value: str) -> str:
    """What a picture is drawn by: `vis` or `json`."""
    wanted = (value.strip().casefold() or "vis").removesuffix(".js")
    if wanted not in FORMATS:
        raise InvalidInput(f"format is {value[:80]!r}", "it is vis or json", "Leave it out for vis")
    return wanted


def measure(value: str) -> str:
    """By what it is told how much an entity counts."""
    wanted = value.strip().casefold() or next(iter(MEASURES))
    if wanted not in MEASURES:
        raise InvalidInput(f"measure is {value[:80]!r}", f"it is one of {', '.join(MEASURES)}", "Leave it out for pagerank")
    return wanted


def interval(value: str) -> Interval:
    """In what steps growth is told."""
    wanted = value.strip().casefold() or INTERVALS[0]
    for known in INTERVALS:
        if known == wanted:
            return known
    raise InvalidInput(f"interval is {value[:80]!r}", f"it is one of {', '.join(INTERVALS)}", "Leave it out for month")
