"""Metadata documents of OAuth clients: which addresses are read, which documents are believed, and which redirect addresses are a client's."""

import asyncio
import json
import socket

import pytest

from memory_mcp.config.settings import Settings
from memory_mcp.errors import InvalidInput
from memory_mcp.server.oauth.clients import DOCUMENT_BYTES, KnownClient, client_of, fetch_public, form_target, is_usable

ADDRESS = "https://client.example/oauth/metadata.json"
GOOD = {"client_id": ADDRESS, "client_name": "Example", "redirect_uris": ["https://client.example/callback"]}


def client(document, address=ADDRESS):
    async def fetch(_address):
        return document if isinstance(document, bytes) else json.dumps(document).encode()

    return asyncio.run(client_of(address, {}, fetch))


def test_a_document_says_who_the_client_is():
    assert client(GOOD) == KnownClient(ADDRESS, "Example", ("https://client.example/callback",), "client.example")


@pytest.mark.parametrize(
    "document",
    [
        {**GOOD, "client_id": "https://client.example/other.json"},
        {**GOOD, "client_id": f"{ADDRESS}/"},
        {**GOOD, "client_id": "https://CLIENT.example/oauth/metadata.json"},
        {**GOOD, "redirect_uris": []},
        {**GOOD, "redirect_uris": ["javascript:alert(1)"]},
        {**GOOD, "redirect_uris": ["http://attacker.example/"]},
        {**GOOD, "token_endpoint_auth_method": "private_key_jwt"},
        {**GOOD, "token_endpoint_auth_method": "client_secret_post"},
        {"client_id": ADDRESS},
        [GOOD],
        b"<html>",
        b"\xff",
        b"[" * 10_000,
    ],
)
def test_a_document_that_speaks_for_another_or_makes_no_sense_is_refused(document):
    with pytest.raises(InvalidInput):
        client(document)


def test_a_wildcard_in_a_document_is_no_wildcard():
    assert not client({**GOOD, "redirect_uris": ["https://client.example/*"]}).may_return_to("https://client.example/callback")
    with pytest.raises(InvalidInput):
        client({**GOOD, "redirect_uris": ["https://*.client.example/callback"]})


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254", "192.168.1.1", "0.0.0.1", "[::ffff:127.0.0.1]"]
)
def test_no_document_is_read_from_a_private_address(host):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        with pytest.raises(InvalidInput):
            asyncio.run(fetch_public(f"https://{host}:{port}/metadata.json"))
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize("address", ["http://client.example/x", "https://client.example", "https://client.example/", "file:///etc/passwd"])
def test_only_documents_with_a_path_are_read_over_https(address):
    with pytest.raises(InvalidInput):
        asyncio.run(fetch_public(address))
    assert DOCUMENT_BYTES <= 16_384


def test_an_address_that_is_no_document_is_a_client_that_must_have_registered():
    for identity in ("", "abc", "http://client.example/metadata.json", "HTTP://x/y"):
        with pytest.raises(InvalidInput, match="not known"):
            client(GOOD, identity)


@pytest.mark.parametrize(
    ("named", "asked", "same"),
    [
        ("https://a.example/x", "https://a.example/x", True),
        ("https://a.example/x", "https://a.example/X", False),
        ("https://a.example/x", "https://a.example:444/x", False),
        ("https://a.example/x", "https://a.example/x/", False),
        ("http://127.0.0.1/x", "http://127.0.0.1:9999/x", True),
        ("http://127.0.0.1:1/x", "http://127.0.0.1:9999/x", True),
        ("http://localhost:1/x", "http://localhost:2/x", True),
        ("http://[::1]:1/x", "http://[::1]:2/x", True),
        ("http://127.0.0.1:1/x", "http://localhost:1/x", False),
        ("http://127.0.0.1:1/x", "http://127.0.0.1:1/y", False),
        ("http://127.0.0.1:1/x", "http://user@127.0.0.1:1/x", False),
        ("http://127.0.0.1:1/x", "http://127.0.0.1:1@attacker.example/x", False),
        ("http://127.0.0.1:1/x", "http://127.0.0.1:bad/x", False),
        ("http://127.0.0.1:1/x", "http://[127.0.0.1/x", False),
        ("https://127.0.0.1:1/x", "https://127.0.0.1:2/x", False),
        ("vscode://x.y/callback", "vscode://x.y/callback", True),
        ("vscode://x.y/callback", "vscode://x.z/callback", False),
    ],
)
def test_a_redirect_address_is_the_clients_if_it_is_equal_but_for_a_local_port(named, asked, same):
    assert KnownClient("id", "name", (named,)).may_return_to(asked) is same


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("https://a.example/x?y=1", "https://a.example"),
        ("https://a.example:444/x", "https://a.example:444"),
        ("http://[::1]:1/x", "http://[::1]:1"),
        ("cursor://anysphere.cursor-mcp/callback", "cursor:"),
    ],
)
def test_a_form_may_lead_to_the_clients_address_alone(address, target):
    assert is_usable(address)
    assert form_target(address) == target


@pytest.mark.parametrize(
    "address",
    [
        "com.example.app:/callback",
        "com.example.app://oauth",
        "vscode-insiders://x.y/callback",
        "windsurf://a/b",
        "claude://c",
        "CURSOR://a/b",
    ],
)
def test_a_program_on_the_users_machine_is_answered_by_its_own_scheme(address):
    assert is_usable(address)


@pytest.mark.parametrize(
    "scheme",
    "ftp ws wss blob about view-source mailto tel sms chrome chrome-extension moz-extension filesystem jar resource javascript data file vbscript "
    "urn ldap smb ssh git intent ms-word ms-settings search-ms myapp x-unknown iris.beep soap.beep z39.50r microsoft.windows.camera".split(),
)
def test_a_scheme_that_a_browser_or_the_system_opens_itself_is_no_redirect_address(scheme):
    for address in (f"{scheme}://a.example/callback", f"{scheme}:callback", f"{scheme.upper()}://a.example/callback"):
        assert not is_usable(address)


@pytest.mark.parametrize(
    "tree",
    [
        {"authorization_server": "built_in"},
        {"authorization_server": "external", "public_url": "https://m.example"},
        {"authorization_server": "external", "public_url": "https://m.example", "issuer": "https://i.example"},
        {"public_url": "http://m.example"},
        {"public_url": "https://m.example/path"},
        {"public_url": "https://user@m.example"},
        {"issuer": "http://i.example"},
        {"jwks_url": "http://i.example/jwks"},
        {"algorithm": "HS256"},
        {"algorithm": "none"},
    ],
)
def test_settings_with_which_oauth_would_be_open_or_useless_are_refused(tree):
    with pytest.raises(ValueError, match="oauth"):
        Settings.model_validate({"oauth": tree})
