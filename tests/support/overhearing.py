"""Hears every byte that a server answers to many personas, and says which of them belonged to somebody else."""

import hashlib
import re
import ssl
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import httpx2

MARK = re.compile(rb"zq[0-9a-f]{12}qz", re.IGNORECASE)
# Made once: a client makes one of its own otherwise, and reading the certificates takes longer than most calls.
TLS = ssl.create_default_context()
KEY = re.compile(rb"\b(?:[a-z]{2}\d{3}){2}\b|memory_\d{14}_[0-9a-z]+")


def mark_of(persona: str) -> str:
    """Letters and digits that stand in everything that is stored for a persona, and that neither JSON nor a tokenizer changes."""
    return f"zq{hashlib.sha256(persona.encode()).hexdigest()[:12]}qz"


def marks_in(raw: bytes) -> set[str]:
    """Whose marks the bytes hold."""
    return {mark.decode().lower() for mark in MARK.findall(raw)}


@dataclass
class Overheard:
    """What was answered to each persona, over all of its callers."""

    calls: int = 0
    size: int = 0
    marks: dict[str, Counter[str]] = field(default_factory=dict)
    keys: dict[str, set[str]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)

    def hear(self, persona: str, request: bytes, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        """Notes an answer. A key that the request itself names may come back: it says nothing."""
        raw = b"\n".join([*(name + b": " + value for name, value in headers), body])
        self.calls += 1
        self.size += len(raw)
        self.statuses[status] += 1
        self.marks.setdefault(persona, Counter()).update(marks_in(raw))
        self.keys.setdefault(persona, set()).update(key.decode() for key in {*KEY.findall(raw)} - {*KEY.findall(request)})

    def foreign(self, owners: dict[str, str]) -> list[tuple[str, str]]:
        """(persona, mark or key) of everything that came to somebody whose it was not; `owners` says whose each key is."""
        marks = [(persona, mark) for persona, heard in self.marks.items() for mark in heard if mark != mark_of(persona)]
        keys = [(persona, key) for persona, heard in self.keys.items() for key in heard if owners.get(key, persona) != persona]
        return marks + keys


def overhearing_client(overheard: Overheard, persona: str, **options: object) -> httpx2.AsyncClient:
    """An HTTP client of one persona whose every answer is heard."""

    async def hear(response: httpx2.Response) -> None:
        body = await response.aread()
        request = await response.request.aread() + str(response.request.url).encode()
        overheard.hear(persona, request, response.status_code, response.headers.raw, body)

    return httpx2.AsyncClient(event_hooks={"response": [hear]}, verify=TLS, trust_env=False, **options)
