"""WaitingBytes, and answers on their way: how much waits for clients, and in which pieces it is sent."""

import asyncio
from collections.abc import Iterator

import pytest
from starlette.responses import Response
from starlette.types import Message

from memory_mcp.errors import Overloaded, PersonaOverloaded
from memory_mcp.server.answers import SENT_BYTES, AnswerOfTurn, Streamed, in_blocks, joined
from memory_mcp.server.bounds import Bounds, WaitingBytes

FULL = Overloaded("too many", "they fill the memory", "Wait")


def waiting(total: int = 100, each: int = 50) -> WaitingBytes:
    return WaitingBytes(Bounds(waiting_bytes=total, waiting_bytes_each=each), FULL)


def test_one_caller_has_its_share_and_all_have_theirs_and_what_is_taken_makes_room() -> None:
    bytes_ = waiting()
    bytes_.add("a", 40)
    with pytest.raises(PersonaOverloaded):
        bytes_.add("a", 11)
    bytes_.add("b", 50)
    with pytest.raises(Overloaded) as refused:
        bytes_.add("c", 11)
    assert type(refused.value) is Overloaded
    bytes_.remove("a", 40)
    bytes_.add("c", 11)


def test_what_is_alone_is_let_in_however_large() -> None:
    bytes_ = waiting()
    bytes_.add("a", 1_000)
    with pytest.raises(Overloaded):
        bytes_.add("b", 1)


def sent(response: Response, *, leaving_after: int | None = None, in_turn: WaitingBytes | None = None) -> list[Message]:
    """What a client gets, who may leave after so many messages."""
    messages: list[Message] = []

    async def run() -> None:
        left, ended = asyncio.Event(), asyncio.Event()

        async def receive() -> Message:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            messages.append(message)
            if len(messages) == leaving_after:
                left.set()
                await asyncio.Event().wait()

        async def end_turn() -> None:
            ended.set()

        answer = (
            AnswerOfTurn(in_blocks(send), end_turn, in_turn, "a", lambda error: Response(str(error), 503)) if in_turn else in_blocks(send)
        )
        await response({"type": "http", "method": "GET", "path": "/"}, receive, answer)
        assert ended.is_set() or not in_turn

    asyncio.run(run())
    return messages


def test_a_large_answer_is_sent_in_blocks_and_whole() -> None:
    body = bytes(range(256)) * 1_000
    messages = sent(Response(body))
    parts = [message["body"] for message in messages[1:]]
    assert b"".join(parts) == body
    assert max(map(len, parts)) == SENT_BYTES
    assert [message.get("more_body", False) for message in messages[1:]] == [True] * (len(parts) - 1) + [False]


def test_an_answer_too_many_is_replaced_by_its_refusal() -> None:
    bytes_ = waiting()
    bytes_.add("a", 40)
    start, body = sent(Response(b"x" * 100_000), in_turn=bytes_)
    assert (start["status"], body["body"]) == (503, b"too many: they fill the memory. Wait.")
    assert sent(Response(b"x" * 1_000), in_turn=bytes_)[1]["body"] == b"x" * 1_000


@pytest.mark.parametrize("leaving_after", [None, 2])
def test_the_generator_of_a_stream_is_closed_however_it_ends(leaving_after: int | None) -> None:
    closed = []

    def texts() -> Iterator[str]:
        try:
            yield from ("話" * 100_000 for _ in range(5))
        finally:
            closed.append(True)

    blocks = joined(texts())
    messages = sent(Streamed(next(blocks), blocks, "text/plain", {}), leaving_after=leaving_after)
    assert closed == [True]
    assert leaving_after or b"".join(message["body"] for message in messages[1:]).decode() == "話" * 500_000
