"""What one caller waits for while another token, or nobody's, does its worst: recalls and /health beside each kind of load and each kind of file.

    python -m benchmarks.victim [--loads trickle unread-exports …] [--seconds 20] [--megabytes 60] [--out results.jsonl]

For each load a line: p50, p95 and the longest of the caller's recalls and of /health in seconds, both also alone in the same server, and the
server's resident memory before, at the peak, and after the load has gone, as a ratio to before. A call that gets no answer within 30 s counts
as 30 s. Every load is bounded in connections, bytes and time. Linux only.
"""

import argparse
import contextlib
import io
import json
import re
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from benchmarks.report import Report, machine
from benchmarks.server import NO_MODELS, Server, running
from benchmarks.texts import sentence

ANSWER_SECONDS = 30.0
PAUSE_SECONDS = 0.05
CONNECTIONS = 55
MEMORIES = 2_000
WARM_CALLS = 60
MEBIBYTE = 1_048_576
# A memory and a question that look like each other everywhere.
LONG_MARK = "ー"


@dataclass
class Waits:
    """How long the caller's calls took, in seconds, and how many failed."""

    recall: list[float] = field(default_factory=list)
    health: list[float] = field(default_factory=list)
    failed: int = 0

    def line(self) -> dict[str, Any]:
        both = {"recall": self.recall, "health": self.health}
        return {
            "failed": self.failed,
            **{
                f"{name}_{figure}": round(value, 3)
                for name, seconds in both.items()
                for figure, value in (("p50", statistics.median(seconds)), ("p95", _p95(seconds)), ("longest", max(seconds)))
            },
        }


def _p95(seconds: list[float]) -> float:
    return statistics.quantiles(seconds, n=20)[-1] if len(seconds) > 1 else seconds[0]


