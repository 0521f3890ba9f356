"""The older names as instructions written for older memory servers use them."""

import asyncio
import json
from dataclasses import dataclass, field

import pytest
from unloaded_models import unloaded_models

from memory_mcp.config.live import LiveConfig
from memory_mcp.encoders.models import Models, ModelState
from memory_mcp.features.compat import operations as compat
from memory_mcp.personas.registry import Personas
from memory_mcp.server.arguments import NoArguments
from memory_mcp.server.auth import Authenticator
from memory_mcp.server.call import Call

pytestmark = [pytest.mark.slow, pytest.mark.served(toolsets=["core", "compat"])]

NAMES = [
    "ingest", "save_memory", "search_memories", "build_context", "create_memory", "read_memory", "update_memory", "delete_memory",
    "list_memory", "search_memory", "search_memory_rag", "get_persona_context", "rebuild_vector_store",
]  # fmt: skip
READING = {"search_memories", "build_context", "read_memory", "list_memory", "search_memory", "search_memory_rag", "get_persona_context"}
COLUMNS = {"key", "content", "created_at", "updated_at", "tags"}


@pytest.fixture
def tulips(persona):
    """The key of what the persona remembers about tulips."""
    return persona("create_memory", content="旅人は[[チューリップ]]が好き", context_tags=["daily_memory"])["key"]


def contents(answer):
    return [memory["content"] for memory in answer["memories"]]


def test_a_note_is_ingested_and_recalled(persona, name):
    stored = persona("ingest", text="昨日の夕飯はカレーだった")
    assert (stored["persona"], stored["text"], stored["source"]) == (name, "昨日の夕飯はカレーだった", "you")
    (hit,) = persona("recall", query="昨日の夕飯なに？")["hits"]
    assert (hit["key"], hit["content"], hit["source"]) == (stored["key"], "昨日の夕飯はカレーだった", "you")
    assert persona("ingest", text="辛口", source="旅人")["source"] == "旅人"
    assert persona("ingest", text="甘口", source=None)["source"] == "you"


def test_a_long_note_is_stored_whole_and_comes_back_cut(persona):
    text = "カレーは辛い。" * 2_000
    stored = persona("ingest", text=text)
    assert stored["truncated"]
    assert text.startswith(stored["text"][:100])
    assert len(stored["text"]) < 2_000
    assert persona("recall", keys=[stored["key"]], max_tokens=100_000)["hits"][0]["content"] == text


def test_a_memory_is_saved_and_found_by_the_columns_of_the_specification(persona, name):
    stored = persona("save_memory", raw_text="会議は水曜日", session_id="s1", importance_score=0.9, category="work", tags=["会議"])
    assert stored["id"] == stored["key"]
    found = persona("search_memories", query="会議はいつ？")
    assert (found["persona"], found["query"], found["mode"], found["more"]) == (name, "会議はいつ？", "keyword", 0)
    (memory,) = found["memories"]
    assert (memory["id"], memory["raw_text"], memory["session_id"]) == (stored["id"], "会議は水曜日", "s1")
    assert (memory["importance_score"], memory["tags"]) == (0.9, ["会議", "work"])
    assert memory["score"] > 0
    assert memory["created_at"] == "2025-10-30T12:00:00+09:00"
    assert not {"key", "content", "importance", "why"} & set(memory)


def test_a_note_of_another_day_is_ingested_with_its_date(persona):
    assert persona("ingest", text="夕飯はカレーだった", occurred_at="昨日")["occurred_at"] == "2025-10-29T00:00:00+09:00"
    persona("ingest", text="朝はパンだった", created_at="2025-10-17T08:00:00+09:00")
    assert [hit["content"] for hit in persona("recall", date_range="2025-10-17")["hits"]] == ["朝はパンだった"]
    assert [hit["content"] for hit in persona("recall", date_range="昨日")["hits"]] == ["夕飯はカレーだった"]


