"""The toolset `upkeep` and its routes, over a whole server."""

import json

import httpx2
import pytest

from memory_mcp.store.files.access_tokens import create_token

pytestmark = [pytest.mark.slow, pytest.mark.served(toolsets=["core", "upkeep"])]  # a server for each of many tests

SECRET = "鰻鱧鯰の密談は zqxunique です"


@pytest.fixture
def as_persona(http, name):
    """Calls a route as the persona of this test; the answer must be 200 unless said."""

    def call(method, path, status=200, who=name, **options):
        answer = http.request(method, path, headers={"X-Persona": who}, **options)
        assert answer.status_code == status, answer.text
        return answer.json()

    return call


def test_the_history_of_a_memory_and_an_earlier_version_of_it_by_tool(persona):
    key = persona("remember", content="苺が好き", tags=["果物"], state={"emotion": "嬉しい"}, questions=["何が好き？"])["key"]
    persona("revise", key=key, content="苺が大好き", reason="もっと")
    told = persona("history", key=key)
    assert (told["versions"][0]["state"], told["versions"][0]["questions"]) == ({"emotion": "嬉しい"}, ["何が好き？"])
    assert (told["memory"]["content"], told["memory"]["revision"]) == ("苺が大好き", 2)
    assert [(one["revision"], one["content"], one["tags"], one["changed_because"]) for one in told["versions"]] == [
        (1, "苺が好き", ["果物"], "もっと")
    ]
    assert [event["what"] for event in told["events"]] == ["create", "update"]
    assert told["more"] == 0
    back = persona("restore_version", key=key, revision=1, reason="やっぱり")
    assert (back["content"], back["revision"]) == ("苺が好き", 3)
    assert "no earlier revision 9" in persona.refusal("restore_version", key=key, revision=9)
    assert "revision is missing" in persona.refusal("restore_version", key=key)
    assert "no memory has the key" in persona.refusal("history", key="memory_x")


def test_a_long_history_is_cut_to_the_budget_and_says_how_much_more_there_is(persona):
    key = persona("remember", content="はじめ")["key"]
    for number in range(12):
        persona("revise", key=key, content=f"{number} " + "苺" * 400)
    told = persona("history", key=key, max_tokens=1_000)
    assert told["more"] == 12 - len(told["versions"])
    assert 0 < len(told["versions"]) < 4
    assert told["versions"][-1]["truncated"]


def test_erasing_takes_two_calls_and_says_what_remains_elsewhere(persona, server, name):
    key = persona("remember", content=SECRET)["key"]
    other = persona("remember", content="残る話")["key"]
    assert [one["outcome"] for one in persona("purge", keys=[key])["outcomes"]] == ["not_in_trash"]
    persona("forget", keys=[key])
    listed = persona("purge", keys=[key, other])
    assert listed["dry_run"]
    assert [(one["outcome"], one.get("content")) for one in listed["outcomes"]] == [("would_erase", SECRET), ("not_in_trash", None)]
    assert "does not fit" in persona.refusal("purge", keys=[key], confirm="00000000")
    done = persona("purge", keys=[key, other], confirm=listed["confirm"])
    assert [one["outcome"] for one in done["outcomes"]] == ["erased", "not_in_trash"]
    assert done["swept"]
    assert any("backup" in sentence for sentence in done["remains"])
    assert b"zqxuniqu" not in b"".join(file.read_bytes() for file in server.directory_of(name).rglob("*") if file.is_file())
    assert "erased for good" in persona.refusal("history", key=key)
    assert persona("recall", mode="recent")["hits"][0]["key"] == other
    assert "nothing to erase" in persona.refusal("purge", keys=[key], confirm=listed["confirm"])


def test_nothing_is_due_without_rules_and_the_list_says_so(persona, as_persona):
    persona("remember", content="話")
    told = persona("purge")
    assert (told["to_trash"], told["to_erase"], told["trash"], told["erase"]) == (0, 0, [], [])
    assert "confirm" not in told
    assert as_persona("POST", "/api/purge") == told


