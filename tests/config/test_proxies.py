"""The SOCKS proxies of the environment, without the package that they need."""

import os

import httpx2
import pytest

from memory_mcp.client.connection import Connection
from memory_mcp.config import proxies
from memory_mcp.config.proxies import used_for
from memory_mcp.encoders.failures import CircuitBreaker
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.remote.connection import Connection as RemoteModel
from memory_mcp.errors import ChatFailed, EncoderFailed, ProxyUnusable, ServerUnreachable
from memory_mcp.llm.models import Models
from memory_mcp.llm.vendors import VENDORS

SOCKS = "socks5://user:password@127.0.0.1:9"
NEEDED = "ALL_PROXY names a SOCKS proxy, which needs the package socksio"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*proxies._VARIABLES, "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", SOCKS)
    monkeypatch.setattr(proxies, "PACKAGE", "socksio_that_is_not_installed")


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://localhost:9", "http://[::1]:9", "https://memory.localhost", "127.0.0.1:9"])
def test_this_machine_is_never_looked_for_behind_a_proxy(url: str) -> None:
    with used_for(url):
        assert "ALL_PROXY" not in os.environ
        httpx2.Client().close()
    assert os.environ["ALL_PROXY"] == SOCKS


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({"NO_PROXY": "memory.invalid"}, "http://memory.invalid:8000"),
        ({"NO_PROXY": "*"}, "http://memory.invalid"),
        ({"no_proxy": ".invalid"}, "https://memory.invalid"),
        ({"HTTPS_PROXY": "http://127.0.0.1:9"}, "https://memory.invalid"),
    ],
)
def test_a_server_that_is_called_without_it_needs_no_package(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with used_for(url):
        httpx2.Client().close()
    assert os.environ["ALL_PROXY"] == SOCKS


@pytest.mark.parametrize("variable", ["ALL_PROXY", "HTTP_PROXY", "http_proxy", "all_proxy"])
@pytest.mark.parametrize("kind", ["socks5", "socks5h"])
def test_one_that_is_needed_is_refused_with_the_variable_and_the_package(monkeypatch: pytest.MonkeyPatch, variable: str, kind: str) -> None:
    monkeypatch.delenv("ALL_PROXY")
    monkeypatch.setenv(variable, f"{kind}://user:password@127.0.0.1:9")
    with pytest.raises(ProxyUnusable, match=f"memory.invalid can't be reached: {variable} names a SOCKS proxy, which needs the") as refused:
        Connection("http://memory.invalid:8000").get_json("/health")
    assert "password" not in str(refused.value)


def test_a_kind_that_no_client_speaks_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks4://127.0.0.1:9")
    with (
        pytest.raises(ProxyUnusable, match=r"ALL_PROXY names a proxy of the kind socks4. Write it as socks5://HOST:PORT"),
        used_for("http://a.invalid"),
    ):
        pass


def test_everything_that_calls_out_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "PACKAGE", "socksio")
    monkeypatch.setattr(proxies, "find_spec", lambda name: None)
    with pytest.raises(ServerUnreachable, match="no server answers"):
        Connection("http://127.0.0.1:9").get_json("/health")
    with pytest.raises(EncoderFailed, match=NEEDED):
        RemoteModel("model", "https://models.invalid", None, "KEY", CircuitBreaker())
    RemoteModel("model", "http://127.0.0.1:9", None, "KEY", CircuitBreaker()).close()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    assert availability._hub_problem("a/b", "https://hub.invalid") == f"the hub can't be reached ({NEEDED})"


IMPORTED_IN_SECONDS = [pytest.param(vendor, marks=pytest.mark.slow) for vendor in ("openai", "anthropic", "google")]


@pytest.mark.parametrize("vendor", [*IMPORTED_IN_SECONDS, "ollama"])
def test_chat_models_are_asked_here_and_refused_elsewhere(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_openai")
    known = VENDORS[vendor]
    for variable in known.keys:
        monkeypatch.setenv(variable, "k")
    monkeypatch.setenv(known.address[0], "http://127.0.0.1:9")
    assert Models().model(f"{vendor}:model-here")
    monkeypatch.setenv(known.address[0], "http://llm.invalid/v1")
    with pytest.raises(ChatFailed, match=f"{vendor}:model can't be asked: llm.invalid can't be reached: ALL_PROXY names a SOCKS proxy"):
        Models().model(f"{vendor}:model")
