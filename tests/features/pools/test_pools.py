"""A pool: personas that may read it find it in their answers, personas that may write to it change it, and nobody else learns of it."""

import json
from datetime import UTC, datetime

import pytest

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.personas.names import directory_name, pool_store
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow  # a server for each of most tests

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
POOLS = {
    "team": {"readers": ["reader", "さくら"], "writers": ["writer"]},
    "京都案内": {"readers": "all", "writers": ["writer"]},
}
FACT = "本番への配布は金曜日の夜にしない"


@pytest.fixture
def server(serving, tmp_path):
    with serving(tmp_path, pools=POOLS, toolsets=["core", "experience"]) as server:
        yield server


@pytest.fixture
def reader(server, connect):
    return connect(server, "reader")


@pytest.fixture
def writer(server, connect):
    return connect(server, "writer")


@pytest.fixture
def shared(writer):
    """The key of a memory of the pool, as personas know it."""
    return writer("remember", content=FACT, pool="team")["key"]


def contents(answer):
    return [hit["content"] for hit in answer["hits"]]


def bytes_of(directory):
    return {file.name: file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def test_readers_find_what_a_writer_shares_and_each_hit_says_where_it_is_from(writer, reader, shared):
    reader("remember", content="旅人は金曜日に苺を買う")
    found = reader("recall", query="金曜日の夜の配布")
    assert (found["persona"], contents(found)[0], found["hits"][0]["pool"], found["hits"][0]["key"]) == ("reader", FACT, "team", shared)
    own = next(hit for hit in found["hits"] if "苺" in hit["content"])
    assert "pool" not in own
    assert contents(reader("get_context", query="配布")) == [FACT, "旅人は金曜日に苺を買う"]
    assert contents(writer("recall", query="配布")) == [FACT]


def test_the_day_of_what_is_to_come_stands_at_no_memory_of_a_pool(reader, shared):
    reader("remember", content="旅行に行く予定", occurred_at="2025-11-02")  # the first of its store, as that of the pool is
    days = {hit["content"]: hit.get("upcoming_on") for hit in reader("get_context", query="配布")["hits"]}
    assert days == {FACT: None, "旅行に行く予定": "2025-11-02"}


def test_a_stranger_learns_nothing_of_a_pool(server, connect, http, shared):
    stranger = connect(server, "stranger")
    for answer in (
        stranger("recall", query="配布"),
        stranger("recall", mode="recent"),
        stranger("recall", keys=[shared]),
        stranger("get_context", query="配布"),
    ):
        assert answer["hits"] == []
    there = stranger.refusal("remember", content="x", pool="team")
    assert there.replace("team", "nothing") == stranger.refusal("remember", content="x", pool="nothing")
    assert stranger.refusal("revise", key=shared, content="x") == f"no memory has the key {shared}. Take the key from a recall."
    refused = [http.get("/api/export", headers={"X-Persona": "stranger", "X-Pool": pool}) for pool in ("team", "nothing", "", "%FF")]
    assert {answer.status_code for answer in refused} == {403}
    assert [entry["name"] for entry in http.get("/api/personas").json()["personas"]] == []


def test_a_reader_changes_nothing_of_a_pool(server, reader, http, shared):
    directory = server.directory_of(pool_store("team"))
    reader("recall", query="配布")
    server.runtime.usage.write_all(server.runtime.personas)
    before = bytes_of(directory)
    assert "may not write to the pool 'team'" in reader.refusal("remember", content="x", pool="team")
    assert "may not write to" in reader.refusal("revise", key=shared, content="x")
    assert "may not write to" in reader.refusal("forget", keys=[shared])
    headers = {"X-Persona": "reader", "X-Pool": "team"}
    for answer in (
        http.post("/api/memories", json={"content": "x"}, headers=headers),
        http.post("/api/memories", json={"content": ""}, headers=headers),
        http.post("/api/import", content=b'{"content": "x"}', headers=headers),
        http.post("/api/purge", json={}, headers=headers),
        http.post("/api/persona/erase", json={"confirm": "team"}, headers=headers),
        http.patch("/api/context", json={"emotion": "x"}, headers=headers),
    ):
        assert (answer.status_code, "may not write to" in answer.text) == (403, True), answer.text
    reader("recall", query="配布", top_k=50)
    server.runtime.usage.write_all(server.runtime.personas)
    assert bytes_of(directory) == before


def test_a_writer_corrects_and_forgets_by_the_key_that_it_sees(writer, reader, shared):
    assert shared.endswith("@team")
    revised = writer("revise", key=shared, content=f"{FACT}、土曜日にもしない")
    assert (revised["persona"], revised["pool"], revised["key"], revised["revision"]) == ("writer", "team", shared, 2)
    newer = writer("remember", content="配布は火曜日にする", supersedes=shared, pool="team")["key"]
    assert contents(reader("recall", query="配布")) == ["配布は火曜日にする"]
    assert reader("recall", keys=[newer])["hits"][0]["supersedes"] == shared
    own = writer("remember", content="写し")["key"]
    forgotten = writer("forget", keys=[newer, own])
    assert forgotten["outcomes"] == [{"key": newer, "outcome": "forgotten"}, {"key": own, "outcome": "forgotten"}]
    assert writer("forget", keys=[newer])["outcomes"][0]["outcome"] == "already_forgotten"


def test_a_memory_of_its_own_goes_before_one_of_a_pool_with_the_same_key(reader, writer, http, shared):
    body = json.dumps({"content": "私のもの", "key": shared}).encode()
    http.post("/api/import", content=body, headers={"X-Persona": "writer"}).raise_for_status()
    assert contents(writer("recall", keys=[shared])) == ["私のもの"]
    writer("forget", keys=[shared])
    assert contents(reader("recall", keys=[shared])) == [FACT]


def test_what_a_persona_remembers_reaches_no_pool_and_no_other_persona(server, reader, writer, http):
    reader("remember", content="reader だけの話", state={"emotion": "静か"})
    writer("remember", content=FACT, pool="team", state={"emotion": "眠い"})
    assert contents(writer("recall", mode="recent")) == [FACT]
    exported = http.get("/api/export", headers={"X-Pool": "team"}).text.splitlines()
    assert [json.loads(line)["content"] for line in exported] == [FACT]
    assert "state" not in writer("get_context")
    assert http.get("/api/stats", headers={"X-Persona": "reader"}).json()["memories"] == 1


def test_leaving_a_pool_leaves_nothing_behind(server, reader, shared):
    reader("recall", query="配布")
    reader("get_context", query="配布")
    reader("remember", content="自分のこと")
    server.runtime.usage.write_all(server.runtime.personas)
    server.configure(pools={"team": {"writers": ["writer"]}})
    server.runtime.config.refresh()
    assert reader("recall", query="配布")["hits"] == []
    assert reader("recall", keys=[shared])["missing"] == [shared]
    assert not [name for name, content in bytes_of(server.directory_of("reader")).items() if "配布".encode() in content]
    assert shared not in (server.data / "memory_operations.log").read_text(encoding="utf-8")


def test_a_pool_and_a_persona_of_one_name_are_two_stores(server, connect, writer, http, shared):
    for name in ("team", "@team", directory_name(pool_store("team"))):
        namesake = connect(server, name)
        assert namesake("remember", content=f"{name} という人")["stored"]
        assert contents(namesake("recall", mode="recent")) == [f"{name} という人"]
    assert http.get("/api/stats", headers={"X-Persona": "%20@team"}).status_code == 400
    listed = [entry["name"] for entry in http.get("/api/personas").json()["personas"]]
    assert sorted(listed) == sorted(["team", "@team", directory_name(pool_store("team"))])
    assert contents(writer("recall", mode="recent")) == [FACT]


def test_the_owner_addresses_a_pool_by_a_header_as_a_store_of_its_own(server, http, shared):
    pool = {"X-Pool": "team"}
    assert http.get("/api/recall", params={"query": "配布"}, headers=pool).json()["hits"][0]["key"] == shared.removesuffix("@team")
    told = http.get("/api/stats", headers=pool).json()
    assert (told["persona"], told["pool"], told["memories"]) == ("@team", "team", 1)
    listed = http.post("/api/persona/erase", json={}, headers=pool).json()
    assert (listed["dry_run"], listed["confirm"], listed["memories"]) == (True, "team", 1)
    assert http.post("/api/persona/rename", json={"to": "nilou"}, headers=pool).status_code == 400
    assert http.post("/api/persona/copy", json={"to": "nilou"}, headers=pool).status_code == 400
    assert http.post("/api/persona/erase", json={"confirm": "team"}, headers=pool).json()["erased"] is True
    assert not server.directory_of(pool_store("team")).exists()


def test_members_may_be_tokens(server, connect):
    def made(*personas, scopes=TOKEN_SCOPES):
        token, secret = create_token(server.data, name="", personas=personas, scopes=scopes, now=NOON)
        return token.id, {"Authorization": f"Bearer {secret}"}

    reading, reader = made("alice")
    writing, writer = made("bob")
    _, other = made("alice")
    _, scopeless = made("bob", scopes=["read"])
    _, foreign = made("carol")
    server.configure(pools={"team": {"reader_tokens": [reading], "writer_tokens": [writing]}, "all": {"writers": ["bob"]}})
    server.runtime.config.refresh()
    connect(server, headers=writer)("remember", content=FACT, pool="team")
    connect(server, headers=writer)("remember", content=f"{FACT}！", pool="all")
    assert contents(connect(server, headers=reader)("recall", query="配布")) == [FACT]
    assert connect(server, headers=other)("recall", query="配布")["hits"] == []
    assert "needs a token with the scope write" in connect(server, headers=scopeless).refusal("remember", content="x", pool="all")
    for asked in ({"X-Persona": "bob"}, {"X-Persona": "bob", "X-Pool": "team"}):  # no reader by the name of another's persona
        answer = connect(server, headers=foreign | asked).result("recall", {"query": "配布"})
        assert FACT not in answer.content[0].text


def test_a_pool_that_can_not_be_read_takes_nothing_from_the_own_answer(server, reader, shared):
    reader("remember", content="配布の予定表は机の上")
    server.runtime.personas.close()
    (server.directory_of(pool_store("team")) / "memory.sqlite").write_bytes(b"damaged" * 1000)
    for tool in ("recall", "get_context"):
        answer = reader(tool, query="配布")
        assert (contents(answer), answer["degraded"]) == (["配布の予定表は机の上"], ["pool_unavailable: team"])
    reader("report", task="配布する", outcome="worked", steps=["火曜に"])
    advised = reader("advise", task="配布する")
    assert (len(advised["try"]), advised["degraded"]) == (1, ["pool_unavailable: team"])


def test_hits_of_a_small_pool_and_of_a_large_store_stand_where_they_would_in_one_store(writer, reader, connect, server, http):
    own = [f"{number}番の棚に{thing}を置いた" for number in range(60) for thing in ("本", "皿", "傘")]
    of_pool = ["緊急連絡先は警備室の内線である", "棚の鍵は受付にある", "傘の修理は町の店に頼む"]
    for persona, contents_ in (("reader", own), ("together", own + of_pool)):
        body = "".join(json.dumps({"content": content}) + "\n" for content in contents_).encode()
        http.post("/api/import", content=body, headers={"X-Persona": persona}).raise_for_status()
    for content in of_pool:
        writer("remember", content=content, pool="team")
    together = connect(server, "together")
    for query in ("緊急連絡先の棚", "棚の鍵はどこ？", "17番の傘", "傘の修理", "内線", "受付"):
        assert contents(reader("recall", query=query))[0] == contents(together("recall", query=query))[0], query


def test_the_same_said_in_both_is_shown_once_as_the_personas_own_or_the_pools(reader, writer, shared):
    reader("remember", content=FACT)
    assert contents(reader("recall", query="金曜日の配布")) == [FACT]


def test_every_mode_and_filter_reads_pools_as_well(reader, writer, shared):
    writer(
        "remember",
        content="[[健太|Person]]は配布の係",
        pool="team",
        tags=["係"],
        occurred_at="2025-10-01",
        relations=["健太 > works_on > 配布"],
    )
    reader("remember", content="昨日は何もしなかった")
    assert contents(reader("recall", tags=["係"], mode="recent")) == ["[[健太|Person]]は配布の係"]
    assert contents(reader("recall", query="配布", date_range="2025-10-01")) == ["[[健太|Person]]は配布の係"]
    by_graph = reader("recall", query="健太", mode="graph")
    assert contents(by_graph) == ["[[健太|Person]]は配布の係"]
    assert by_graph["relations"] == ["健太 > works_on > 配布 @team"]
    assert contents(reader("recall", mode="recent", top_k=2)) == ["昨日は何もしなかった", FACT]
    assert reader("recall", query="宇宙船の配布")["unmatched"] == ["宇宙船"]
    why = reader("recall", query="金曜日の配布", detail="why")["hits"][0]
    assert why["why"]["lexical"] == 1
    assert reader("recall", query="配布", detail="index")["hits"][0]["pool"] == "team"


def test_only_a_server_with_pools_tells_models_of_them(server, serving, tmp_path, connect):
    def arguments(where):
        caller = connect(where, "x")
        tools = {tool.name: tool for tool in caller.wait(caller.client.list_tools)}
        return set(tools["remember"].input_schema["properties"])

    (tmp_path / "other").mkdir()
    with serving(tmp_path / "other") as without:
        assert arguments(server) - arguments(without) == {"pool"}


def test_a_team_learns_from_the_reports_of_those_who_write_to_its_pool(server, connect, reader, writer, http):
    task, steps = "請求書を月末にまとめて発行する", ["締め番号をもらう", "控えを青フォルダに入れる"]
    made = writer("report", task=task, outcome="worked", steps=steps, sign="印影が薄い", instead="300dpiで貼る", pool="team")
    assert (made["persona"], made["pool"], {key.rpartition("@")[2] for key in made["made"]}) == ("writer", "team", {"team"})
    advised = reader("advise", task=task)
    assert [(entry["key"], entry["steps"], entry["tried"]) for entry in advised["try"]] == [(made["made"][0], steps, 1)]
    assert [entry["key"] for entry in advised["beware"]] == made["made"][1:]
    assert connect(server, "stranger")("advise", task=task)["unknown"] is True
    assert "may not write to" in reader.refusal("report", task=task, outcome="failed", steps=steps, pool="team")
    assert "may not write to" in reader.refusal("judge", keys=made["made"], verdict="hurt")
    again = writer("report", task="今月の請求書", outcome="worked", used=made["made"], pool="team")
    assert again["counted"][made["made"][0]] == ["used", "worked"]
    judged = writer("judge", keys=[made["made"][0], "memory_0"], verdict="helped")["outcomes"]
    assert [outcome["outcome"] for outcome in judged] == ["judged", "not_found"]
    assert (reader("advise", task=task)["try"][0]["tried"], reader("advise", task=task)["try"][0]["worked"]) == (2, 2)
    own = reader("report", task=task, outcome="worked", used=made["made"])
    assert set(own["not_counted"]) == set(made["made"])
    server.runtime.usage.write_all(server.runtime.personas)
    assert not [name for name, content in bytes_of(server.directory_of("reader")).items() if "青フォルダ".encode() in content]
    assert http.get("/api/stats", headers={"X-Persona": "writer"}).json()["memories"] == 0
