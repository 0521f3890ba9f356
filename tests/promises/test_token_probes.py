"""What a token does not allow is not there: every tool, resource, prompt and route, with every set of scopes, in both eras.

Each answer about a persona that is not the token's is recorded twice, before that persona exists and after: not one byte may
differ, whichever argument of an operation is sent. And whatever a token's scopes don't cover must be refused by name and change nothing.
What is asked comes from the server's table of operations.
"""

import itertools
import json
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import httpx2
import pytest
from figures import Figure
from oauth_person import CHALLENGE, RETURN_TO, VERIFIER
from processes import RunningServer, serving
from soundness import contents

from memory_mcp.domain import TOKEN_SCOPES, TokenScope
from memory_mcp.server.application import scope_needs
from memory_mcp.server.arguments import kind_of, must_be_sent
from memory_mcp.server.http.routes import OPERATIONS
from memory_mcp.server.mcp.tools import TOOLSETS
from memory_mcp.server.oauth.resource import OAUTH_SCOPES
from memory_mcp.server.operation import Operation
from memory_mcp.store.files.access_tokens import create_token, revoke_token
from memory_mcp.store.files.oauth_grants import Asked, exchange, grant, revoke_grant

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONFIG = {"embeddings_model": None, "reranker_model": None, "toolsets": ["core", "upkeep", "compat", "graph", "experience"]}
SECRET = "アリスだけが知っている合言葉は睡蓮"
ALICE, OWN = "alice", "nilou"
KEY = "memory_20251030120000_aaaaaaaa"