def test_everything_that_the_specification_knows_of_a_memory_is_kept(persona):
    noted = {
        "user_id": "alice", "device_id": "phone", "summary_text": "会議", "micro_summary": "会議した", "relation_labels": ["仕事"],
        "latitude": 35.68, "longitude": 139.76, "raw_audio": "UklGRg==",
    }  # fmt: skip
    saved = persona(
        "save_memory", raw_text="田中さんと会議をした", created_at="2025-08-18T12:00:00+09:00", extra_data={"mood": "calm"}, **noted
    )
    (hit,) = persona("recall", keys=[saved["id"]])["hits"]
    assert hit["metadata"] == {"mood": "calm", **noted}
    assert hit["occurred_at"] == "2025-08-18T12:00:00+09:00"
    assert persona("save_memory", content="会議", user_id="someone else")["persona"] == saved["persona"]


def test_search_memories_takes_everything_that_the_specification_asks_with(persona):
    for session, text, day in (
        ("s1", "花を植えた", "2025-10-01"),
        ("s2", "花が咲いた", "2025-10-20"),
        ("s1", "花を[[庭]]に植え替えた", "2025-10-10"),
    ):
        persona("save_memory", raw_text=text, session_id=session, created_at=day, category="garden" if session == "s1" else "")
    ignored = {"user_id": "alice", "threshold": 0.3, "max_depth": 3}

    def found(**arguments):
        return [memory["raw_text"] for memory in persona("search_memories", **arguments, **ignored)["memories"]]

    assert set(found(query="花", session_id="s1")) == {"花を植えた", "花を[[庭]]に植え替えた"} == set(found(query="花", category="garden"))
    assert found(query="花", mode="temporal") == ["花が咲いた", "花を[[庭]]に植え替えた", "花を植えた"]
    assert found(query="庭", mode="entity_focused") == found(query="庭", mode="graph_only") == ["花を[[庭]]に植え替えた"]
    assert set(found(query="花", mode="hybrid")) == set(found(query="花"))
    assert found(session_id="s2") == ["花が咲いた"]
    assert "mode is 'nonsense'" in persona.refusal("search_memories", query="花", mode="nonsense")


def test_what_is_saved_as_content_is_the_same_write(persona):
    first = persona("save_memory", content="会議は木曜日")
    again = persona("save_memory", raw_text="会議は木曜日")
    assert again["id"] == first["id"]
    assert not again["stored"]


def test_search_memories_filters_and_lists_the_latest_without_a_query(persona):
    persona("save_memory", content="花を買った", importance_score=0.2)
    persona("save_memory", content="花が咲いた", importance_score=0.8, tags=["庭"])
    everything = persona("search_memories")
    assert everything["mode"] == "recent"
    assert [memory["raw_text"] for memory in everything["memories"]] == ["花が咲いた", "花を買った"]
    assert everything["memories"][1]["importance_score"] == 0.2
    for filters in ({"tags": ["庭"]}, {"min_importance": 0.5}):
        assert [memory["raw_text"] for memory in persona("search_memories", query="花", **filters)["memories"]] == ["花が咲いた"]
    assert persona("search_memories", query="花", date_range="2024-01-01")["memories"] == []
    assert len(persona("search_memories", query="花", top_k=1)["memories"]) == 1


def test_the_built_context_is_the_context(persona, tulips):
    assert persona("build_context", query="チューリップ") == persona("get_context", query="チューリップ")
    assert len(persona("build_context", query="チューリップ", max_tokens=50)["hits"]) == 1


def test_a_memory_is_created_with_everything_that_was_noted_beside_it(persona, name):
    created = persona(
        "create_memory",
        content="[[ニィロウ]]は舞台を終えた",
        emotion_type="joy",
        context_tags=["important_event", "emotional_moment"],
        physical_state="tired",
        mental_state="calm",
        environment="theater",
        user_info={"name": "空", "preferred_address": "旅人"},
        persona_info={"nickname": "ニィロウ"},
        relationship_status="closer",
    )
    assert created["result"] == f"Saved: '{created['key']}' (persona: {name})"
    context = persona("get_persona_context")
    assert context == {
        "persona": name,
        "user_info": {"name": "空", "nickname": "", "preferred_address": "旅人"},
        "persona_info": {"name": "", "nickname": "ニィロウ", "preferred_address": ""},
        "current_emotion": "joy",
        "physical_state": "tired",
        "mental_state": "calm",
        "environment": "theater",
        "relationship_status": "closer",
        "last_conversation_time": "2025-10-30T12:00:00+09:00",
        "since_last_conversation": "1分未満",
    }
    memory = persona("read_memory", key=created["key"])
    assert memory["tags"] == ["important_event", "emotional_moment"]
    assert memory["state"]["emotion"] == "joy"


