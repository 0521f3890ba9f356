"""What the fuzz tests share: hostile values, calls made of them, and what every answer must be, whatever was asked."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import RunningServer, serving

# An answer that takes longer counts as a hang.
ANSWER_SECONDS = 60
REFUSAL_LENGTH = 3_000
RESIDENT_KILOBYTES = 600_000
LEGACY, MODERN = "2025-11-25", "2026-07-28"
INTERNAL_ERROR = -32603
NEVER_SAID = (
    "Traceback",
    "most recent call",
    "site-packages",
    "pydantic",
    "http://",
    "https://",
    "validation error",
    "Error calling tool",
    "apsw",
    "0x7f",
)

TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(?P<error>\S.*)")
# What uvicorn logs when the next bytes on a connection are no request while the answer to the last one is still being made: it has
# refused and hung up already. Nobody hears of it but the log.
BEHIND_A_BROKEN_REQUEST = "can't handle event type Response when role=SERVER and state=MUST_CLOSE"

Cases = st.SearchStrategy[Any]


@dataclass
class Fuzzed:
    """A server under fire, with a client to it and a count of what it was sent."""

    server: RunningServer
    http: httpx2.Client
    cases: int = 0
    _log_read: int = field(default=0, repr=False)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.server.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def sound(self, answer: httpx2.Response) -> Any:
        """The answer's JSON (None where it has none), once nothing is wrong with it: no failure, nothing of a library's words."""
        self.cases += 1
        text = answer.text
        assert answer.status_code < 500, text[:500]
        sent = f"{answer.request.url} {answer.request.content!r}"  # hypothesis tries the very words that it finds in this file
        assert not [said for said in NEVER_SAID if said in text and said not in sent], text[:500]
        kind = answer.headers.get("content-type", "")
        told = answer.json() if kind.startswith("application/json") and answer.content else None
        if isinstance(told, dict):
            assert len(_refusal_in(told)) < REFUSAL_LENGTH, text[:500]
            if isinstance(told.get("error"), dict):
                assert told["error"]["code"] != INTERNAL_ERROR, text[:500]
        return told

    def raw(self, sent: bytes) -> bytes:
        """What comes back for bytes that need not be HTTP: the client stops sending and reads to the end."""
        self.cases += 1
        with socket.create_connection(self.address, timeout=ANSWER_SECONDS) as connection:
            try:
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: connection.recv(65_536), b""))
            except TimeoutError:
                raise
            except OSError:
                return b""  # refused while we were still talking
        assert not answer or int(answer.split(b" ", 2)[1]) < 500, answer[:500]
        assert not [said for said in NEVER_SAID if said.encode() in answer and said.encode() not in sent], answer[:500]
        return answer

    def assert_unharmed(self) -> None:
        """It answers, it kept its size, and its log tells of nothing unforeseen."""
        assert self.server.process.poll() is None
        assert self.http.get("/health").json()["status"] == "ok"
        status = Path(f"/proc/{self.server.process.pid}/status")
        if status.exists():
            resident = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
            assert int(resident.split()[1]) < RESIDENT_KILOBYTES
        log = self.server.log.read_text(encoding="utf-8")
        fresh, self._log_read = log[self._log_read :], len(log)
        unforeseen = [trace[0] for trace in TRACEBACK.finditer(fresh) if BEHIND_A_BROKEN_REQUEST not in trace["error"]]
        assert not unforeseen, unforeseen[0][:4_000]


def _refusal_in(told: dict[str, Any]) -> str:
    """What an answer quotes of a call that was refused: all of it but the call's id, which the protocol wants back."""
    result = told.get("result")
    if "error" in told or (isinstance(result, dict) and result.get("isError")):
        return json.dumps({name: value for name, value in told.items() if name != "id"}, ensure_ascii=False)
    return ""


@contextmanager
def fuzzed(directory: Path, **settings: Any) -> Iterator[Fuzzed]:
    """A server process to be fuzzed, without models; unharmed at the end."""
    with serving(directory, json.dumps({"embeddings_model": None, "reranker_model": None, **settings})) as server:
        with httpx2.Client(base_url=server.url, timeout=ANSWER_SECONDS, trust_env=False) as http:
            target = Fuzzed(server, http)
            yield target
            target.assert_unharmed()
        assert server.stop() == 0


def explore(cases: Cases, check: Callable[[Any], None], examples: int) -> None:
    """Runs `check` on so many of the cases; a failure shows the smallest one."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

    @settings(max_examples=examples, suppress_health_check=checks)
    @given(cases)
    def run(case: Any) -> None:
        check(case)

    run()


# Surrogates among them: json.dumps writes them as escapes, so they reach the server.
ODD_TEXTS = [
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "が",
    "か\u3099",
    "\u202eabc",
    "昨日",
    "x" * 1_000,
    "9" * 400,
    '["a"]',
    '" OR "',
    "' OR 1=1 --",
]
ODD_WORDS = 'null [1 {} NaN 1e999 -0 Infinity true " NEAR(a body:* * % ../../etc/passwd {{7*7}} <script>'.split()
TEXT = st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from([*ODD_TEXTS, *ODD_WORDS])
NUMBERS = (
    st.integers()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats()
    | st.sampled_from([0, -1, 1.5, 2**31, 2**63, 2**64, -(2**63) - 1, 10**300, 1e308, 5e-324])
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5), max_leaves=12)
PERSONAS = st.sampled_from(["fuzz", "さくら", "a/b"]).map(lambda name: name.encode())


def meta() -> dict[str, Any]:
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    }


def fitting(schema: dict[str, Any]) -> Cases:
    """Values of the type that a schema asks for, however large, and what clients make of them."""
    plain = {
        "string": TEXT,
        "number": NUMBERS,
        "integer": st.integers(),
        "boolean": st.booleans(),
        "array": st.lists(TEXT, max_size=6),
        "object": st.dictionaries(TEXT, TEXT, max_size=4),
    }[schema["type"]]
    return plain | plain.map(json.dumps)


def arguments_of(schema: dict[str, Any]) -> Cases:
    """Arguments for a tool: those it needs mostly there, some others, some that nobody knows, of any type."""
    properties = {name: fitting(spec) | fitting(spec) | fitting(spec) | TREES for name, spec in schema["properties"].items()}
    needed = {name: properties.pop(name) for name in schema.get("required", [])}
    known = st.fixed_dictionaries(needed, optional=properties)
    return known | known | st.fixed_dictionaries({}, optional={**needed, **properties, "tpo_k": TREES, "persona": TEXT}) | TREES
