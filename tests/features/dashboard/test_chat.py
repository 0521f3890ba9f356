"""The chat room as plain HTTP: a turn streamed, stored, cancelled, off the record, of several personas, and what a token may."""

import itertools
import json
import re
import ssl
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import ClassVar
from urllib.parse import quote, urlencode

import httpx2
import pytest
from openai_wire import vendor

from benchmarks.vendor import EVENTS, Answer, chunk, streamed
from benchmarks.vendor import vendor as lab_vendor
from memory_mcp.config.settings import Settings
from memory_mcp.features.chat.web import WebChat
from memory_mcp.store.files.access_tokens import create_token, revoke_token

pytestmark = pytest.mark.slow  # a server for each of many tests

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
TLS = ssl.create_default_context()
KEY = "sk-proj-" + "Ab1cD2eF3g" * 6
REMEMBER = {"name": "remember", "arguments": json.dumps({"content": "健太は苺が好き。"})}
RECALL = {"name": "recall", "arguments": json.dumps({"query": "苺"})}


@pytest.fixture(scope="module")
def model():
    """The vendor that all tests of this file share."""
    with vendor() as known:
        yield known


@pytest.fixture
def asked(model, monkeypatch):
    """The vendor with its key and address in the environment; nobody has asked it yet."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    model.steps, model.asked, model.keys = [], [], set()
    model.gone.clear()
    return model


@pytest.fixture
def chatting(serving, tmp_path):
    """A server of this test that runs conversations."""
    with serving(tmp_path, parts={"conversing": WebChat()}) as served:
        yield served


class Room:
    """A browser without a screen: it has the cookies of a session and the key of its forms."""

    def __init__(self, client, persona):
        self.client, self.at, self.persona = client, f"/p/{quote(persona)}/ui", persona

    def get(self, path):
        return self.client.get(self.at + path, headers={"Accept": "text/html"})

    def post(self, path, **fields):
        key = re.search(r'name="form_key" value="([0-9a-f]+)"', self.get("/chat/one").text)
        body = urlencode({"form_key": key[1] if key else "", **fields}, doseq=True)
        return self.client.post(self.at + path, content=body, headers={"Content-Type": "application/x-www-form-urlencoded"})

    def say(self, text, *, allow=None, stop=None, **fields):
        """The events of a turn. Questions are answered with `allow`; the connection is closed at the first event of the kind `stop`."""
        key = re.search(r'name="form_key" value="([0-9a-f]+)"', self.get("/chat/one").text)[1]
        body = urlencode({"form_key": key, "text": text, "model": "openai:gpt-x", **fields}, doseq=True)
        events = []
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        with self.client.stream("POST", f"{self.at}/chat/say", content=body, headers=headers) as answer:
            if answer.status_code != 200:
                answer.read()
                return answer
            for line in answer.iter_lines():
                if not line.startswith("data: "):
                    continue
                events.append(json.loads(line.removeprefix("data: ")))
                if events[-1]["event"] == stop:
                    break
                if events[-1]["event"] == "approval_needed" and allow is not None:
                    self.post("/chat/answer", run=events[0]["run"], call=events[-1]["call"]["id"], allow=allow)
        return events

    def stored(self, **query):
        headers = {"X-Persona": quote(self.persona)}
        found = self.client.get("/api/conversations", headers=headers).json()["conversations"]
        return [self.client.get("/api/conversation", params={"id": one["id"]}, headers=headers).json() for one in found]

    def memories(self):
        found = self.client.get("/api/memories", headers={"X-Persona": quote(self.persona)}).json()["memories"]
        return [memory["content"] for memory in found]


@pytest.fixture
def enter(chatting):
    """enter("さくら", secret=…): the room of a persona, signed in if there is a secret."""
    with ExitStack() as stack:

        def enter(persona, secret=None):
            client = stack.enter_context(httpx2.Client(base_url=chatting.url, verify=TLS, timeout=60))
            if secret:
                page = client.get("/ui/sign-in").text
                key = re.search(r'name="form_key" value="([0-9a-f]+)"', page)
                body = urlencode({"form_key": key[1] if key else "", "token": secret})
                client.post("/ui/sign-in", content=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
            return Room(client, persona)

        yield enter


def kinds(events):
    return [event["event"] for event in events]


def spoken(events):
    return "".join(event["text"] for event in events if event["event"] == "text_piece")


def test_where_no_model_can_be_asked_the_room_says_what_each_vendor_lacks(enter, asked, monkeypatch):
    room = enter("さくら")
    assert "No model can be asked yet" not in room.get("/chat/one").text
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    page = room.get("/chat/one").text
    assert "No model can be asked yet" in page
    assert "OPENAI_API_KEY" in page


@pytest.mark.slow
def test_a_turn_is_streamed_and_stored_with_what_was_recalled_and_stored(enter, asked):
    room = enter("さくら")
    asked.steps = [REMEMBER, "覚えました。"]
    events = room.say("健太は苺が好きだよ", allow="yes")
    assert kinds(events)[0] == "begun"
    assert kinds(events)[-1] == "saved"
    assert [kind for kind in kinds(events) if "tool" in kind or "approval" in kind] == [
        "tool_call_started",
        "approval_needed",
        "tool_result",
    ]
    assert spoken(events) == "覚えました。"
    assert room.memories() == ["健太は苺が好き。"]
    asked.steps = [RECALL, "苺です。"]
    identity = events[-1]["id"]
    again = room.say("健太は何が好き？", id=identity)
    (recalled,) = next(event["recalled"] for event in again if event["event"] == "tool_result")
    assert recalled["why"]
    (known,) = room.stored()
    assert known["conversation"]["title"] == "健太は苺が好きだよ"
    assert [turn["model"] for turn in known["turns"]] == ["openai:gpt-x"] * 2
    assert known["turns"][1]["recalled"] == known["turns"][0]["stored"] == [recalled["key"]]
    assert [message["text"] for message in known["turns"][1]["messages"] if message["role"] != "tool"][-1] == "苺です。"
    assert [message["content"] for message in asked.asked[-2]["messages"] if message["role"] == "user"] == [
        "健太は苺が好きだよ",
        "健太は何が好き？",
    ]
    assert asked.keys == {f"Bearer {KEY}"}


NOTES = """
from fastmcp import FastMCP
mcp = FastMCP("notes")