class Caller:
    """Somebody with a token and a persona of their own, who recalls and asks /health without a pause of more than 50 ms."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self.waits, self._stop = Waits(), threading.Event()

    @contextlib.contextmanager
    def asking(self) -> Iterator[Waits]:
        threads = [threading.Thread(target=self._repeat, args=(path, list_)) for path, list_ in self._calls()]
        for thread in threads:
            thread.start()
        try:
            yield self.waits
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def _calls(self) -> list[tuple[str, list[float]]]:
        return [("/api/recall?query=夕飯は何だった", self.waits.recall), ("/health", self.waits.health)]

    def _repeat(self, path: str, seconds: list[float]) -> None:
        headers = {"Authorization": f"Bearer {self._token}", "X-Persona": "victim"}
        with httpx2.Client(base_url=self._url, headers=headers, trust_env=False, timeout=ANSWER_SECONDS) as http:
            while not self._stop.wait(PAUSE_SECONDS):
                began = time.perf_counter()
                try:
                    good = http.get(path).status_code == httpx2.codes.OK
                except httpx2.TransportError:
                    good = False
                seconds.append(time.perf_counter() - began if good else ANSWER_SECONDS)
                self.waits.failed += not good


@dataclass(frozen=True)
class Attack:
    """What a load works with: the server, the token of the attacker and the size of its files."""

    server: Server
    token: str
    seconds: float
    megabytes: int

    @property
    def http(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.token}", "X-Persona": "attacker"}
        return httpx2.Client(base_url=self.server.url, headers=headers, trust_env=False, timeout=120)

    def connections(self, head: str, token: str | None) -> list[socket.socket]:
        """Connections that have sent the head of a request and read nothing."""
        address = urlsplit(self.server.url)
        granted = f"Authorization: Bearer {token}\r\nX-Persona: attacker\r\n" if token else ""
        opened = []
        for _ in range(CONNECTIONS):
            connection = socket.create_connection((address.hostname, address.port or 80), timeout=10)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(f"{head}Host: {address.netloc}\r\n{granted}\r\n".encode())
            opened.append(connection)
        return opened


def _trickled(attack: Attack, head: str, token: str | None) -> None:
    opened = attack.connections(head, token)
    until = time.monotonic() + attack.seconds
    while time.monotonic() < until:
        for connection in opened:
            with contextlib.suppress(OSError):
                connection.send(b"x")
        time.sleep(1)
    for connection in opened:
        connection.close()


def _unread(attack: Attack, path: str) -> None:
    opened = attack.connections(f"GET {path} HTTP/1.1\r\n", attack.token)
    time.sleep(attack.seconds)
    for connection in opened:
        connection.close()


def trickled_forms(attack: Attack) -> None:
    head = "POST /ui/sign-in HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: 90000000\r\n"
    _trickled(attack, head, None)


def trickled_imports(attack: Attack) -> None:
    _trickled(attack, "POST /api/import HTTP/1.1\r\nContent-Type: application/x-ndjson\r\nContent-Length: 90000000\r\n", attack.token)


def unread_exports(attack: Attack) -> None:
    _unread(attack, "/api/export")


def unread_conversations(attack: Attack) -> None:
    with attack.http as http:
        for number in range(1, 21):
            messages = [{"role": "user", "text": "あ" * 300_000}]
            body = {"id": "long", "number": number, "model": "openai:gpt", "messages": messages}
            http.post("/api/conversation", json=body).raise_for_status()
    _unread(attack, "/api/conversation/export?id=long&format=json")


def uploads_of_strangers(attack: Attack) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + b"x" * (attack.megabytes * MEBIBYTE)
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    for _ in range(3):
        with contextlib.suppress(httpx2.TransportError):
            httpx2.post(f"{attack.server.url}/ui/sign-in", content=body, headers=headers, trust_env=False, timeout=60)


def long_recalls(attack: Attack) -> None:
    with attack.http as http:
        http.post("/api/memories", json={"content": LONG_MARK * 199_990})
    _at_once(attack, lambda http: http.get("/api/recall", params={"query": LONG_MARK * 1_000}))


def long_questions(attack: Attack) -> None:
    _at_once(attack, lambda http: http.get("/api/recall", params={"query": "".join(map(sentence, range(400)))[:9_000]}))


def pages(attack: Attack) -> None:
    _at_once(attack, lambda http: http.get("/api/graph/snapshot", params={"limit": 500}))


def _at_once(attack: Attack, call: Callable[[httpx2.Client], Any]) -> None:
    until = time.monotonic() + attack.seconds

    def repeat() -> None:
        with attack.http as http:
            while time.monotonic() < until:
                with contextlib.suppress(httpx2.TransportError):
                    call(http)

    threads = [threading.Thread(target=repeat) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _imported(attack: Attack, name: str, content: bytes, copies: int = 1) -> None:
    """Sends a file and waits until its imports are over, at most ten times as long as any other load."""
    with attack.http as http:
        for _ in range(copies):
            http.post("/api/import/file", params={"file": name}, content=content)
        until = time.monotonic() + 10 * attack.seconds
        while time.monotonic() < until:
            imports = http.get("/api/import/file").json()["imports"]
            if all(each["state"] in ("done", "failed", "canceled") for each in imports):
                return
            time.sleep(0.2)


def headings(attack: Attack) -> None:
    _imported(attack, "a.md", b"# " * 40 + b"\nx")


def one_line(attack: Attack) -> None:
    _imported(attack, "a.txt", "あ".encode() * (attack.megabytes * MEBIBYTE // 3))


def one_json_string(attack: Attack) -> None:
    _imported(attack, "a.jsonl", json.dumps({"content": "x" * (attack.megabytes * MEBIBYTE)}).encode())


def nested_json(attack: Attack) -> None:
    _imported(attack, "conversations.json", b"[" * 200_000)


def one_cell(attack: Attack) -> None:
    _imported(attack, "a.csv", b'content,date\n"' + b"x" * (attack.megabytes * MEBIBYTE) + b'",2026-01-01\n')


def large_notes(attack: Attack) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"{number}.md", f"# {number}\n\n" + sentence(number) * (7 * MEBIBYTE // len(sentence(number).encode())))
    _imported(attack, "vault.zip", packed.getvalue())


def generated_column(attack: Attack) -> None:
    statement = "CREATE TABLE memories (key TEXT, content TEXT AS (printf('%.*c', 900000000, 'x')), created_at TEXT)"
    _imported(attack, "a.sqlite", _database(statement, "INSERT INTO memories (key, created_at) VALUES ('a', '2026-01-01')", ()))


def one_value(attack: Attack) -> None:
    value = "x" * (attack.megabytes * MEBIBYTE)
    statement = "CREATE TABLE memories (key TEXT, content TEXT, created_at TEXT)"
    _imported(attack, "a.sqlite", _database(statement, "INSERT INTO memories VALUES ('a', ?, '2026-01-01')", (value,)))


def _database(table: str, row: str, values: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "a.sqlite")
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(table)
            connection.execute(row, values)
            connection.commit()
        return path.read_bytes()


def many_imports(attack: Attack) -> None:
    lines = b"".join(
        json.dumps({"content": f"{number} {sentence(number)}"}, ensure_ascii=False).encode() + b"\n" for number in range(20_000)
    )
    _imported(attack, "a.jsonl", lines, copies=11)


LOADS: Mapping[str, Callable[[Attack], None]] = {
    "trickled-forms": trickled_forms,
    "trickled-imports": trickled_imports,
    "unread-exports": unread_exports,
    "unread-conversations": unread_conversations,
    "uploads-of-strangers": uploads_of_strangers,
    "long-recalls": long_recalls,
    "long-questions": long_questions,
    "pages": pages,
    "import-headings": headings,
    "import-one-line": one_line,
    "import-one-string": one_json_string,
    "import-nested-json": nested_json,
    "import-one-cell": one_cell,
    "import-large-notes": large_notes,
    "import-generated-column": generated_column,
    "import-one-value": one_value,
    "import-many": many_imports,
}


def beside(attack: Attack, token: str, load: Callable[[Attack], None] | None) -> dict[str, Any]:
    """What the caller waits for beside a load, or alone for as long; and the server's memory."""
    before = attack.server.resident_mb()
    peak = [before]
    caller, stop = Caller(attack.server.url, token), threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            peak.append(attack.server.resident_mb())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        with caller.asking() as waits:
            load(attack) if load else time.sleep(attack.seconds / 2)
            time.sleep(1)
        time.sleep(5 if load else 0)  # what is idle gives its memory back
    finally:
        stop.set()
        watching.join()
    after = attack.server.resident_mb()
    memory = {"resident_mb": round(before, 1), "peak": round(max(peak) / before, 2), "after": round(after / before, 2)}
    return {**waits.line(), **memory}


