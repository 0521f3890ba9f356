"""A dry run of an import: the outcome of each draft, without storing it."""

from collections.abc import Sequence
from datetime import datetime

import apsw

from memory_mcp.config.settings import Privacy
from memory_mcp.domain import Clash, Draft, Outcome
from memory_mcp.errors import MemoryMCPError
from memory_mcp.remember.deduplication import settle, taken
from memory_mcp.remember.revise import unknown_predecessor
from memory_mcp.remember.validation import redacted
from memory_mcp.store import memories


class Foreseen:
    """A dry run over many drafts. Keeps some 100 bytes of each draft that would be stored."""

    def __init__(self) -> None:
        self._contents: dict[str, int] = {}  # by key
        self._writes: set[str] = set()

    def outcomes(
        self, connection: apsw.Connection, drafts: Sequence[Draft], now: datetime, clash: Clash, privacy: Privacy
    ) -> list[Outcome]:
        """`stored`, `already_known`, `revised` or `refused` for each, as `remember_many` would answer."""
        return [self._outcome(connection, draft, now, clash, privacy) for draft in drafts]

    def would_store(self, key: str) -> bool:
        """Whether an earlier draft of this run would store a memory with this key."""
        return key in self._contents

    def _outcome(self, connection: apsw.Connection, received: Draft, now: datetime, clash: Clash, privacy: Privacy) -> Outcome:
        draft = received
        try:
            draft, _ = redacted(received, privacy)
            outcome = self._repeated(draft, clash) or settle(connection, draft, now, clash)
            if outcome:
                return outcome
            self._check_predecessor(connection, draft)
        except MemoryMCPError as error:
            return Outcome(draft.restored.key or "", "refused", str(error))
        if draft.restored.key:
            self._contents[draft.restored.key] = hash(draft.content)
        else:
            self._writes.add(memories.write_digest(draft))
        return Outcome(draft.restored.key or "", "stored")

    def _repeated(self, draft: Draft, clash: Clash) -> Outcome | None:
        """The outcome of a draft that repeats an earlier one of this run."""
        key = draft.restored.key
        if not key:
            return Outcome("", "already_known") if memories.write_digest(draft) in self._writes else None
        if key not in self._contents:
            return None
        if self._contents[key] == hash(draft.content) or clash == "keep":
            return Outcome(key, "already_known")
        if clash == "refuse":
            raise taken(key)
        return Outcome(key, "revised")

    def _check_predecessor(self, connection: apsw.Connection, draft: Draft) -> None:
        named = draft.supersedes
        if named and not draft.restored.key and named not in self._contents and not memories.by_keys(connection, [named]):
            raise unknown_predecessor(named)
