"""The parser of requests: how much work a body in chunks may be."""

import h11
import pytest

from memory_mcp.server.connection import RequestParser

BEGUN = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
BLOCK_BYTES = 256 * 1024


def parsed(parser: RequestParser, data: bytes) -> list[object]:
    """The events of what has arrived."""
    parser.receive_data(data)
    return list(iter(parser.next_event, h11.NEED_DATA))


def in_chunks(size: int, most_bytes: int = BLOCK_BYTES) -> bytes:
    chunk = b"%x\r\n%s\r\n" % (size, b"x" * size)
    return chunk * (most_bytes // len(chunk))


def test_tiny_chunks_are_refused_wherever_they_stand_in_a_body() -> None:
    for before in (b"", in_chunks(100_000, 1_000_000), in_chunks(12)):
        parser = RequestParser(h11.SERVER)
        parsed(parser, BEGUN + before)
        with pytest.raises(h11.RemoteProtocolError, match="too small"):
            parsed(parser, in_chunks(1))
        assert len(parser.trailing_data[0]) > BLOCK_BYTES - 10_000  # and little of it was parsed


def test_chunks_that_are_large_enough_on_average_are_all_taken() -> None:
    parser = RequestParser(h11.SERVER)
    parsed(parser, BEGUN)
    for block in (in_chunks(12), in_chunks(1, 2_000) + in_chunks(5_000), in_chunks(1, 2_000)):
        assert parsed(parser, block)


def test_little_of_what_follows_an_answer_is_parsed() -> None:
    for size in (1, 12, 100):
        parser = RequestParser(h11.SERVER)
        parsed(parser, BEGUN)
        parser.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
        parser.send(h11.EndOfMessage())
        assert sum(len(parsed(parser, in_chunks(size))) for _ in range(10)) < 1_000
        assert parser.is_deaf


def test_the_headers_of_an_answer_leave_with_its_first_bytes_unless_these_come_later() -> None:
    for length, first in ((("Content-Length", "2"), b""), (("Transfer-Encoding", "chunked"), b"HTTP/1.1 200")):
        parser = RequestParser(h11.SERVER)
        parsed(parser, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        written = [
            parser.send(event) or b"" for event in (h11.Response(status_code=200, headers=[length]), h11.Data(b"ok"), h11.EndOfMessage())
        ]
        assert written[0][:12] == first
        assert b"".join(written).startswith(b"HTTP/1.1 200")
        assert b"ok" in written[1]


def test_an_answer_without_a_body_has_its_headers() -> None:
    parser = RequestParser(h11.SERVER)
    parsed(parser, b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
    written = [
        parser.send(event) or b"" for event in (h11.Response(status_code=200, headers=[("Content-Length", "9")]), h11.EndOfMessage())
    ]
    assert written[0] == b""
    assert written[1].endswith(b"\r\n\r\n")