def test_what_retention_has_come_to_is_listed_and_done_on_request(serving, tmp_path, connect, portal):
    with serving(tmp_path, toolsets=["core", "upkeep"], retention={"conversation_days": 30}) as served:
        caller = connect(served, "nilou")
        row = {"content": "古い会話", "kind": "conversation", "key": "old", "created_at": "2025-01-01T00:00:00+09:00"}
        gone = {"content": "捨てた話", "key": "gone", "created_at": "2025-01-01T00:00:00+09:00", "deleted_at": "2025-02-01T00:00:00+09:00"}
        body = "\n".join(json.dumps(line) for line in (row, gone))
        httpx2.post(f"{served.url}/api/import", content=body, headers={"X-Persona": "nilou"}).raise_for_status()
        told = caller("purge")
        assert [(due["key"], due["rule"]) for due in told["trash"]] == [("old", "conversation_days 30")]
        assert [(due["key"], due["rule"], due["content"]) for due in told["erase"]] == [("gone", "trash_days 30", "捨てた話")]
        done = caller("purge", confirm=told["confirm"])
        assert (done["trashed"], done["erased"], done["to_trash"], done["to_erase"], done["swept"]) == (1, 1, 0, 0, True)
        assert caller("history", key="old")["events"][-1]["rule"] == "conversation_days 30"


def test_the_same_by_route(as_persona, persona):
    key = persona("remember", content="苺が好き")["key"]
    persona("revise", key=key, content="桃が好き")
    assert as_persona("GET", "/api/history", params={"key": key})["versions"][0]["content"] == "苺が好き"
    assert as_persona("POST", "/api/restore", json={"key": key, "revision": 1})["content"] == "苺が好き"
    assert "key is missing" in as_persona("GET", "/api/history", status=400)["error"]
    assert "no memory" in as_persona("GET", "/api/history", status=404, params={"key": "x"})["error"]
    persona("forget", keys=[key])
    code = as_persona("POST", "/api/purge", json={"keys": [key]})["confirm"]
    assert as_persona("POST", "/api/purge", json={"keys": [key], "confirm": code})["outcomes"] == [{"key": key, "outcome": "erased"}]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/api/purge", "[]", "no JSON object"),
        ("/api/purge", "{", "not JSON"),
        ("/api/purge", '{"keys": "x"}', "keys has the wrong type"),
        ("/api/purge", '{"keys": [1]}', "keys has the wrong type"),
        ("/api/purge", '{"key": ["x"]}', "unknown field 'key'"),
        ("/api/purge", json.dumps({"keys": ["x"] * 101}), "101 entries"),
        ("/api/restore", '{"key": "x"}', "revision is missing"),
        ("/api/restore", '{"key": "x", "revision": true}', "revision has the wrong type"),
        ("/api/persona/copy", "{}", "to is missing"),
        ("/api/persona/copy", '{"to": "\\u200b"}', "invisible"),
        ("/api/persona/merge", "{}", "into is missing"),
        ("/api/purge", " " * 5_000_000, "too long"),
    ],
)
def test_a_body_that_can_not_be_used_is_refused_in_words(persona, as_persona, path, body, words):
    persona("remember", content="話")
    assert words in as_persona("POST", path, status=400, content=body)["error"]


def test_what_is_erased_is_said_to_be_in_the_backups_that_there_are_and_until_when(persona, as_persona):
    key = persona("remember", content=SECRET)["key"]
    as_persona("POST", "/api/backups")
    persona("forget", keys=[key])
    own, others = persona("purge", keys=[key])["remains"]
    assert own.startswith("1 backup of this server, the newest of 2025-10-30T12:00:00+09:00, may hold it until somebody removes them")
    assert "somebody made" in others


def test_a_purge_names_what_it_leaves_in_the_context(persona):
    key = persona("remember", content=SECRET, state={"emotion": "落ち着かない"})["key"]
    persona("update_context", environment=f"あの話：{SECRET}")
    persona("forget", keys=[key])
    listed = persona("purge", keys=[key])
    assert listed["in_context"] == "persona_context.json"
    persona("purge", keys=[key], confirm=listed["confirm"])
    assert "emotion" not in persona("get_context")["state"]