@mcp.tool(annotations={"readOnlyHint": True})
def look_up(topic: str) -> str:
    return f"note on {topic}"

mcp.run(show_banner=False)
"""


class Watched(WebChat):
    """Notes which models were loaded before they were asked."""

    prepared: ClassVar[list[str]] = []

    def prepare(self, model):
        self.prepared.append(model)
        super().prepare(model)


def test_two_servers_arguments_and_other_mcp_servers_are_used_in_the_room(serving, tmp_path, name):
    """Of config.json: what `memory-mcp chat` uses, too."""
    program, file, data = tmp_path / "notes.py", tmp_path / "mcp.json", tmp_path / "data"
    data.mkdir()
    program.write_text(NOTES, encoding="utf-8")
    absent = {"command": str(tmp_path / "absent")}
    file.write_text(json.dumps({"mcpServers": {"notes": {"command": sys.executable, "args": [str(program)]}, "gone": absent}}))
    with lab_vendor() as lab, lab_vendor() as local:
        vendors = {"lab": {"url": lab.url}, "local": {"url": local.url}}
        chat = {"model": "lab/m", "arguments": {"lab/m": {"temperature": 0.25}}, "mcp": str(file)}
        settings = Settings.model_validate({"llm": {"vendors": vendors}, "chat": chat})
        called = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"topic": "苺"}'}}
        pieces = [chunk({"tool_calls": [{"index": 0, **called}]}), chunk({}, "tool_calls")]
        lab.steps, local.steps = (
            [Answer(pieces, content_type=EVENTS), "苺だね。"],
            [Answer(streamed("長い", "length"), content_type=EVENTS)],
        )
        with (
            serving(data, parts={"conversing": Watched(lambda: settings)}) as served,
            httpx2.Client(base_url=served.url, timeout=60) as client,
        ):
            room = Room(client, name)
            assert 'value="lab/m"' in room.get("/chat/one").text
            events = room.say("苺のことは？", model="lab/m", max_tokens="50")
            cut = room.say("続けて", model="local/org/large", id=events[-1]["id"], temperature="0.5")
            refused = room.say("続けて", model="local/org/large", temperature="hot")
            page = room.get(f"/chat/one?id={events[-1]['id']}").text
    assert [(event["server"], event["event"]) for event in events if event["event"] == "left_out"] == [("gone", "left_out")]
    assert [event["text"] for event in events if event["event"] == "tool_result"] == ["note on 苺"]
    assert spoken(events) == "苺だね。"
    assert Watched.prepared[0] == "lab/m"
    assert [(asked["temperature"], asked["max_tokens"]) for asked in lab.asked] == [(0.25, 50)] * 2
    assert [(asked["model"], asked["temperature"], "max_tokens" in asked) for asked in local.asked] == [("org/large", 0.5, False)]
    assert [event["why"] for event in cut if event["event"] == "cut_off"] == ["limit"]
    assert next(event["reason"] for event in cut if event["event"] == "turn_ended") == "length"
    assert page.count("cut it off.</p>") == 1
    assert refused.status_code == 400


def test_a_tool_that_changes_something_runs_only_when_it_is_allowed_and_is_asked_for_once(enter, asked):
    room = enter("さくら")
    asked.steps = [REMEMBER, "残念です。"]
    denied = room.say("覚えて", allow="no")
    assert next(event["is_error"] for event in denied if event["event"] == "tool_result")
    assert room.memories() == []
    asked.steps = [REMEMBER, "はい。"]
    assert "approval_needed" not in kinds(room.say("覚えて", allowed="remember"))
    assert room.memories() == ["健太は苺が好き。"]


def test_an_answer_to_a_question_of_somebody_else_counts_for_nothing(enter, chatting, asked):
    everybody = create_token(chatting.data, name="", personas=None, scopes=("read", "write", "admin"), now=NOON, expires_at=None)[1]
    other = create_token(chatting.data, name="", personas=("nilou",), scopes=("read", "write", "admin"), now=NOON, expires_at=None)[1]
    room, stranger = enter("さくら", everybody), enter("nilou", other)
    asked.steps = [REMEMBER, "はい。"]
    statuses = []

    def answered(run, call):
        statuses.append(stranger.post("/chat/answer", run=run, call=call, allow="yes").status_code)
        statuses.append(room.post("/chat/answer", run=run, call=call, allow="no").status_code)

    real, room.post = room.post, lambda path, **fields: (setattr(room, "post", real), answered(fields["run"], fields["call"]))
    room.say("覚えて", allow="yes")
    assert statuses == [404, 204]
    assert asked.asked[-1]["messages"][-1]["content"] == "The user does not allow this call"


def test_off_the_record_nothing_is_written_and_no_tool_writes(enter, asked, chatting):
    room = enter("さくら")
    room.say("はじめ")
    (known,) = room.stored()
    events = room.say("ここだけの話 zqsecret", off_record="1", id=known["conversation"]["id"])
    assert "saved" not in kinds(events)
    assert room.stored() == [known]
    offered = [tool["function"]["name"] for tool in asked.asked[-1]["tools"]]
    assert "recall" in offered
    assert "remember" not in offered
    room.say("つづき", id=known["conversation"]["id"])
    assert "zqsecret" not in json.dumps(asked.asked[-1])
    assert b"zqsecret" not in b"".join(path.read_bytes() for path in chatting.data.rglob("*") if path.is_file())


def test_a_turn_is_edited_and_answered_again(enter, asked):
    room = enter("さくら")
    identity = room.say("一")[-1]["id"]
    for text in ("二", "三"):
        room.say(text, id=identity)
    room.say("別の二", id=identity, replace="2")
    (known,) = room.stored()
    assert [turn["messages"][-1]["text"] for turn in known["turns"]] == ["echo: 一", "echo: 別の二"]
    assert [message["content"] for message in asked.asked[-1]["messages"] if message["role"] == "user"] == ["一", "別の二"]


def test_a_connection_that_is_closed_ends_the_turn_and_leaves_nothing_of_it(enter, asked):
    room = enter("さくら")
    identity = room.say("はじめ")[-1]["id"]
    before = room.stored()
    asked.steps = [itertools.repeat("…", 20_000)]
    events = room.say("つづき", id=identity, stop="text_piece")
    assert kinds(events)[-1] == "text_piece"
    assert asked.gone.wait(60), "the model was read to its end"
    assert room.stored() == before
    assert "saved" in kinds(room.say("やり直し", id=identity))


@pytest.mark.slow
def test_what_a_model_fails_with_is_said_and_nothing_is_stored_of_the_turn(enter, asked, monkeypatch):
    room = enter("さくら")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    events = room.say("ねえ")
    assert "nobody answers at its address" in next(event["text"] for event in events if event["event"] == "failed")
    assert room.stored() == []
    assert room.say("ねえ", model="nobody:x").status_code == 503
    assert room.say("ねえ", model="anthropic:x").status_code == 503
    assert room.say("").status_code == 400
    assert room.say("x", replace="x").status_code == 400


def test_a_form_of_another_page_begins_nothing(enter, asked):
    room = enter("さくら")
    room.get = lambda path: httpx2.Response(200, text='name="form_key" value="00"')
    assert room.say("ねえ").status_code == 403
    assert asked.asked == []


def test_the_key_is_in_no_page_no_log_and_no_file(enter, asked, chatting, caplog):
    room = enter("さくら")
    caplog.set_level("DEBUG")
    asked.steps = [f"鍵は {KEY} です。"]
    identity = room.say(f"鍵は {KEY} ?")[-1]["id"]
    pages = [
        room.get(path).text
        for path in ("/chat", "/chat/one", f"/chat/one?id={identity}", f"/chat/export?id={identity}&format=json", "/house/log")
    ]
    assert not [page for page in pages if KEY in page]
    assert KEY not in caplog.text
    assert KEY.encode() not in b"".join(path.read_bytes() for path in chatting.data.rglob("*") if path.is_file())


def test_several_personas_talk_each_from_its_own_memory(enter, asked):
    sakura, nilou = enter("さくら"), enter("nilou")
    asked.steps = [REMEMBER, "さくらです。", "I am Nilou."]
    events = sakura.say("こんにちは", member=["nilou"], allowed="remember")
    assert [event["persona"] for event in events if event["event"] == "turn_ended"] == ["さくら", "nilou"]
    assert (sakura.memories(), nilou.memories()) == (["健太は苺が好き。"], [])
    (mine,), (hers,) = sakura.stored(), nilou.stored()
    assert mine["conversation"]["members"] == hers["conversation"]["members"] == ["さくら", "nilou"]
    said = [[(message.get("speaker"), message["text"]) for message in known["turns"][0]["messages"]] for known in (mine, hers)]
    assert said[0][0] == ("user", "こんにちは")
    assert said[0][-2:] == [(None, "さくらです。"), ("nilou", "I am Nilou.")]
    assert said[1] == [("user", "こんにちは"), ("さくら", "さくらです。"), (None, "I am Nilou.")]
    assert "stored" not in hers["turns"][0]


def test_what_was_said_is_remembered_by_all_where_that_is_wanted(enter, asked):
    sakura, nilou = enter("さくら"), enter("nilou")
    sakura.say("さくら、海へ行こう", member=["nilou"], hear="1")
    assert sakura.memories() == nilou.memories() == ["user: さくら、海へ行こう さくら: echo: user: さくら、海へ行こう"]


def test_a_group_is_only_of_personas_that_the_token_reaches(enter, asked, chatting):
    scopes = ("read", "write", "delete", "admin")
    own = create_token(chatting.data, name="", personas=("さくら",), scopes=scopes, now=NOON, expires_at=None)[1]
    room = enter("さくら", own)
    assert room.say("こんにちは", member=["nilou"]).status_code == 403
    assert not chatting.directory_of("nilou").exists()
    assert asked.asked == []
    assert "saved" in kinds(room.say("こんにちは"))


def test_a_conversation_calls_with_the_rights_of_its_token_which_may_end_meanwhile(enter, asked, chatting):
    token, secret = create_token(chatting.data, name="", personas=("さくら",), scopes=("read", "write", "admin"), now=NOON, expires_at=None)
    room = enter("さくら", secret)

    def revoked():
        create_token(chatting.data, name="", personas=None, scopes=("admin",), now=NOON, expires_at=None)
        revoke_token(chatting.data, token.id, NOON)
        return REMEMBER

    asked.steps = [revoked, "はい"]
    events = room.say("覚えて", allowed="remember")
    assert next(event["is_error"] for event in events if event["event"] == "tool_result")
    assert "saved" not in kinds(events)


@pytest.mark.parametrize("scopes", [("read",), ("write",), ("read", "write")])
def test_who_may_not_spend_the_keys_of_the_server_begins_nothing(enter, asked, chatting, scopes):
    secret = create_token(chatting.data, name="", personas=("さくら",), scopes=scopes, now=NOON, expires_at=None)[1]
    room = enter("さくら", secret)
    room.get = lambda path, get=room.get: get("/today" if path == "/chat/one" and "read" not in scopes else path)
    answer = room.post("/chat/say", text="ねえ", model="openai:x")
    assert answer.status_code == 403
    assert asked.asked == []


def test_without_the_extra_the_room_says_how_to_install_it_and_shows_what_is_kept(own_server, tmp_path):
    with httpx2.Client(base_url=own_server.url, verify=TLS) as client:
        room = Room(client, "さくら")
        turn = {"id": "c", "number": 1, "model": "m", "messages": [{"role": "user", "text": "前の話"}]}
        client.post("/api/conversation", json=turn, headers={"X-Persona": quote("さくら")})
        page = room.get("/chat").text
        assert "persona-memory-mcp[chat]" in page
        assert "前の話" in room.get("/chat/one?id=c").text
        key = re.search(r'name="form_key" value="([0-9a-f]+)"', room.get("/chat").text)[1]
        body = urlencode({"form_key": key, "text": "x", "model": "openai:x"})
        answer = client.post(f"{room.at}/chat/say", content=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
        assert answer.status_code == 501


@pytest.mark.slow
def test_fifty_conversations_at_once_take_no_turn_from_a_recall(enter, asked, chatting):
    think = threading.Event()
    asked.steps = [lambda: think.wait(60) and "はい。" for _ in range(50)]
    rooms = [enter(f"persona {number % 10}") for number in range(50)]
    with ThreadPoolExecutor(50) as threads:
        talks = [threads.submit(room.say, f"話 {number}") for number, room in enumerate(rooms)]
        try:
            while len(asked.asked) < 50 and not any(talk.done() for talk in talks):
                recalled = httpx2.get(f"{chatting.url}/api/recall", params={"query": "話"}, headers={"X-Persona": "nilou"}, timeout=60)
                assert recalled.status_code == 200
            assert chatting.runtime.personas.names() is not None
            recalled = httpx2.get(f"{chatting.url}/api/recall", params={"query": "話"}, headers={"X-Persona": "persona 1"}, timeout=60)
            assert recalled.status_code == 200
        finally:
            think.set()
        assert [kinds(talk.result())[-1] for talk in talks] == ["saved"] * 50
