"""What `connect` prints can be pasted as it is: valid JSON, names that every HTTP library sends."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from typer.testing import CliRunner

from memory_mcp.cli import app
from memory_mcp.cli.client_recipes import ClientName
from memory_mcp.cli.connect import Language, instructions
from memory_mcp.config.reading import user_data_directory
from memory_mcp.errors import InvalidInput

INSTRUCTIONS = instructions(Language.ENGLISH, persona="nilou")
URL = "http://127.0.0.1:8000"
SAKURA = "%E3%81%95%E3%81%8F%E3%82%89"
JSON_CLIENTS = ["vscode", "cursor", "gemini", "lmstudio", "claude-desktop"]


def connect(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["connect", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def snippet(client: str, *arguments: str, persona: str = "さくら") -> str:
    return connect("--client", client, "--persona", persona, "--url", URL, "--only", "snippet", *arguments)


def entry(client: str, *arguments: str) -> dict[str, Any]:
    (servers,) = json.loads(snippet(client, *arguments)).values()
    (found,) = servers.values()
    return dict(found)


@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_a_settings_file_is_valid_json_under_the_key_that_the_client_reads(client: str) -> None:
    (key,) = json.loads(snippet(client))
    assert key == ("servers" if client == "vscode" else "mcpServers")


@pytest.mark.parametrize("client", ["vscode", "cursor", "gemini", "lmstudio", "claude-code"])
def test_a_japanese_name_travels_percent_encoded(client: str) -> None:
    text = snippet(client)
    assert SAKURA in text
    assert text.isascii()


def test_each_client_has_the_address_where_it_looks_for_it() -> None:
    headers = {"X-Persona": SAKURA}
    url = "http://127.0.0.1:8000/mcp"
    assert entry("vscode") == {"type": "http", "url": url, "headers": headers}
    assert entry("cursor") == entry("lmstudio") == {"url": url, "headers": headers}
    assert entry("gemini") == {"httpUrl": url, "headers": headers}


def test_claude_code_gets_a_command_line() -> None:
    words = shlex.split(snippet("claude-code"))
    assert words == [*"claude mcp add --transport http memory http://127.0.0.1:8000/mcp --header".split(), f"X-Persona: {SAKURA}"]


def test_claude_desktop_gets_the_stdio_bridge() -> None:
    bridge = entry("claude-desktop")
    assert bridge["args"][-5:] == ["stdio", "--persona", "さくら", "--url", "http://127.0.0.1:8000"]
    assert Path(bridge["command"]).is_absolute()


def test_a_client_that_starts_the_server_is_told_where_the_memories_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    for name in ("URL", "DATA", "CONFIG"):
        monkeypatch.delenv(f"MEMORY_MCP_{name}", raising=False)
    for name in ("HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.setenv("MEMORY_MCP_SERVER_PORT", "9")

    def arguments(*options: str) -> list[str]:
        printed = json.loads(connect("--client", "claude-desktop", "-p", "さくら", "--only", "snippet", *options))
        told: list[str] = printed["mcpServers"]["memory"]["args"]
        return told[told.index("stdio") :]

    checkout = tmp_path / "work/memory"
    for added, where in (("config.json", user_data_directory()), ("memory/", checkout)):
        path = tmp_path / "work" / added
        path.mkdir() if added.endswith("/") else path.touch()
        assert arguments() == ["stdio", "--persona", "さくら", "--data", str(where)]
    assert arguments("--data", "elsewhere")[-2:] == ["--data", str(tmp_path / "work/elsewhere")]
    shown = json.loads(connect("--client", "claude-code", "-p", "さくら", "--only", "hooks"))
    assert shlex.split(shown["hooks"]["SessionEnd"][0]["hooks"][0]["command"])[-2:] == ["--data", str(checkout)]
    monkeypatch.setenv("MEMORY_MCP_URL", "http://elsewhere:1")
    assert arguments()[-2:] == ["--url", "http://elsewhere:1"]


def test_open_webui_gets_the_persona_in_the_url() -> None:
    assert f"http://127.0.0.1:8000/p/{SAKURA}/mcp" in snippet("open-webui")


@pytest.mark.parametrize("name", ["a/b", "..", "50%", "a b", "nilou"])
def test_any_name_can_be_read_back_from_the_header(name: str) -> None:
    (servers,) = json.loads(snippet("cursor", persona=name)).values()
    assert unquote(servers["memory"]["headers"]["X-Persona"]) == name


@pytest.mark.parametrize("name", ["a/b", "...", "50%", "a b", "nilou"])
def test_a_name_can_be_read_back_from_the_url(name: str) -> None:
    (line,) = [line for line in snippet("open-webui", persona=name).splitlines() if line.startswith("URL")]
    assert unquote(line.removesuffix("/mcp").rpartition("/p/")[2]) == name


@pytest.mark.parametrize(
    ("client", "named"),
    [
        ("vscode", "${input:memory-token}"),
        ("cursor", "${env:MEMORY_MCP_TOKEN}"),
        ("gemini", "$MEMORY_MCP_TOKEN"),
        ("lmstudio", "PASTE-THE-TOKEN-HERE"),
    ],
)
def test_a_token_has_its_place_in_the_headers_as_the_client_names_it(client: str, named: str) -> None:
    tree = json.loads(snippet(client, "--with-token"))
    headers = tree["servers" if client == "vscode" else "mcpServers"]["memory"]["headers"]
    assert headers["Authorization"] == f"Bearer {named}"
    assert "Authorization" not in snippet(client, "--no-token")


def test_vscode_asks_for_the_token_and_hides_it() -> None:
    (asked,) = json.loads(snippet("vscode", "--with-token"))["inputs"]
    assert (asked["id"], asked["password"]) == ("memory-token", True)


def test_claude_code_gets_the_name_of_the_variable_and_the_shell_does_not_replace_it() -> None:
    words = shlex.split(snippet("claude-code", "--with-token"))
    assert words[-1] == "Authorization: Bearer ${MEMORY_MCP_TOKEN}"
    assert f"'{words[-1]}'" in snippet("claude-code", "--with-token")


@pytest.mark.parametrize("client", [str(name) for name in ClientName])
def test_a_token_in_the_environment_gets_its_place_and_is_never_printed(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MCP_TOKEN", "t0k-that-is-secret")
    text = connect("--client", client, "-p", "nilou", "--url", "http://h:1")
    assert "TOKEN" in text or "memory-token" in text or "OAuth" in text
    assert "t0k" not in text


@pytest.mark.parametrize("name", [".", ".."])
def test_a_name_that_programs_take_out_of_a_url_is_not_put_into_one(name: str) -> None:
    done = CliRunner().invoke(app, ["connect", "--client", "open-webui", "-p", name, "--url", "http://h:1"])
    assert isinstance(done.exception, InvalidInput)
    assert "can't be named in a URL" in str(done.exception)


def test_a_token_of_the_bridge_goes_into_its_environment_and_not_among_its_arguments() -> None:
    bridge = entry("claude-desktop", "--with-token")
    assert bridge["env"] == {"MEMORY_MCP_TOKEN": "PASTE-THE-TOKEN-HERE"}
    assert not [argument for argument in bridge["args"] if "oken" in argument or "TOKEN" in argument]


def test_the_url_may_be_given_with_or_without_its_path() -> None:
    for url in ("http://h:1", "http://h:1/", "http://h:1/mcp", "http://h:1/mcp/"):
        text = connect("--client", "cursor", "-p", "a", "--only", "snippet", "--url", url)
        assert json.loads(text)["mcpServers"]["memory"]["url"] == "http://h:1/mcp"


@pytest.mark.parametrize("client", sorted(set(ClientName) - {"sillytavern"}))
def test_every_client_with_tools_gets_instructions_and_the_places_of_all_parts(client: str) -> None:
    text = connect("--client", client, "-p", "nilou", "--url", "http://h:1", "--language", "en")
    assert INSTRUCTIONS in text
    assert text.count("── ") == (3 if client in ("librechat", "open-webui") else 2)
    alone = connect("--client", client, "-p", "nilou", "--url", "http://h:1", "--only", "instructions", "--language", "en")
    assert alone == INSTRUCTIONS


@pytest.mark.parametrize("persona", [None, "さくら"])
@pytest.mark.parametrize("language", Language)
def test_the_instructions_name_what_a_model_is_to_use(language: Language, persona: str | None) -> None:
    told = instructions(language, "memory-of-sakura", persona)
    for tool in ("get_context", "recall", "remember", "revise", "forget", "update_context"):
        assert f"`{tool}`" in told
    for word in ("supersedes", "hypothetical", "unmatched", "relations", "[[", "`memory-of-sakura`"):
        assert word in told
    assert "$" not in told


def test_the_instructions_say_whose_memory_a_server_is_and_when_to_use_it() -> None:
    ja = instructions(Language.JAPANESE, "leon", "レオン")
    assert "`leon` は レオン の長期記憶です" in ja
    assert "`leon` は レオン として話すときだけ使います" in ja
    en = instructions(Language.ENGLISH, "leon", "レオン")
    assert "`leon` is the long-term memory of レオン" in en
    assert "use `leon` only when you speak as レオン" in en
    for told in (ja, en):
        assert "あなただけの" not in told
        assert "you alone" not in told


def test_the_instructions_are_in_the_language_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for here, title in (("ja_JP", "# 長期記憶"), ("en_US", "# Long-term memory"), ("C.UTF-8", "# Long-term memory")):
        monkeypatch.setenv("LC_ALL", here)
        assert connect("--client", "cursor", "-p", "a", "--url", URL, "--only", "instructions").startswith(title)


@pytest.mark.parametrize("client", sorted(set(ClientName) - {"open-webui", "sillytavern", "n8n", "claude-ai", "chatgpt"}))
def test_a_client_can_start_the_server_itself(client: str) -> None:
    text = snippet(client, "--stdio", "--name", "sakura")
    assert "sakura" in text
    assert "stdio" in text
    assert "さくら" in text
    assert "8000/mcp" not in text


@pytest.mark.parametrize("client", ["open-webui", "sillytavern", "n8n", "claude-ai", "chatgpt"])
def test_a_client_that_starts_no_programs_says_so(client: str) -> None:
    done = CliRunner().invoke(app, ["connect", "--client", client, "-p", "a", "--stdio"])
    assert "can't start a server itself" in str(done.exception)


@pytest.mark.parametrize("name", ["", "さくら", "a b", "-a", "x" * 33])
def test_a_name_that_clients_refuse_is_refused(name: str) -> None:
    done = CliRunner().invoke(app, ["connect", "--client", "cursor", "-p", "a", "--name", name])
    assert "can't be the name of a server" in str(done.exception)


def test_codex_is_given_the_header_and_the_name_of_the_variable_under_its_own_words() -> None:
    server = tomllib.loads(snippet("codex", "--with-token"))["mcp_servers"]["memory"]
    assert server == {"url": f"{URL}/mcp", "bearer_token_env_var": "MEMORY_MCP_TOKEN", "http_headers": {"X-Persona": SAKURA}}


@pytest.mark.parametrize(("client", "key"), [("goose", "extensions"), ("librechat", "mcpServers")])
def test_a_client_with_yaml_gets_yaml(client: str, key: str) -> None:
    server = yaml.safe_load(snippet(client))[key]["memory"]
    assert server["headers"] == {"X-Persona": SAKURA}
    assert server.get("url", server.get("uri")) == f"{URL}/mcp"


def test_clients_of_openais_api_are_given_the_address_of_the_gateway() -> None:
    assert f"Custom Endpoint (Base URL)  {URL}/p/{SAKURA}/v1" in connect("--client", "sillytavern", "-p", "さくら", "--url", URL)
    assert f"URL    {URL}/p/{SAKURA}/v1" in connect("--client", "open-webui", "-p", "さくら", "--url", URL)
    text = connect("--client", "librechat", "-p", "さくら", "--url", URL, "--with-token", "--only", "gateway")
    (endpoint,) = yaml.safe_load(text)["endpoints"]["custom"]
    assert endpoint["baseURL"] == f"{URL}/v1"
    assert endpoint["apiKey"] == "${MEMORY_MCP_TOKEN}"
    assert endpoint["headers"] == {"X-Persona": SAKURA, "X-Session": "{{LIBRECHAT_BODY_CONVERSATIONID}}"}
    done = CliRunner().invoke(app, ["connect", "--client", "cursor", "-p", "a", "--only", "gateway"])
    assert "has no part 'gateway'" in str(done.exception)


@pytest.mark.parametrize("client", ["claude-ai", "chatgpt"])
def test_a_vendor_needs_a_public_address_that_names_the_persona(client: str) -> None:
    assert f"https://YOUR-SERVER/p/{SAKURA}/mcp" in snippet(client)
    public = connect("--client", client, "-p", "さくら", "--url", "https://memory.example", "--only", "snippet")
    assert f"https://memory.example/p/{SAKURA}/mcp" in public
