"""A server of chat models that speaks OpenAI's wire byte by byte: its answers are written down, and it notes what it was sent."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JSON, EVENTS = "application/json", "text/event-stream"


def chunk(delta: dict[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    """An event of a streamed answer."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **fields}
    return f"data: {json.dumps(whole, ensure_ascii=False)}\n\n".encode()


def streamed(text: str, finish: str = "stop", size: int = 5) -> list[bytes]:
    """The events of an answer that says a text."""
    pieces = [chunk({"role": "assistant", "content": text[begin : begin + size]}) for begin in range(0, len(text), size)]
    return [*pieces, chunk({}, finish), b"data: [DONE]\n\n"]


def completion(text: str | None, finish: str = "stop", **message: Any) -> bytes:
    """An answer at once."""
    said = {"role": "assistant", "content": text, **message}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choices = [{"index": 0, "message": said, "finish_reason": finish}]
    return json.dumps(
        {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    ).encode()


@dataclass
class Answer:
    """What it answers: a body in pieces, each as soon as it comes. `breaks_off`: before the end of the body."""

    pieces: Iterable[bytes]
    status: int = 200
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    breaks_off: bool = False


Step = Answer | str | Callable[[dict[str, Any]], Answer | str]


class Vendor:
    """Each answer is the next step, else an echo; a text is sent in the form that was asked for. `sent` are the bodies and `headers` those of
    the calls."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.steps: list[Step] = []
        self.sent: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.gone = threading.Event()
        self.lock = threading.Lock()

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.sent]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the last call."""
        return self.asked[-1]["messages"]

    def answer(self, body: bytes) -> Answer:
        asked = json.loads(body)
        with self.lock:
            step = self.steps.pop(0) if self.steps else f"echo: {text_of(asked['messages'][-1])}"
        step = step(asked) if callable(step) else step
        if isinstance(step, Answer):
            return step
        return Answer(streamed(step), content_type=EVENTS) if asked.get("stream") else Answer([completion(step)])


def text_of(message: dict[str, Any]) -> str:
    """The text of a message, whose content may have parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@contextmanager
def vendor() -> Iterator[Vendor]:
    """The server, listening on this machine."""

    class Handler(BaseHTTPRequestHandler):
        # Else the head of an answer waits up to 40 ms for the client's acknowledgment of what went before.
        disable_nagle_algorithm = True
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            listed = json.dumps(
                {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "us"}, {"id": "org/large", "object": "model"}]}
            )
            self._begin(Answer([], headers={"Content-Length": str(len(listed))}))
            self.wfile.write(listed.encode())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with known.lock:
                known.sent.append(body)
                known.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = known.answer(body)
            self._begin(Answer([], answer.status, answer.content_type, {**answer.headers, "Transfer-Encoding": "chunked"}))
            try:
                for piece in answer.pieces:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    self.wfile.flush()
                if answer.breaks_off:
                    self.close_connection = True
                else:
                    self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True
                known.gone.set()

        def _begin(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in {"Content-Type": answer.content_type, **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()

        def handle(self) -> None:
            with suppress(ConnectionError):
                super().handle()

        def log_message(self, *_: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        known = Vendor(f"http://127.0.0.1:{server.server_port}/v1")
        thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
        thread.start()
        try:
            yield known
        finally:
            server.shutdown()
            thread.join()