def test_the_context_of_nobody_has_every_field_and_says_nothing(persona, name, server):
    context = persona("get_persona_context")
    assert context["new_persona"]
    assert (context["current_emotion"], context["user_info"]["name"], context["last_conversation_time"]) == ("", "", None)
    assert not server.directory_of(name).exists()


def test_a_person_with_a_field_that_has_no_place_is_refused_before_anything_is_stored(persona, server, name):
    assert "user_info has the unknown field 'age'" in persona.refusal("create_memory", content="x", user_info={"age": "17"})
    assert not server.directory_of(name).exists()


def test_a_memory_is_kept_although_the_context_file_is_broken(persona, server, name, tulips):
    server.directory_of(name).joinpath("persona_context.json").write_text("{", encoding="utf-8")
    created = persona("create_memory", content="それでも覚える", user_info={"name": "空"})
    assert created["degraded"][0].startswith("context_not_updated: ")
    assert persona("read_memory", key=created["key"])["content"] == "それでも覚える"
    assert persona("get_persona_context")["degraded"][0].startswith("context_unreadable: ")


def test_a_memory_is_read_updated_and_deleted_by_its_key(persona, name, tulips):
    read = persona("read_memory", key=tulips)
    assert set(read) >= COLUMNS | {"persona", "ago"}
    assert (read["content"], read["tags"], read["updated_at"]) == ("旅人は[[チューリップ]]が好き", ["daily_memory"], read["created_at"])
    updated = persona("update_memory", key=tulips, content="旅人は薔薇が好き")
    assert updated["result"] == f"Updated: '{tulips}' (persona: {name})"
    assert (updated["content"], updated["created_at"], updated["revision"]) == ("旅人は薔薇が好き", read["created_at"], 2)
    assert persona("read_memory", key=tulips)["content"] == "旅人は薔薇が好き"
    deleted = persona("delete_memory", key=tulips)
    assert deleted == {"persona": name, "key": tulips, "outcome": "forgotten", "result": f"Deleted: '{tulips}' (persona: {name})"}
    assert persona("delete_memory", key=tulips)["outcome"] == "already_forgotten"
    assert persona("list_memory")["memories"] == []


def test_a_deleted_memory_is_not_there_until_it_is_restored(persona, tulips):
    persona("delete_memory", key=tulips)
    for tool, arguments in (("read_memory", {}), ("update_memory", {"content": "x"})):
        assert persona.refusal(tool, key=tulips, **arguments) == (
            f"{tulips} is in the trash: it was deleted. Send revise with restore=true to bring it back."
        )
    persona("revise", key=tulips, restore=True)
    assert persona("read_memory", key=tulips)["key"] == tulips


@pytest.mark.parametrize(("tool", "arguments"), [("read_memory", {}), ("update_memory", {"content": "x"}), ("delete_memory", {})])
def test_a_key_that_nobody_has_is_refused_with_where_keys_come_from(persona, tool, arguments):
    assert persona.refusal(tool, key="memory_0", **arguments) == (
        "no memory has the key memory_0. Take the key from list_memory or search_memory."
    )


def test_a_long_memory_is_read_as_far_as_asked(persona):
    key = persona("create_memory", content="とても長い話。" * 2_000)["key"]
    assert persona("read_memory", key=key)["truncated"]
    assert "truncated" not in persona("read_memory", key=key, max_tokens=100_000)


def test_the_list_is_the_latest_first_with_how_many_there_are(persona, name):
    nothing = persona("list_memory")
    assert (nothing["persona"], nothing["total"], nothing["more"], nothing["memories"]) == (name, 0, 0, [])
    for number in range(60):
        persona("create_memory", content=f"{number}番目")
    listed = persona("list_memory", max_tokens=100_000)
    assert (listed["total"], listed["more"], len(listed["memories"])) == (60, 10, 50)
    assert listed["memories"][0]["content"] == "59番目"
    assert set(listed["memories"][0]) >= COLUMNS
    assert "search_memory" in listed["note"]
    assert contents(persona("list_memory", top_k=1)) == ["59番目"]


