"""The history of a memory, what retention would do, and what a purge did, as tools and routes show them."""

import json
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from memory_mcp.errors import InvalidInput, StoreError
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Persona
from memory_mcp.server.request_persona import Call
from memory_mcp.server.views import heading, local, memory_view, outcome_view, told
from memory_mcp.store.files.persona_context import FILE_NAME
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.store.versions import Version
from memory_mcp.text.budget import cut_to_tokens, estimate_tokens, preview
from memory_mcp.upkeep import adopted_originals, history, purge, retention_rules
from memory_mcp.upkeep.backup import Backup, Backups

logger = logging.getLogger(__name__)

KEYS_LIMIT = 100
VERSION_OVERHEAD_TOKENS = 40
ASKED = "asked for"
ELSEWHERE = "copies that somebody made (exports, backups that were taken elsewhere, snapshots of the disk) hold it as long as they are kept"
RID_AGAIN = "a backup that is restored over this persona is rid of it again"


def history_view(call: Call, persona: Persona, key: str, max_tokens: int) -> dict[str, Any]:
    """A memory as it is, its earlier states from the latest back as far as the budget goes, and what was done to it."""
    found = history.of(persona, key)
    zone, memory = call.settings.zone, found.memory
    now_says = cut_to_tokens(memory.content, max_tokens)
    left = max_tokens - estimate_tokens(now_says)
    shown: list[dict[str, Any]] = []
    for version in found.versions:
        left -= VERSION_OVERHEAD_TOKENS
        if left <= 0 and shown:
            break
        view = _version_view(version, cut_to_tokens(version.content, max(left, 1)), call)
        left -= estimate_tokens(view["content"])
        shown.append(view)
    events = [
        {"what": done.operation, "at": local(done.timestamp, zone), **told(**{word: done.metadata.get(word) for word in _TOLD_OF_EVENTS})}
        for done in found.done
    ]
    return {
        **heading(call, persona),
        "memory": memory_view(memory, now_says, zone, call.now),
        "versions": shown,
        "more": len(found.versions) - len(shown),
        "events": events,
    }


_TOLD_OF_EVENTS = ("reason", "rule", "by", "from_revision")


def _version_view(version: Version, text: str, call: Call) -> dict[str, Any]:
    kept = version.further or {}
    further = {
        **{name: json.loads(kept[name]) for name in ("state", "questions") if kept.get(name)},
        **{name: kept.get(name) for name in ("category", "privacy_level")},
    }
    return {
        "revision": version.revision,
        "content": text,
        "importance": version.importance,
        "since": local(version.since, call.settings.zone),
        **told(tags=list(version.tags), changed_because=version.reason, truncated=(text != version.content) or None, **further),
    }


def purge_view(call: Call, persona: Persona, keys: Sequence[str], confirm: str, remove_kept: bool = False) -> dict[str, Any]:
    """Without `confirm` what would be erased, and the code to confirm it with; with it, what was erased and what remains elsewhere."""
    if len(keys) > KEYS_LIMIT:
        raise InvalidInput(f"keys has {len(keys)} entries", f"{KEYS_LIMIT} are the limit", "Send fewer at once")
    if not keys:
        return _rules_view(call, persona, confirm)
    plan = purge.plan(persona, keys)
    if not confirm:
        outcomes = [_planned(call, plan, outcome) for outcome in map(outcome_view, plan.outcomes)]
        return {**heading(call, persona), "dry_run": True, "outcomes": outcomes, **told(confirm=plan.code), **_elsewhere(call, plan)}
    purge.check_code(confirm, plan.code)
    erased = purge.erase(persona, [memory.key for memory in plan.erased], rule=ASKED, now=call.now)
    swept = _swept(call, persona)
    removed = adopted_originals.remove(call.runtime.personas.directory, plan.kept_in) if remove_kept else []
    outcomes = [{**view, "outcome": "erased"} if view["key"] in erased.keys else view for view in map(outcome_view, plan.outcomes)]
    return {
        **heading(call, persona),
        "outcomes": outcomes,
        "swept": swept,
        **told(removed=removed, unsearched=list(erased.unsearched)),
        **_elsewhere(call, plan, removed),
    }


