"""The steps of a call as spans of OpenTelemetry, if they are collected; otherwise a step costs a look at a variable.

A span has a name of ours, its times, and after an error the error's class: never a persona, a key, a query or a text. fastmcp's own spans
have all of these, so ours have a provider of their own, which no library sees.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from threading import Thread
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

LAST_SPANS_SECONDS = 3.0

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")

_NOTHING: AbstractContextManager[None] = nullcontext()
_tracer: "Tracer | None" = None


def span(name: str, headers: Mapping[str, str] | None = None) -> AbstractContextManager[None]:
    """Cover a step. With the `headers` of a request, it belongs to the caller's span in `traceparent`."""
    return _NOTHING if _tracer is None else _recorded(_tracer, name, headers)


def spanned(name: str) -> Callable[[Callable[Parameters, Answer]], Callable[Parameters, Answer]]:
    """Decorate a function that is a step."""

    def decorated(step: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
        @wraps(step)
        def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
            if _tracer is None:
                return step(*args, **kwargs)
            with _recorded(_tracer, name):
                return step(*args, **kwargs)

        return run

    return decorated


@contextmanager
def exported(version: str) -> Iterator[None]:
    """Send all spans to the collector that the variables `OTEL_*` name, until the end of the block. Needs the extra `otel`."""
    global _tracer  # noqa: PLW0603  one process serves one data directory
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  it may be missing
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    resource = Resource({"service.name": "memory-mcp", "service.version": version}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    _tracer = provider.get_tracer("memory_mcp", version)
    try:
        yield
    finally:
        _tracer = None
        # The library tries for half a minute to reach a collector that is away.
        ending = Thread(target=provider.shutdown, name="last spans", daemon=True)
        ending.start()
        ending.join(LAST_SPANS_SECONDS)


@contextmanager
def _recorded(tracer: "Tracer", name: str, headers: Mapping[str, str] | None = None) -> Iterator[None]:
    from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415  it may be missing
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    parent = TraceContextTextMapPropagator().extract(headers) if headers else None
    kind = SpanKind.SERVER if headers is not None else SpanKind.INTERNAL
    with tracer.start_as_current_span(name, parent, kind, record_exception=False, set_status_on_exception=False) as current:
        try:
            yield
        except Exception as error:
            # Not its message, which may quote a memory.
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(Status(StatusCode.ERROR))
            raise
