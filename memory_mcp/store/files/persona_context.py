"""persona_context.json: who the user and the persona are, and how things stand. Its owner may edit it by hand."""

import json
import re
import threading
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_mcp.errors import StoreDamaged
from memory_mcp.store.files.durable_files import refusal, write_atomically
from memory_mcp.store.files.encryption_keys import PersonaKey
from memory_mcp.store.files.sealed import is_sealed, seal, unseal

FILE_NAME = "persona_context.json"
PEOPLE = ("user_info", "persona_info")
PERSON_FIELDS = ("name", "nickname", "preferred_address")
# Our names of the state's parts, and the names that the file has for them.
STATE_KEYS = {
    "emotion": "current_emotion",
    "physical_state": "physical_state",
    "mental_state": "mental_state",
    "environment": "environment",
    "relationship_status": "relationship_status",
}
LAST_CONVERSATION = "last_conversation_time"
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


class PersonaContext:
    """The file of one persona. Fields that it has beyond ours are kept as they are."""

    def __init__(self, path: Path | None, key: PersonaKey | None = None) -> None:
        """`path` is None for a persona that doesn't exist: its context is empty and can't be changed. With a `key` the file is sealed."""
        self._path, self._key = path, key
        self._lock = threading.Lock()

    def read(self) -> dict[str, Any]:
        """The whole file, with empty values for what it doesn't say.

        Raises:
            StoreDamaged: somebody left it in a state that is no JSON object.
        """
        return _filled(self._stored())

    def update(self, changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Sets the given fields (a person's fields are merged) and writes the file if that changes it. Returns (before, after).

        Raises:
            StoreDamaged: the file is unreadable; it is left as it is, for its owner to mend.
            StoreReadOnly: it can't be written.
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

    def _stored(self) -> dict[str, Any]:
        if self._path is None:
            return {}
        try:
            text = self._text(self._path)
            stored = json.loads(text)
            if _HALF_CHARACTER.search(text):  # or of a whole one, which is written as two halves, too
                json.dumps(stored, ensure_ascii=False).encode()
        except FileNotFoundError:
            return {}
        except UnicodeEncodeError as error:  # no answer could tell it
            raise StoreDamaged(
                f"{FILE_NAME} can't be read",
                r"it holds half of a character, such as \ud83d alone",
                "Mend or remove the file; the memories are not affected",
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise StoreDamaged(
                f"{FILE_NAME} can't be read", _reason(error), "Mend or remove the file; the memories are not affected"
            ) from error
        if not isinstance(stored, dict) or not all(isinstance(stored.get(name, {}), dict) for name in PEOPLE):
            raise StoreDamaged(
                f"{FILE_NAME} is not a JSON object of the expected form", "", "Mend or remove the file; the memories are not affected"
            )
        return stored

    def text(self) -> str:
        """The file as it is, unsealed; empty where there is none.

        Raises:
            StoreDamaged: it can't be read.
        """
        self._stored()
        return self._text(self._path) if self._path and self._path.exists() else ""

    def _text(self, path: Path) -> str:
        content = path.read_bytes()
        if self._key and is_sealed(content):  # one that its owner wrote by hand is plain until the next change
            content = unseal(content, self._key.files)
        return content.decode("utf-8-sig")  # some editors mark the file as UTF-8

    def _sealed(self, text: str) -> bytes:
        return seal(text.encode(), self._key.files) if self._key else text.encode()


def spoke_at(moment: datetime) -> dict[str, str]:
    """The change that notes that the persona and its user spoke at `moment`, to the second."""
    return {LAST_CONVERSATION: moment.isoformat(timespec="seconds")}


def _filled(stored: Mapping[str, Any]) -> dict[str, Any]:
    people = {name: {**dict.fromkeys(PERSON_FIELDS, ""), **stored.get(name, {})} for name in PEOPLE}
    return {**people, **dict.fromkeys(STATE_KEYS.values(), ""), LAST_CONVERSATION: None, **stored, **people}


def _reason(error: Exception) -> str:
    """What went wrong, without the server's paths: a client may read it."""
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
