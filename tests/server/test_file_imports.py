"""Importing files over HTTP: every format that the command reads, in the background, with its progress, a trial run and an end on demand."""

import base64
import hashlib
import io
import json
import os
import sqlite3
import threading
import zipfile
from datetime import UTC, datetime

import pytest

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.server.actions import transfer
from memory_mcp.server.import_jobs import WAITING_LIMIT, ImportJobs, safe_name
from memory_mcp.store.files.access_tokens import create_token, revoke_token
from memory_mcp.store.files.oauth_grants import Asked, exchange, grant, revoke_grant

pytestmark = pytest.mark.slow  # a server for each test

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
NILOU = {"X-Persona": "nilou"}


def packed(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), text)
    return buffer.getvalue()


def database(tmp_path):
    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE memories (key TEXT PRIMARY KEY, content TEXT, created_at TEXT, updated_at TEXT, tags TEXT)")
    connection.execute("INSERT INTO memories VALUES ('memory_20250101000000', '苺が好き。', '2025-01-01', '2025-01-01', '[]')")
    connection.commit()
    connection.close()
    return path.read_bytes()


@pytest.fixture
def send(own_http):
    """send("a.jsonl", b"…"): the import as it is when it has ended."""

    def send(name, content, headers=NILOU, **query):
        answer = own_http.post("/api/import/file", params={"file": name, **query}, content=content, headers=headers)
        assert answer.status_code == 200, answer.text
        return ended(own_http, answer.json()["id"], headers)

    return send


def ended(http, identity, headers=NILOU):
    pause = threading.Event()
    for _ in range(12_000):
        job = next(job for job in http.get("/api/import/file", headers=headers).json()["imports"] if job["id"] == identity)
        if job["state"] in ("done", "failed", "canceled"):
            return job
        pause.wait(0.005)
    pytest.fail("the import does not end")


def test_a_lorebook_speaks_of_the_persona_by_its_name(send, own_http):
    own_http.patch("/api/context", json={"persona_info": {"name": "ニィロウ"}}, headers=NILOU)
    book = {"entries": [{"keys": ["鐘"], "content": "{{char}}は鐘を鳴らす。"}]}
    assert send("world.json", json.dumps(book).encode())["stored"] == 1
    assert "ニィロウは鐘を鳴らす。" in own_http.get("/api/export", headers=NILOU).text


def test_a_zip_of_several_formats_says_what_was_stored_of_each_and_again_nothing(send, own_http):
    files = packed(note_dot_md="苺が好き。", table_dot_csv="内容\n柿\n桃\n")
    for stored in (1, 0):
        job = send("a.zip", files)
        expected = [
            {"format": name, "stored": count * stored, "already_known": count * (1 - stored)}
            for name, count in (("obsidian", 1), ("csv", 2))
        ]
        assert (job["format"], job["formats"], job["stored"]) == ("obsidian", expected, 3 * stored)
    page = own_http.get("/ui/house/import", params={"job": job["id"]}, headers={**NILOU, "Accept-Language": "ja"})
    assert "Obsidian・Markdown ノート (" in page.text
    assert "見出し行のある表（CSV・.xlsx） (" in page.text


