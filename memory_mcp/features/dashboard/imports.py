"""The room of imports: a file of any known format or pasted lines, as a trial first if wanted, with its progress."""

import json

from starlette.responses import Response

from memory_mcp.domain import CLASHES
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.server.actions import imports, transfer
from memory_mcp.server.operation import Json


def overview(visit: Visit) -> Response:
    """Show the form, and the imports so far; one of them alone while it runs."""
    jobs: list[Json] = visit.perform(imports.list_imports)["imports"]
    chosen = next((job for job in jobs if job["id"] == visit.field("job")), None)
    is_running = chosen is not None and chosen["state"] in ("waiting", "reading", "storing")
    return visit.page("import.html", jobs=jobs, job=chosen, is_running=is_running, formats=imports.FORMATS, clashes=CLASHES)


def start(visit: Visit) -> Response:
    """Import a file, or the lines that were pasted."""
    file = visit.files.get("file")
    if file is None:
        return _pasted(visit)
    options = {name: visit.field(name) for name in ("me", "timezone", "dry_run", "forget_deleted", "replace")}
    chosen = {name: visit.field(name) or "auto" for name in ("format", "on_known")}
    response = visit.stream(imports.import_file, file, file=file.filename or "", **options, **chosen)
    return visit.redirect("/house/import", job=json.loads(bytes(response.body))["id"])


def _pasted(visit: Visit) -> Response:
    on_known = visit.field("on_known")
    options = {"dry_run": visit.field("dry_run"), "on_known": on_known if on_known in CLASHES else CLASHES[0]}
    response = visit.stream(transfer.import_memories, visit.fields.get("lines", [""])[-1], **options)
    return visit.page("imported.html", response.status_code, answer=json.loads(bytes(response.body)))


def cancel(visit: Visit) -> Response:
    """End an import."""
    visit.perform(imports.cancel_import, id=visit.field("id"))
    return visit.redirect("/house/import", job=visit.field("id"))
