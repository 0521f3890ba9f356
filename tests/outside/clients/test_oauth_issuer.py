"""A real issuer (oidc-provider) and the OAuth client of the MCP SDK: the server takes that issuer's tokens, and those for nobody else."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from node_packages import Node
from oauth_person import RETURN_TO, TLS, query_of
from oauth_sdk import SdkClient
from places import CLIENTS
from processes import RunningServer, serving

pytestmark = pytest.mark.slow

NO_MODELS = {"embeddings_model": None, "reranker_model": None}


@contextmanager
def issuing(node: Node, resources: dict[str, str], *, opaque: bool) -> Iterator[str]:
    """The address of an issuer. `resources`: the audience that it gives for a resource, where that is another."""
    process = node.started(CLIENTS / "issuer.mjs", json.dumps({"resources": resources, "opaque": opaque}))
    try:
        issuer = process.stdout.readline().strip()
        assert issuer, "the issuer did not start"
        yield issuer
    finally:
        process.stdin.close()
        try:
            process.wait(60)
        finally:
            process.kill()
            process.stdout.close()


def signing_in_as(account: str) -> Callable[[str], dict[str, Any]]:
    """A person at the issuer's pages, which ask for a name and then for consent."""

    def answer(address: str) -> dict[str, Any]:
        with httpx2.Client(verify=TLS) as browser:
            page = browser.get(address)
            for _ in range(12):
                while page.is_redirect:
                    target = page.headers["location"]
                    if target.startswith(RETURN_TO):
                        return query_of(target)
                    page = browser.get(page.url.join(target))
                form = re.search(r'<form[^>]* action="([^"]+)"', page.text)
                assert form, page.text
                fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
                page = browser.post(page.url.join(form[1]), data={**fields, "login": account, "password": "x"})
        raise AssertionError(f"the issuer never answered; it last showed {page.url}")

    return answer


@pytest.fixture(params=["jwt", "opaque"])
def opaque(request: pytest.FixtureRequest) -> bool:
    return request.param == "opaque"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with serving(tmp_path, json.dumps(NO_MODELS)) as server:
        yield server


def trust(server: RunningServer, issuer: str, opaque: bool, tmp_path: Path, **changed: Any) -> None:
    """Writes into config.json who issues tokens for the server."""
    secret = tmp_path / "secret"
    secret.write_text("hush")
    asking = {"introspection_url": f"{issuer}/token/introspection", "client_id": "memory", "client_secret_file": str(secret)}
    how = asking if opaque else {"jwks_url": f"{issuer}/jwks"}
    external = {"authorization_server": "external", "public_url": server.url, "issuer": issuer, **how, **changed}
    server.config.write_text(json.dumps({**NO_MODELS, "oauth": external}))


def test_an_account_of_the_issuer_reaches_its_persona_and_no_other(node: Node, server: RunningServer, tmp_path: Path, opaque: bool):
    with issuing(node, {}, opaque=opaque) as issuer, start_blocking_portal() as portal, ExitStack() as stack:
        trust(server, issuer, opaque, tmp_path)
        alice, bob = (SdkClient(stack, portal, f"{server.url}/mcp", signing_in_as(name)) for name in ("alice", "bob"))
        assert alice("remember", content="the dance is on Friday")["persona"] == "alice"
        assert bob("remember", content="the sword is hidden")["persona"] == "bob"
        assert [hit["content"] for hit in bob("recall", query="dance sword")["hits"]] == ["the sword is hidden"]
        assert alice.told["iss"] == issuer
        named = httpx2.get(f"{server.url}/api/personas", headers={"Authorization": f"Bearer {bob.kept.tokens.access_token}"}, verify=TLS)
        assert [persona["name"] for persona in named.json()["personas"]] == ["bob"]


def test_a_token_of_the_same_issuer_for_another_server_is_refused(node: Node, server: RunningServer, tmp_path: Path, opaque: bool):
    resource = f"{server.url}/mcp"
    with issuing(node, {resource: "https://other.example/mcp"}, opaque=opaque) as issuer:
        trust(server, issuer, opaque, tmp_path)
        with start_blocking_portal() as portal, ExitStack() as stack, pytest.raises(Exception, match="for another server"):
            SdkClient(stack, portal, resource, signing_in_as("alice"))("recall", query="x")
        trust(server, issuer, opaque, tmp_path, audience="https://other.example/mcp")
        with start_blocking_portal() as portal, ExitStack() as stack:
            assert SdkClient(stack, portal, resource, signing_in_as("alice"))("recall", query="x")["persona"] == "alice"


def test_a_token_of_another_issuer_that_says_the_same_is_refused(node: Node, server: RunningServer, tmp_path: Path, opaque: bool):
    with issuing(node, {}, opaque=opaque) as trusted, issuing(node, {}, opaque=opaque) as attacker:
        trust(server, attacker, opaque, tmp_path)
        with start_blocking_portal() as portal, ExitStack() as stack:
            token = SdkClient(stack, portal, f"{server.url}/mcp", signing_in_as("alice")).kept.tokens.access_token
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx2.get(f"{server.url}/api/stats", headers=headers, verify=TLS).status_code == 200
        trust(server, trusted, opaque, tmp_path)
        answer = httpx2.get(f"{server.url}/api/stats", headers=headers, verify=TLS)
        assert answer.status_code == 401
        assert urlsplit(server.url).netloc in answer.headers["www-authenticate"]
