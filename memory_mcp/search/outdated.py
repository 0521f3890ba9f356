"""Memories that say again what another memory replaced: the same preference, told once more before it changed."""

from collections import defaultdict
from collections.abc import Iterable

import apsw

from memory_mcp.domain import Memory
from memory_mcp.language.restatement import is_nearer, restates, telling
from memory_mcp.store.replacements import Replacement, replacements
from memory_mcp.store.timestamps import to_text


def outdated(connection: apsw.Connection, memories: Iterable[Memory], replacing: Iterable[int]) -> set[int]:
    """The ids of those of `memories` that say what one of the memories `replacing` replaced, told before that one."""
    by_telling: dict[frozenset[str], list[Replacement]] = defaultdict(list)
    for replacement in replacements(connection, replacing):
        by_telling[telling(replacement.replaced)].append(replacement)
    return {
        memory.id
        for memory in (memories if by_telling else ())
        if any(_is_outdated(memory, replacement) for replacement in by_telling.get(telling(memory.content), ()))
    }


def _is_outdated(memory: Memory, by: Replacement) -> bool:
    is_of_same_speaker = not (memory.source and by.replaced_source) or memory.source == by.replaced_source
    return (
        (to_text(memory.told_at), memory.id) < by.told_at
        and is_of_same_speaker
        and restates(memory.content, by.replaced)
        and is_nearer(memory.content, by.replaced, by.content)
    )
