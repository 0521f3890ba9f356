"""The history of a memory, restoring an earlier version, erasing for good, and backups: tools of the `upkeep` toolset and routes."""

import json
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field

from memory_mcp.domain import KEYS_LIMIT
from memory_mcp.errors import InvalidInput, PersonaUnknown, StoreError
from memory_mcp.language.budget import cut_to_tokens, estimate_tokens, preview
from memory_mcp.language.labels import label
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Persona
from memory_mcp.remember.revise import Revision, revise
from memory_mcp.search.question import TOKENS_LIMIT, token_budget
from memory_mcp.search.stores import in_pool
from memory_mcp.server.arguments import Arguments, Flag, NoArguments, Text, TextList, WholeNumber, Words
from memory_mcp.server.call import Call
from memory_mcp.server.operation import Json, Route, Tool, operation
from memory_mcp.server.views import Count, Moment, PersonaAnswer, heading, local, memory_view, omit_empty, outcome_view
from memory_mcp.store.files.persona_context import FILE_NAME
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.store.versions import Version
from memory_mcp.upkeep import adopted_originals, purge, retention_rules
from memory_mcp.upkeep import history as memory_history
from memory_mcp.upkeep.backup import Backup as StoredBackup
from memory_mcp.upkeep.backup import Backups as BackupStore
from memory_mcp.wording import clauses, sentence

logger = logging.getLogger(__name__)

HISTORY_TOKENS = 1_500
VERSION_OVERHEAD_TOKENS = 40
PURGE_RULE = "asked for"
OTHER_COPIES = (
    "copies that somebody made (exports, backups that were taken elsewhere, snapshots of the disk) hold it as long as they are kept"
)
_KEPT_BACKUPS = "{} of this server, the newest of {}, may hold it until somebody removes them: backup.enabled is false, and nothing removes the old ones"
RESTORED_BACKUPS = "a backup that is restored over this persona is rid of it again"
_EVENT_DETAILS = ("reason", "rule", "by", "from_revision")


class MemoryArguments(Arguments):
    key: Text


class HistoryArguments(MemoryArguments):
    max_tokens: WholeNumber = None


class History(PersonaAnswer):
    memory: dict[str, Any]
    versions: list[dict[str, Any]]
    more: Count
    events: list[dict[str, Any]]


@operation(needs=["read"], tool=Tool("history", "History of a memory", read_only=True, idempotent=True, app="history"))
def history(call: Call, arguments: HistoryArguments) -> Json:
    """What a memory said before, and what was done to it when and why."""
    call, key = call.locate(arguments.key)
    with call.reading() as persona:
        return _history(call, persona, key, token_budget(arguments.max_tokens, HISTORY_TOKENS))


@operation(needs=["read"], route=Route("GET", "/api/history"), answer=History)
def whole_history(call: Call, arguments: MemoryArguments) -> Json:
    """Return what a memory said before, and what was done to it."""
    call, key = call.locate(arguments.key)
    with call.reading() as persona:
        return _history(call, persona, key, TOKENS_LIMIT)


def _history(call: Call, persona: Persona, key: str, max_tokens: int) -> Json:
    """Return a memory as it is, its earlier versions from the latest back as far as the budget goes, and what was done to it."""
    past = memory_history.of(persona, key)
    zone, memory = call.settings.zone, past.memory
    content = cut_to_tokens(memory.content, max_tokens)
    left = max_tokens - estimate_tokens(content)
    shown: list[Json] = []
    for version in past.versions:
        left -= VERSION_OVERHEAD_TOKENS
        if left <= 0 and shown:
            break
        view = _version_view(version, cut_to_tokens(version.content, max(left, 1)), call)
        left -= estimate_tokens(view["content"])
        shown.append(view)
    events = [
        {
            "what": done.operation,
            "at": local(done.timestamp, zone),
            **omit_empty(**{word: done.metadata.get(word) for word in _EVENT_DETAILS}),
        }
        for done in past.done
    ]
    return {
        **heading(call, persona),
        "memory": memory_view(in_pool(call.foreign_pool, memory), content, zone, call.now),
        "versions": shown,
        "more": len(past.versions) - len(shown),
        "events": events,
    }


