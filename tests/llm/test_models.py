"""Which chat model a name means, and with which arguments it is asked."""

import json
import sys
import threading
from typing import Any

import httpx2
import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from benchmarks.vendor import Vendor, vendor
from memory_mcp.config import proxies
from memory_mcp.config.settings import ModelVendor, Settings
from memory_mcp.errors import ChatFailed
from memory_mcp.features.chat.web import SUGGESTIONS, WebChat
from memory_mcp.llm import vendors as known_vendors
from memory_mcp.llm.models import Models

FAKE = "langchain_core.language_models.fake_chat_models:FakeListChatModel"
KEY = "sk-of-the-lab"


def asked(model: Any) -> str:
    return str(model.invoke("やあ").text)


@pytest.mark.parametrize(
    ("name", "kind", "model"),
    [
        ("openai:gpt-x", "openai", "gpt-x"),
        ("claude:x", "anthropic", "x"),
        ("ollama:hf.co/lab/qwen:Q4", "ollama", "hf.co/lab/qwen:Q4"),
        ("local/org/qwen:7b", "openai", "org/qwen:7b"),
        ("openai/gpt-x", "openai", "gpt-x"),
        (FAKE, "", "FakeListChatModel"),
    ],
)
def test_a_name_means_a_vendor_a_server_of_the_configuration_or_a_class(name: str, kind: str, model: str) -> None:
    models = Models({"local": {"url": "http://127.0.0.1:9"}, "openai": {"url": "http://127.0.0.1:9"}})
    source = models.source(name)
    assert (source.kind, source.model, bool(source.server)) == (kind, model, "/" in name.partition(":")[0])


@pytest.mark.parametrize("name", ["", "x", "x/", "openai:", "nobody/x", "local", "/x", ":x", "a b:C"])
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(ChatFailed, match="is not the name of a model"):
        Models({"local": {"url": "http://127.0.0.1:9"}}).source(name)


def test_who_writes_a_server_as_a_vendor_is_told_how_its_models_are_named() -> None:
    models = Models({"local": {"url": "http://127.0.0.1:9"}}, only_named=True)
    with pytest.raises(ChatFailed, match="NAME/MODEL, where NAME is local"):
        models.source("local:qwen")
    with pytest.raises(ChatFailed, match=r"has to be named in chat\.arguments"):
        models.source("langchain_x.models:ChatX")


@pytest.mark.slow
def test_two_servers_of_the_same_wire_are_asked_each_with_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    with vendor() as lab, vendor() as local:
        lab.steps, local.steps = ["研究室"], ["手元"]
        models = Models({"lab": {"url": lab.url, "key": "env:LAB_KEY"}, "local": {"url": local.url}})
        assert [asked(models.model(name)) for name in ("lab/m", "local/org/large")] == ["研究室", "手元"]
        assert [model["model"] for model in (*lab.asked, *local.asked)] == ["m", "org/large"]
        assert [server.headers[0]["authorization"] for server in (lab, local)] == [f"Bearer {KEY}", "Bearer none"]


def test_a_server_whose_key_is_missing_says_where_it_was_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    models = Models({"lab": {"url": "http://127.0.0.1:9", "key": "env:LAB_KEY"}})
    assert "LAB_KEY is not set" in models.obstacle("lab", models.vendors["lab"])
    with pytest.raises(ChatFailed, match="LAB_KEY is not set"):
        models.loading("lab/m")


@pytest.mark.slow
def test_arguments_of_the_configuration_are_sent_and_those_of_a_conversation_go_before_them() -> None:
    with vendor() as lab:
        models = Models({"lab": {"url": lab.url}}, {"lab/m": {"temperature": 0.25, "max_tokens": 7}})
        asked(models.model("lab/m", temperature=0.5))
        asked(models.model("lab/other"))
    first, other = lab.asked
    assert (first["temperature"], first["max_tokens"], "max_completion_tokens" in first) == (0.5, 7, False)
    assert not {"temperature", "max_tokens"} & other.keys()


@pytest.mark.slow
def test_a_limit_of_an_answer_goes_beside_what_else_is_sent_to_a_server() -> None:
    with vendor() as lab:
        asked(Models({"lab": {"url": lab.url}}).model("lab/m", max_tokens=7, extra_body={"top_k": 3}))
    assert (lab.asked[0]["max_tokens"], lab.asked[0]["top_k"]) == (7, 3)


def test_an_argument_may_have_any_name() -> None:
    with pytest.raises(ChatFailed, match="it rejects"):
        Models(arguments={FAKE: {}}).model(FAKE, name=["y"], responses=1)
    with pytest.raises(ChatFailed, match="can't be asked"):
        Models(arguments={FAKE: {}}).loading(FAKE, name=["y"]).result(20)


def test_a_class_of_the_running_program_is_no_failure_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
    assert Models().source("__main__:Own").kind == ""
    with pytest.raises(ChatFailed, match="AttributeError"):
        Models().model("__main__:Own")


