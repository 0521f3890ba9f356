"""OpenAI's API with a memory: what passes, what is put in, what is kept."""

import json

import httpx2
import pytest
from model_upstream import model as models

pytestmark = pytest.mark.slow  # a server for each of many tests

KEY = "sk-proj-" + "Ab1cD2eF3g" * 6
VENDORS = {"vendors": {"lab": {"url": "", "key": "env:LAB_KEY"}}}


@pytest.fixture(scope="module")
def shared():
    with models() as known:
        yield known


@pytest.fixture
def model(shared, monkeypatch):
    monkeypatch.setenv("LAB_KEY", KEY)
    shared.steps, shared.sent, shared.headers = [], [], []
    shared.gone.clear()
    return shared


@pytest.fixture
def gateway(serving, tmp_path, model):
    """A server of this test whose vendor is the model."""
    with serving(tmp_path, llm={"vendors": {"lab": {"url": model.url, "key": "env:LAB_KEY"}}}) as served:
        yield served


class Client:
    """A chat client: it keeps the conversation, and sends all of it each time."""

    def __init__(self, http, persona="さくら", system="あなたはさくら。", **headers):
        self.http, self.persona = http, persona
        self.headers = {"X-Persona": httpx2.QueryParams({"": persona}).__str__()[1:], **headers}
        self.messages = [{"role": "system", "content": system}] if system else []

    def post(self, messages=None, **fields):
        sent = {"model": "lab/m", "messages": self.messages if messages is None else messages, **fields}
        return self.http.post("/v1/chat/completions", json=sent, headers=self.headers)

    def say(self, text, **fields):
        self.messages.append({"role": "user", "content": text})
        return self.again(**fields)

    def again(self, **fields):
        """Asks for another answer to the last message."""
        answer = self.post(**fields).raise_for_status()
        if fields.get("stream"):
            events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
            said = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
        else:
            said = answer.json()["choices"][0]["message"]["content"]
        self.messages.append({"role": "assistant", "content": said})
        return said

    def stored(self):
        found = self.http.get("/api/memories", params={"limit": 200}, headers=self.headers).json()["memories"]
        return sorted(memory["content"] for memory in found)

    def remember(self, content, **fields):
        self.http.post("/api/memories", json={"content": content, **fields}, headers=self.headers).raise_for_status()


@pytest.fixture
def http(gateway):
    with httpx2.Client(base_url=gateway.url, timeout=60) as client:
        yield client


def test_a_turn_is_stored_once_and_recalled_in_another_conversation(http, model):
    client = Client(http)
    client.say("健太は苺が好きなんだ", stream=True)
    client.say("明日は雨らしいね")
    assert client.stored() == sorted(["健太は苺が好きなんだ", "echo: 健太は苺が好きなんだ", "明日は雨らしいね", "echo: 明日は雨らしいね"])
    other = Client(http, system="あなたはさくら。2")
    other.say("健太の好きな果物は何だっけ")
    print(json.dumps(model.messages, ensure_ascii=False, indent=1))
    assert any("健太は苺が好き" in message["content"] for message in model.messages if message["role"] == "system")
    assert model.headers[-1]["authorization"] == f"Bearer {KEY}"
