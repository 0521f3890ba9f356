"""What one persona remembers, no other ever sees; and asking leaves no trace."""

import asyncio
import json

import pytest

pytestmark = pytest.mark.both_eras

CALLS_EACH = 5

READING = [
    ("recall", {"query": "ひみつ"}),
    ("recall", {"mode": "recent"}),
    ("get_context", {"query": "ひみつ"}),
    ("forget", {"keys": ["memory_0"]}),
]


def test_two_personas_at_once_get_only_their_own(server, connect, portal, name):
    secrets = {f"{name}-nilou": "nilou の秘密は睡蓮", "さくら" + name: "さくらの秘密は桜餅"}
    callers = {who: connect(server, who) for who in secrets}

    async def day_of(who: str, secret: str) -> str:
        """Every tool, again and again. Answers with all the words that came back."""
        client, heard, whose = callers[who].client, [], set()

        async def call(tool: str, **arguments: object) -> dict:
            result = await client.call_tool(tool, arguments)
            heard.append(result.content[0].text)
            whose.add(result.structured_content["persona"])
            return result.structured_content

        for number in range(CALLS_EACH):
            key = (await call("remember", content=f"{secret}、その{number}", state={"emotion": secret}))["key"]
            await asyncio.gather(
                call("recall", query="秘密"),
                call("recall", mode="recent", top_k=50),
                call("get_context", query="秘密"),
                call("revise", key=key, content=f"{secret}、その{number}改"),
                call("update_context", environment=secret, user_info={"name": secret}),
            )
            await call("forget", keys=[key], dry_run=number % 2 == 0)
            stats = [content.text for content in await client.read_resource("memory://stats")]
            whose |= {json.loads(text)["persona"] for text in stats}
            heard += stats
        assert whose == {who}
        return "\n".join(heard)

    async def both() -> list[str]:
        return await asyncio.gather(*(day_of(*whose) for whose in secrets.items()))

    for secret, heard in zip(secrets.values(), portal.call(both), strict=True):
        (others,) = (other for other in secrets.values() if other != secret)
        assert secret in heard
        assert others not in heard


def test_a_key_of_another_persona_opens_nothing(server, connect, name):
    nilou, dehya = connect(server, f"{name}-nilou"), connect(server, f"{name}-dehya")
    key = nilou("remember", content="睡蓮の踊り")["key"]
    dehya("remember", content="砂漠の炎")
    assert dehya("recall", keys=[key]) == {**dehya("recall", keys=["memory_0"]), "missing": [key]}
    assert dehya("forget", keys=[key])["outcomes"][0]["outcome"] == "not_found"
    assert dehya.refusal("revise", key=key, content="x") == f"no memory has the key {key}. Take the key from a recall."
    assert "this persona has no memory with that key" in dehya.refusal("remember", content="x", supersedes=key)
    assert nilou("recall", keys=[key])["hits"][0]["content"] == "睡蓮の踊り"


def test_asking_as_somebody_who_does_not_exist_creates_nothing(server, connect, persona, name, http):
    before = server.directories()
    for tool, arguments in READING:
        assert persona(tool, **arguments)["new_persona"]
    persona.refusal("revise", key="memory_0", content="x")
    for resource in ("info", "stats", "status"):
        persona.wait(persona.client.read_resource, f"memory://{resource}")
    assert http.get("/api/stats", headers={"X-Persona": name}).json()["memories"] == 0
    assert http.get("/api/export", headers={"X-Persona": name}).text == ""
    assert http.get("/api/personas").status_code == 200
    assert server.directories() == before


def test_the_first_write_creates_the_persona(server, persona, name):
    assert not server.directory_of(name).exists()
    persona("update_context", emotion="平静")
    assert json.loads((server.directory_of(name) / "persona.json").read_text(encoding="utf-8")) == {"name": name}


def test_the_shared_log_of_operations_holds_no_content(server, persona, name):
    key = persona("remember", content="だれにも言わない秘密")["key"]
    persona("forget", keys=[key], reason="秘密の理由")
    log = (server.data / "memory_operations.log").read_text(encoding="utf-8")
    ours = [line for line in map(json.loads, log.splitlines()) if line["persona"] == name]
    assert [(line["operation"], line["key"]) for line in ours] == [("create", key), ("delete", key)]
    assert "秘密" not in log
