"""Who said a memory: people and the persona itself, or an assistant, whose lines are long, repeat a person's, and count less."""

from collections.abc import Callable, Iterable

from memory_mcp.domain import Memory, Origin
from memory_mcp.errors import StoreDamaged
from memory_mcp.language.names import is_assistant
from memory_mcp.language.tokens import normalise
from memory_mcp.personas.registry import Persona


def assistants_among(persona: Persona, origins: Iterable[Origin]) -> frozenset[str]:
    """The sources of these whose lines are an assistant's, by the role that is stored or by their name."""
    roles = {(origin.source, origin.role) for origin in origins if origin.source}
    is_ones = _rule(persona, {source for source, _ in roles if source})
    return frozenset(source for source, role in roles if source and is_ones(source, role))


def by_assistant(persona: Persona, memories: Iterable[Memory]) -> Callable[[Memory], bool]:
    """Whether one of these memories is an assistant's line."""
    is_ones = _rule(persona, {memory.source for memory in memories if memory.source})
    return lambda memory: is_ones(memory.source, memory.role)


def _rule(persona: Persona, sources: Iterable[str]) -> Callable[[str | None, str | None], bool]:
    """Whether a line with this source and role is an assistant's. A persona's own lines are its own, whatever it is called."""
    own = _own_names(persona) if any(map(is_assistant, sources)) else frozenset()

    def is_ones(source: str | None, role: str | None) -> bool:
        return role == "assistant" or (role is None and is_assistant(source) and normalise(source or "").strip() not in own)

    return is_ones


def _own_names(persona: Persona) -> frozenset[str]:
    try:
        about = persona.context.read().get("persona_info") or {}
    except StoreDamaged:
        about = {}
    return frozenset(normalise(name).strip() for name in (persona.name, about.get("name")) if isinstance(name, str))
