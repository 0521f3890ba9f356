"""What Prometheus reads at /metrics: how long calls take and how they end, what waits, what fails. No label ever names a persona.

The library comes with the extra `metrics`; without it nothing is measured. Each server has a registry of its own.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, get_args

from starlette.requests import Request
from starlette.responses import Response

from memory_mcp import __version__
from memory_mcp.config.values import is_loopback
from memory_mcp.encoders.models import State
from memory_mcp.errors import NotAllowed
from memory_mcp.extras import require
from memory_mcp.server.auth import ADMISSION, Admission
from memory_mcp.server.call_record import CallRecord
from memory_mcp.server.concurrency import ConcurrencyLimiter
from memory_mcp.server.refusal_log import RefusalLog
from memory_mcp.server.runtime import Runtime
from memory_mcp.upkeep.backup import Backups

if TYPE_CHECKING:
    from prometheus_client.core import Metric

CONTENT_TYPE = "text/plain"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
# A look at the server must not become work for it: the backups of all personas are listed so often, and personas are counted so long.
BACKUPS_SECONDS, COUNTING_SECONDS = 300.0, 0.05


class Metrics:
    """The metrics of one server."""

    def __init__(self, runtime: Runtime, limiter: ConcurrencyLimiter, refusals: RefusalLog) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector  # noqa: PLC0415  it may be missing

        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "memory_mcp_call_seconds",
            "From the arrival of a call to the end of its answer.",
            ("operation", "outcome"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._tokens = Counter(
            "memory_mcp_model_tokens", "Tokens of chat models that calls used.", ("vendor", "direction"), registry=self._registry
        )
        ProcessCollector(registry=self._registry)
        self._registry.register(_State(runtime, limiter, refusals))

    def observe(self, record: CallRecord) -> None:
        """Count a call that has ended."""
        self._seconds.labels(record.operation, record.outcome).observe(record.seconds)

    def spent(self, vendor: str, read: int, written: int) -> None:
        """Count tokens that a configured vendor's model has read and written."""
        self._tokens.labels(vendor, "input").inc(read)
        self._tokens.labels(vendor, "output").inc(written)

    def written(self, accepted: str) -> tuple[bytes, str]:
        """All metrics in the format that an `Accept` header asks for, and its media type."""
        from prometheus_client.exposition import choose_encoder  # noqa: PLC0415  it may be missing

        encode, content_type = choose_encoder(accepted)
        return encode(self._registry), content_type


def answer(request: Request) -> Response:
    """The answer of /metrics.

    Raises:
        NotAllowed: no tokens are in use, and the caller is on another machine; or the token is for some personas.
        NotInstalled: the library is missing.
    """
    admission: Admission = request.scope[ADMISSION]
    client = request.client.host if request.client else ""
    if admission.token is None and not (is_loopback(client) and is_loopback(request.url.hostname or "")):
        raise NotAllowed(
            "without tokens the metrics are for this machine alone",
            "the caller, or the host that it names, is another one",
            "Create a token with the scope admin: `memory-mcp token create`",
        )
    if admission.personas is not None:
        admission.note("scope", asked="the metrics")
        raise NotAllowed("the metrics are the whole server's", "this token is for some personas", "Use a token for all personas")
    require("metrics", "there are no metrics")
    metrics: Metrics = request.app.state.metrics
    content, content_type = metrics.written(request.headers.get("accept", ""))
    return Response(content, headers={"Content-Type": content_type, "Cache-Control": "no-store"})


class _State:
    """What is read from the server's parts on each request. Its names of chores, models and reasons are the product's own."""

    def __init__(self, runtime: Runtime, limiter: ConcurrencyLimiter, refusals: RefusalLog) -> None:
        self._runtime, self._limiter, self._refusals = runtime, limiter, refusals
        self._newest_backup = _Remembered(self._look_for_backup, BACKUPS_SECONDS)

    def collect(self) -> Iterator["Metric"]:
        yield _gauge("info", "The version of the server.", ("version",), {(__version__,): 1.0})
        yield _gauge("calls_running", "Calls that are being answered.", value=self._limiter.running)
        yield _gauge("calls_waiting", "Calls that wait for their turn.", value=self._limiter.waiting)
        yield self._refused()
        yield _gauge(
            "config_error", "1 while config.json can't be used, and its last valid state is.", value=bool(self._runtime.config.error)
        )
        yield self._models()
        yield from self._index()
        yield from self._chores()
        yield _gauge("backup_newest_timestamp_seconds", "When the newest backup of any persona was made.", value=self._newest_backup())

    def _refused(self) -> "Metric":
        from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415  it may be missing

        family = CounterMetricFamily("memory_mcp_refusals", "Calls that were turned away, by reason.", labels=("reason",))
        for reason, count in sorted({**self._refusals.refused(), "busy": self._limiter.refused}.items()):
            family.add_metric((reason,), count)
        return family

    def _models(self) -> "Metric":
        models = self._runtime.models_for(self._runtime.config.current())
        states = {
            "embedder": models.embedder_state.state,
            "reranker": models.reranker_state.state,
            "fallback": models.fallback_state.state,
        }
        values: dict[Sequence[str], float] = {
            (model, state): float(state == now) for model, now in states.items() for state in get_args(State)
        }
        return _gauge("model_state", "1 for the state in which a model is.", ("model", "state"), values)

    def _index(self) -> "Iterator[Metric]":
        if self._runtime.index:
            status = self._runtime.index.status(COUNTING_SECONDS)
            yield _gauge("index_lag", "Memories that wait for their vectors, of all personas.", value=status.lag)
            yield _gauge("index_failing_personas", "For how many personas indexing fails.", value=len(status.failing))

    def _chores(self) -> "Iterator[Metric]":
        if self._runtime.chores:
            chores = self._runtime.chores.summary()
            failing: dict[Sequence[str], float] = {(name,): float(count) for name, (_, count) in chores.items()}
            done: dict[Sequence[str], float] = {(name,): last.timestamp() for name, (last, _) in chores.items() if last}
            yield _gauge("chore_failing_personas", "For how many personas a chore fails.", ("chore",), failing)
            yield _gauge("chore_done_timestamp_seconds", "When a chore last finished for a persona, since the start.", ("chore",), done)

    def _look_for_backup(self) -> float:
        personas = self._runtime.personas
        backups = Backups(personas.directory, personas.keys).listed(self._runtime.config.current())
        return backups[0].made_at.timestamp() if backups else 0.0


class _Remembered:
    """A value that is looked up again only when it is older than `seconds`."""

    def __init__(self, look: Callable[[], float], seconds: float) -> None:
        self._look, self._seconds = look, seconds
        self._lock = threading.Lock()
        self._value, self._until = 0.0, float("-inf")

    def __call__(self) -> float:
        with self._lock:
            if time.monotonic() >= self._until:
                self._value, self._until = self._look(), time.monotonic() + self._seconds
            return self._value


def _gauge(
    name: str, meaning: str, labels: Sequence[str] = (), values: Mapping[Sequence[str], float] | None = None, *, value: float = 0
) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415  it may be missing

    family = GaugeMetricFamily(f"memory_mcp_{name}", meaning, labels=labels)
    for label_values, each in (values if values is not None else {(): value}).items():
        family.add_metric(label_values, each)
    return family
