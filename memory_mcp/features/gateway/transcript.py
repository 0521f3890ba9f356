"""What a client's messages say: the user's turns and their answers, and which of them is new."""

import hashlib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memory_mcp.llm.thoughts import without_thoughts

SYSTEM = ("system", "developer")
DIGEST_LENGTH = 32
_TEXT_PARTS = ("text", "input_text")
# What stands for a part of a message that is no text.
_OTHER_PARTS = {"image_url": "[image]", "input_image": "[image]", "input_audio": "[audio]", "file": "[file]"}


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the user: its text, where it is among the messages, and who it is by if the client says so."""

    text: str
    index: int
    speaker: str | None = None


@dataclass(frozen=True)
class Exchange:
    """What the user said in a row, and the answer, empty where none is there. Its digests are compared with those of many conversations."""

    said: tuple[Said, ...]
    answer: str = ""

    @property
    def begins(self) -> int:
        """The index of its first message."""
        return self.said[0].index

    @property
    def text(self) -> str:
        """What the user said."""
        return "\n".join(said.text for said in self.said)

    @cached_property
    def digest(self) -> str:
        """The same for the same words, whatever their blanks."""
        return [*self.beginnings()][-1]

    @cached_property
    def answered(self) -> str:
        """The digest of the answer."""
        return digest(self.answer)

    def beginnings(self) -> Iterator[str]:
        """The digest that it would have with its first message alone, with its first two, and so on."""
        words = hashlib.sha256()
        for number, said in enumerate(self.said):
            words.update(("\x00" if number else "").encode() + _normal(f"{said.speaker or ''}: {said.text}"))
            yield words.hexdigest()[:DIGEST_LENGTH]


@dataclass(frozen=True, slots=True)
class Transcript:
    """The exchanges in order; the last one is to be answered. `instructions`: the client's own system messages at the start, which end
    before the message at `begins`. `opened`: the beginning of the answer, where the client gives that.
    """

    exchanges: tuple[Exchange, ...]
    instructions: str
    begins: int
    opened: str = ""

    @property
    def newest(self) -> Exchange:
        return self.exchanges[-1]

    @property
    def whole(self) -> str:
        """All that is said in it."""
        return "\n".join([self.instructions, *(f"{exchange.text}\n{exchange.answer}" for exchange in self.exchanges)])


def read(messages: Sequence[Any], persona: str) -> Transcript:
    """The transcript of the messages; without exchanges where no user says anything. Where several assistants speak by name, the others
    than `persona` are people to it."""
    begins = next((index for index, message in enumerate(messages) if _role(message) not in SYSTEM), len(messages))
    others = _others(messages, persona)
    exchanges: list[Exchange] = []
    is_open = False  # others are speaking
    for index, message in enumerate(messages):
        role = _role(message)
        text = text_of(message.get("content")).strip() if role in ("user", "assistant") else ""
        text = without_thoughts(text).strip() if role == "assistant" else text
        if role == "user" or (role == "assistant" and text and _name(message) in others):
            earlier = exchanges.pop().said if is_open else ()
            exchanges.append(Exchange((*earlier, Said(text, index, _name(message)))))
            is_open = True
        elif role not in SYSTEM:
            is_open = False
            if role == "assistant" and exchanges and text:
                exchanges[-1] = Exchange(exchanges[-1].said, text)
    is_opened = bool(exchanges) and not is_open and _role(messages[-1]) == "assistant"
    instructions = "\n".join(text_of(message.get("content")) for message in messages[:begins])
    return Transcript(tuple(exchanges), instructions, begins, exchanges[-1].answer if is_opened else "")


def _others(messages: Sequence[Any], persona: str) -> frozenset[str | None]:
    """The names of the assistants in a group other than the persona's own, which is among them."""
    names = {name for message in messages if _role(message) == "assistant" and (name := _name(message))}
    others = {name for name in names if name.casefold() != persona.casefold()}
    return frozenset(others) if others != names else frozenset()


def text_of(content: Any) -> str:
    """The text of a message, which may consist of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, map(_part, content))) if isinstance(content, list) else ""


def digest(*texts: str) -> str:
    """A digest of texts that ignores blanks and the form of characters."""
    return hashlib.sha256(b"\x00".join(map(_normal, texts))).hexdigest()[:DIGEST_LENGTH]


def _normal(text: str) -> bytes:
    return " ".join(unicodedata.normalize("NFC", text).split()).encode("utf-8", "surrogatepass")


def _part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return part if isinstance(part, str) else ""
    if part.get("type") in _TEXT_PARTS or "type" not in part:
        return part["text"] if isinstance(part.get("text"), str) else ""
    return _OTHER_PARTS.get(str(part["type"]), "")


def _role(message: Any) -> str:
    role = message.get("role") if isinstance(message, Mapping) else None
    return role if isinstance(role, str) else ""


def _name(message: Mapping[str, Any]) -> str | None:
    name = message.get("name")
    return name.strip() or None if isinstance(name, str) else None
