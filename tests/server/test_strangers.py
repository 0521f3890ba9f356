"""What people without a token may send: little, and never a file; and their shares of the turns, apart from those of sign-in and OAuth."""

import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest

from memory_mcp.config.settings import Calls
from memory_mcp.errors import PersonaOverloaded
from memory_mcp.server.auth import ADMISSION, Admission
from memory_mcp.server.concurrency import ConcurrencyLimiter
from memory_mcp.server.edge import callers_of, part_of
from memory_mcp.store.files.access_tokens import create_token

pytestmark = pytest.mark.slow  # a server for each of many tests

HANG_SECONDS = 60
BOUNDARY = "multipart/form-data; boundary=x"
URLENCODED = "application/x-www-form-urlencoded"
FILE_BEGINS = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' + b"x" * 100_000


def secret_of(server, *scopes: str) -> str:
    made = create_token(server.data, name="n", personas=["nilou"], scopes=scopes, now=server.runtime.clock(), expires_at=None)
    return made[1]


@contextmanager
def posted(port: int, path: str, kind: str, body: bytes, length: int | None, *headers: str) -> Iterator[bytes]:
    """The answer to a call of which a part of the body was sent, and the rest never comes; without a length in chunks."""
    framing = f"Content-Length: {length}" if length is not None else "Transfer-Encoding: chunked"
    head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: 127.0.0.1", framing, f"Content-Type: {kind}", *headers, "", ""]).encode()
    part = body if length is not None else f"{len(body):x}\r\n".encode() + body + b"\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_SECONDS) as connection:
        connection.sendall(head + part)
        yield connection.recv(65_536)


@pytest.mark.parametrize("length", [100_000_000, None])
@pytest.mark.parametrize("kind", [BOUNDARY, URLENCODED])
@pytest.mark.parametrize("path", ["/ui/sign-in", "/p/nilou/ui/house/import", "/ui/authorize", "/oauth/token", "/oauth/register"])
def test_a_long_body_of_a_stranger_is_refused_and_written_nowhere(own_server, monkeypatch, tmp_path, path, kind, length):
    own_server.configure(oauth={"authorization_server": "built_in", "public_url": "http://127.0.0.1:8000"})
    secret_of(own_server, "read")
    spooled = tmp_path / "spooled"
    spooled.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spooled))
    with posted(own_server.port, path, kind, FILE_BEGINS, length) as answer:
        assert answer[9:12] == (b"303" if path.endswith("import") else b"413")
        assert list(spooled.iterdir()) == []


@pytest.mark.parametrize("path", ["/ui/sign-in", "/p/nilou/ui/memories/new"])
def test_a_form_with_a_file_is_refused_where_no_file_is_expected(own_server, own_http, path):
    token = {"Authorization": f"Bearer {secret_of(own_server, 'read', 'write')}"}
    answer = own_http.post(path, files={"file": ("a.txt", b"x")}, headers=token if "nilou" in path else {})
    assert answer.status_code == 415
    assert "a form of this kind is not taken here" in answer.text


@pytest.mark.parametrize(("scope", "persona", "status"), [("read", "nilou", b"403"), ("write", "dehya", b"403")])
def test_nothing_of_a_file_is_read_for_a_token_that_may_not_import_it(own_server, scope, persona, status):
    token = f"Authorization: Bearer {secret_of(own_server, scope)}"
    with posted(own_server.port, f"/p/{persona}/ui/house/import", BOUNDARY, b"", 1_000_000_000, token) as answer:
        assert answer[9:12] == status


def of_stranger(path: str, address: str) -> tuple[str, ...]:
    admission = Admission(None, frozenset(), frozenset(), address, SimpleNamespace(), is_stranger=True)
    return callers_of({"path": path, "headers": [], ADMISSION: admission})


def test_strangers_keep_nobody_from_signing_in_and_no_client_from_its_tokens() -> None:
    calls = Calls()
    limiter = ConcurrencyLimiter(lambda: calls, part_of)
    with ExitStack() as taken:
        for number in range(50):
            taken.enter_context(limiter.admitted(*of_stranger("/ui", f"10.0.0.{number}")))
        with pytest.raises(PersonaOverloaded), limiter.admitted(*of_stranger("/ui", "10.1.1.1")):
            pass
        for path in ("/ui/sign-in", "/oauth/token"):
            for _ in range(25):
                taken.enter_context(limiter.admitted(*of_stranger(path, "10.0.0.1")))
            with pytest.raises(PersonaOverloaded), limiter.admitted(*of_stranger(path, "10.0.0.1")):
                pass
            with limiter.admitted(*of_stranger(path, "10.0.0.2")), limiter.admitted("persona nilou", "token n"):
                pass