def test_a_class_of_ones_own_is_made_once_and_is_not_made_for_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Models(arguments={FAKE: {"responses": ["一度"]}})
    assert made.model(FAKE) is made.model(FAKE)
    settings = Settings.model_validate({"chat": {"arguments": {FAKE: {"responses": ["二度"]}}}})
    loaded: list[str] = []
    monkeypatch.setattr(Models, "loading", lambda _, name: loaded.append(name))
    WebChat(lambda: settings).prepare(FAKE)
    monkeypatch.setitem(sys.modules, "langchain_ollama", sys)
    WebChat(lambda: settings).prepare("ollama:here")
    assert loaded == []
    monkeypatch.delitem(sys.modules, "langchain_ollama")
    WebChat(lambda: settings).prepare("ollama:here")
    assert loaded == ["ollama:here"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "attribute"),
    [("openai:x", "max_tokens"), ("anthropic:x", "max_tokens"), ("google:x", "max_output_tokens"), ("ollama:x", "num_predict")],
)
def test_the_limit_of_an_answer_has_one_name_with_all_vendors(monkeypatch: pytest.MonkeyPatch, name: str, attribute: str) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(variable, KEY)
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(variable, raising=False)
    model = Models().model(name, max_tokens=77, temperature=0.125)
    assert (getattr(model, attribute), model.temperature) == (77, 0.125)  # type: ignore[attr-defined]


def test_a_class_of_ones_own_is_a_model_where_the_configuration_names_it() -> None:
    models = Models(arguments={FAKE: {"responses": ["はい"]}}, only_named=True)
    model = models.model(FAKE)
    assert isinstance(model, FakeListChatModel)
    assert model.responses == ["はい"]
    for name in ("os:system", FAKE.replace("List", "")):
        with pytest.raises(ChatFailed, match=r"has to be named in chat\.arguments"):
            models.source(name)


def test_arguments_that_a_class_refuses_are_told_without_their_values() -> None:
    with pytest.raises(ChatFailed, match=r"it rejects chat\.arguments: ValidationError") as refused:
        Models(arguments={FAKE: {"responses": "sk-secret"}}).model(FAKE)
    assert "sk-secret" not in str(refused.value)
    with pytest.raises(ChatFailed, match="its arguments are not JSON"):
        Models({"lab": {"url": "http://127.0.0.1:9"}}).model("lab/m", http_client=object())


@pytest.fixture
def lab() -> Any:
    with vendor() as known:
        yield known


def test_the_page_offers_the_models_of_all_servers_and_says_which_do_not_answer(lab: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", lab.url.removesuffix("/v1"))
    vendors = {"lab": {"url": lab.url}, "off": {"url": "http://127.0.0.1:9"}}
    settings = Settings.model_validate({"llm": {"vendors": vendors}, "chat": {"model": "lab/mine"}})
    offered = {each["name"]: each for each in WebChat(lambda: settings).vendors()}
    assert offered["lab"] == {"name": "lab", "prefix": "lab/", "models": ["lab/mine", "lab/m", "lab/org/large"], "why": ""}
    assert offered["ollama"]["models"] == ["ollama:m", "ollama:org/large"]
    assert "nobody answers at 127.0.0.1:9" in offered["off"]["why"]


def test_a_server_of_the_configuration_does_not_hide_the_vendor_whose_name_it_has(lab: Vendor) -> None:
    settings = Settings.model_validate({"llm": {"vendors": {"openai": {"url": lab.url}}}})
    offered = {each["prefix"]: each for each in WebChat(lambda: settings).vendors()}
    assert offered["openai/"]["models"] == ["openai/m", "openai/org/large"]
    assert offered["openai:"]["models"] == []


def test_a_server_is_asked_for_its_models_once_in_a_minute_and_not_all_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def listed(name: str, *_: Any) -> list[dict[str, Any]]:
        calls.append(name)
        return [{"id": f"m{number}"} for number in range(200)]

    monkeypatch.setattr("memory_mcp.features.chat.web.listed", listed)
    settings = Settings.model_validate({"llm": {"vendors": {"lab": {"url": "http://127.0.0.1:9"}}}})
    chat = WebChat(lambda: settings)
    offered = [next(each for each in chat.vendors() if each["name"] == "lab") for _ in range(2)]
    assert [len(each["models"]) for each in offered] == [SUGGESTIONS, SUGGESTIONS]
    assert calls.count("lab") == 1
    monkeypatch.setattr("memory_mcp.features.chat.web.LISTED_SECONDS", -1.0)
    other = WebChat(lambda: settings)
    assert other.vendors() == other.vendors()
    assert calls.count("lab") == 3


def test_while_a_server_is_asked_for_its_models_other_clients_can_be_made(lab: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    free: list[bool] = []
    plain = httpx2.Client.get

    def get(client: Any, *arguments: Any, **options: Any) -> Any:
        def tries() -> None:
            free.append(proxies._changing.acquire(blocking=False))
            if free[-1]:
                proxies._changing.release()

        thread = threading.Thread(target=tries)
        thread.start()
        thread.join()
        return plain(client, *arguments, **options)

    monkeypatch.setattr(httpx2.Client, "get", get)
    assert [model["id"] for model in known_vendors.listed("lab", ModelVendor(url=lab.url), 5)] == ["m", "org/large"]
    assert free == [True]


def test_arguments_and_servers_of_conversations_are_changed_only_in_the_file_and_shown_without_values() -> None:
    from memory_mcp.config.settings import ONLY_IN_THE_FILE, SECRET_KEYS  # noqa: PLC0415

    assert {"chat.arguments", "chat.mcp"} <= ONLY_IN_THE_FILE
    assert "chat.arguments" in SECRET_KEYS
    assert json.loads(Settings.model_validate({"chat": {"arguments": {"a:b": {"temperature": 1}}}}).model_dump_json())["chat"]["arguments"]