def test_the_list_stays_within_its_budget(persona):
    for number in range(20):
        persona("create_memory", content=f"{number}番目の長い思い出。" + "とても楽しかった。" * 100)
    listed = persona("list_memory")
    assert listed["more"] == 20 - len(listed["memories"]) > 0
    assert sum(len(content) for content in contents(listed)) < 4_000


def test_words_are_searched_under_either_name(persona, tulips):
    persona("create_memory", content="雨が降った")
    found = persona("search_memory", query="チューリップ", top_k=5, fuzzy_match=True, fuzzy_threshold=70)
    assert (found["query"], found["mode"], found["more"]) == ("チューリップ", "keyword", 0)
    assert [memory["key"] for memory in found["memories"]] == [tulips]
    assert set(found["memories"][0]) >= COLUMNS | {"score", "ago"}
    assert persona("search_memory", keyword="チューリップ") == found


def test_any_of_the_tags_is_enough_unless_all_are_asked_for(persona):
    for content, tags in (("約束した", ["relationship_update"]), ("優勝した", ["important_event"]), ("昼寝した", ["daily_memory"])):
        persona("create_memory", content=content, context_tags=tags)
    persona("create_memory", content="婚約した", context_tags=["important_event", "relationship_update"])
    both = ["important_event", "relationship_update"]
    found = persona("search_memory", tags=both)
    assert contents(found) == ["婚約した", "優勝した", "約束した"]
    assert (found["mode"], found["more"]) == ("recent", 0)
    assert contents(persona("search_memory", tags=both, tag_match_mode="all")) == ["婚約した"]
    assert contents(persona("search_memory", query="優勝", tags=both))[0] == "優勝した"
    assert contents(persona("search_memory", tags=both, top_k=1)) == ["婚約した"]
    assert persona("search_memory", tags=both, top_k=1)["more"] >= 1
    assert persona("search_memory", tags=["nothing", "nowhere"])["memories"] == []
    assert len(persona("search_memory", tags=[])["memories"]) == 4


def test_a_search_by_date_needs_no_words(persona):
    persona("remember", content="先週のこと", occurred_at="2025-10-23")
    persona("remember", content="今日のこと")
    assert contents(persona("search_memory", date_range="2025-10-20..2025-10-26")) == ["先週のこと"]
    assert contents(persona("search_memory", date_range="今日", query="こと")) == ["今日のこと"]


def test_a_question_is_answered_by_the_whole_search(persona, tulips):
    found = persona("search_memory_rag", query="旅人が好きな花は？", top_k=3)
    recalled = persona("recall", query="旅人が好きな花は？", top_k=3)
    assert [memory["key"] for memory in found["memories"]] == [hit["key"] for hit in recalled["hits"]] == [tulips]
    assert [found[name] for name in ("mode", "reranked", "degraded", "more")] == [
        recalled[name] for name in ("mode", "reranked", "degraded", "more")
    ]


def test_a_server_without_an_embedding_model_says_that_it_has_no_vector_index(persona, name, tulips):
    answer = persona("rebuild_vector_store")
    assert (answer["persona"], answer["requested"]) == (name, False)
    assert "no vector index" in answer["result"]


@dataclass
class Rebuilder:
    """Notes which rebuilds were asked for."""

    requested: list[str] = field(default_factory=list)

    def request_rebuild(self, name):
        self.requested.append(name)

    def note_call(self):
        """Nothing here waits for a quiet moment."""


@dataclass
class RuntimeWithIndex:
    """What a call needs of a runtime, with an index that can be rebuilt."""

    config: LiveConfig
    personas: Personas
    index: Rebuilder
    clock: object
    indexes: object = None
    chores: object = None

    def models_for(self, settings):
        configured = unloaded_models(settings)
        return Models(None, None, ModelState("loading", "a model"), configured.reranker_state)