def test_where_old_backups_are_removed_it_is_said_until_when_they_hold_what_is_erased(own_server, own_http):
    headers = {"X-Persona": "nilou"}
    own_server.configure(backup={"enabled": True, "keep_days": 7})
    own_http.post("/api/import", content=json.dumps({"content": SECRET, "key": "k"}), headers=headers).raise_for_status()
    own_http.post("/api/backups", headers=headers).raise_for_status()
    own, _ = own_http.post("/api/purge", json={"keys": ["k"]}, headers=headers).json()["remains"]
    assert "may hold it until 2025-11-06T12:00:00+09:00, and longer where no newer one is made" in own


def test_erasing_a_persona_leaves_its_backups_unless_they_are_to_go_too(own_server, own_http):
    def post(path, who="nilou", **body):
        return own_http.post(path, json=body, headers={"X-Persona": who}).raise_for_status().json()

    for name in ("nilou", "collei"):
        own_http.post("/api/import", content='{"content": "抹茶"}', headers={"X-Persona": name}).raise_for_status()
        post("/api/backups", name)
        post("/api/backups", name)
    listed = post("/api/persona/erase")
    folder = own_server.data / ".backups" / "nilou"
    assert listed["backups"] == 2
    assert listed["remains"][0] == f"2 backups in {folder} hold it until somebody removes them"
    assert post("/api/persona/erase", confirm="nilou")["remains"] == listed["remains"]
    assert len(list(folder.glob("*.zst"))) == 2
    gone = post("/api/persona/erase", "collei", confirm="collei", remove_backups=True)
    assert (gone["removed_backups"], len(gone["remains"])) == (2, 1)
    assert not (own_server.data / ".backups" / "collei").exists()


def test_backups_lie_where_the_next_ones_will_after_a_persona_was_renamed(own_server, own_http):
    own_http.post("/api/import", content='{"content": "抹茶"}', headers={"X-Persona": "nilou"}).raise_for_status()
    made = own_http.post("/api/backups", headers={"X-Persona": "nilou"}).json()["file"]
    renamed = own_http.post("/api/persona/rename", json={"to": "collei"}, headers={"X-Persona": "nilou"}).json()
    assert renamed == {"persona": "collei", "renamed_from": "nilou"}
    assert [backup["file"] for backup in own_http.get("/api/backups", headers={"X-Persona": "collei"}).json()["backups"]] == [made]


def test_a_persona_is_copied_renamed_merged_and_erased(persona, as_persona, name):
    persona("remember", content="苺が好き")
    assert as_persona("POST", "/api/persona/copy", json={"to": f"{name}-copy"}) == {"persona": f"{name}-copy", "copied_from": name}
    renamed = as_persona("POST", "/api/persona/rename", who=f"{name}-copy", json={"to": f"{name}-二"})["persona"]
    who = f"persona-{name}"
    as_persona("POST", "/api/persona/copy", json={"to": who})
    merged = as_persona("POST", "/api/persona/merge", json={"into": who})
    assert (merged["taken"], merged["known"]) == (0, 1)
    figures = as_persona("GET", "/api/persona")
    assert (figures["memories"], figures["versions"], figures["erased"]) == (1, 0, 0)
    listed = as_persona("POST", "/api/persona/erase", who=who, json={})
    assert (listed["dry_run"], listed["confirm"], listed["memories"]) == (True, who, 1)
    assert "does not fit" in as_persona("POST", "/api/persona/erase", who=who, status=400, json={"confirm": name})["error"]
    assert as_persona("POST", "/api/persona/erase", who=who, json={"confirm": who})["erased"]
    assert "no persona" in as_persona("GET", "/api/persona", who=who, status=404)["error"]
    listed = {found["name"] for found in as_persona("GET", "/api/personas")["personas"]}
    assert {name, renamed} <= listed
    assert not {who, f"{name}-copy"} & listed
    assert "itself" in as_persona("POST", "/api/persona/merge", status=400, json={"into": name})["error"]
    assert "no persona" in as_persona("POST", "/api/persona/merge", status=404, json={"into": "nobody"})["error"]


