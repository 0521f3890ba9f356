"""The list of chores: what each does for a persona in the background, in which settings it is enabled, and how often it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import Models
from memory_mcp.graph.update.cooccurrence import Names, update_graph
from memory_mcp.jobs.chore_worker import Chore
from memory_mcp.jobs.usage_counts import Usage
from memory_mcp.llm.chat import Chat
from memory_mcp.personas.registry import Personas
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import backup, fts_segments, retention_rules, summarization

# The least time between two rounds of a chore for one persona. Chores without one run after each write; `summaries` has a setting.
RETENTION_INTERVAL = timedelta(hours=1)
BACKUP_INTERVAL = timedelta(minutes=5)
SEGMENTS_INTERVAL = timedelta(minutes=5)
USAGE_INTERVAL = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ChoreParts:
    """What chores work with. `forget_cached` is called after memories have been erased."""

    personas: Personas
    models_for: Callable[[Settings], Models]
    indexes: IndexCache
    forget_cached: Callable[[], None]
    usage: Usage
    chat: Chat


def background_chores(parts: ChoreParts, names: Callable[[Settings], Names | None]) -> list[Chore]:
    """The chores, most important first. `names`: what else finds names in texts."""
    personas, indexes, forget_cached, chat = parts.personas, parts.indexes, parts.forget_cached, parts.chat
    return [
        Chore(
            "graph",
            lambda persona, now, settings: update_graph(persona, now.astimezone(settings.zone), names(settings)),
            only_after_writes=True,
        ),
        Chore(
            "retention",
            lambda persona, now, settings: retention_rules.step(persona, now, settings, indexes, forget_cached=forget_cached),
            interval=lambda _: RETENTION_INTERVAL,
            only_after_writes=True,
            next_due=retention_rules.next_due,
        ),
        Chore(
            "backup",
            backup.Backups(personas.directory, personas.keys).step,
            lambda settings: settings.backup.enabled,
            lambda _: BACKUP_INTERVAL,
            only_after_writes=True,
            next_due=backup.next_due,
        ),
        Chore(
            summarization.CHORE,
            lambda persona, now, settings: retention_rules.trash_expired(persona, now) or summarization.step(persona, now, settings, chat),
            lambda settings: settings.summaries.enabled,
            lambda settings: timedelta(minutes=settings.summaries.interval_minutes),
            only_after_writes=True,
            next_due=summarization.next_due,
        ),
        Chore(
            fts_segments.CHORE,
            lambda persona, _now, _settings: fts_segments.step(persona),
            interval=lambda _: SEGMENTS_INTERVAL,
            only_after_writes=True,
            changes_memories=False,
        ),
        parts.usage.chore(USAGE_INTERVAL),
    ]
