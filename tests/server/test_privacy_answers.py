"""Privacy as a client sees it: rules that change while the server runs, answers that count, and refusals and logs that say nothing."""

import json
import logging

import httpx2
import pytest

TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
MAIL, CARD = "taro@example.com", "4111 1111 1111 1111"


def test_the_answer_says_which_kinds_were_redacted_and_flagged_and_never_what(persona):
    told = persona("remember", content=f"{TOKEN}と{MAIL}", metadata={"card": CARD})
    assert (told["redacted"], told["flagged"]) == ({"api_key": 1, "credit_card": 1}, {"email": 1})
    assert TOKEN not in json.dumps(told)
    plain = persona("remember", content="苺が好き")
    assert not {"redacted", "flagged"} & set(plain)
    revised = persona("revise", key=plain["key"], content=f"苺と{TOKEN}")
    assert (revised["content"], revised["redacted"]) == ("苺と[REDACTED_API_KEY]", {"api_key": 1})


def test_the_rules_of_the_next_call_are_those_of_the_file(own_server, connect):
    caller = connect(own_server, "nilou")
    contents = []
    for mode in ("redact", "off", "flag"):
        own_server.configure(privacy={"email": mode})
        contents.append(caller("recall", keys=[caller("remember", content=f"{mode} {MAIL}")["key"]])["hits"][0])
    assert [hit["content"] for hit in contents] == ["redact [REDACTED_EMAIL]", f"off {MAIL}", f"flag {MAIL}"]
    assert [hit.get("tags") for hit in contents] == [None, None, ["contains:email"]]


def test_the_context_keeps_no_secret_either(own_server, connect):
    caller = connect(own_server, "nilou")
    told = caller("update_context", environment=f"机に{CARD}のカード", user_info={"name": "太郎", "nickname": TOKEN})
    assert told["redacted"] == {"credit_card": 1, "api_key": 1}
    caller("remember", content="苺", state={"emotion": f"不安 {TOKEN}"})
    file = own_server.directory_of("nilou").joinpath("persona_context.json").read_text(encoding="utf-8")
    assert file.count("[REDACTED_") == 3
    assert TOKEN not in file
    assert CARD not in file


REFUSED = [
    ("remember", {"content": "x", "kind": TOKEN}),
    ("remember", {"content": "x", "importance": TOKEN}),
    ("remember", {"content": "x", "occurred_at": TOKEN}),
    ("remember", {"content": "x", "privacy_level": TOKEN}),
    ("remember", {"content": "x", "metadata": TOKEN}),
    ("remember", {"content": "x", "state": {TOKEN: "x"}}),
    ("remember", {"content": "x", "supersedes": TOKEN}),
    ("remember", {"content": "x", TOKEN: "x"}),
    ("revise", {"key": TOKEN, "content": "x"}),
    ("recall", {"query": "x", "mode": TOKEN}),
    ("recall", {"query": "x", "date_range": TOKEN}),
    ("update_context", {"user_info": {TOKEN: "x"}}),
    (TOKEN, {}),
]


@pytest.mark.parametrize(("tool", "arguments"), REFUSED)
def test_a_refusal_does_not_say_the_secret_that_it_refuses_nor_does_the_log(persona, caplog, tool, arguments):
    with caplog.at_level(logging.DEBUG, logger="memory_mcp"):
        words = persona.refusal(tool, **arguments)
    assert TOKEN not in words
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("memory_mcp")]
    assert not [line for line in ours if TOKEN in line]


def test_a_refused_request_to_a_route_does_not_say_it_either(http, name):
    answer = http.get("/api/export", params={"include_deleted": TOKEN}, headers={"X-Persona": name})
    assert (answer.status_code, TOKEN in answer.text, "[REDACTED_API_KEY]" in answer.text) == (400, False, True)


def test_an_import_says_what_it_redacted(http, name):
    body = json.dumps({"content": f"{TOKEN} {MAIL}"}).encode()
    told = http.post("/api/import", content=body, headers={"X-Persona": name}).json()
    assert (told["stored"], told["redacted"], told["flagged"]) == (1, {"api_key": 1}, {"email": 1})


def test_an_earlier_text_comes_back_under_the_rules_of_today(serving, tmp_path, connect):
    with serving(tmp_path, toolsets=["core", "upkeep"], privacy={"email": "off"}) as served:
        caller = connect(served, "nilou")
        keys = [caller("remember", content=f"苺と{MAIL} {number}", tags=[MAIL])["key"] for number in range(2)]
        for key in keys:
            caller("revise", key=key, content="苺", tags=[])
        served.configure(toolsets=["core", "upkeep"], privacy={"email": "redact"})
        by_tool = caller("restore_version", key=keys[0], revision=1)
        asked = {"key": keys[1], "revision": 1}
        by_route = httpx2.post(f"{served.url}/api/restore", json=asked, headers={"X-Persona": "nilou"}).json()
    told = [(each["content"], each["tags"]) for each in (by_tool, by_route)]
    assert told == [(f"苺と[REDACTED_EMAIL] {number}", ["[REDACTED_EMAIL]"]) for number in range(2)]
