"""A vendor that speaks OpenAI's wire: its answers are written down, and it notes what it was asked and with which key."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = str | dict[str, Any] | Iterator[str] | Callable[[], Any]
PACE = threading.Event()  # never set


class Vendor:
    """Each answer is the next step: a text, pieces that come slowly, the call of a tool, or something to wait for before the step that it returns; without a step, an echo."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.steps: list[Step] = []
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.gone = threading.Event()  # somebody has hung up

    def answer(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of the answer."""
        step = self.steps.pop(0) if self.steps else f"echo: {asked['messages'][-1]['content']}"
        while callable(step):
            yield {"role": "assistant", "content": "…"}
            step = step()
        if isinstance(step, str):
            yield from ({"content": step[begin : begin + 5]} for begin in range(0, len(step), 5))
        elif isinstance(step, Iterator):
            for piece in step:
                yield {"content": piece}
                PACE.wait(0.01)
        else:
            yield {"tool_calls": [{"index": 0, "id": f"call_{len(self.asked)}", "type": "function", "function": step}]}


@contextmanager
def vendor() -> Iterator[Vendor]:
    """The vendor, listening on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            known.asked.append(asked)
            known.keys.add(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            try:
                for delta in known.answer(asked):
                    self._send({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
                self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
                self.wfile.write(b"data: [DONE]\n\n")
            except OSError:
                known.gone.set()

        def _send(self, chunk: dict[str, Any]) -> None:
            whole = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", **chunk}
            self.wfile.write(f"data: {json.dumps(whole)}\n\n".encode())

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        known = Vendor(f"http://127.0.0.1:{server.server_port}/v1")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield known
        finally:
            server.shutdown()
            thread.join()
