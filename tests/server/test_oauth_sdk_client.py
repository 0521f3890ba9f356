"""The OAuth client of the MCP SDK against the built-in authorization server: from a refused call to tools that answer."""

import json
from contextlib import ExitStack, closing
from datetime import timedelta

import httpx2
import pytest
from oauth_person import RETURN_TO, TLS, Person
from oauth_sdk import SdkClient

from memory_mcp.domain import TOKEN_SCOPES
from memory_mcp.store.files.access_tokens import create_token

pytestmark = [pytest.mark.slow, pytest.mark.both_eras]

DOCUMENT = "https://client.example/oauth/metadata.json"


@pytest.fixture
def documents():
    """The web: documents by their addresses, as the server reads them."""
    return {}


@pytest.fixture
def server(serving, tmp_path, documents):
    async def fetch(address):
        return json.dumps(documents[address]).encode()

    with serving(tmp_path, parts={"fetch_document": fetch}) as server:
        server.configure(oauth={"authorization_server": "built_in", "public_url": server.url})
        yield server


@pytest.fixture
def person(server):
    """person("nilou"): somebody with a token for these personas."""
    with ExitStack() as stack:

        def person(*personas):
            made = create_token(server.data, name="", personas=personas or None, scopes=TOKEN_SCOPES, now=server.clock())
            return stack.enter_context(closing(Person(made[1])))

        yield person


@pytest.fixture
def signed_in(server, portal):
    """signed_in(person, "nilou", path="/mcp"): a client that has just asked this person. `answer`: what it is told instead."""
    with ExitStack() as stack:

        def signed_in(person, *personas, path="/mcp", answer=(), **options):
            return SdkClient(
                stack, portal, server.url + path, lambda asked: {**person.granted(asked, *personas), **dict(answer)}, **options
            )

        yield signed_in


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_sdk_client_finds_out_signs_in_and_calls_tools(person, signed_in, mode):
    call = signed_in(person(), "nilou", mode=mode)
    assert call("remember", content="苺が好き")["persona"] == "nilou"
    assert [hit["content"] for hit in call("recall", query="苺")["hits"]] == ["苺が好き"]
    assert call.kept.client.client_id
    assert call.kept.tokens.refresh_token


def test_a_persona_of_the_url_has_a_resource_of_its_own_and_its_token_reaches_no_other(server, person, signed_in):
    call = signed_in(person(), path="/p/%E3%81%95%E3%81%8F%E3%82%89/mcp")
    assert call("remember", content="x")["persona"] == "さくら"
    assert "苺が好き" not in str(signed_in(person(), "nilou")("recall", query="苺"))
    token = {"Authorization": f"Bearer {call.kept.tokens.access_token}"}
    listed = httpx2.get(f"{server.url}/api/personas", headers=token, verify=TLS)
    assert [persona["name"] for persona in listed.json()["personas"]] == ["さくら"]


def test_two_who_signed_in_never_see_each_other(server, person, signed_in):
    nilou, dehya = signed_in(person("nilou")), signed_in(person("dehya"))
    nilou("remember", content="the dance is on Friday")
    dehya("remember", content="the sword is hidden")
    assert [hit["content"] for hit in nilou("recall", query="sword dance")["hits"]] == ["the dance is on Friday"]
    assert [hit["content"] for hit in dehya("recall", query="sword dance")["hits"]] == ["the sword is hidden"]
    for call, other, absent in ((nilou, "dehya", "nobody"), (dehya, "nilou", "nobody")):
        token = {"Authorization": f"Bearer {call.kept.tokens.access_token}"}
        told = []
        for name in (other, absent):
            headers = {**token, "X-Persona": name}
            stats = httpx2.get(f"{server.url}/api/stats", headers=headers, verify=TLS)
            told.append((stats.status_code, stats.text.replace(name, "…")))
        assert told[0] == told[1]


def test_a_client_with_a_metadata_document_need_not_register(person, signed_in, documents, server):
    documents[DOCUMENT] = {"client_id": DOCUMENT, "client_name": "Example", "redirect_uris": [RETURN_TO]}
    call = signed_in(person(), "nilou", document=DOCUMENT)
    assert call("remember", content="x")["persona"] == "nilou"
    assert call.kept.client.client_id == DOCUMENT
    assert json.loads((server.data / "oauth.json").read_text())["clients"] == []


def test_the_client_refreshes_by_itself(server, person, signed_in):
    call = signed_in(person(), "nilou")
    first, call.told = call.kept.tokens, {}
    server.clock.now += timedelta(hours=2)
    call.auth.context.token_expiry_time = 1
    assert call("recall", query="x")["persona"] == "nilou"
    assert call.kept.tokens.refresh_token != first.refresh_token
    assert call.told == {}


def test_a_client_that_lacks_a_scope_asks_for_it_and_goes_on(person, signed_in):
    call = signed_in(person(), "nilou")
    key = call("remember", content="x")["key"]
    assert call.kept.tokens.scope == "read write"
    assert call("forget", keys=[key])["persona"] == "nilou"
    assert call.kept.tokens.scope == "read write delete"


def test_the_sdk_client_refuses_an_answer_that_names_another_issuer(person, signed_in):
    with pytest.raises(RuntimeError, match="iss mismatch"):
        signed_in(person(), "nilou", answer={"iss": "https://attacker.example"})
    with pytest.raises(RuntimeError, match="missing iss"):
        signed_in(person(), "nilou", answer={"iss": None})