def _version_view(version: Version, text: str, call: Call) -> Json:
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
        **omit_empty(tags=list(version.tags), changed_because=version.reason, truncated=(text != version.content) or None, **further),
    }


class RestoreVersionArguments(MemoryArguments):
    revision: Annotated[WholeNumber, Field(description="a revision that history shows")] = None
    reason: Text = ""


class RestoreBody(RestoreVersionArguments):
    revision: WholeNumber = Field()


class Revised(PersonaAnswer):
    key: str
    content: str
    revision: Annotated[int, Field(ge=1)]


@operation(needs=["read", "write"], tool=Tool("restore_version", "Restore an earlier version"))
def restore_version(call: Call, arguments: RestoreVersionArguments) -> Json:
    """Let a memory say again what it said in an earlier revision; what it says now is kept as one, too."""
    if not arguments.key:
        raise InvalidInput("key is missing", "", "Take it from a recall")
    if arguments.revision is None:
        raise InvalidInput("revision is missing", "", "Take one that history shows")
    revision = Revision(revision=arguments.revision, reason=label(arguments.reason, "reason"))
    with call.changing() as persona:
        memory = revise(persona, arguments.key, revision, now=call.local_now, privacy=call.settings.privacy)
        return {**heading(call, persona), **memory_view(memory, memory.content, call.settings.zone, call.now), "revision": memory.revision}


@operation(needs=["read", "write"], route=Route("POST", "/api/restore"), answer=Revised)
def restore(call: Call, arguments: RestoreBody) -> Json:
    """Let a memory say again what it said in an earlier revision."""
    return restore_version(call, arguments)


class PurgeArguments(Arguments):
    keys: Annotated[TextList, Field(description="memories in the trash; none: what retention has come to")] = []
    confirm: Annotated[Words, Field(description="the code that came with the list")] = ""


class PurgeBody(PurgeArguments):
    remove_kept: Flag = False


class Purged(PersonaAnswer):
    remains: list[str]
    dry_run: NotRequired[Literal[True]]
    confirm: NotRequired[str]
    outcomes: NotRequired[list[dict[str, Any]]]
    trash: NotRequired[list[dict[str, Any]]]
    erase: NotRequired[list[dict[str, Any]]]
    to_trash: NotRequired[Count]
    to_erase: NotRequired[Count]
    trashed: NotRequired[Count]
    erased: NotRequired[Count]
    swept: NotRequired[bool]
    turns: NotRequired[Count]
    also_in: NotRequired[list[str]]
    stated: NotRequired[list[str]]
    in_context: NotRequired[str]
    kept_in: NotRequired[list[str]]
    removed: NotRequired[list[str]]
    unsearched: NotRequired[list[str]]


@operation(needs=["delete", "admin"], tool=Tool("purge", "Erase for good", destructive=True))
def purge_memories(call: Call, arguments: PurgeArguments) -> Json:
    """Erase for good, only when the user asks for exactly that. Without confirm it lists what would go; forget comes first."""
    return _purged(call, arguments.keys, arguments.confirm, remove_kept=False)


@operation(needs=["delete", "admin"], route=Route("POST", "/api/purge"), answer=Purged)
def purge_by_route(call: Call, arguments: PurgeBody) -> Json:
    """List what would be erased for good, or, with the code of that list, erase it."""
    return _purged(call, arguments.keys, arguments.confirm, remove_kept=arguments.remove_kept)


def _purged(call: Call, keys: Sequence[str], confirm: str, *, remove_kept: bool) -> Json:
    """Without `confirm`, list what would be erased and the code to confirm it with; with it, say what was erased and what remains
    elsewhere.
    """
    if len(keys) > KEYS_LIMIT:
        raise InvalidInput("keys has {} entries", "{} are the limit", "Send fewer at once", len(keys), KEYS_LIMIT)
    with call.changing() as persona:
        return _purge_keys(call, persona, keys, confirm, remove_kept) if keys else _purge_by_rules(call, persona, confirm)


