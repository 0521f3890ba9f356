"""`memory-mcp chat` for scripts: what it says when it can't begin."""

import json

import pytest
from keyring.errors import KeyringLocked

from memory_mcp import cli
from memory_mcp.chat import Connection
from memory_mcp.config.settings import Settings
from memory_mcp.features.chat.opening import Opening
from memory_mcp.features.chat.web import WebChat
from memory_mcp.llm.models import Models

NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def chat(capsys, monkeypatch, tmp_path):
    """chat(*arguments): status and stderr, on a machine without any key; stdout stays empty."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def chat(*arguments):
        status = cli.run(["chat", "--url", NOBODY, *arguments])
        told = capsys.readouterr()
        assert told.out == ""
        return status, told.err

    return chat


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--once", "hi"], "no model is named"),
        (["--once", "hi", "-m", "claude-x"], "'claude-x' is not the name of a model"),
        (["--once", "hi", "-m", "nobody:x"], "where VENDOR is openai, anthropic, google, ollama"),
        (["--once", "hi", "-m", "anthropic:claude-x"], "ANTHROPIC_API_KEY is not set"),
        (["--once", "hi", "-m", "google:gemini-x"], "GOOGLE_API_KEY is not set"),
        (["--once", "hi", "-m", "ollama:x"], "no server answers at http://127.0.0.1:9"),
        (["--once", " ", "-m", "ollama:x"], "there is nothing to say"),
        (["--once", "hi", "-m", "ollama:x", "--set", "temperature"], "'temperature' is no argument of a model"),
        (["--once", "hi", "-m", "os:system"], "has to be named in chat.arguments"),
        (["--once", "hi", "-m", "ollama:x", "--mcp", "none.json"], "none.json can't be read"),
        (["--once", "hi", "-m", "ollama:x", "--instructions", "none.txt"], "none.txt can't be read"),
        (["--once", "hi", "-m", "ollama:x", "--resume", "none.json"], "none.json can't be read"),
    ],
)
def test_what_is_missing_is_one_line_on_stderr_and_status_1(chat, arguments, words):
    status, err = chat(*arguments)
    assert status == 1
    assert words in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("arguments", [None, [], ["base_url"], "x"])
def test_a_file_whose_arguments_are_no_object_is_no_conversation(chat, tmp_path, arguments):
    (tmp_path / "saved.json").write_text(json.dumps({"model": "ollama:x", "arguments": arguments, "messages": []}), encoding="utf-8")
    status, err = chat("--once", "hi", "--resume", "saved.json")
    assert status == 1
    assert "saved.json is no conversation" in err


def test_a_file_does_not_say_where_a_conversation_is_sent(tmp_path, capsys):
    given = {"temperature": 0.5, "max_tokens": 9, "base_url": "https://evil.example/v1", "api_key": "sk-x"}
    path = tmp_path / "saved.json"
    path.write_text(json.dumps({"model": "ollama:x", "arguments": given, "messages": []}), encoding="utf-8")
    opening = Opening(lambda name: Connection(NOBODY, persona=name), Settings(), resume=path, arguments={"max_tokens": 7})
    assert opening.conversation(None).arguments == {"temperature": 0.5, "max_tokens": 7}
    err = capsys.readouterr().err
    assert "base_url of" in err
    assert "api_key of" in err
    path.write_text(json.dumps({"model": "ollama:x", "arguments": {"temperature": {"a": 1}}, "messages": []}), encoding="utf-8")
    assert opening.conversation(None).arguments == {"max_tokens": 7}


def test_the_model_of_config_json_is_asked_where_none_is_named(chat, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"chat": {"model": "openai:of-config"}}), encoding="utf-8")
    assert "openai:of-config can't be asked: OPENAI_API_KEY is not set" in chat("--once", "hi")[1]


@pytest.mark.slow
def test_a_key_may_be_in_the_keyring_of_the_system_and_the_environment_goes_before(chat, drawer, monkeypatch):
    assert "OPENAI_API_KEY is not set" in Models().obstacle("openai")
    drawer.set_password("memory-mcp", "OPENAI_API_KEY", "of-the-keyring")
    assert Models().obstacle("openai") == ""
    assert Models().model("openai:x").openai_api_key.get_secret_value() == "of-the-keyring"
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    assert Models().model("openai:x").openai_api_key.get_secret_value() == "of-the-environment"


def test_a_keyring_that_is_locked_has_no_key(chat, drawer, monkeypatch):
    def locked(service, name):
        raise KeyringLocked

    monkeypatch.setattr(drawer, "get_password", locked)
    assert "OPENAI_API_KEY is not set" in Models().obstacle("openai")


@pytest.mark.parametrize("user", ["bob:Hunter2@", "bob:pa/Hunter2@", ":Hunter2@", "bob:Hun@ter2@", "ねこ:Hunter2@"])
@pytest.mark.parametrize("scheme", ["", "http://"])
@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost"])
def test_the_page_says_where_ollama_does_not_answer_without_its_password(monkeypatch, scheme, user, host):
    monkeypatch.setenv("OLLAMA_HOST", f"{scheme}{user}{host}")
    (why,) = [vendor["why"] for vendor in WebChat().vendors() if vendor["name"] == "ollama"]
    assert "unter2" not in why
    assert "ter2" not in why
    assert host.partition(":")[0] in why