def test_reading_and_changing_what_is_not_there_creates_nothing(as_persona, server):
    for method, path, body in (
        ("GET", "/api/persona", None),
        ("POST", "/api/persona/rename", {"to": "x"}),
        ("POST", "/api/persona/erase", {"confirm": "nobody-here"}),
    ):
        as_persona(method, path, who="nobody-here", status=404, json=body)
    as_persona("GET", "/api/history", who="nobody-here", status=404, params={"key": "x"})
    assert not server.directory_of("nobody-here").exists()


@pytest.fixture
def tokens(serving, tmp_path):
    """A server with a token for nilou and さくら that may do everything, and one for nilou that may only read."""
    with serving(tmp_path, toolsets=["core", "upkeep"]) as served:
        now = served.runtime.clock()
        for name in ("nilou", "さくら", "collei"):
            httpx2.post(f"{served.url}/api/import", content=f'{{"content": "{name} の話"}}', headers={"X-Persona": name.encode()})
        scopes = ["read", "write", "delete", "export", "admin"]
        _, both = create_token(served.data, name="both", personas=["nilou", "さくら", "ニィロウ"], scopes=scopes, now=now)
        _, reader = create_token(served.data, name="reader", personas=["nilou"], scopes=["read"], now=now)

        def call(token, path, body, who="nilou"):
            headers = {"Authorization": f"Bearer {both if token == 'both' else reader}", "X-Persona": who.encode()}
            return httpx2.post(f"{served.url}{path}", json=body, headers=headers)

        yield call


def test_a_token_reaches_only_its_own_personas_whichever_side_they_stand_on(tokens):
    foreign = tokens("both", "/api/persona/erase", {"confirm": "collei"}, who="collei")
    nobody = tokens("both", "/api/persona/erase", {"confirm": "colleg"}, who="colleg")
    assert (foreign.status_code, foreign.json()["error"].replace("collei", "X")) == (404, nobody.json()["error"].replace("colleg", "X"))
    assert tokens("both", "/api/persona/merge", {"into": "collei"}).status_code == 403
    assert tokens("both", "/api/persona/copy", {"to": "another"}).status_code == 403
    assert tokens("both", "/api/persona/merge", {"into": "さくら"}).status_code == 200
    assert tokens("both", "/api/persona/erase", {"confirm": "さくら"}, who="さくら").json()["erased"]


def test_what_several_personas_said_to_an_older_server_is_no_answer_to_a_guess(own_server, own_http):
    kept = own_server.data / ".adopted" / "20250101T000000Z"
    kept.mkdir(parents=True)
    (kept / "memory_operations.log").write_text(json.dumps({"after": SECRET}), encoding="utf-8")
    forgotten = {"content": SECRET, "key": "k", "created_at": "2025-10-01T00:00:00+09:00", "deleted_at": "2025-10-02T00:00:00+09:00"}
    own_http.post("/api/import", content=json.dumps(forgotten), headers={"X-Persona": "nilou"}).raise_for_status()
    scopes, now = ["read", "write", "delete", "admin"], own_server.runtime.clock()

    def kept_in(personas):
        _, secret = create_token(own_server.data, name="", personas=personas, scopes=scopes, now=now)
        headers = {"Authorization": f"Bearer {secret}", "X-Persona": "nilou"}
        answer = own_http.post("/api/purge", json={"keys": ["k"]}, headers=headers)
        assert answer.json()["outcomes"][0]["outcome"] == "would_erase"
        return answer.json().get("kept_in")

    assert kept_in(["nilou"]) is None
    assert kept_in(None) == [".adopted/20250101T000000Z/memory_operations.log"]


def test_whoever_lacks_a_scope_is_refused(tokens):
    for path in ("/api/purge", "/api/restore", "/api/persona/rename", "/api/persona/copy", "/api/persona/merge", "/api/persona/erase"):
        answer = tokens("reader", path, {})
        assert answer.status_code == 403, path
        assert "needs a token with" in answer.json()["error"]


def test_a_rename_says_which_tokens_are_still_for_the_old_name(tokens):
    told = tokens("both", "/api/persona/rename", {"to": "ニィロウ"}).json()
    assert told["persona"] == "ニィロウ"
    assert len(told["tokens"]) == 2
    assert "make others" in told["note"]
