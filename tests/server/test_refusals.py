"""How each error reaches a client, and what a persona whose files are in trouble means for itself and for the others."""

import json
from datetime import UTC, datetime

import apsw
import pytest

from memory_mcp import errors
from memory_mcp.config.settings import Privacy
from memory_mcp.server.errors import http_refusal, status_of

pytestmark = pytest.mark.both_eras

STATUS = {
    errors.InvalidInput: 400,
    errors.InvalidPersonaName: 400,
    errors.SettingsRefused: 400,
    errors.PersonaConflict: 400,
    errors.PersonaRequired: 400,
    errors.PersonaElsewhere: 421,
    errors.TokenRefused: 401,
    errors.NotAllowed: 403,
    errors.GrantRefused: 400,
    errors.BodyLate: 408,
    errors.BodyTooLong: 413,
    errors.WrongMediaType: 415,
    errors.TooManyCalls: 429,
    errors.MemoryNotFound: 404,
    errors.EntityNotFound: 404,
    errors.ConversationNotFound: 404,
    errors.EncoderFailed: 503,
    errors.ChatFailed: 503,
    errors.NotInstalled: 501,
    errors.ProxyUnusable: 501,
    errors.ClockUnusable: 500,
    errors.AnalysisUnfinished: 503,
    errors.IssuerUnreachable: 503,
    errors.SearchUnfinished: 503,
    errors.Overloaded: 503,
    errors.PersonaOverloaded: 429,
    errors.StoreFull: 507,
    errors.StoreDamaged: 500,
    errors.StoreReadOnly: 500,
    errors.KeyRefused: 500,
    errors.StoreError: 500,
    errors.ConfigError: 500,
    errors.StartupError: 500,
    errors.DirectoryInUse: 500,
    errors.ServerUnreachable: 500,
    errors.PersonaUnknown: 404,
    errors.MemoryMCPError: 500,
}


def all_errors(kind=errors.MemoryMCPError):
    yield kind
    for narrower in kind.__subclasses__():
        if narrower.__module__ == errors.__name__:  # a feature's have a status of their own
            yield from all_errors(narrower)


@pytest.mark.parametrize("kind", list(all_errors()))
def test_every_error_has_a_status_of_its_own_choice(kind):
    what = {"server_port": "what"} if kind is errors.SettingsRefused else "what"
    assert status_of(kind(what)) == STATUS[kind]


def test_an_error_is_answered_as_an_object_with_its_words():
    answer = http_refusal(errors.MemoryNotFound("no memory", "none is there", "Look elsewhere"), rules=Privacy())
    assert answer.status_code == 404
    assert json.loads(answer.body) == {"error": "no memory: none is there. Look elsewhere."}
    assert "retry-after" not in answer.headers


def test_too_much_work_says_when_to_come_back():
    assert http_refusal(errors.Overloaded("too much"), rules=Privacy()).headers["retry-after"] == "1"
    assert http_refusal(errors.TooManyCalls("too many calls", "", 42), rules=Privacy()).headers["retry-after"] == "42"


def test_a_missing_token_says_what_kind_is_wanted():
    assert http_refusal(errors.TokenRefused("none"), rules=Privacy()).headers["www-authenticate"] == "Bearer"


def hamper(server, name, pragma):
    """Makes SQLite refuse what the disk would."""
    with server.runtime.personas.writing(name) as persona:
        persona.database.prepare(lambda connection: connection.execute(f"PRAGMA {pragma}"))


def test_a_damaged_persona_is_refused_and_the_others_are_served(own_server, own_http, connect):
    nilou = connect(own_server, "nilou")
    nilou("remember", content="睡蓮の踊り")
    directory = own_server.directory_of("dehya")
    directory.mkdir()
    (directory / "persona.json").write_text('{"name": "dehya"}', encoding="utf-8")
    (directory / "memory.sqlite").write_bytes(b"this was a database once " * 400)

    dehya = connect(own_server, "dehya")
    words = "the database of dehya is damaged"
    for tool, arguments in (
        ("recall", {"query": "x"}),
        ("remember", {"content": "x"}),
        ("get_context", {}),
        ("update_context", {"emotion": "x"}),
    ):
        said = dehya.refusal(tool, **arguments)
        assert words in said
        assert "other personas are not affected" in said
    for path in ("/api/stats", "/api/export"):
        answer = own_http.get(path, headers={"X-Persona": "dehya"})
        assert answer.status_code == 500
        assert words in answer.json()["error"]
    answer = own_http.post("/api/import", content=b'{"content": "x"}', headers={"X-Persona": "dehya"})
    assert (answer.status_code, words in answer.json()["error"]) == (500, True)

    dehyas, nilous = own_http.get("/api/personas").json()["personas"]
    assert (dehyas["name"], words in dehyas["error"]) == ("dehya", True)
    assert (nilous["name"], nilous["memories"]) == ("nilou", 1)
    assert nilou("recall", query="睡蓮")["hits"]
    assert nilou("remember", content="まだ元気")["stored"]
    assert own_http.get("/ready").status_code == 200