ARGUMENTS: dict[str, dict[str, Any]] = {
    "get_context": {"query": "合言葉"},
    "remember": {"content": "x"},
    "recall": {"query": "合言葉", "keys": []},
    "revise": {"key": KEY, "content": "x"},
    "forget": {"keys": [KEY]},
    "update_context": {"emotion": "x"},
    "organize": {"merge": [KEY], "into": "memory_none"},
    "advise": {"task": "合言葉を言う"},
    "report": {"task": "合言葉を言う", "outcome": "worked"},
    "judge": {"keys": [KEY], "verdict": "helped"},
    "ingest": {"text": "x"},
    "save_memory": {"content": "x"},
    "search_memories": {"query": "合言葉"},
    "build_context": {"query": "合言葉"},
    "create_memory": {"content": "x", "user_info": {"name": "x"}},
    "read_memory": {"key": KEY},
    "update_memory": {"key": KEY, "content": "x"},
    "delete_memory": {"key": KEY},
    "list_memory": {},
    "search_memory": {"query": "合言葉", "tags": ["a", "b"]},
    "search_memory_rag": {"query": "合言葉"},
    "get_persona_context": {},
    "rebuild_vector_store": {},
    "explain_recall": {"query": "合言葉"},
    "history": {"key": KEY},
    "restore_version": {"key": KEY, "revision": 1},
    "purge": {"keys": [KEY]},
    "entity_neighbors": {"entity": "睡蓮"},
    "find_path": {"source": "睡蓮", "target": "水辺"},
    "graph_snapshot": {"format": "json"},
    "relate": {"relations": ["睡蓮 > knows > 水辺"]},
    "unrelate": {"relation": "睡蓮 > knows > 水辺"},
    "merge_entities": {"entity": "睡蓮", "into": "水辺"},
}
# What is sent to a route. None of it would change a persona that exists: the other name is always somebody else's.
BODIES: dict[str, dict[str, Any]] = {
    "/api/organize": {"merge": [KEY], "into": "memory_none"},
    "/api/organize/unlink": {"newer": KEY, "earlier": "memory_none"},
    "/api/report": {"task": "合言葉を言う", "outcome": "worked"},
    "/api/judge": {"keys": [KEY], "verdict": "helped"},
    "/api/backups": {},
    "/api/import": {"content": "x"},
    "/api/restore": {"key": KEY, "revision": 1},
    "/api/purge": {"keys": [KEY]},
    "/api/persona/rename": {"to": OWN},
    "/api/persona/copy": {"to": OWN},
    "/api/persona/merge": {"into": OWN},
    "/api/persona/erase": {},
    "/api/graph/entities": {"name": "x"},
    "/api/graph/entity": {"entity": "睡蓮", "description": "x"},
    "/api/graph/types": {"kind": "entity", "name": "x"},
    "/api/graph/merges": {"entity": "睡蓮", "into": "水辺"},
}
QUERIES: dict[str, dict[str, str]] = {
    "/api/history": {"key": KEY},
    "/api/advise": {"task": "合言葉を言う"},
    "/api/memory": {"key": KEY},
    "/api/graph/memory-links": {"key": KEY},
    "/api/graph/entity": {"entity": "睡蓮"},
    "/api/graph/neighbors": {"entity": "睡蓮"},
    "/api/graph/paths": {"source": "睡蓮", "target": "水辺"},
    "/api/graph/export": {"format": "json"},
    "DELETE /api/graph/types": {"kind": "entity", "name": "x"},
}
# They are about a memory, an entity or a persona that has to be there.
WANT_SOMEBODY = (
    *(
        "/api/memory",
        "/api/history",
        "/api/restore",
        "/api/organize",
        "/api/organize/unlink",
        "/api/backups",
        "/api/graph/entity",
        "/api/graph/merges",
    ),
    *("/api/graph/neighbors", "/api/graph/paths", "/api/graph/memory-links", "/api/conversation", "/api/conversation/export"),
    *("/api/persona", "/api/persona/"),
)
NEEDS = scope_needs()
TABLE: dict[str, Operation] = {
    **{action.tool.name: action for actions in TOOLSETS.values() for action in actions if action.tool},
    **{action.route.name: action for action in OPERATIONS if action.route},
}
# Values that would touch the foreign persona, by the kind of an argument.
TOUCHING: dict[type, tuple[Any, ...]] = {
    str: (KEY, "睡蓮", ALICE),
    bool: (True,),
    int: (1,),
    float: (0.5,),
    list: ([KEY], ["睡蓮", SECRET]),
    dict: ({"name": "睡蓮"},),
}
ALL_SETS = [frozenset(chosen) for size in range(1, 6) for chosen in itertools.combinations(TOKEN_SCOPES, size)]
ERAS = ("2025-11-25", "2026-07-28")

_MOMENT = re.compile(rb"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d\+\d\d:\d\d| [A-Z][a-z][a-z] \d\d:\d\d)")  # for programs, and in words

Probe = tuple[str, str]  # what of NEEDS, and in which era
Answer = tuple[int, tuple[tuple[str, str], ...], bytes]