def _purge_keys(call: Call, persona: Persona, keys: Sequence[str], confirm: str, remove_kept: bool) -> Json:
    plan = purge.plan(persona, keys, every_persona=call.admission.personas is None)
    if not confirm:
        outcomes = [_planned(call, plan, outcome) for outcome in map(outcome_view, plan.outcomes)]
        return {**heading(call, persona), "dry_run": True, "outcomes": outcomes, **omit_empty(confirm=plan.code), **_elsewhere(call, plan)}
    purge.check_code(confirm, plan.code)
    erased = purge.erase(persona, [memory.key for memory in plan.erased], rule=PURGE_RULE, now=call.now)
    swept = _swept(call, persona)
    removed = adopted_originals.remove(call.runtime.personas.directory, plan.kept_in) if remove_kept else []
    outcomes = [{**view, "outcome": "erased"} if view["key"] in erased.keys else view for view in map(outcome_view, plan.outcomes)]
    return {
        **heading(call, persona),
        "outcomes": outcomes,
        "swept": swept,
        **omit_empty(removed=removed, unsearched=list(erased.unsearched)),
        **_elsewhere(call, plan, removed),
    }


def _purge_by_rules(call: Call, persona: Persona, confirm: str) -> Json:
    """Do the same for the memories whose retention period is over."""
    listed = retention_rules.list_due(persona, call.settings.retention, call.now)
    code = purge.code_of(persona, [due.memory for due in (*listed.to_trash, *listed.to_erase)])
    counts = {"to_trash": listed.trash_total, "to_erase": listed.erase_total}
    if not confirm:
        lists = {
            "trash": [_due_view(call, due) for due in listed.to_trash],
            "erase": [_due_view(call, due) for due in listed.to_erase],
        }
        return {**heading(call, persona), "dry_run": True, **counts, **lists, **omit_empty(confirm=code), "remains": remains(call)}
    purge.check_code(confirm, code)
    trashed = retention_rules.expire(persona, call.settings.retention, call.now)
    rule = listed.to_erase[0].rule if listed.to_erase else PURGE_RULE
    erased = purge.erase(persona, [due.memory.key for due in listed.to_erase], rule=rule, now=call.now)
    return {
        **heading(call, persona),
        "trashed": len(trashed),
        "erased": len(erased.keys),
        "to_trash": listed.trash_total - len(trashed),
        "to_erase": listed.erase_total - len(erased.keys),
        "swept": _swept(call, persona),
        **omit_empty(unsearched=list(erased.unsearched)),
        "remains": remains(call),
    }


def remains(call: Call) -> list[str]:
    """Describe the copies that a purge can't reach: the backups of this persona, and what others may have."""
    backups, settings = backups_of(call), call.settings
    others = clauses([OTHER_COPIES, RESTORED_BACKUPS])
    if not backups:
        return [others]
    newest = local(backups[0].made_at, settings.zone)
    if not settings.backup.enabled:
        return [sentence(_KEPT_BACKUPS, _many(backups), newest), others]
    until = local(backups[0].made_at + timedelta(days=settings.backup.keep_days), settings.zone)
    how_long = "{} of this server, the newest of {}, may hold it until {}, and longer where no newer one is made"
    return [sentence(how_long, _many(backups), newest, until), others]


def remains_of_persona(call: Call) -> list[str]:
    """Describe the same for an erased persona: nothing makes backups of it any more, and nothing removes them."""
    backups = backups_of(call)
    directory = _backups(call).directory(call.settings).absolute()
    own = sentence("{} in {} hold it until somebody removes them", _many(backups), directory / backups[0].folder) if backups else None
    return [*([own] if own else []), OTHER_COPIES]


