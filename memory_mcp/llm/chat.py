"""The chat model of the configuration: constructed when it is first needed, asked with a time limit, left alone after a failure."""

import importlib
import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from memory_mcp.config.settings import Llm
from memory_mcp.errors import ChatFailed

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import BaseChatModel

REST = timedelta(minutes=5)

logger = logging.getLogger(__name__)


class Chat:
    """One for the process. Safe to use from several threads; one question at a time is under way."""

    def __init__(self, settings: Callable[[], Llm]) -> None:
        self._settings = settings
        self._guard = threading.Lock()
        self._built_from: str | None = None
        self._model: BaseChatModel | None = None
        self._rests_until: datetime | None = None
        self._closing: Future[str] = Future()

    def close(self) -> None:
        """Lets nobody wait any longer: the server stops."""
        if not self._closing.done():
            self._closing.set_exception(ChatFailed("the chat model is not asked", "the server is stopping"))

    @property
    def name(self) -> str | None:
        """What is configured, as configuration has it; None: no chat model is."""
        return self._settings().chat_class

    def ask(self, instructions: str, text: str, now: datetime) -> str:
        """What the model answers to `text` under these instructions.

        Raises:
            ChatFailed: there is none, it can't be had, it failed or took too long, or it rests because it did so lately.
        """
        settings = self._settings()
        if settings.chat_class is None:
            raise ChatFailed("no chat model is configured", "", "Name one with llm.chat_class")
        with self._guard:
            wanted = json.dumps([settings.chat_class, settings.arguments], sort_keys=True, default=str)
            if wanted != self._built_from:
                self._model, self._built_from, self._rests_until = None, wanted, None
            if self._rests_until and now < self._rests_until:
                raise ChatFailed(f"{settings.chat_class} is not asked", "it failed a moment ago")
            try:
                self._model = self._model or construct(settings.chat_class, settings.arguments)
                return _answer(self._model, settings, instructions, text, self._closing)
            except ChatFailed as error:
                logger.warning("%s", error)
                self._rests_until = now + REST
                raise


def construct(path: str, arguments: dict[str, Any]) -> "BaseChatModel":
    """An instance of the class at `package.module:Class`.

    Raises:
        ChatFailed: there is no such class, it is no chat model, or it refuses the arguments.
    """
    # LangChain's core takes half a second to import, and only who is asked for a summary needs it.
    from langchain_core.language_models.chat_models import BaseChatModel  # noqa: PLC0415

    what = f"llm.chat_class {path} can't be used"
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise ChatFailed(what, "it has another form", "Write it as package.module:Class, such as langchain_openai:ChatOpenAI")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ChatFailed(what, type(error).__name__, "Install its package here, or correct the name") from error
    if not (isinstance(found, type) and issubclass(found, BaseChatModel)):
        raise ChatFailed(what, "it is no subclass of langchain_core.language_models.chat_models.BaseChatModel")
    try:
        return found(**arguments)
    except Exception as error:  # each class refuses in its own way, and may quote a key
        raise ChatFailed(what, f"it refuses llm.arguments: {type(error).__name__}") from error


def _answer(model: "BaseChatModel", settings: Llm, instructions: str, text: str, closing: Future[str]) -> str:
    """On a thread of its own: a model that hangs can't be stopped, but nobody has to wait for it."""
    from langchain_core.messages import HumanMessage, SystemMessage  # noqa: PLC0415  as above

    result: Future[str] = Future()

    def asked() -> None:
        try:
            result.set_result(str(model.invoke([SystemMessage(instructions), HumanMessage(text)]).text).strip())
        except BaseException as error:  # noqa: BLE001  whatever a library raises here, also where it panics, is handed to who waits
            result.set_exception(error)

    threading.Thread(target=asked, name="chat model", daemon=True).start()
    wait([result, closing], settings.timeout_seconds, FIRST_COMPLETED)
    if not result.done():
        why = "the server is stopping" if closing.done() else f"it did not answer within {settings.timeout_seconds:g} seconds"
        raise ChatFailed(f"{settings.chat_class} could not be asked", why)
    failure = result.exception()
    if failure:  # what a library says may quote what it was asked: only its kind is told
        logger.debug("the chat model could not be asked", exc_info=failure)
        raise ChatFailed(f"{settings.chat_class} could not be asked", type(failure).__name__) from failure
    answer = result.result()
    if not answer:
        raise ChatFailed(f"{settings.chat_class} could not be asked", "its answer is empty")
    return answer
