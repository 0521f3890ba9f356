"""The configured chat model: constructed at first use, called with a time limit, paused after a failure."""

import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from memory_mcp.config.settings import Llm
from memory_mcp.errors import ChatFailed, NotInstalled
from memory_mcp.extras import require
from memory_mcp.llm.models import instance
from memory_mcp.time_limit import on_thread
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

PAUSE = timedelta(minutes=5)  # after a failure

logger = logging.getLogger(__name__)


class ChatModel(Protocol):
    """A chat model; `name` is None where none is configured."""

    @property
    def name(self) -> str | None: ...

    def ask(self, instructions: str, text: str, now: datetime) -> str: ...


class Chat:
    """One for the process. Thread-safe; runs one call at a time."""

    def __init__(self, settings: Callable[[], Llm]) -> None:
        self._settings = settings
        self._guard = threading.Lock()
        self._built_from: str | None = None
        self._model: BaseChatModel | None = None
        self._paused_until: datetime | None = None
        self._closing: Future[str] = Future()

    def close(self) -> None:
        """Ends the wait of a running call, because the server stops."""
        if not self._closing.done():
            self._closing.set_exception(ChatFailed("the chat model is not called", "the server is stopping"))

    @property
    def name(self) -> str | None:
        """The configured class; None if there is no chat model."""
        return self._settings().chat_class

    def ask(self, instructions: str, text: str, now: datetime) -> str:
        """The model's answer to `text` with these instructions.

        Raises:
            ChatFailed: no model is configured, it can't be loaded, it failed or took too long, or it is paused after a failure.
        """
        settings = self._settings()
        if settings.chat_class is None:
            raise ChatFailed("no chat model is configured", "", "Name one with llm.chat_class")
        with self._guard:
            configured = json.dumps([settings.chat_class, settings.arguments], sort_keys=True, default=str)
            if configured != self._built_from:
                self._model, self._built_from, self._paused_until = None, configured, None
            if self._paused_until and now < self._paused_until:
                raise ChatFailed("{} is paused", "it failed a moment ago", "", settings.chat_class)
            try:
                self._model = self._model or _constructed(settings, settings.chat_class)
                return _answer(self._model, settings, instructions, text, self._closing)
            except ChatFailed as error:
                logger.warning("%s", error)
                self._paused_until = now + PAUSE
                raise


def _constructed(settings: Llm, path: str) -> "BaseChatModel":
    what = sentence("llm.chat_class {} can't be used", path)
    try:
        require("langchain", what)
    except NotInstalled as error:
        raise ChatFailed(error.what, error.why, error.do) from error
    return instance(path, settings.arguments, what, "llm.arguments")


def _answer(model: "BaseChatModel", settings: Llm, instructions: str, text: str, closing: Future[str]) -> str:
    """Calls the model on its own thread: a call without an answer can't be stopped, but the caller stops waiting."""
    from langchain_core.messages import HumanMessage, SystemMessage  # noqa: PLC0415  as above

    asked = [SystemMessage(instructions), HumanMessage(text)]
    result = on_thread(lambda: str(model.invoke(asked).text).strip(), "chat model")
    wait([result, closing], settings.timeout_seconds, FIRST_COMPLETED)
    if not result.done():
        why = (
            "the server is stopping" if closing.done() else sentence("it did not answer within {} seconds", f"{settings.timeout_seconds:g}")
        )
        raise ChatFailed("{} failed", why, "", settings.chat_class)
    failure = result.exception()
    if failure:  # the message may quote the text, so only the class is shown
        logger.debug("the call of the chat model failed", exc_info=failure)
        raise ChatFailed("{} failed", "{}", "", settings.chat_class, type(failure).__name__) from failure
    answer = result.result()
    if not answer:
        raise ChatFailed("{} failed", "its answer is empty", "", settings.chat_class)
    return answer
