"""The room of the persona itself: its figures, its backups, an export, another name, a copy, a merge, and erasing it."""

from contextlib import suppress

from starlette.responses import Response

from memory_mcp.errors import PersonaUnknown
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.server.actions import personas, transfer, upkeep
from memory_mcp.server.operation import Json

GRAPH_FORMATS = {"graphml": "graphml", "graph-json": "json"}
FORMATS = ("jsonl", "markdown", *GRAPH_FORMATS)
EXPORTED = ("include_deleted", "include_secret", "include_versions", "include_context", "include_conversations")
FIGURES = ("memories", "superseded", "in_trash", "versions", "operations", "vectors", "erased")
BYTES = ("database_bytes", "index_bytes")
# The end of the address → what the page says was done, the operation, and its argument.
CHANGES = {
    "rename": ("renamed", personas.rename, "to"),
    "copy": ("copied", personas.copy, "to"),
    "merge": ("taken", personas.merge_into, "into"),
}


def overview(visit: Visit) -> Response:
    """Show what the persona has, and what the visitor may do with it."""
    figures: Json | None = None
    if visit.may("admin"):
        with suppress(PersonaUnknown):  # one without memories, into which something can be imported
            figures = visit.perform(personas.persona_figures)
    return visit.page(
        "persona.html",
        figures=figures,
        backups=visit.perform(upkeep.list_backups) if figures else None,
        counted=FIGURES,
        measured=BYTES,
        exported=EXPORTED,
        left_out=transfer.left_out_unless_asked(visit.call) if visit.may("export") else {},
        formats=[name for name in FORMATS if name not in GRAPH_FORMATS or visit.offers("export_graph")],
    )


def export(visit: Visit) -> Response:
    """Send all memories, or the graph, as a file."""
    if graph_format := GRAPH_FORMATS.get(visit.field("format")):
        return visit.stream("export_graph", format=graph_format, include_secret=visit.field("include_secret"))
    chosen = {name: visit.field(name) for name in EXPORTED}
    return visit.stream(transfer.export_memories, format=visit.field("format") or "jsonl", **chosen)


def back_up(visit: Visit) -> Response:
    """Make a backup now."""
    visit.perform(upkeep.make_backup)
    return visit.redirect("/house")


def change(visit: Visit) -> Response:
    """Give the persona another name, copy it with everything that it has, or copy its memories into another one."""
    what, operation, argument = CHANGES[visit.request.url.path.rpartition("/")[2]]
    return visit.page("persona_done.html", what=what, answer=visit.perform(operation, **{argument: visit.field(argument)}))


def erasing(visit: Visit) -> Response:
    """Show what would be erased, and what would remain elsewhere."""
    return visit.page("erase.html", planned=visit.perform(personas.erase), counted=FIGURES)


def erase(visit: Visit) -> Response:
    """Erase the persona for good, once its name was typed."""
    removed = {name: "true" for name in ("remove_backups", "remove_kept") if visit.field(name)}
    answer = visit.perform(personas.erase, confirm=visit.field("confirm"), **removed)
    if "dry_run" in answer:
        return visit.redirect("/house/erase")
    return visit.page("persona_done.html", what="erased_persona", answer=answer)
