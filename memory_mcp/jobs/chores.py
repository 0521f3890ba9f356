"""The list of chores: what each does for a persona in the background, in which settings it is enabled, and how often it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory_mcp.config.settings import Settings
from memory_mcp.encoders.models import Models
from memory_mcp.graph.extract.dictionary import proper_nouns
from memory_mcp.graph.update import consistency_check, llm_extraction
from memory_mcp.graph.update.background_links import link_similar
from memory_mcp.graph.update.cooccurrence import update_graph
from memory_mcp.graph.update.entity_embedding import embed_entities
from memory_mcp.jobs.chore_worker import Chore
from memory_mcp.jobs.usage_counts import Usage
from memory_mcp.llm.chat import Chat
from memory_mcp.personas.registry import Persona, Personas
from memory_mcp.relate import links as newer_links
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep import backup, fts_segments, retention_rules, summarization

# The least time between two rounds of a chore for one persona. Chores without one run after each write; `summaries` has a setting.
LINKS_INTERVAL = timedelta(minutes=5)  # links and extraction do little for each memory, so they need not run after every write
GRAPH_CHECK_INTERVAL = timedelta(days=1)
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


def background_chores(parts: ChoreParts) -> list[Chore]:
    """The chores, most important first."""
    return [
        *_graph_chores(parts.models_for, parts.indexes, parts.chat),
        *_memory_chores(parts.personas, parts.indexes, parts.forget_cached, parts.chat),
        parts.usage.chore(USAGE_INTERVAL),
    ]


def _graph_chores(models_for: Callable[[Settings], Models], indexes: IndexCache, chat: Chat) -> list[Chore]:
    def keep_graph(persona: Persona, now: datetime, settings: Settings) -> bool:
        dictionary = proper_nouns() if settings.graph.names_by == "sudachi" else None
        return update_graph(persona, now.astimezone(settings.zone), dictionary) or embed_entities(persona, models_for(settings))

    return [
        Chore("graph", keep_graph, only_after_writes=True),
        Chore(
            "links",
            lambda persona, now, settings: link_similar(persona, indexes, settings.graph.alike_from, now),
            lambda settings: settings.graph.link_alike,
            lambda _: LINKS_INTERVAL,
            only_after_writes=True,
        ),
        Chore(
            "graph model",
            # What has expired is moved first, so that no model is asked about it, and no summary repeats it.
            lambda persona, now, settings: retention_rules.trash_expired(persona, now) or llm_extraction.step(persona, now, settings, chat),
            lambda settings: settings.graph.ask_model and settings.llm.chat_class is not None,
            lambda _: LINKS_INTERVAL,
            only_after_writes=True,
        ),
        Chore(
            "newer",
            lambda persona, now, settings: retention_rules.trash_expired(persona, now) or newer_links.step(persona, now, settings, chat),
            lambda settings: settings.graph.judge_newer and settings.llm.chat_class is not None,
            lambda _: LINKS_INTERVAL,
            only_after_writes=True,
        ),
        Chore(
            "graph check",
            lambda persona, now, _: consistency_check.step(persona, now),
            interval=lambda _: GRAPH_CHECK_INTERVAL,
            only_after_writes=True,
        ),
    ]


def _memory_chores(personas: Personas, indexes: IndexCache, forget_cached: Callable[[], None], chat: Chat) -> list[Chore]:
    return [
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
    ]
