"""Sample data to look around with: memories of a persona of their own, which one click throws away again."""

import json
import tomllib
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from starlette.responses import Response

from memory_mcp.errors import InvalidInput
from memory_mcp.features.dashboard.frame import Visit
from memory_mcp.features.dashboard.looks import moment
from memory_mcp.server.actions import browse, personas, transfer
from memory_mcp.server.operation import Json

PERSONA = "sample"
LOOKED_THROUGH = 50
PLANS = (1, 6)
BY_LANGUAGE = ("content", "source", "relations")


def may_show(visit: Visit) -> bool:
    """Whether the visitor may have the sample, and throw it away again."""
    return visit.may("read", "write", "delete", "admin") and (visit.admission.personas is None or PERSONA in visit.admission.personas)


def is_sample(visit: Visit) -> bool:
    """Whether the visit's persona holds the sample and nothing else."""
    if visit.call.persona_name() != PERSONA or not may_show(visit):
        return False
    keys = {memory["key"] for memory in visit.perform(browse.list_memories, shelf="all", limit=LOOKED_THROUGH)["memories"]}
    return bool(keys) and keys <= {line["key"] for line in _lines()}


def show(visit: Visit) -> Response:
    """Store the sample in its own persona, unless somebody uses that, and go there."""
    visit.admission.require([*transfer.import_memories.needs, *browse.list_memories.needs], "the sample")
    there = visit.of_persona(PERSONA)
    if not there.perform(browse.list_memories, shelf="all", limit=1)["memories"]:
        there.stream(transfer.import_memories, "\n".join(json.dumps(_told(line, visit), ensure_ascii=False) for line in _lines()))
    return there.redirect("/today")


def throw_away(visit: Visit) -> Response:
    """Erase the sample's persona, which nobody has added anything to."""
    visit.admission.require(personas.erase.needs, "throwing the sample away")
    if not is_sample(visit):
        raise InvalidInput("this persona is not the sample", "something was added to it, or it is another one", "Erase it under Manage")
    visit.perform(personas.erase, confirm=PERSONA)
    return visit.redirect_home()


def _told(line: Json, visit: Visit) -> dict[str, Any]:
    """A memory of the sample as an import takes it, in the language of the page and with dates around today."""
    now = visit.call.local_now
    row = {name: value for name, value in line.items() if name != "days_ago"}
    index = 1 if visit.language == "ja" else 0
    row |= {name: row[name][index] for name in BY_LANGUAGE if name in row}
    days = {ahead: (now + timedelta(days=ahead)).date() for ahead in PLANS}
    spoken = {f"in_{ahead}_days": moment(day.isoformat(), visit.language, day.year) for ahead, day in days.items()}
    row["content"] = row["content"].format(**spoken)
    return {**row, "created_at": (now - timedelta(days=line["days_ago"])).isoformat()}


@cache
def _lines() -> list[Json]:
    lines: list[Json] = tomllib.loads(Path(__file__).with_name("sample.toml").read_text(encoding="utf-8"))["memory"]
    return lines
