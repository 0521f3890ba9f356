"""Judgements of memories: whether what was shown helped. Only what the caller was shown counts, once for each time that it was."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Feedback, Outcome, Showing, Verdict
from memory_mcp.language.privacy.redaction import Redaction
from memory_mcp.personas.registry import Persona
from memory_mcp.store import feedback, memories
from memory_mcp.store.timestamps import to_text


def judge(
    persona: Persona, keys: Sequence[str], verdict: Verdict, shown: Mapping[str, Showing], caller: str, *, now: datetime, privacy: Privacy
) -> list[Outcome]:
    """Store a judgement of each of these memories: `judged`, `not_shown` or `not_found`. Another one on the same answer replaces it."""

    def store(connection: apsw.Connection) -> list[Outcome]:
        known = memories.by_keys(connection, keys)
        for key, memory in known.items():
            if key in shown:
                query = Redaction(privacy).text(shown[key].query)
                feedback.add(connection, memory.id, [Feedback(verdict, now, to_text(shown[key].at), query)], caller)
        return [_outcome(key, key in known, key in shown) for key in keys]

    return persona.database.write(store)


def _outcome(key: str, is_known: bool, is_shown: bool) -> Outcome:
    if not is_known:
        return Outcome(key, "not_found")
    return Outcome(key, "judged") if is_shown else Outcome(key, "not_shown", "you were not shown it lately: recall it first")