def _token(data: Path, persona: str) -> str:
    command = [sys.executable, "-m", "memory_mcp", "token", "create", "--persona", persona, "--scopes", "read,write,delete,export"]
    done = subprocess.run([*command, "--data", str(data)], capture_output=True, text=True, check=True)
    found = re.search(r"\S+", done.stdout)
    assert found
    return found[0]


def measure(arguments: argparse.Namespace, report: Report) -> None:
    """A server of its own for each load, with memories of both callers."""
    for name in arguments.loads:
        with tempfile.TemporaryDirectory(prefix="memory-mcp-bench-") as directory:
            data = Path(directory, "memory")
            tokens = {persona: _token(data, persona) for persona in ("victim", "attacker")}
            with running(NO_MODELS, data=data) as server:
                _fill(server, tokens)
                attack = Attack(server, tokens["attacker"], arguments.seconds, arguments.megabytes)
                report.add([{"what": "alone", "load": name, **beside(attack, tokens["victim"], None)}])
                report.add([{"what": "beside", "load": name, **beside(attack, tokens["victim"], LOADS[name])}])


def _fill(server: Server, tokens: Mapping[str, str]) -> None:
    lines = "".join(json.dumps({"content": sentence(number)}, ensure_ascii=False) + "\n" for number in range(MEMORIES)).encode()
    for persona, token in tokens.items():
        headers = {"Authorization": f"Bearer {token}", "X-Persona": persona}
        httpx2.post(f"{server.url}/api/import", content=lines, headers=headers, trust_env=False, timeout=300).raise_for_status()
    with httpx2.Client(base_url=server.url, headers={"Authorization": f"Bearer {tokens['victim']}"}, trust_env=False, timeout=60) as http:
        for _ in range(WARM_CALLS):  # what a first call loads, and what follows an import, is nobody's fault
            http.get("/api/recall", params={"query": "夕飯"}, headers={"X-Persona": "victim"}).raise_for_status()
            time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", nargs="+", choices=tuple(LOADS), default=tuple(LOADS))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--megabytes", type=int, default=60, help="of a large file")
    parser.add_argument("--out", type=Path, help="also append the lines to this file")
    asked = parser.parse_args()
    results = Report(asked.out)
    results.add([machine("victim")])
    measure(asked, results)