FILES = {
    "jsonl": ("a.jsonl", lambda _: '{"content": "苺が好き。"}\n'.encode()),
    "text": ("日記.txt", lambda _: "苺が好き。".encode()),
    "obsidian": ("vault.zip", lambda _: packed(note_dot_md="苺が好き。")),
    "claude": (
        "conversations.json",
        lambda _: json.dumps([{"uuid": "u", "chat_messages": [{"uuid": "m", "sender": "human", "text": "苺が好き。"}]}]).encode(),
    ),
    "mem0": ("memories.json", lambda _: json.dumps({"results": [{"id": "1", "memory": "苺が好き。"}]}).encode()),
    "mcp-memory": (
        "memory.json",
        lambda _: '{"type": "entity", "name": "苺", "entityType": "food", "observations": ["苺が好き。"]}\n'.encode(),
    ),
    "database": ("memory.sqlite", database),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_of_each_kind_is_recognized_and_imported(own_server, own_http, send, tmp_path, kind):
    name, content = FILES[kind][0], FILES[kind][1](tmp_path)
    tried = send(name, content, dry_run="true")
    assert (tried["state"], tried["format"], tried["dry_run"]) == ("done", kind, True), tried
    assert own_http.get("/api/stats", headers=NILOU).json()["memories"] == 0
    job = send(name, content)
    assert (job["state"], job["stored"], job["refused"]) == ("done", tried["stored"], 0)
    assert job["done"] == job["total"]
    found = own_http.get("/api/memories", headers=NILOU).json()["memories"]
    assert [memory["content"].removeprefix("苺: ") for memory in found] == ["苺が好き。"]
    assert send(name, content)["stored"] == 0
    assert not list((own_server.data / ".imports").iterdir())
    assert os.name == "nt" or (own_server.data / ".imports").stat().st_mode & 0o777 == 0o700


def test_a_paragraph_that_a_text_says_again_is_stored_again_but_not_by_a_second_import(send):
    text = "四月\n\n特になし。\n\n五月\n\n特になし。\n".encode()
    assert send("日報.txt", text, dry_run="true")["stored"] == 4
    assert [(job["stored"], job["already_known"]) for job in (send("日報.txt", text), send("日報.txt", text))] == [(4, 0), (0, 4)]


def test_nothing_is_left_of_a_file_once_its_import_is_seen_to_be_over(tmp_path):
    def many_files(job, path):
        for number in range(3_000):
            (path.parent / str(number)).touch()

    jobs, pause = ImportJobs(), threading.Event()
    with jobs.staged(tmp_path, "a.jsonl") as path:
        job = jobs.start(path, "nilou", many_files, dry_run=False)
        while not job.is_over:
            pause.wait(0.0001)
        assert not list(path.parent.parent.iterdir())
    jobs.close()


def test_an_import_that_is_seen_to_be_over_is_seen_with_all_that_it_stored(own_server, own_http, paused, eventually, monkeypatch):
    begun, go = paused
    identity = own_http.post("/api/import/file", params={"file": "a.jsonl"}, content=b'{"content": "a"}', headers=NILOU).json()["id"]
    assert begun.wait(60)
    (job,) = own_server.runtime.imports.of_persona("nilou")
    counted = transfer.counted

    def slowly(result):
        counts = counted(result)
        go.set()
        eventually(lambda: job.is_over)
        return counts

    monkeypatch.setattr(transfer, "counted", slowly)
    (seen,) = own_http.get("/api/import/file", headers=NILOU).json()["imports"]
    assert (seen["id"], seen["state"], seen["stored"]) == (identity, "storing", 0)
    (seen,) = own_http.get("/api/import/file", headers=NILOU).json()["imports"]
    assert (seen["state"], seen["stored"]) == ("done", 1)


def test_lines_that_are_refused_are_named_with_their_places(send):
    job = send("a.jsonl", b'{"content": "a"}\n{broken\n{"content": ""}\n')
    assert (job["stored"], job["refused"]) == (1, 2)
    assert [error["where"] for error in job["errors"]] == ["line 2", "line 3"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.bin", b"\x00\x01", "is not recognized. Choose its format"),
        ("b.md", b"\n \n", "read in its format, it has no text"),
        ("a.zip", b"no zip", "zip"),
        ("conversations.json", b"{", "JSON"),
        ("a.md", b"", None),
    ],
)
def test_a_file_that_cannot_be_read_says_why(own_http, send, name, content, words):
    if words is None:
        answer = own_http.post("/api/import/file", params={"file": name}, content=content, headers=NILOU)
        assert (answer.status_code, "the file is empty" in answer.text) == (400, True)
        return
    job = send(name, content)
    assert job["state"] == "failed"
    assert words in job["error"]
    assert "/.imports" not in json.dumps(job)


def test_a_database_of_several_is_imported_for_the_persona_of_the_request_alone(own_http, send, tmp_path):
    path = tmp_path / "many.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE memories (id INTEGER, content TEXT, user_id TEXT, created_at TEXT)")
    connection.executemany("INSERT INTO memories VALUES (?, ?, ?, '2025-01-01')", [(1, "私の話", "nilou"), (2, "他人の話", "alice")])
    connection.commit()
    connection.close()
    assert send("many.sqlite", path.read_bytes())["stored"] == 1
    assert [memory["content"] for memory in own_http.get("/api/memories", headers=NILOU).json()["memories"]] == ["私の話"]
    assert own_http.get("/api/stats", headers={"X-Persona": "alice"}).json().get("new_persona")


@pytest.fixture
def paused(monkeypatch):
    """Lets an import begin to store only when `go` is set; `begun` is set when it would."""
    begun, go, store = threading.Event(), threading.Event(), transfer.store

    def waits(*arguments):
        begun.set()
        assert go.wait(60)
        return store(*arguments)

    monkeypatch.setattr(transfer, "store", waits)
    yield begun, go
    go.set()