def _rules_view(call: Call, persona: Persona, confirm: str) -> dict[str, Any]:
    """The same for what retention has come to."""
    listed = retention_rules.list_due(persona, call.settings.retention, call.now)
    code = purge.code_of(persona, [one.memory for one in (*listed.to_trash, *listed.to_erase)])
    counts = {"to_trash": listed.trash_total, "to_erase": listed.erase_total}
    if not confirm:
        due = {
            "trash": [_due_view(call, one) for one in listed.to_trash],
            "erase": [_due_view(call, one) for one in listed.to_erase],
        }
        return {**heading(call, persona), "dry_run": True, **counts, **due, **told(confirm=code), "remains": remains(call)}
    purge.check_code(confirm, code)
    trashed = retention_rules.expire(persona, call.settings.retention, call.now)
    erased = purge.erase(persona, [one.memory.key for one in listed.to_erase], rule=_rule(listed), now=call.now)
    return {
        **heading(call, persona),
        "trashed": len(trashed),
        "erased": len(erased.keys),
        "to_trash": listed.trash_total - len(trashed),
        "to_erase": listed.erase_total - len(erased.keys),
        "swept": _swept(call, persona),
        **told(unsearched=list(erased.unsearched)),
        "remains": remains(call),
    }


def remains(call: Call) -> list[str]:
    """What is said of copies that a purge can't reach: the backups that there are of this persona, and what others may have."""
    there, settings = backups_of(call), call.settings
    others = f"{ELSEWHERE}; {RID_AGAIN}"
    if not there:
        return [others]
    newest = f"the newest of {local(there[0].made_at, settings.zone)}"
    until = local(there[0].made_at + timedelta(days=settings.backup.keep_days), settings.zone)
    how_long = (
        f"may hold it until {until}, and longer where no newer one is made"
        if settings.backup.enabled
        else "may hold it until somebody removes them: backup.enabled is false, and nothing removes the old ones"
    )
    return [f"{_many(there)} of this server, {newest}, {how_long}", others]


def remains_of_persona(call: Call) -> list[str]:
    """The same of a persona that is erased: of one that is no more, nothing makes backups, and nothing removes them."""
    there = backups_of(call)
    place = Backups(call.runtime.personas.directory, call.runtime.personas.keys).directory(call.settings).absolute()
    own = f"{_many(there)} in {place / there[0].folder} hold it until somebody removes them" if there else None
    return [*([own] if own else []), ELSEWHERE]


def backups_of(call: Call) -> list[Backup]:
    """The backups that there are of the persona of a call, the newest first."""
    personas = call.runtime.personas
    return Backups(personas.directory, personas.keys).listed(call.settings, directory_name(call.persona_name()))


def _many(backups: Sequence[Backup]) -> str:
    return f"{len(backups)} backup{'s' if len(backups) > 1 else ''}"


def shelf(call: Call) -> IndexCache:
    """The open indexes; of a server that keeps none, none."""
    return call.runtime.indexes or IndexCache()


def _swept(call: Call, persona: Persona) -> bool:
    """Whether no trace is left in the files. What a long read holds up, the background does as soon as it can."""
    call.runtime.forget_cached()
    try:
        swept = purge.sweep(persona, shelf(call))
    except StoreError as error:  # the memories are erased: no failure of what follows may hide that
        logger.warning("what was erased of %s is still to be swept out of its files: %s", persona.name, error)
        swept = False
    if not swept and call.runtime.chores:
        call.runtime.chores.request("retention", persona.name)
    return swept


def _elsewhere(call: Call, plan: purge.Plan, removed: Sequence[str] = ()) -> dict[str, Any]:
    kept = [name for name in plan.kept_in if name not in removed]
    in_context = FILE_NAME if plan.in_context else None
    return {**told(also_in=list(plan.quoted_in), stated=list(plan.stated), in_context=in_context, kept_in=kept), "remains": remains(call)}


def _planned(call: Call, plan: purge.Plan, view: dict[str, Any]) -> dict[str, Any]:
    said = {memory.key: memory.content for memory in plan.erased}
    shown = preview(said[view["key"]]) if view["key"] in said and "read" in call.admission.scopes else None
    return {**view, **told(content=shown)}


def _due_view(call: Call, due: retention_rules.Due) -> dict[str, Any]:
    memory = due.memory
    since = memory.deleted_at or memory.updated_at
    shown = preview(memory.content) if "read" in call.admission.scopes else None
    return {"key": memory.key, "kind": memory.kind, "since": local(since, call.settings.zone), "rule": due.rule, **told(content=shown)}


def _rule(listed: retention_rules.Listed) -> str:
    return listed.to_erase[0].rule if listed.to_erase else ASKED
