"""Callers that remember what the server acknowledged, and hold it to that."""

import itertools
import json
import random
import ssl
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from processes import RunningServer

ACCEPT = {"accept": "application/json, text/event-stream"}
GONE = None
# Made once: a client makes one of its own otherwise, and reading the certificates takes longer than most calls.
TLS = ssl.create_default_context()


class Refused(Exception):
    """The server answered, and would not."""


class Caller:
    """One client of one persona, over one connection that stays open."""

    def __init__(self, server: RunningServer, persona: str) -> None:
        self._http = httpx2.Client(
            base_url=server.url, headers={**ACCEPT, "X-Persona": quote(persona)}, verify=TLS, trust_env=False, timeout=60
        )

    def __enter__(self) -> "Caller":
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool.

        Raises:
            Refused: in the server's words.
            httpx2.TransportError: there was no answer.
        """
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        response = self._http.post("/mcp", json=call)
        told = response.json()
        if response.is_error or told["result"].get("isError"):
            raise Refused(
                f"{response.status_code}: {told['error']['message'] if 'error' in told else told['result']['content'][0]['text']}"
            )
        return told["result"]["structuredContent"]

    def get(self, path: str) -> httpx2.Response:
        return self._http.get(path)

    def imported(self, lines: bytes) -> dict[str, Any]:
        """The counts of an import."""
        return self._answered("POST", "/api/import", content=lines).json()

    def exported(self) -> list[dict[str, Any]]:
        """Every memory, those in the trash too."""
        response = self._answered("GET", "/api/export?include_deleted=true")
        return [json.loads(line) for line in response.content.splitlines()]

    def _answered(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """The answer to a request that is sent as often as it takes, where the server is busy or migrates the store, and says when to try again."""
        pause = threading.Event()
        while (response := self._http.request(method, path, timeout=600, **request)).status_code in (429, 503):
            pause.wait(min(float(response.headers["retry-after"]), 0.2))
        return response.raise_for_status()


@dataclass
class Expected:
    """What a persona must hold. `contents` are what each acknowledged key may say (None: it may be in the trash); `sent` what was ever sent."""

    contents: dict[str, set[str | None]] = field(default_factory=dict)
    sent: set[str] = field(default_factory=set)
    unanswered: list[str] = field(default_factory=list)
    acknowledged: int = 0
    guard: threading.Lock = field(default_factory=threading.Lock)


def write_until_it_dies(server: RunningServer, persona: str, expected: Expected, numbers: "itertools.count[int]", seed: int) -> None:
    """Remembers, revises and forgets, without a pause, until the server is gone."""
    chance = random.Random(seed)
    own: list[str] = []
    with Caller(server, persona) as caller:
        try:
            for number in numbers:
                content = (
                    f"{persona}の記憶その{number}、{chance.choice(('海辺', '山小屋', '舞台'))}で{chance.choice(('佐藤', '鈴木'))}さんと"
                )
                roll = chance.random()
                if own and roll < 0.15:
                    _revise(caller, expected, chance.choice(own), content)
                elif own and roll < 0.25:
                    _forget(caller, expected, own.pop(chance.randrange(len(own))))
                else:
                    own.append(_remember(caller, expected, content))
        except httpx2.TransportError:
            return


def _remember(caller: Caller, expected: Expected, content: str) -> str:
    with expected.guard:
        expected.sent.add(content)
        expected.unanswered.append(content)
    key: str = caller("remember", content=content)["key"]
    with expected.guard:
        expected.unanswered.remove(content)
        expected.contents[key] = {content}
        expected.acknowledged += 1
    return key


def _revise(caller: Caller, expected: Expected, key: str, content: str) -> None:
    with expected.guard:
        expected.sent.add(content)
        expected.contents[key].add(content)
    caller("revise", key=key, content=content)
    with expected.guard:
        expected.contents[key] = {content}
        expected.acknowledged += 1


def _forget(caller: Caller, expected: Expected, key: str) -> None:
    with expected.guard:
        expected.contents[key].add(GONE)
    caller("forget", keys=[key])
    with expected.guard:
        expected.contents[key] = {GONE}
        expected.acknowledged += 1


def retry_unanswered(caller: Caller, expected: Expected) -> None:
    """What a client does that got no answer: it sends the same once more."""
    for content in list(expected.unanswered):
        _remember(caller, expected, content)
        expected.unanswered.remove(content)


@dataclass(frozen=True)
class Verdict:
    """What is wrong with what a persona holds: all empty when nothing is."""

    lost: list[str]
    duplicates: list[str]
    foreign: list[str]

    def __bool__(self) -> bool:
        return bool(self.lost or self.duplicates or self.foreign)


def judged(rows: list[dict[str, Any]], expected: Expected) -> Verdict:
    """An export, trash included, held against what was acknowledged."""
    held = {row["key"]: GONE if row.get("deleted_at") else row["content"] for row in rows}
    lost = [
        f"{key} should say {wanted}, and says {held.get(key, 'nothing')}"
        for key, wanted in expected.contents.items()
        if key not in held or held[key] not in wanted
    ]
    counted = Counter(row["content"] for row in rows)
    return Verdict(lost, [content for content, times in counted.items() if times > 1], [c for c in counted if c not in expected.sent])


def settle(server: RunningServer, dimension: int = 32) -> None:
    """Waits until everything has its vector of this length."""
    pause = threading.Event()
    for _ in range(1_200):
        with Caller(server, "nilou") as caller:
            told = caller.get("/ready").json()
        embedder = told["models"]["embedder"]
        if (
            (embedder["state"], embedder.get("dimension")) == ("loaded", dimension)
            and not told["index_lag"]
            and not told["index"].get("re_embedding")
        ):
            return
        pause.wait(0.05)
    pytest.fail(f"not settled: {told}")