def test_an_import_is_ended_on_demand_and_keeps_what_it_has_stored(own_server, own_http, paused):
    begun, go = paused
    lines = "".join(json.dumps({"content": f"記憶{number}"}) + "\n" for number in range(450)).encode()
    identity = own_http.post("/api/import/file", params={"file": "a.jsonl"}, content=lines, headers=NILOU).json()["id"]
    assert begun.wait(60)
    (job,) = own_http.get("/api/import/file", headers=NILOU).json()["imports"]
    assert (job["state"], job["done"], job["total"]) == ("storing", 0, 450)
    assert own_http.delete("/api/import/file", params={"id": identity}, headers=NILOU).status_code == 200
    go.set()
    job = ended(own_http, identity)
    assert (job["state"], job["done"]) == ("canceled", 200)
    assert own_http.get("/api/stats", headers=NILOU).json()["memories"] == 200
    assert own_http.delete("/api/import/file", params={"id": "x"}, headers=NILOU).status_code == 400


def test_an_import_ends_when_its_token_is_revoked(own_server, own_http, paused):
    begun, go = paused
    made, secret = create_token(own_server.data, name="", personas=["nilou"], scopes=TOKEN_SCOPES, now=NOON)
    owner = create_token(own_server.data, name="", personas=None, scopes=TOKEN_SCOPES, now=NOON)[1]
    headers, others = ({"Authorization": f"Bearer {token}", **NILOU} for token in (secret, owner))
    lines = "".join(json.dumps({"content": f"記憶{number}"}) + "\n" for number in range(450)).encode()
    identity = own_http.post("/api/import/file", params={"file": "a.jsonl"}, content=lines, headers=headers).json()["id"]
    assert begun.wait(60)
    revoke_token(own_server.data, made.id, NOON)
    go.set()
    job = ended(own_http, identity, others)
    assert (job["state"], job["done"]) == ("failed", 200)
    assert "its token is not good any more" in job["error"]


def test_an_import_ends_when_the_grant_of_its_client_is_revoked(own_server, own_http, paused):
    begun, go = paused
    own_server.configure(oauth={"authorization_server": "built_in", "public_url": own_server.url})
    made, owner = create_token(own_server.data, name="", personas=None, scopes=TOKEN_SCOPES, now=NOON)
    resource, verifier = f"{own_server.url}/mcp", "v" * 64
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = Asked("client", "", "http://127.0.0.1/", challenge, resource, made.id, ("nilou",), ("read", "write"))
    code = grant(own_server.data, asked, NOON)
    issued = exchange(
        own_server.data, code, client_id="client", redirect_uri="http://127.0.0.1/", verifier=verifier, resource=None, now=NOON
    )
    headers, others = ({"Authorization": f"Bearer {secret}", **NILOU} for secret in (issued.access, owner))
    lines = "".join(json.dumps({"content": f"記憶{number}"}) + "\n" for number in range(450)).encode()
    identity = own_http.post("/api/import/file", params={"file": "a.jsonl"}, content=lines, headers=headers).json()["id"]
    assert begun.wait(60)
    revoke_grant(own_server.data, issued.grant.id, NOON)
    go.set()
    job = ended(own_http, identity, others)
    assert (job["state"], job["done"]) == ("failed", 200)
    assert "its token is not good any more" in job["error"]


@pytest.mark.parametrize("before", ["", "苺が好き。"])
def test_an_import_into_a_persona_that_is_erased_meanwhile_ends_and_does_not_make_it_again(own_server, own_http, monkeypatch, before):
    stored, go, store = threading.Event(), threading.Event(), transfer.store

    def pauses(*arguments):
        if before and not stored.is_set():
            stored.set()
            assert go.wait(60)
        result = store(*arguments)
        if not stored.is_set():
            stored.set()
            assert go.wait(60)
        return result

    if before:
        own_http.post("/api/import", content=json.dumps({"content": before}), headers=NILOU).raise_for_status()
    monkeypatch.setattr(transfer, "store", pauses)
    lines = "".join(json.dumps({"content": f"記憶{number}"}) + "\n" for number in range(450)).encode()
    identity = own_http.post("/api/import/file", params={"file": "a.jsonl"}, content=lines, headers=NILOU).json()["id"]
    assert stored.wait(60)
    own_http.post("/api/persona/erase", json={"confirm": "nilou"}, headers=NILOU).raise_for_status()
    go.set()
    job = ended(own_http, identity)
    assert (job["state"], job["done"]) == ("failed", 0 if before else 200)
    assert "its persona was erased or renamed meanwhile" in job["error"]
    assert own_http.get("/api/personas").json()["personas"] == []


