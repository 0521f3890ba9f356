"""The steps of calls as spans, sent to a stand-in for a collector of OpenTelemetry, and what they must not say."""

import json
import queue
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx2
import pytest
from processes import serving

from memory_mcp import app, extras

trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
pytestmark = pytest.mark.slow

CONFIG = json.dumps({"embeddings_model": None, "reranker_model": None})
HEADERS = {"accept": "application/json, text/event-stream", "X-Persona": "nilou"}
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
NAMES = {
    "remember",
    "recall",
    "revise",
    "embed",
    "lexical",
    "dates",
    "meaning",
    "fuse",
    "graph",
    "unmatched",
    "rerank",
    "page",
    "confidence",
}
NAMES |= {"redact", "store", "similar"}


class Collector:
    """Takes what is sent to it, and hands out the spans in the order in which they came."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: queue.Queue[bytes] = queue.Queue()
        self.raw = b""
        self.spans = []
        self.resource = {}

    def until(self, *names):
        """All spans so far, once one of each name is there."""
        while not set(names) <= {span.name for span in self.spans}:
            body = self.bodies.get(timeout=60)
            self.raw += body
            sent = trace_service.ExportTraceServiceRequest.FromString(body)
            for group in sent.resource_spans:
                self.resource = {pair.key: pair.value.string_value for pair in group.resource.attributes}
                self.spans += [span for scope in group.scope_spans for span in scope.spans]
        return self.spans


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            collector.bodies.put(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield collector
        server.shutdown()
        thread.join()


def call(server, tool, traceparent=None, **arguments):
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    headers = {**HEADERS, "traceparent": traceparent} if traceparent else HEADERS
    return httpx2.post(f"{server.url}/mcp", json=sent, headers=headers, trust_env=False).raise_for_status().json()["result"]


def exporting(collector):
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100", "OTEL_RESOURCE_ATTRIBUTES": "deployment=home"}


def test_the_steps_of_a_recall_and_a_remember_are_spans_within_that_of_the_call(tmp_path):
    with collecting() as collector, serving(tmp_path, CONFIG, environment=exporting(collector)) as server:
        assert not call(server, "remember", content="緑茶が好き")["isError"]
        remembered = {span.name: span for span in collector.until("remember")}
        assert {name for name in remembered if remembered[name].parent_span_id == remembered["remember"].span_id} == {
            "redact",
            "store",
            "similar",
        }
        assert call(server, "recall", f"00-{TRACE}-{CALLER}-01", query="緑茶")["structuredContent"]["hits"]
        spans = collector.until("recall")
    assert collector.resource == {"service.name": "memory-mcp", "service.version": "0.1.0", "deployment": "home"}
    (recall,) = [span for span in spans if span.name == "recall"]
    assert (recall.trace_id.hex(), recall.parent_span_id.hex()) == (TRACE, CALLER)
    steps = [span for span in spans if span.trace_id == recall.trace_id and span is not recall]
    assert {"embed", "lexical", "fuse", "graph", "page"} <= {span.name for span in steps}
    assert all(recall.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano for span in steps)


def test_spans_say_nothing_that_a_caller_told_and_no_library_adds_its_own(tmp_path):
    with collecting() as collector, serving(tmp_path, CONFIG, environment=exporting(collector)) as server:
        key = call(server, "remember", content="緑茶が好き", tags=["nomimono"])["structuredContent"]["key"]
        call(server, "recall", query="緑茶は好き？")
        assert call(server, "revise", key="memory_of_nobody", content="x")["isError"]
        spans = collector.until("remember", "recall", "revise")
    assert {span.name for span in spans} <= NAMES
    (revise,) = [span for span in spans if span.name == "revise"]
    assert {pair.key: pair.value.string_value for pair in revise.attributes} == {"error.type": "MemoryNotFound"}
    assert not revise.events
    assert [span.name for span in spans if span.attributes] == ["revise"]
    told = ("nilou", key, "緑茶", "nomimono", "memory_of_nobody", str(tmp_path))
    assert not [words for words in told if words.encode() in collector.raw]


def test_a_collector_that_is_away_keeps_nobody_waiting(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound and not listening: every connection is refused
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{closed.getsockname()[1]}", "OTEL_BSP_SCHEDULE_DELAY": "50"}
        with serving(tmp_path, CONFIG, environment=environment) as server:
            assert not call(server, "remember", content="緑茶が好き")["isError"]
            assert server.stop() == 0
    assert "緑茶" not in server.log.read_text(encoding="utf-8")


def test_without_the_extra_the_server_says_so_and_serves(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
    monkeypatch.setitem(extras.EXTRAS, "otel", ("a_package_that_nobody_has",))
    with app._spans():
        assert "[otel]" in caplog.text
