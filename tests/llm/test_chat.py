"""The chat model of the configuration: any LangChain one by its name, with a time limit, left alone after it failed."""

import logging
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from panics import Panicked

from memory_mcp.config.settings import Llm
from memory_mcp.errors import ChatFailed
from memory_mcp.llm.chat import PAUSE, Chat

FAKE = "langchain_core.language_models.fake_chat_models:FakeListChatModel"
ONE = {"responses": ["late"]}
NOW = datetime(2025, 10, 30, 3, tzinfo=UTC)


class Hanging(FakeListChatModel):
    """Answers when it is let go."""

    def _call(self, *args, **kwargs):
        GATE.wait(60)
        return super()._call(*args, **kwargs)


class Failing(FakeListChatModel):
    """Quotes what it was asked when it fails."""

    def _call(self, messages, *args, **kwargs):
        raise RuntimeError(f"cannot answer: {messages}")


class Panicking(FakeListChatModel):
    """Breaks off as a library written in Rust does, with what is no `Exception`."""

    def _call(self, *args, **kwargs):
        raise Panicked("index out of bounds")


GATE = threading.Event()


def chat(**settings):
    return Chat(lambda: Llm(**settings))


def test_a_chat_model_is_named_and_given_its_arguments():
    asked = chat(chat_class=FAKE, arguments={"responses": [" 要約です。 ", "次"]})
    assert asked.ask("要約して", "苺が好き", NOW) == "要約です。"
    assert asked.ask("要約して", "苺が好き", NOW) == "次"
    assert asked.name == FAKE


def test_none_is_asked_where_none_is_configured():
    assert chat().name is None
    with pytest.raises(ChatFailed, match="no chat model is configured"):
        chat().ask("a", "b", NOW)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no_such_package:Chat", "ModuleNotFoundError"),
        ("langchain_core.messages:Nothing", "AttributeError"),
        ("langchain_core.messages:HumanMessage", "not a subclass"),
        ("FakeListChatModel", "wrong form"),
    ],
)
def test_a_name_that_leads_nowhere_is_told(path, words):
    with pytest.raises(ChatFailed, match=words):
        chat(chat_class=path).ask("a", "b", NOW)


def test_without_langchain_the_command_that_adds_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core", None)  # so Python takes it for missing
    with pytest.raises(ChatFailed, match=r'pip install "persona-memory-mcp\[langchain\]"'):
        chat(chat_class=FAKE).ask("a", "b", NOW)


def test_arguments_that_are_refused_are_told_without_what_they_were():
    with pytest.raises(ChatFailed, match=r"rejects llm\.arguments") as refused:
        chat(chat_class=FAKE, arguments={"responses": "sk-secret"}).ask("a", "b", NOW)
    assert "sk-secret" not in str(refused.value)


def test_a_model_that_hangs_is_not_waited_for():
    try:
        with pytest.raises(ChatFailed, match="did not answer within"):
            chat(chat_class=f"{__name__}:Hanging", arguments=ONE, timeout_seconds=0.05).ask("a", "b", NOW)
    finally:
        GATE.set()


def test_what_failed_is_not_told_what_was_asked_and_is_left_alone_for_a_while():
    asked = chat(chat_class=f"{__name__}:Failing", arguments=ONE)
    with pytest.raises(ChatFailed, match="RuntimeError") as failed:
        asked.ask("要約して", "秘密の話", NOW)
    assert "秘密" not in str(failed.value)
    with pytest.raises(ChatFailed, match="failed a moment ago"):
        asked.ask("要約して", "秘密の話", NOW + PAUSE - timedelta(seconds=1))
    with pytest.raises(ChatFailed, match="RuntimeError"):
        asked.ask("要約して", "秘密の話", NOW + PAUSE)


@pytest.mark.parametrize("level", [logging.INFO, logging.DEBUG])
def test_only_at_debug_the_log_says_what_a_library_said(caplog, level):
    caplog.set_level(level, "memory_mcp")
    with pytest.raises(ChatFailed):
        chat(chat_class=f"{__name__}:Failing", arguments=ONE).ask("要約して", "秘密の話", NOW)
    assert ("秘密の話" in caplog.text) == (level == logging.DEBUG)


def test_a_model_whose_library_breaks_off_is_not_waited_for():
    with pytest.raises(ChatFailed, match="Panicked"):
        chat(chat_class=f"{__name__}:Panicking", arguments=ONE, timeout_seconds=20).ask("a", "b", NOW)


def test_an_empty_answer_is_none():
    with pytest.raises(ChatFailed, match="empty"):
        chat(chat_class=FAKE, arguments={"responses": [" "]}).ask("a", "b", NOW)


def test_another_model_in_the_settings_is_asked_at_once():
    settings = [Llm(chat_class=f"{__name__}:Failing", arguments=ONE), Llm(chat_class=FAKE, arguments={"responses": ["できた"]})]
    asked = Chat(lambda: settings[0])
    with pytest.raises(ChatFailed):
        asked.ask("a", "b", NOW)
    settings.pop(0)
    assert asked.ask("a", "b", NOW) == "できた"


def test_nobody_waits_for_a_model_when_the_server_stops():
    GATE.clear()
    asked = chat(chat_class=f"{__name__}:Hanging", arguments=ONE, timeout_seconds=600)
    said = []

    def ask():
        try:
            asked.ask("a", "b", NOW)
        except ChatFailed as error:
            said.append(str(error))

    waiting = threading.Thread(target=ask)
    waiting.start()
    try:
        asked.close()
        waiting.join(60)
        assert "the server is stopping" in said[0]
    finally:
        GATE.set()