def test_a_persona_whose_identity_can_not_be_read_is_refused(own_server, connect):
    connect(own_server, "nilou")
    directory = own_server.directory_of("dehya")
    directory.mkdir()
    (directory / "persona.json").write_text("{", encoding="utf-8")
    assert "persona.json in dehya can't be read" in connect(own_server, "dehya").refusal("remember", content="x")


def test_a_full_disk_refuses_writing_and_goes_on_reading(own_server, own_http, connect):
    nilou = connect(own_server, "nilou")
    nilou("remember", content="睡蓮の踊り")
    hamper(own_server, "nilou", "max_page_count = 1")
    said = nilou.refusal("remember", content="あふれる記憶。" * 20_000)
    assert said.startswith("the disk is full: nothing could be written for nilou. Free some room and try again")
    row = json.dumps({"content": "あふれる記憶。" * 20_000}).encode()
    assert own_http.post("/api/import", content=row, headers={"X-Persona": "nilou"}).status_code == 507
    assert [hit["content"] for hit in nilou("recall", query="睡蓮 記憶")["hits"]] == ["睡蓮の踊り"]
    hamper(own_server, "nilou", "max_page_count = 1000000")
    assert nilou("remember", content="あふれる記憶。" * 20_000)["stored"]


def test_a_file_that_can_not_be_written_refuses_writing_and_goes_on_reading(own_server, connect):
    nilou = connect(own_server, "nilou")
    key = nilou("remember", content="睡蓮の踊り")["key"]
    hamper(own_server, "nilou", "query_only = ON")
    for tool, arguments in (("remember", {"content": "x"}), ("revise", {"key": key, "content": "x"}), ("forget", {"keys": [key]})):
        assert nilou.refusal(tool, **arguments).startswith("the files of nilou can't be written")
    assert nilou("recall", query="睡蓮")["hits"][0]["content"] == "睡蓮の踊り"


@pytest.mark.slow
def test_a_database_that_another_program_holds_is_reported_as_busy(own_server, own_http):
    own_http.post("/api/import", content=b'{"content": "before"}', headers={"X-Persona": "nilou"})
    other = apsw.Connection(str(own_server.directory_of("nilou") / "memory.sqlite"))
    other.execute("BEGIN IMMEDIATE")
    answer = own_http.post("/api/import", content=b'{"content": "x"}', headers={"X-Persona": "nilou"}, timeout=60)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "is locked by another program" in answer.json()["error"]
    other.execute("ROLLBACK")
    other.close()
    assert own_http.post("/api/import", content=b'{"content": "x"}', headers={"X-Persona": "nilou"}).json()["stored"] == 1


def test_a_context_file_that_was_broken_by_hand_costs_no_memory(own_server, connect):
    nilou = connect(own_server, "nilou")
    nilou("remember", content="睡蓮の踊り")
    file = own_server.directory_of("nilou") / "persona_context.json"
    file.write_text('{"current_emotion": ', encoding="utf-8")
    stored = nilou("remember", content="もう一つ")
    assert stored["stored"]
    assert stored["degraded"][0].startswith("context_not_updated: persona_context.json can't be read")
    context = nilou("get_context")
    assert context["memories"] == 2
    assert context["degraded"][0].startswith("context_unreadable: persona_context.json can't be read")
    assert "Mend or remove the file" in nilou.refusal("update_context", emotion="x")
    assert file.read_text(encoding="utf-8") == '{"current_emotion": '


@pytest.mark.parametrize("year", [1, 9999])
def test_a_clock_outside_the_calendar_is_said_and_ends_nothing_else(own_server, own_http, connect, year):
    nilou = connect(own_server, "nilou")
    nilou("remember", content="睡蓮の踊り")
    clock = own_server.runtime.clock
    object.__setattr__(own_server.runtime, "clock", lambda: datetime(year, 1, 1, tzinfo=UTC))
    said = f"the clock of the server's machine is wrong: it shows the year {year}. Set it, and try again."
    for tool, arguments in (("remember", {"content": "昨日は苺を食べた"}), ("recall", {"query": "昨日の苺"}), ("get_context", {})):
        assert nilou.refusal(tool, **arguments) == said
    answer = own_http.get("/api/export", headers={"X-Persona": "nilou"})
    assert (answer.status_code, "睡蓮の踊り" in answer.text) == (200, True)
    object.__setattr__(own_server.runtime, "clock", clock)
    assert [hit["content"] for hit in nilou("recall", query="睡蓮 苺")["hits"]] == ["睡蓮の踊り"]