def test_imports_of_another_persona_are_not_seen_or_ended(own_server, own_http, send):
    identity = send("a.jsonl", b'{"content": "a"}\n')["id"]
    secret = create_token(own_server.data, name="", personas=["alice"], scopes=TOKEN_SCOPES, now=NOON)[1]
    headers = {"Authorization": f"Bearer {secret}"}
    assert own_http.get("/api/import/file", headers={**headers, **NILOU}).json() == {"persona": "nilou", "imports": []}
    assert own_http.delete("/api/import/file", params={"id": identity}, headers={**headers, **NILOU}).status_code == 403
    assert own_http.delete("/api/import/file", params={"id": identity}, headers={**headers, "X-Persona": "alice"}).status_code == 400
    assert own_http.post("/api/import/file", params={"file": "a.jsonl"}, content=b"{}", headers={**headers, **NILOU}).status_code == 403
    assert not list((own_server.data / ".imports").iterdir())


def test_only_so_many_imports_wait(own_http, paused):
    begun, _ = paused

    def post(headers=NILOU):
        return own_http.post("/api/import/file", params={"file": "a.jsonl"}, content=b'{"content": "a"}\n', headers=headers)

    assert post().status_code == 200
    assert begun.wait(60)
    assert [post().status_code for _ in range(WAITING_LIMIT)] == [200] * WAITING_LIMIT
    refused = post()
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
    assert post({"X-Persona": "alice"}).status_code == 200


def test_imports_of_one_token_hold_up_no_others_and_are_seen_by_it_alone(own_server, own_http, monkeypatch):
    go, store = threading.Event(), transfer.store

    def waits_for_nilou(call, *arguments):
        assert call.persona_name() != "nilou" or go.wait(60)
        return store(call, *arguments)

    monkeypatch.setattr(transfer, "store", waits_for_nilou)
    tokens = {
        name: {"Authorization": f"Bearer {create_token(own_server.data, name='', personas=personas, scopes=scopes, now=NOON)[1]}"}
        for name, personas, scopes in [
            ("many", ["nilou"], ["read", "write"]),
            ("other", ["nilou", "alice"], ["read", "write"]),
            ("admin", None, TOKEN_SCOPES),
        ]
    }
    line = b'{"content": "a"}\n'
    for _ in range(WAITING_LIMIT):
        sent = own_http.post("/api/import/file", params={"file": "a.jsonl"}, content=line, headers={**tokens["many"], **NILOU})
        assert sent.status_code == 200
    alice = {**tokens["other"], "X-Persona": "alice"}
    identity = own_http.post("/api/import/file", params={"file": "a.jsonl"}, content=line, headers=alice).json()["id"]
    assert ended(own_http, identity, alice)["stored"] == 1
    seen = {name: len(own_http.get("/api/import/file", headers={**token, **NILOU}).json()["imports"]) for name, token in tokens.items()}
    assert seen == {"many": WAITING_LIMIT, "other": 0, "admin": WAITING_LIMIT}
    foreign = own_http.delete("/api/import/file", params={"id": sent.json()["id"]}, headers={**tokens["other"], **NILOU})
    assert foreign.status_code == 400
    go.set()


def test_a_file_that_no_program_writes_is_refused_with_its_reason(own_http, send, tmp_path):
    deep = b'[{"uuid": "u", "chat_messages": ' + b"[" * 200_000 + b"]" * 200_000 + b"}]"
    assert "nested too deeply" in send("conversations.json", deep)["error"]
    path = tmp_path / "computed.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE memories (key TEXT, created_at TEXT, content TEXT AS (printf('%.*c', 000000001, 'x')))")
    connection.execute("INSERT INTO memories (key) VALUES ('a')")
    connection.commit()
    connection.close()
    job = send("computed.sqlite", path.read_bytes().replace(b"000000001", b"900000000"))
    assert (job["state"], job["stored"], [error["reason"] for error in job["errors"]]) == (
        "done",
        0,
        ["One of its values has more than 4,194,304 bytes."],
    )
    line = b'{"content": "' + b"a" * 3_000_000 + b'"}\n{"content": "next"}\n'
    job = send("a.jsonl", line)
    assert (job["stored"], [error["where"] for error in job["errors"]]) == (1, ["line 1"])


def test_a_file_of_a_server_that_was_killed_is_removed_by_the_next_one(serving, tmp_path):
    left = tmp_path / "memory" / ".imports" / "0123" / "chat.zip"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"x")
    with serving(tmp_path):
        assert not left.exists()


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("vault.zip", "vault.zip"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\健太\\日記.txt", "日記.txt"),
        (".bashrc", "bashrc"),
        ("..", "upload"),
        ("", "upload"),
        ("a\x00b\n.md", "ab.md"),
        ("あ" * 200 + ".jsonl", "あ" * 38 + ".jsonl"),
    ],
)
def test_a_name_keeps_its_ending_and_leads_nowhere(name, safe):
    assert safe_name(name) == safe
