"""The room of the persona itself: its figures, its backups, an export, another name, a copy, a merge, and erasing it."""

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


def overview(visit: Visit) -> Response:
    """Show what the persona has, and what the visitor may do with it."""
    figures = _figures(visit) if visit.may("admin") else None
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


def _figures(visit: Visit) -> Json | None:
    """The figures of the persona; None for one without memories, into which something can be imported."""
    try:
        return visit.perform(personas.persona_figures)
    except PersonaUnknown:
        return None


def export(visit: Visit) -> Response:
    """Send all memories, or the graph, as a file."""
    if graph_format := GRAPH_FORMATS.get(visit.field("format")):
        secret = {"include_secret": "true"} if visit.field("include_secret") else {}
        return visit.stream("export_graph", format=graph_format, **secret)
    options = {name: "true" for name in EXPORTED if visit.field(name)}
    return visit.stream(transfer.export_memories, format=visit.field("format") or "jsonl", **options)


def back_up(visit: Visit) -> Response:
    """Make a backup now."""
    visit.perform(upkeep.make_backup)
    return visit.redirect("/house")


def rename(visit: Visit) -> Response:
    """Give the persona another name."""
    return visit.page("persona_done.html", what="renamed", answer=visit.perform(personas.rename, to=visit.field("to")))


def copy(visit: Visit) -> Response:
    """Copy the persona with everything that it has."""
    return visit.page("persona_done.html", what="copied", answer=visit.perform(personas.copy, to=visit.field("to")))


def merge(visit: Visit) -> Response:
    """Copy the persona's memories into another one."""
    return visit.page("persona_done.html", what="taken", answer=visit.perform(personas.merge_into, into=visit.field("into")))


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
