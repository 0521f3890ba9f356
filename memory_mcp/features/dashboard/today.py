"""The first room: what was learned lately, what is to come, what may want a decision, and what the server does in the background."""

from starlette.responses import Response

from memory_mcp.features.dashboard import sample
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.server.actions import browse, context, organize, upkeep
from memory_mcp.server.operation import Json
from memory_mcp.server.status import readiness

# Summaries are among the latest, too, and left out.
LATEST, LATEST_WITH_SUMMARIES = 8, 16
DAYS = 30
OF_EACH = 5
OF_UPCOMING = 10


def overview(visit: Visit) -> Response:
    """Show the first room."""
    latest = visit.perform(browse.list_memories, limit=LATEST_WITH_SUMMARIES)["memories"]
    days = visit.perform(browse.memories_per_day, days=DAYS)["days"]
    upcoming = visit.perform(context.list_upcoming, limit=OF_UPCOMING)["memories"]
    return visit.page(
        "today.html",
        known=visit.perform(context.get_context),
        today=visit.call.local_now.date().isoformat(),
        upcoming=sorted(upcoming, key=lambda memory: memory.get("upcoming_on", "")),
        latest=[memory for memory in latest if memory["kind"] != "summary"][:LATEST],
        days=[(day["day"], day["memories"]) for day in days],
        ready=readiness(visit.call.runtime, visit.admission),
        backup=_newest_backup(visit),
        may_show_sample=sample.may_show(visit),
        is_sample=sample.is_sample(visit),
    )


def decide(visit: Visit) -> Response:
    """Show what may want a decision. Of many memories it takes seconds to find, so the first page asks for it when it is shown."""
    proposed = visit.perform(organize.list_proposals, top_k=OF_EACH)
    return visit.page("decide.html", proposed=proposed, may_tidy=visit.may(*organize.tidy.needs))


def _newest_backup(visit: Visit) -> Json | None:
    """The newest backup; None for a visitor who may not know, and without one an empty object."""
    if not visit.may(*upkeep.list_backups.needs):
        return None
    backups: list[Json] = visit.perform(upkeep.list_backups)["backups"]
    return backups[0] if backups else {}


def merge(visit: Visit) -> Response:
    """Merge memories that say the same into one of them."""
    visit.perform(organize.tidy, merge=visit.fields.get("key", []), into=visit.field("into"))
    return visit.redirect("/today")


def undo(visit: Visit) -> Response:
    """Take a merge back."""
    visit.perform(organize.tidy, undo=visit.field("operation_id"))
    return visit.redirect("/today")
