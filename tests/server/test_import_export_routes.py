"""POST /api/import and GET /api/export: many memories as JSON lines, streamed."""

import io
import json
import zipfile

import pytest

FULL = [
    {"content": "旅人は苺が好き", "source": "旅人", "tags": ["食べ物"], "importance": 0.9, "occurred_at": "2025-10-01T09:00:00+09:00"},
    {"content": "昨日は踊った", "session_id": "s1", "kind": "experience", "state": {"emotion": "楽しい"}, "questions": ["何をした？"]},
    {"content": "A line\nbreak and “quotes”", "created_at": "2025-09-01T00:00:00+00:00"},
]


def lines_of(*rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


@pytest.fixture
def send(http, name):
    """Imports a body as a persona that nobody else is, and answers with the counts."""

    def send(body, persona=name):
        answer = http.post("/api/import", content=body, headers={"X-Persona": persona})
        assert answer.status_code == 200, answer.text
        return answer.json()

    return send


@pytest.fixture
def export(http, name):
    def export(persona=name, **options):
        answer = http.get("/api/export", params=options, headers={"X-Persona": persona})
        assert answer.status_code == 200, answer.text
        return answer.content

    return export


def contents(exported):
    return [json.loads(line)["content"] for line in exported.decode().split("\n")[:-1]]


def test_memories_are_stored_and_counted(send, name, export):
    assert send(lines_of(*FULL)) == {"persona": name, "stored": 3, "already_known": 0, "refused": 0, "errors": []}
    assert contents(export()) == [row["content"] for row in FULL]


def test_what_was_imported_can_be_recalled(send, persona):
    send(lines_of(*FULL))
    assert persona("recall", query="苺")["hits"][0]["content"] == "旅人は苺が好き"


def test_a_second_export_equals_the_first(send, export, persona, name):
    send(lines_of(*FULL))
    key = persona("recall", query="苺")["hits"][0]["key"]
    persona("revise", key=key, content="旅人は苺タルトが好き")
    newer = persona("remember", content="旅人は桃が好き", supersedes=key)["key"]
    persona("forget", keys=[newer])
    first = export(include_deleted="true")
    assert len(contents(first)) == 4
    moved = f"{name}-moved"
    assert send(first, persona=moved)["stored"] == 4
    assert export(persona=moved, include_deleted="true") == first
    assert export(persona=moved) == export()
    assert len(contents(export())) == 3


def test_the_same_import_again_stores_nothing(send, export):
    first = send(lines_of(*FULL))
    exported = export()
    again = send(lines_of(*FULL))
    assert (first["stored"], again["stored"], again["already_known"], again["refused"]) == (3, 0, 3, 0)
    assert send(exported)["already_known"] == 3
    assert export() == exported


def test_notes_that_left_their_vault_are_named_and_only_forgotten_on_request(send, export):
    def note(name):
        key = f"obsidian_{name}"
        row = {
            "key": f"{key}_0",
            "content": f"{name}の話",
            "metadata": {"origin": {"format": "obsidian", "vault": "本棚", "note": f"{name}.md"}},
        }
        return row, {"pieces_of": key, "pieces": 1}

    vault = {"notes_of": "本棚"}
    assert "deleted_notes" not in send(lines_of(*note("a"), *note("b"), vault))
    assert "deleted_notes" not in send(lines_of({"notes_of": "別の棚"}))
    gone = [{"note": "b.md", "keys": ["obsidian_b_0"]}]
    assert send(lines_of(*note("a"), vault))["deleted_notes"] == gone
    assert "deleted_notes" not in send(lines_of(*note("a"), {**vault, "unread": ["obsidian_b"]}))
    assert contents(export()) == ["aの話", "bの話"]
    assert send(lines_of(*note("a"), {**vault, "forget": True}))["dropped"] == 1
    assert contents(export()) == ["aの話"]
    assert send(lines_of({"notes_of": 7}))["refused"] == 1


def test_lines_that_can_not_be_used_are_refused_by_number_and_the_rest_is_stored(send, export):
    body = b"\n".join(
        [
            b'{"content": "one"}',
            b'{"content": "no end',
            b"",
            b'{"content": "four"}',
            b'{"text": "five"}',
            b'{"content": "   "}',
            b'["seven"]',
            b'{"content": "eight \xff"}',
            b'{"content": "nine", "importance": 2}',
            b'{"content": "ten", "occurred_at": "someday"}',
            b'{"content": "half \\ud83d"}',
            b'{"content": "zero \\u0000"}',
            b'{"content": "last"}',
        ]
    )
    told = send(body)
    assert (told["stored"], told["refused"]) == (3, 9)
    assert [error["line"] for error in told["errors"]] == [2, 5, 6, 7, 8, 9, 10, 11, 12]
    reasons = " ".join(error["reason"] for error in told["errors"])
    for words in (
        "is not JSON",
        "unknown field 'text'",
        "content is empty",
        "the line is a list",
        "is not UTF-8",
        "importance is 2",
        "no date",
    ):
        assert words in reasons
    assert not [said for said in ("Traceback", "pydantic", "http") if said in reasons]
    assert contents(export()) == ["one", "four", "last"]


@pytest.mark.parametrize("body", [b'{"content": "a"}\r\n{"content": "b"}\r\n', b'\xef\xbb\xbf{"content": "a"}\n\n  \n{"content": "b"}'])
def test_line_ends_of_windows_a_byte_order_mark_and_a_missing_last_line_feed_are_fine(send, export, body):
    assert send(body)["stored"] == 2
    assert contents(export()) == ["a", "b"]


def test_a_line_feed_that_is_part_of_a_character_does_not_end_a_line(send, export):
    told = send(lines_of({"content": "段落\u2028区切り\x85と\x0b"}))
    assert (told["stored"], told["refused"]) == (1, 0)
    assert contents(export()) == ["段落\u2028区切り\x85と\x0b"]


def test_lines_cut_anywhere_by_the_network_are_put_together(send, export):
    body = lines_of(*({"content": f"記憶その{number}"} for number in range(30)))
    told = send(body[begin : begin + 13] for begin in range(0, len(body), 13))
    assert told["stored"] == 30
    assert contents(export()) == [f"記憶その{number}" for number in range(30)]


def test_a_line_without_end_is_refused_by_number_and_its_size(send, export):
    parts = [b'{"content": "before"}\n', b'{"content": "', *[b"x" * 500_000] * 6, b'"}\n', b"broken\n", b'{"content": "after"}\n']
    told = send(iter(parts))
    assert told["stored"] == 2
    assert [error["line"] for error in told["errors"]] == [2, 3]
    assert told["errors"][0]["reason"] == "the line has more than 2 MiB. Split its memory into several."
    assert contents(export()) == ["before", "after"]


@pytest.mark.slow
def test_an_import_longer_than_one_mcp_call_may_be_is_stored(send, export):
    rows = [{"content": f"{number}：" + "x" * 190_000} for number in range(25)]
    body = lines_of(*rows)
    assert len(body) > 4 * 1024 * 1024
    assert send(body)["stored"] == 25
    assert contents(export()) == [row["content"] for row in rows]


@pytest.mark.parametrize(("body", "refused"), [(b"", 0), (b"\n  \r\n", 0), (b'{"content": ""}\nbroken\n' + b"x" * 3_000_000, 3)])
def test_an_import_without_a_memory_in_it_creates_nobody(send, server, name, body, refused):
    told = send(body)
    assert (told["persona"], told["stored"], told["refused"]) == (name, 0, refused)
    assert not server.directory_of(name).exists()


def test_an_export_says_what_it_is(http, send, name):
    send(lines_of(*FULL))
    answer = http.get("/api/export", headers={"X-Persona": name})
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert "memories.jsonl" in answer.headers["content-disposition"]


def test_an_export_with_an_unclear_option_is_refused(http, name):
    answer = http.get("/api/export", params={"include_deleted": "perhaps"}, headers={"X-Persona": name})
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "include_deleted is 'perhaps': it is true or false. Leave it out for false."},
    )


