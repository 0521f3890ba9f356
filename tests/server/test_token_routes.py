"""Tokens over HTTP: who may see, create and revoke which, and what the first one does."""

import itertools
import json
from datetime import UTC, datetime, timedelta

import pytest

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow  # a server for each of many tests

NOON = datetime(2025, 10, 30, 3, tzinfo=UTC)
EVERYTHING = {"all_personas": True, "scopes": list(TOKEN_SCOPES)}


@pytest.fixture
def token(own_server):
    """token("nilou", scopes=…): the secret of a new token; no name means every persona."""

    def token(*personas, scopes=TOKEN_SCOPES, expires_at=None, name=""):
        return create_token(own_server.data, name=name, personas=personas or None, scopes=scopes, now=NOON, expires_at=expires_at)[1]

    return token


@pytest.fixture
def ask(own_http):
    """ask(secret, "POST", …): the status and the answer of a call about tokens."""

    def ask(secret, method="GET", **sent):
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        sent = {"params": sent} if method == "DELETE" else {"json": sent} if method == "POST" else {}
        answer = own_http.request(method, "/api/tokens", headers=headers, **sent)
        return answer.status_code, answer.json()

    return ask


def identity(secret):
    return secret.split("_")[1]


def test_the_first_token_is_created_only_knowingly_and_locks_everybody_else_out(ask, own_http):
    assert ask(None) == (200, {"in_use": False, "tokens": []})
    status, answer = ask(None, "POST", **EVERYTHING)
    assert status == 400
    assert "from then on every call without a token is refused" in answer["error"]
    status, answer = ask(None, "POST", **EVERYTHING, turn_on=True)
    assert (status, answer["is_first"]) == (200, True)
    assert own_http.get("/api/personas").status_code == 401
    status, listed = ask(answer["secret"])
    assert [made["id"] for made in listed["tokens"]] == [answer["token"]["id"]]
    assert listed["in_use"]
    assert answer["secret"] not in json.dumps(listed)


def test_the_first_token_is_not_created_from_another_machine(tmp_path, serving, http):
    with serving(tmp_path, allowed_hosts=["memory.test"]) as server:
        answer = http.post(f"{server.url}/api/tokens", json={**EVERYTHING, "turn_on": True}, headers={"Host": "memory.test"})
        assert answer.status_code == 403
        assert not (server.data / "tokens.json").exists()


def test_the_secret_is_nowhere_on_the_disk(ask, token, own_server):
    secret = ask(token(), "POST", **EVERYTHING)[1]["secret"]
    for path in own_server.data.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes(), path


def test_a_token_creates_none_that_may_do_more_than_itself(ask, token, own_server):
    for scopes in (chosen for size in (1, 2, 3) for chosen in itertools.combinations(("read", "write", "delete", "export"), size)):
        secret = token("nilou", scopes=[*scopes, "admin"])
        for wanted in TOKEN_SCOPES:
            status, _ = ask(secret, "POST", personas=["nilou"], scopes=[wanted])
            assert status == (200 if wanted in (*scopes, "admin") else 403), (scopes, wanted)
    before = (own_server.data / "tokens.json").read_text(encoding="utf-8")
    secret = token("nilou")
    for sent in (
        {"all_personas": True, "scopes": ["read"]},
        {"personas": ["alice"], "scopes": ["read"]},
        {"personas": ["nilou", "alice"], "scopes": ["read"]},
    ):
        assert ask(secret, "POST", **sent)[0] == 403
    for scopes in (["read"], ["read", "write", "delete", "export"]):
        assert ask(token("nilou", scopes=scopes), "POST", personas=["nilou"], scopes=["read"])[0] == 403
    assert before.count('"id"') + 3 == (own_server.data / "tokens.json").read_text(encoding="utf-8").count('"id"')


def test_a_token_that_expires_creates_none_that_outlives_it(ask, token):
    secret = token("nilou", expires_at=NOON + timedelta(days=30))
    status, answer = ask(secret, "POST", personas=["nilou"], scopes=["read"])
    assert (status, answer["token"]["expires_at"][:10]) == (200, "2025-11-29")
    assert ask(secret, "POST", personas=["nilou"], scopes=["read"], expires="31d")[0] == 403
    assert ask(secret, "POST", personas=["nilou"], scopes=["read"], expires="2d")[1]["token"]["expires_at"][:10] == "2025-11-01"


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"scopes": ["read"]}, "some personas or for all"),
        ({"personas": ["nilou"]}, "needs scopes"),
        ({"personas": ["nilou"], "scopes": ["all"]}, "'all' is not a scope"),
        ({"personas": ["nilou"], "scopes": ["read"], "expires": "soon"}, "'soon' is not a time"),
        ({"personas": ["nilou"], "scopes": ["read"], "expires": "2020-01-01"}, "would have expired already"),
        ({"personas": ["nilou"], "scopes": ["read"], "name": "x" * 101}, "100 are the limit"),
    ],
)
def test_a_token_that_cannot_be_is_refused(ask, token, sent, words):
    status, answer = ask(token(), "POST", **sent)
    assert status == 400
    assert words in answer["error"]


def test_an_admin_of_some_personas_sees_and_revokes_the_tokens_of_those_alone(ask, token):
    own, both, everyone = token("nilou"), token("nilou", "alice"), token()
    assert [made["id"] for made in ask(own)[1]["tokens"]] == [identity(own)]
    assert len(ask(everyone)[1]["tokens"]) == 3
    for foreign in (both, everyone):
        refused = ask(own, "DELETE", id=identity(foreign))
        assert refused[0] == 400
        assert refused[1]["error"].replace(identity(foreign), "x") == ask(own, "DELETE", id="x")[1]["error"]
    assert ask(everyone, "DELETE", id=identity(own))[1]["state"] == "revoked"
    assert ask(own)[0] == 401


def test_the_last_token_is_not_revoked_over_http(ask, token):
    first, second = token(), token("nilou", scopes=["read"])
    assert ask(first, "DELETE", id=identity(second))[0] == 200
    status, answer = ask(first, "DELETE", id=identity(first))
    assert status == 400
    assert "nobody could call the server any more" in answer["error"]
    assert ask(first)[0] == 200


def test_the_list_says_when_a_token_was_last_used_and_the_log_who_changed_what(ask, token, own_server):
    first, second = token(name="first"), token("nilou", name="second")
    listed = {made["name"]: made for made in ask(first)[1]["tokens"]}
    assert listed["first"]["last_used_at"].startswith("2025-10-30T12:00:00")
    assert "last_used_at" not in listed["second"]
    made = ask(first, "POST", personas=["nilou"], scopes=["read"])[1]["token"]["id"]
    ask(first, "DELETE", id=identity(second))
    lines = [json.loads(line) for line in (own_server.data / "memory_operations.log").read_text(encoding="utf-8").splitlines()]
    assert [(line["operation"], line["token"], line.get("made") or line.get("revoked")) for line in lines] == [
        ("create_token", identity(first), made),
        ("revoke_token", identity(first), identity(second)),
    ]