def test_a_rebuild_is_asked_for_under_the_name_of_the_persona_and_of_no_other(server, persona, name, tulips):
    rebuilder = Rebuilder()
    runtime = RuntimeWithIndex(server.runtime.config, server.runtime.personas, rebuilder, server.runtime.clock)
    admission = asyncio.run(Authenticator(server.runtime, ()).admit({"type": "http", "path": "/mcp", "headers": []}))

    def asked_by(who):
        return compat.rebuild_vector_store(Call(runtime, {"type": "http", "path": "/mcp", "headers": []}, [who], admission), NoArguments())

    assert asked_by(name)["requested"]
    assert not asked_by(f"{name}-nobody")["requested"]
    assert rebuilder.requested == [name]


def test_null_means_the_default_and_lists_objects_and_numbers_may_come_as_strings(persona):
    optional = ("emotion_type", "physical_state", "mental_state", "environment", "relationship_status", "user_info", "persona_info")
    key = persona("create_memory", content="文字列だらけ", context_tags='["a", "b"]', **dict.fromkeys(optional))["key"]
    persona("create_memory", content="もう一つ", context_tags="a", user_info='{"name": "空"}', persona_info="")
    assert persona("get_persona_context")["user_info"]["name"] == "空"
    assert persona("read_memory", key=key, max_tokens="4000")["tags"] == ["a", "b"]
    nothing = dict.fromkeys(("top_k", "tags", "tag_match_mode", "date_range", "fuzzy_match", "fuzzy_threshold", "keyword"))
    assert len(persona("search_memory", query="文字列", **nothing)["memories"]) == 1
    assert len(persona("search_memory", query=None, top_k="1", tags='["a", ""]', fuzzy_match="true", fuzzy_threshold="70")["memories"]) == 1
    assert len(persona("list_memory", top_k=None, max_tokens="500")["memories"]) == 2
    assert len(persona("search_memory_rag", query="文字列", top_k="3")["memories"]) == 1
    assert persona("save_memory", content=42, importance_score="0.5", tags="x")["stored"]
    assert persona("update_memory", key=f" {key} ", content="直した")["key"] == key
    assert persona("delete_memory", key=f" {key}")["key"] == key


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("ingest", {}, "the argument 'text' is missing"),
        ("ingest", {"text": " "}, "content is empty"),
        ("ingest", {"text": "x", "sorce": "me"}, "no argument 'sorce' (did you mean source?)"),
        ("save_memory", {}, "content is empty: there is nothing to remember"),
        ("save_memory", {"content": "x", "importance_score": 7}, "importance is 7: it runs from 0 to 1"),
        ("create_memory", {"content": "x", "persona": "nilou"}, "no argument 'persona'"),
        ("create_memory", {"content": "x", "user_info": "空"}, "user_info must be an object of texts"),
        ("create_memory", {"content": "x\x00"}, "content holds a NUL character"),
        ("search_memory", {"query": "x", "tag_match_mode": "most"}, "tag_match_mode is 'most': it is any or all"),
        ("search_memory", {"tags": [str(number) for number in range(11)]}, "tags has 11 entries: 10 are the limit"),
        ("search_memory", {"query": "x", "tags": ["a", "b"], "top_k": 0}, "top_k is 0: it runs from 1 to 50"),
        ("search_memory", {"date_range": "きっといつか"}, "is no date that can be understood"),
        ("search_memory_rag", {"query": ""}, "query is empty"),
        ("search_memory_rag", {"query": "x", "top_k": 51}, "top_k is 51: it runs from 1 to 50"),
        ("list_memory", {"top_k": 1_000}, "top_k is 1000: it runs from 1 to 50"),
        ("read_memory", {}, "the argument 'key' is missing"),
        ("build_context", {"max_tokens": 1}, "max_tokens is 1: it runs from 50 to 100,000"),
    ],
)
def test_what_can_not_be_used_is_refused_in_our_words_and_creates_nobody(persona, server, name, tool, arguments, words):
    assert words in persona.refusal(tool, **arguments)
    assert not server.directory_of(name).exists()