def backups_of(call: Call) -> list[StoredBackup]:
    """Return the backups of the persona of a call, the newest first; none of a persona that its token doesn't reach."""
    name = call.persona_name()
    return _backups(call).listed(call.settings, directory_name(name)) if call.reaches(name) else []


def _many(backups: Sequence[StoredBackup]) -> str:
    return f"{len(backups)} backup{'s' if len(backups) > 1 else ''}"


def index_cache(call: Call) -> IndexCache:
    """Return the cache of open indexes; an empty one for a server without."""
    return call.runtime.indexes or IndexCache()


def _swept(call: Call, persona: Persona) -> bool:
    """Remove the traces of erased memories from the files. Return False where a long read prevents it; a background task repeats it
    then.
    """
    call.runtime.forget_cached()
    try:
        swept = purge.sweep(persona, index_cache(call))
    except StoreError as error:  # the memories are erased, and no later failure may hide that
        logger.warning("what was erased of %s is still to be swept out of its files: %s", persona.name, error)
        swept = False
    if not swept and call.runtime.chores:
        call.runtime.chores.request("retention", persona.name)
    return swept


def _elsewhere(call: Call, plan: purge.Plan, removed: Sequence[str] = ()) -> Json:
    kept = [name for name in plan.kept_in if name not in removed]
    in_context = FILE_NAME if plan.in_context else None
    return {
        **omit_empty(turns=plan.turns or None, also_in=list(plan.quoted_in), stated=list(plan.stated), in_context=in_context, kept_in=kept),
        "remains": remains(call),
    }


def _planned(call: Call, plan: purge.Plan, view: dict[str, Any]) -> Json:
    contents = {memory.key: memory.content for memory in plan.erased}
    shown = preview(contents[view["key"]]) if view["key"] in contents and "read" in call.admission.scopes else None
    return {**view, **omit_empty(content=shown)}


def _due_view(call: Call, due: retention_rules.Due) -> Json:
    memory = due.memory
    since = memory.deleted_at or memory.updated_at
    shown = preview(memory.content) if "read" in call.admission.scopes else None
    return {
        "key": memory.key,
        "kind": memory.kind,
        "since": local(since, call.settings.zone),
        "rule": due.rule,
        **omit_empty(content=shown),
    }


class Backup(PersonaAnswer):
    file: str
    made_at: Moment | None
    bytes: Count
    sealed: bool


class Backups(PersonaAnswer):
    backups: list[Backup]
    directory: str


@operation(needs=["admin"], route=Route("GET", "/api/backups"), answer=Backups)
def list_backups(call: Call, _arguments: NoArguments) -> Json:
    """List the backups of one persona, the newest first."""
    with call.reading() as persona:
        name, exists = persona.name, persona.exists
    backups = _backups(call)
    made = backups.listed(call.settings, directory_name(name)) if exists else []
    directory = str(backups.directory(call.settings).absolute())
    return {"persona": name, "directory": directory, "backups": [_backup_view(call, name, backup) for backup in made]}


@operation(needs=["admin"], route=Route("POST", "/api/backups"), answer=Backup)
def make_backup(call: Call, _arguments: NoArguments) -> Json:
    """Make a backup of one persona on the server's disk.

    It takes seconds for a large persona; others are served meanwhile.
    """
    with call.reading() as persona:
        if not persona.exists:
            near = ", ".join(call.near(persona.name))
            raise PersonaUnknown("there is no persona {}", "", sentence("Perhaps you mean {}", near) if near else "", repr(persona.name))
        backup, _ = _backups(call).make(persona, call.now, call.settings)
    return _backup_view(call, persona.name, backup)


def _backups(call: Call) -> BackupStore:
    personas = call.runtime.personas
    return BackupStore(personas.directory, personas.keys)


def _backup_view(call: Call, name: str, backup: StoredBackup) -> Json:
    return {
        "persona": name,
        "file": backup.path.name,
        "made_at": local(backup.made_at, call.settings.zone),
        "bytes": backup.size_bytes,
        "sealed": backup.sealed,
    }