@dataclass(frozen=True)
class Server:
    """A server process, and calls to it over one connection. `by_grant`: its secrets are those of OAuth clients, and not tokens."""

    running: RunningServer
    http: httpx2.Client
    by_grant: bool

    def token(self, personas: Sequence[str], scopes: Sequence[TokenScope] = TOKEN_SCOPES) -> str:
        """A new token of the server's owner."""
        return create_token(self.running.data, name="", personas=personas, scopes=scopes, now=datetime.now(UTC))[1]

    def secret(self, personas: Sequence[str], scopes: Sequence[TokenScope] = TOKEN_SCOPES) -> str:
        """What a caller shows who may reach these personas."""
        return self.granted(personas, scopes)[0] if self.by_grant else self.token(personas, scopes)

    def granted(
        self, personas: Sequence[str], scopes: Sequence[TokenScope] = TOKEN_SCOPES, at: datetime | None = None, resource: str = "/mcp"
    ) -> tuple[str, str, str]:
        """The access token that a client got at a moment; the ids of its grant and of the token whose owner granted it."""
        data, now = self.running.data, at or datetime.now(UTC)
        owner = create_token(data, name="", personas=None, scopes=TOKEN_SCOPES, now=now)[0].id
        asked = Asked("client", "Client", RETURN_TO, CHALLENGE, self.running.url + resource, owner, tuple(personas), tuple(scopes))
        code = grant(data, asked, now)
        issued = exchange(data, code, client_id="client", redirect_uri=RETURN_TO, verifier=VERIFIER, resource=None, now=now)
        return issued.access, issued.grant.id, owner

    def ask(self, probe: Probe, secret: str, persona: str, in_path: bool = False, arguments: dict[str, Any] | None = None) -> Answer:
        """One call, and all that comes back of it but the time of day. `arguments` instead of the usual ones."""
        what, era = probe
        sent = _usual(what) if arguments is None else arguments
        prefix, named = (f"/p/{persona}", {}) if in_path else ("", {"X-Persona": persona})
        headers = {"Authorization": f"Bearer {secret}", **named}
        method, _, address = what.partition(" ")
        if address:
            route = TABLE[what].route
            assert route
            streamed = json.dumps(BODIES.get(address, {})).encode() if route.body else None
            body = streamed if route.reads_query else json.dumps(sent).encode()
            query = (
                {name: str(value).lower() if isinstance(value, bool) else value for name, value in sent.items()}
                if route.reads_query
                else None
            )
            answer = self.http.request(method, prefix + address, headers=headers, content=body, params=query)
        else:
            call, params = _mcp_call(what, sent)
            more = {} if era == ERAS[0] else _modern(call, what, params)
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": call, "params": params}).encode()
            common = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            answer = self.http.post(f"{prefix}/mcp", headers={**headers, **common, **more}, content=body)
        told = tuple(sorted((name, value) for name, value in answer.headers.items() if name != "date"))
        return answer.status_code, told, _MOMENT.sub(b"<moment>", answer.content)


def _usual(what: str) -> dict[str, Any]:
    """What is sent if nothing else is said: an operation that isn't listed gets what its model requires."""
    action, address = TABLE.get(what), what.partition(" ")[2]
    if action is None:
        return {}
    if not address:
        listed = ARGUMENTS.get(what)
    elif action.route and action.route.reads_query:
        listed = QUERIES.get(what, QUERIES.get(address))
    else:
        listed = BODIES.get(address)
    if listed is not None:
        return listed
    return {name: _touching(field.annotation)[0] for name, field in action.arguments.model_fields.items() if must_be_sent(field)}


def _touching(annotation: Any) -> Sequence[Any]:
    inside = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return get_args(inside) if get_origin(inside) is Literal else TOUCHING[kind_of(annotation)]


def _varied(what: str) -> Iterator[dict[str, Any]]:
    """The usual arguments of an operation, with each value for each argument in turn."""
    for name, field in TABLE[what].arguments.model_fields.items():
        yield from ({**_usual(what), name: value} for value in _touching(field.annotation))


