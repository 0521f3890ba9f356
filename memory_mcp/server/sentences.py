"""Answers as JSON. A client that asks for it by `Prefer: sentences` also gets each sentence of an answer with its id and its values."""

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from memory_mcp.wording import SENTENCES, Sentence


class Answer(JSONResponse):
    """A JSON object."""

    def __init__(self, content: Mapping[str, Any], status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self._content = content
        super().__init__(content, status_code, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if SENTENCES in Headers(scope=scope).get("prefer", ""):
            self.body = self.render({**self._content, SENTENCES: [each.as_json() for each in dict.fromkeys(_sentences(self._content))]})
            self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)


def _sentences(value: Any) -> Iterator[Sentence]:
    if isinstance(value, Sentence):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _sentences(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _sentences(inner)