def test_two_personas_at_once_get_only_their_own(server, connect, portal, name):
    secrets = {f"{name}-nilou": "nilou の秘密は睡蓮", "さくら" + name: "さくらの秘密は桜餅"}
    callers = {who: connect(server, who) for who in secrets}

    async def day_of(who, secret):
        """Every older name, again and again. Answers with all the words that came back."""
        client, heard = callers[who].client, []

        async def call(tool, **arguments):
            result = await client.call_tool(tool, arguments)
            heard.append(json.dumps({**result.structured_content, "text": result.content[0].text}, ensure_ascii=False))
            return result.structured_content

        for number in range(3):
            key = (await call("create_memory", content=f"{secret}{number}", environment=secret, context_tags=["a"]))["key"]
            await asyncio.gather(
                call("ingest", text=f"{secret}のメモ{number}"),
                call("save_memory", content=f"{secret}の記録{number}", category="b"),
                call("search_memories", query="秘密"),
                call("build_context", query="秘密"),
                call("read_memory", key=key),
                call("update_memory", key=key, content=f"{secret}{number}改"),
                call("list_memory"),
                call("search_memory", query="秘密", tags=["a", "b"]),
                call("search_memory_rag", query="秘密は？"),
                call("get_persona_context"),
                call("rebuild_vector_store"),
            )
            await call("delete_memory", key=key)
        return heard

    async def both():
        return await asyncio.gather(*(day_of(*whose) for whose in secrets.items()))

    for (who, secret), heard in zip(secrets.items(), portal.call(both), strict=True):
        (others,) = (other for other in secrets.values() if other != secret)
        assert secret in "".join(heard)
        assert others not in "".join(heard)
        assert {json.loads(said)["persona"] for said in heard} == {who}


def test_a_key_of_another_persona_opens_nothing(server, connect, name):
    nilou, dehya = connect(server, f"{name}-nilou"), connect(server, f"{name}-dehya")
    key = nilou("create_memory", content="睡蓮の踊り")["key"]
    dehya("create_memory", content="砂漠の炎")
    for tool, arguments in (("read_memory", {}), ("update_memory", {"content": "x"}), ("delete_memory", {})):
        assert dehya.refusal(tool, key=key, **arguments).startswith(f"no memory has the key {key}.")
    assert nilou("read_memory", key=key)["content"] == "睡蓮の踊り"


def test_reading_as_somebody_who_does_not_exist_creates_nothing(server, persona):
    before = server.directories()
    for tool in [*sorted(READING - {"read_memory", "search_memory_rag"}), "rebuild_vector_store"]:
        assert persona(tool)["new_persona"]
    assert persona("search_memory_rag", query="x")["new_persona"]
    persona.refusal("read_memory", key="memory_0")
    persona.refusal("delete_memory", key="memory_0")
    assert server.directories() == before


def test_the_older_names_come_after_the_six_and_say_what_they_are(persona):
    tools = persona.wait(persona.client.list_tools)
    assert [tool.name for tool in tools[6:]] == NAMES
    for tool in tools[6:]:
        assert tool.description
        assert "\n" not in tool.description
        hints = tool.annotations
        assert hints.title
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
        assert hints.open_world_hint is False
    assert {tool.name for tool in tools[6:] if tool.annotations.read_only_hint} == READING
    assert {tool.name for tool in tools[6:] if tool.annotations.destructive_hint} == {"delete_memory"}


def test_every_schema_is_flat_and_says_the_type_of_every_argument(persona):
    for tool in persona.wait(persona.client.list_tools)[6:]:
        schema = tool.input_schema
        assert not [word for word in ("$ref", "$defs", "anyOf", "oneOf", "allOf") if f'"{word}"' in json.dumps(schema)]
        assert all("type" in spec for spec in schema["properties"].values())


def test_core_alone_has_none_of_the_older_names(own_server, connect):
    caller = connect(own_server, "nilou")
    assert not {tool.name for tool in caller.wait(caller.client.list_tools)} & set(NAMES)
    for name in NAMES:
        assert caller.refusal(name).startswith(f"There is no tool {name!r}.")


def test_the_older_names_can_be_offered_alone(serving, tmp_path, connect):
    with serving(tmp_path, toolsets=["compat"]) as served:
        caller = connect(served, "nilou")
        assert [tool.name for tool in caller.wait(caller.client.list_tools)] == NAMES
        assert caller("ingest", text="これだけで")["stored"]