def _mcp_call(what: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if what in TABLE:
        return "tools/call", {"name": what, "arguments": arguments}
    if "://" in what:
        return "resources/read", {"uri": what}
    return "prompts/get", {"name": what, "arguments": {}}


def _modern(call: str, what: str, params: dict[str, Any]) -> dict[str, str]:
    """The headers of the later era, which wants them to agree with the body; `params` gets what it wants there."""
    words = {"protocolVersion": ERAS[1], "clientCapabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}
    params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in words.items()}
    return {"MCP-Protocol-Version": ERAS[1], "Mcp-Method": call, "Mcp-Name": what}


PROBES: list[Probe] = [(what, era) for what in NEEDS for era in (ERAS if " " not in what else ERAS[:1])]


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with a built-in authorization server; `by grants`, its callers are OAuth clients."""
    with serving(tmp_path, json.dumps(CONFIG)) as running, httpx2.Client(base_url=running.url, timeout=60, trust_env=False) as http:
        oauth = {"authorization_server": "built_in", "public_url": running.url}
        running.config.write_text(json.dumps({**CONFIG, "oauth": oauth}), encoding="utf-8")
        yield Server(running, http, getattr(request, "param", None) == "by grants")


by_tokens_and_by_grants = pytest.mark.parametrize(
    "server", ["by tokens", pytest.param("by grants", marks=pytest.mark.thorough)], indirect=True
)


@pytest.fixture
def sets(thorough: bool) -> list[frozenset[TokenScope]]:
    """The sets of scopes that are tried: each scope alone, all, and all but one; every one of the 31 when there is time."""
    return ALL_SETS if thorough else [chosen for chosen in ALL_SETS if len(chosen) in (1, 4, 5)]


def _make_alice(server: Server) -> None:
    """Alice begins to exist: a memory and a conversation under the very key that is asked for, a context, two who know each other, a backup."""
    secret = server.token([ALICE])
    line = json.dumps({"content": SECRET, "key": KEY, "tags": ["a"], "source": "アリス"}).encode()
    imported = server.http.post("/api/import", content=line, headers={"Authorization": f"Bearer {secret}"})
    assert imported.json()["stored"] == 1
    assert server.ask(("update_context", ERAS[0]), secret, ALICE)[0] == 200
    assert b'"isError":false' in server.ask(("relate", ERAS[0]), secret, ALICE)[2]
    turn = {"id": KEY, "number": 1, "model": "x:y", "messages": [{"role": "user", "text": SECRET}]}
    assert server.http.post("/api/conversation", json=turn, headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert server.http.post("/api/backups", headers={"Authorization": f"Bearer {secret}"}).json()["persona"] == ALICE
    _, _, recalled = server.ask(("read_memory", ERAS[0]), secret, ALICE)
    assert SECRET in recalled.decode()


@by_tokens_and_by_grants
def test_an_answer_about_a_foreign_persona_never_tells_whether_there_is_one(
    server: Server, sets: list[frozenset[TokenScope]], thorough: bool, figure: Figure
) -> None:
    owner = server.secret([OWN])
    assert server.ask(("remember", ERAS[0]), owner, OWN)[0] == 200
    # One of its own has nearly the name: a guess at what the caller meant must come out the same too.
    alone = [chosen for chosen in sets if len(chosen) == 1]
    secrets = {
        chosen: server.secret([OWN, "alicia"], tuple(chosen))
        for chosen in sets
        if (thorough and not server.by_grant) or len(chosen) in (1, 5)
    }
    assert server.ask(("remember", ERAS[0]), server.token(["alicia"]), "alicia")[0] == 200
    whole = frozenset(TOKEN_SCOPES)
    # Everything with all scopes, by header and by path, and with one of the scopes; with each of them, both ways, when there is time.
    asked = [
        (chosen, probe, in_path)
        for chosen in secrets
        for number, probe in enumerate(PROBES)
        for in_path in ((False, True) if thorough or chosen == whole else (False,))
        if thorough or chosen == whole or chosen == alone[number % len(alone)]
    ]
    for secret in secrets.values():  # when a token was last used is told of all of them
        server.ask(("recall", ERAS[0]), secret, OWN)

    absent = [server.ask(probe, secrets[chosen], ALICE, in_path) for chosen, probe, in_path in asked]
    assert not [answer for answer in absent if answer[0] in (401, 500)]
    missing = {probe[0].partition(" ")[2] for (_, probe, _), answer in zip(asked, absent, strict=True) if answer[0] == 404}
    assert [address for address in missing if address not in WANT_SOMEBODY and not address.startswith(WANT_SOMEBODY[-1])] == []
    _make_alice(server)
    present = [server.ask(probe, secrets[chosen], ALICE, in_path) for chosen, probe, in_path in asked]

    different = [(one, before, after) for one, before, after in zip(asked, absent, present, strict=True) if before != after]
    assert different == []
    assert not [answer for answer in present if SECRET.encode() in answer[2] or "アリス".encode() in answer[2]]
    assert b'"did_you_mean":["alicia"]' in present[asked.index((whole, ("recall", ERAS[0]), False))][2]
    assert server.http.get("/api/stats", headers={"Authorization": f"Bearer {server.token([ALICE])}"}).json()["memories"] == 1
    figure("token probes of a foreign persona, before and after it existed", len(absent) + len(present))
    figure("answers that tell a foreign persona from an absent one", len(different))


@by_tokens_and_by_grants
def test_no_argument_of_any_operation_tells_whether_there_is_a_foreign_persona(server: Server, thorough: bool, figure: Figure) -> None:
    assert TABLE.keys() <= NEEDS.keys()
    secret = server.secret([OWN, "alicia"])
    for persona in (OWN, "alicia"):
        assert server.ask(("remember", ERAS[0]), secret, persona)[0] == 200
    # One by the header, the next by the path; each by both when there is time.
    both = (False, True) if thorough and not server.by_grant else ()
    asked = [
        (what, arguments, in_path)
        for what in TABLE
        for number, arguments in enumerate(_varied(what))
        for in_path in both or (bool(number % 2),)
    ]
    absent = [server.ask((what, ERAS[0]), secret, ALICE, in_path, arguments) for what, arguments, in_path in asked]
    _make_alice(server)
    present = [server.ask((what, ERAS[0]), secret, ALICE, in_path, arguments) for what, arguments, in_path in asked]
    different = [(one, before, after) for one, before, after in zip(asked, absent, present, strict=True) if before != after]
    assert different == []
    assert not [answer for answer in absent if answer[0] in (401, 500)]
    figure("arguments tried on a foreign persona, before and after it existed", len(absent) + len(present))
    figure("arguments that tell a foreign persona from an absent one", len(different))


@by_tokens_and_by_grants
def test_what_the_scopes_do_not_cover_is_refused_by_name_and_changes_nothing(
    server: Server, sets: list[frozenset[TokenScope]], thorough: bool, figure: Figure
) -> None:
    counted = refused = 0
    wrong: list[tuple[Any, ...]] = []
    for number, chosen in enumerate(sets):
        persona = f"owned-{number}"
        secret = server.secret([persona], tuple(chosen))
        usable = chosen.intersection(OAUTH_SCOPES) if server.by_grant else chosen
        # One set in one era, the next in the other; each in both when there is time.
        for probe in [probe for probe in PROBES if thorough or " " in probe[0] or probe[1] == ERAS[number % 2]]:
            counted += 1
            answer = server.ask(probe, secret, persona)
            is_refused = f"{probe[0]} needs a token with the scope" in answer[2].decode()
            refused += is_refused
            if is_refused == (NEEDS[probe[0]] <= usable) or answer[0] in (401, 500):
                wrong.append((set(chosen), probe, answer))
        exists = (server.running.data / persona).exists()
        assert exists == ("write" in chosen), chosen
    assert wrong == []
    figure("token probes of scopes", counted)
    figure("of these refused, as the table of needs says", refused)
    figure("answers beyond a token's scopes", len(wrong))


def test_what_has_ended_or_is_good_elsewhere_is_good_for_nothing(server: Server, figure: Figure) -> None:
    long_ago, data = datetime.now(UTC) - timedelta(days=2), server.running.data
    access, grant_id, _ = server.granted([ALICE])
    revoke_grant(data, grant_id, datetime.now(UTC))
    orphan, _, owner = server.granted([ALICE])
    revoke_token(data, owner, datetime.now(UTC))
    left, token = create_token(data, name="", personas=[ALICE], scopes=TOKEN_SCOPES, now=long_ago)
    revoke_token(data, left.id, long_ago)
    over = create_token(data, name="", personas=[ALICE], scopes=TOKEN_SCOPES, now=long_ago, expires_at=long_ago + timedelta(days=1))[1]
    ended = {
        "a token that was revoked": token,
        "a token that has expired": over,
        "a grant that was revoked": access,
        "a grant that has expired": server.granted([ALICE], at=long_ago)[0],
        "a grant of whose owner the token was revoked": orphan,
        "a grant for another server": server.granted([ALICE], resource=".example/mcp")[0],
        "nobody's": f"{access[:-1]}{'0' if access[-1] != '0' else '1'}",
    }
    _make_alice(server)
    answers = {(what, probe): server.ask(probe, secret, ALICE) for what, secret in ended.items() for probe in PROBES}
    let_in = {asked: answer for asked, answer in answers.items() if answer[0] != 401 or SECRET.encode() in answer[2]}
    assert {probe[0] for _, probe in let_in} == {"GET /health"}  # which everybody may ask
    figure("token probes by what has ended or is good elsewhere", len(answers))


@by_tokens_and_by_grants
def test_no_secret_is_in_any_log_file_or_process_title(server: Server, thorough: bool, figure: Figure) -> None:
    secrets = [server.secret([OWN], (scope,)) for scope in TOKEN_SCOPES]
    for number, secret in enumerate(secrets):
        # Each is asked with one of them; with every one when there is time.
        for probe in PROBES if thorough else PROBES[number :: len(secrets)]:
            server.ask(probe, secret, OWN)
            server.ask(probe, secret[:-1], OWN)
        server.http.get(f"/{secret}", headers={"Authorization": f"Basic {secret}"})
        server.http.get(f"/p/{secret}/api/stats", headers={"X-Persona": secret})
    done = server.running.memory_mcp("recall", "x", "--persona", OWN)
    assert "requires a token" in done.stderr
    parts = [secret.rpartition("_")[2] for secret in secrets]
    files = dict(contents(server.running.data.parent))
    seen = list(files.values())
    title = Path(f"/proc/{server.running.process.pid}/cmdline")
    seen += [title.read_bytes()] if title.exists() else []
    assert any(path.name == "memory_operations.log" for path in files)
    found = [part for part in parts if any(part.encode() in content for content in seen)]
    assert found == []
    figure("secrets found in logs, data and process titles", len(found))


def test_a_flood_of_refused_calls_leaves_a_bounded_log(server: Server, thorough: bool, figure: Figure) -> None:
    reader = server.token([OWN], ("read",))
    rounds, begun = 3_000 if thorough else 100, time.monotonic()
    for number in range(rounds):
        server.http.get("/api/stats", headers={"Authorization": f"Bearer mmcp_{number:010}_{'0' * 64}"})
        server.ask(("remember", ERAS[0]), reader, OWN)
        server.ask(("recall", ERAS[0]), reader, f"persona-{number}")
    lines = (server.running.data / "memory_operations.log").read_text(encoding="utf-8").splitlines()
    windows = 1 + (time.monotonic() - begun) // 60
    assert len(lines) <= 15 * windows  # five a minute for each of the three kinds
    figure("refused calls, and lines in the log of operations", f"{3 * rounds}, {len(lines)}")


def test_asking_about_a_foreign_persona_takes_about_as_long_as_about_an_absent_one(server: Server, thorough: bool, figure: Figure) -> None:
    _make_alice(server)
    secret = server.token([OWN])
    spent: dict[str, list[float]] = {ALICE: [], "alicf": []}
    for _ in range(500 if thorough else 50):
        for name, times in spent.items():
            begun = time.perf_counter()
            status, _, _ = server.ask(("recall", ERAS[0]), secret, name)
            times.append(time.perf_counter() - begun)
            assert status == 200
    foreign, absent = (statistics.median(times) * 1_000 for times in spent.values())
    figure("median recall as a foreign and as an absent persona", f"{foreign:.2f} ms, {absent:.2f} ms")
