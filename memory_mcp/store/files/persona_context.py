"""persona_context.json: facts about the user and the persona, and their current state. Users may edit the file by hand."""

import json
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_mcp.errors import StoreDamaged
from memory_mcp.store.files.durable_files import refusal, write_atomically
from memory_mcp.store.files.encryption_keys import PersonaKey
from memory_mcp.store.files.sealed import is_sealed, seal, unseal

FILE_NAME = "persona_context.json"
PEOPLE = ("user_info", "persona_info")
NAMES = ("name", "nickname", "preferred_address")
# Who a character is, in the fields that its card has. They are there only if somebody gave them.
CHARACTER = ("description", "personality", "scenario", "greeting")
PERSON_FIELDS: Mapping[str, Sequence[str]] = {"user_info": NAMES, "persona_info": (*NAMES, *CHARACTER)}
# The parts of the state → their keys in the file.
STATE_KEYS = {
    "emotion": "current_emotion",
    "physical_state": "physical_state",
    "mental_state": "mental_state",
    "environment": "environment",
    "relationship_status": "relationship_status",
}
LAST_CONVERSATION = "last_conversation_time"
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class PersonaContext:
    """The context file of one persona. Unknown fields are preserved."""

    def __init__(self, path: Path | None, key: PersonaKey | None = None) -> None:
        """`path` is None for a persona that doesn't exist: its context is empty and can't be changed. With a `key` the file is sealed."""
        self._path, self._key = path, key
        self._lock = threading.Lock()

    def read(self) -> dict[str, Any]:
        """The whole content, with empty values for missing fields.

        Raises:
            StoreDamaged: the file isn't a JSON object of the expected form.
        """
        return _filled(self._stored())

    def update(self, changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Set the given fields (a person's fields are merged) and write the file if it changes. Returns (before, after).

        Raises:
            StoreDamaged: the file is unreadable; it is left unchanged for the user to repair.
            StoreReadOnly: the file can't be written.
        """
        if self._path is None:
            raise ValueError("a persona that does not exist has no context to change")
        with self._lock:
            stored = self._stored()
            before = _filled(stored)
            after = {**before, **{name: {**before[name], **value} if name in PEOPLE else value for name, value in changes.items()}}
            if after != stored:
                try:
                    write_atomically(self._path, self._sealed(json.dumps(after, ensure_ascii=False, indent=2) + "\n"))
                except OSError as error:
                    raise refusal(error, f"{FILE_NAME} can't be written", "Make the data directory writable") from error
        return before, after

    def missing(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Those of these fields that are empty here, as changes for `update`.

        Raises:
            StoreDamaged: the file isn't a JSON object of the expected form.
        """
        own = self.read()
        changes: dict[str, Any] = {}
        for name, value in fields.items():
            if name in PEOPLE:
                missing = {field: entry for field, entry in value.items() if entry and not own[name].get(field)}
                changes.update({name: missing} if missing else {})
            elif value not in (None, "") and own.get(name) in (None, ""):
                changes[name] = value
        return changes

    def says_otherwise(self, fields: Mapping[str, Any]) -> bool:
        """Whether a person here has another value in one of these fields.

        Raises:
            StoreDamaged: the file isn't a JSON object of the expected form.
        """
        own = self.read()
        return any((own[name].get(field) or entry) != entry for name in PEOPLE for field, entry in fields.get(name, {}).items())

    def replacing(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The changes for `update` after which these fields are here, and of their people nothing else that says who they are.

        Raises:
            StoreDamaged: the file isn't a JSON object of the expected form.
        """
        own = self.read()
        cleared = {name: dict.fromkeys(own[name].keys() & {*NAMES[:2], *CHARACTER}, "") | fields[name] for name in PEOPLE if name in fields}
        changes = {**fields, **cleared}
        return {name: value for name, value in changes.items() if (own[name] | value if name in PEOPLE else value) != own.get(name)}

    def _stored(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            text = self._text(self._path)
            stored = json.loads(text)
            if _ESCAPED_SURROGATE.search(text):  # escaped surrogate pairs match too
                json.dumps(stored, ensure_ascii=False).encode()
        except FileNotFoundError:
            return {}
        except UnicodeEncodeError as error:  # it couldn't be encoded in any response
            raise StoreDamaged(
                "{} can't be read",
                "it holds half of a character, such as \\ud83d alone",
                "Mend or remove the file; the memories are not affected",
                FILE_NAME,
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise StoreDamaged(
                "{} can't be read", "{}", "Mend or remove the file; the memories are not affected", FILE_NAME, _reason(error)
            ) from error
        if not isinstance(stored, dict) or not all(isinstance(stored.get(name, {}), dict) for name in PEOPLE):
            raise StoreDamaged(
                "{} is not a JSON object of the expected form", "", "Mend or remove the file; the memories are not affected", FILE_NAME
            )
        return stored

    def text(self) -> str:
        """The decrypted text of the file; empty if there is none.

        Raises:
            StoreDamaged: the file can't be read.
        """
        self._stored()
        return self._text(self._path) if self._path and self._path.exists() else ""

    def _text(self, path: Path) -> str:
        content = path.read_bytes()
        if self._key and is_sealed(content):  # a file edited by hand is plain until the next change
            content = unseal(content, self._key.files)
        return content.decode("utf-8-sig")  # some editors mark the file as UTF-8

    def _sealed(self, text: str) -> bytes:
        return seal(text.encode(), self._key.files) if self._key else text.encode()


def conversation_at(moment: datetime) -> dict[str, str]:
    """The change that records a conversation at `moment`, to the second."""
    return {LAST_CONVERSATION: moment.isoformat(timespec="seconds")}


def _filled(stored: Mapping[str, Any]) -> dict[str, Any]:
    people = {name: {**dict.fromkeys(NAMES, ""), **stored.get(name, {})} for name in PEOPLE}
    return {**people, **dict.fromkeys(STATE_KEYS.values(), ""), LAST_CONVERSATION: None, **stored, **people}


def _reason(error: Exception) -> str:
    """The reason of an error without paths of the server, because clients may read it."""
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