def test_a_dry_run_counts_what_would_be_stored_and_creates_no_persona(http, name):
    answer = http.post("/api/import", content=lines_of(*FULL, {"oops": 1}), params={"dry_run": "true"}, headers={"X-Persona": name}).json()
    assert {**answer, "errors": len(answer["errors"])} == {
        "persona": name,
        "dry_run": True,
        "stored": 3,
        "already_known": 0,
        "refused": 1,
        "errors": 1,
    }
    assert http.get("/api/stats", headers={"X-Persona": name}).json()["new_persona"]


def test_a_line_whose_key_is_there_is_refused_kept_or_an_edit_as_the_caller_says(http, name, send):
    send(lines_of({"key": "k", "content": "一"}))

    def again(**options):
        row = lines_of({"key": "k", "content": "二"})
        answer = http.post("/api/import", content=row, params=options, headers={"X-Persona": name}).json()
        return {count: answer[count] for count in ("already_known", "refused", "revised") if answer.get(count)}

    assert again() == {"refused": 1}
    assert again(on_known="keep") == {"already_known": 1}
    assert again(on_known="revise", dry_run="true") == {"revised": 1}
    assert again(on_known="revise") == {"revised": 1}
    assert again(on_known="revise") == {"already_known": 1}


@pytest.mark.parametrize(
    ("method", "path", "options", "reason"),
    [
        ("POST", "/api/import", {"dry_run": "perhaps"}, "dry_run is 'perhaps': it is true or false"),
        ("POST", "/api/import", {"on_known": "merge"}, "on_known is 'merge': it is one of refuse, keep, revise"),
        ("GET", "/api/export", {"format": "yaml"}, "format is 'yaml': it is jsonl or markdown"),
        ("GET", "/api/export", {"include_vectors": "x"}, "include_vectors is 'x': it is true or false"),
        ("GET", "/api/export", {"format": "markdown", "include_vectors": "true"}, "notes hold no vectors"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(http, name, method, path, options, reason):
    answer = http.request(method, path, params=options, content=b"" if method == "POST" else None, headers={"X-Persona": name})
    assert answer.status_code == 400
    assert reason in answer.json()["error"]


def test_versions_and_context_move_with_what_they_belong_to(send, export, persona, name):
    key = persona("remember", content="旅人は苺が好き")["key"]
    persona("revise", key=key, content="旅人は桃が好き")
    persona("update_context", emotion="嬉しい")
    wanted = {"include_versions": "true", "include_context": "true"}
    first = export(**wanted)
    assert len(first.splitlines()) == 3
    moved = f"{name}-moved"
    counts = send(first, persona=moved)
    assert (counts["stored"], counts["versions"], counts["context"]) == (1, 1, 1)
    assert export(persona=moved, **wanted) == first
    assert len(export(persona=moved).splitlines()) == 1


def test_the_notes_of_a_persona_come_as_a_zip(send, export, http, name):
    send(lines_of(*FULL))
    with zipfile.ZipFile(io.BytesIO(export(format="markdown"))) as notes:
        assert notes.testzip() is None
        assert sum(path.startswith("memories/") for path in notes.namelist()) == 3
    answer = http.get("/api/export", params={"format": "markdown"}, headers={"X-Persona": name})
    assert answer.headers["content-type"] == "application/zip"
    assert "memories.zip" in answer.headers["content-disposition"]


SECRET = [
    {"content": "旅人は苺が好き", "category": "食べ物", "metadata": {"device": "phone"}},
    {"content": "日記の鍵は植木鉢の下", "privacy_level": "secret"},
]


def test_what_is_secret_leaves_only_when_asked_for_and_is_counted_otherwise(send, http, name):
    assert send(lines_of(*SECRET))["stored"] == 2
    answers = [http.get("/api/export", params=query, headers={"X-Persona": name}) for query in ({}, {"include_secret": "true"})]
    assert [answer.headers["X-Secret-Left-Out"] for answer in answers] == ["1", "0"]
    assert [answer.headers["X-Graph-Left-Out"] for answer in answers] == ["0", "0"]
    assert [len(contents(answer.content)) for answer in answers] == [1, 2]
    assert "鍵" not in answers[0].text


def test_an_export_with_what_is_secret_is_an_import(send, export, name):
    send(lines_of(*SECRET))
    first = export(include_secret="true")
    assert send(first, persona=f"{name}-2")["stored"] == 2
    assert export(persona=f"{name}-2", include_secret="true") == first


@pytest.mark.parametrize("row", [{"privacy_level": "hidden"}, {"category": 1}, {"category": "x" * 501}])
def test_a_line_with_a_label_that_can_not_be_kept_is_refused(send, row):
    counts = send(lines_of({"content": "x", **row}))
    assert (counts["refused"], counts["errors"][0]["line"]) == (1, 1)
