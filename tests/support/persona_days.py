"""What a caller of a persona does in a day: every tool, resource, prompt and route, with what other personas say and ask as well."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
from fastmcp import Client
from overhearing import mark_of
from plain_mcp import PlainMcp

# The same for everybody, so that whatever is cached of a text or a question is asked for by all.
SHARED = ("昨日は公園で友だちと会って、コーヒーを飲みました。", "彼女は苺のケーキが好きです。", "Next month we travel to Kyoto by train.")
QUESTIONS = ("公園で誰と会った？", "苺のケーキ", "When do we travel to Kyoto?", "秘密")
ROUTES = (
    "/health", "/ready", "/api/personas", "/api/stats", "/api/organize", "/api/organize/unlink", "/api/export", "/api/import", "/api/openapi.json", "/api/backups", "/api/memories", "/api/memories/days", "/api/memory", "/api/history", "/api/restore",
    "/api/graph/statistics", "/api/graph/analytics", "/api/graph/communities", "/api/graph/growth", "/api/graph/snapshot", "/api/graph/neighbors",
    "/api/graph/paths", "/api/graph/memory-links", "/api/graph/export", "/api/graph/entities", "/api/graph/entity", "/api/graph/types", "/api/graph/merges",
    "/api/purge", "/api/persona", "/api/persona/rename", "/api/persona/copy", "/api/persona/merge", "/api/persona/erase", "/api/session/expire",
    "/api/import/file", "/api/tokens", "/api/config", "/api/operations", "/api/events", "/api/privacy", "/api/recall", "/api/context", "/api/advise", "/api/report", "/api/judge", "/api/recall/figures", "/api/recall/weights", "/api/conversations", "/api/conversation", "/api/conversation/export", "/metrics",
)  # fmt: skip
RESOURCES = (
    *("memory://info", "memory://stats", "memory://status"),
    *(f"ui://memory-mcp/{name}.html" for name in ("graph", "history", "why")),
)
ASKED = {"/api/export": {"include_deleted": "true"}, "/api/recall": {"query": QUESTIONS[0]}, "/api/advise": {"task": QUESTIONS[0]}}
# These are about a memory, or a persona, that is there.
OF_SOMEBODY = frozenset(
    {
        *("/api/import", "/api/memory", "/api/history", "/api/restore", "/api/purge", "/api/graph/neighbors", "/api/graph/paths"),
        "/api/organize/unlink",
        *(
            "/api/graph/memory-links",
            "/api/session/expire",
            "/api/report",
            "/api/conversations",
            "/api/conversation",
            "/api/conversation/export",
        ),
        *("/api/graph/entities", "/api/graph/entity", "/api/graph/types", "/api/graph/merges"),
        *(route for route in ROUTES if "/persona" in route),
    }
) - {"/api/personas"}

# What is sent to a route that is asked by POST alone.
POSTED: dict[str, Callable[["Caller"], dict[str, Any]]] = {
    "/api/report": lambda caller: {"task": f"{caller.mark}の仕事", "outcome": "partly", "lesson": caller.mark},
    "/api/judge": lambda caller: {"keys": [caller.key(), caller.foreign_key()], "verdict": "helped"},
    "/api/recall/weights": lambda _: {"reset": True},
}

WHOLE_GRAPH = frozenset(f"/api/graph/{what}" for what in "statistics analytics communities growth snapshot neighbors paths export".split())

Call = tuple[str, dict[str, Any]]


@dataclass
class Caller:
    """One client of a persona. `stolen` are keys of other personas, as far as somebody could know them."""

    persona: str
    mcp: Client | PlainMcp
    http: httpx2.AsyncClient
    prefix: str
    chance: random.Random
    keys: list[str]
    stolen: Callable[[], list[str]]
    exists: bool = True

    @property
    def mark(self) -> str:
        return mark_of(self.persona)

    def key(self) -> str:
        """Some memory of this persona's own."""
        return self.chance.choice(self.keys) if self.keys else "memory_20251030120000_none"

    def foreign_key(self) -> str:
        """Some memory of somebody else's."""
        return self.chance.choice(self.stolen() or ["memory_20251030120000_none"])

    async def tool(self, name: str, **arguments: Any) -> dict[str, Any] | None:
        """The answer of a tool, None when it refuses; it must be about this persona."""
        result = await self.mcp.call_tool(name, arguments, raise_on_error=False)
        if result.is_error:
            return None
        told = result.structured_content
        assert told["persona"] == self.persona, (name, told)
        if "key" in told and told.get("stored"):
            self.keys.append(told["key"])
        return told


def tool_calls(caller: Caller) -> list[Call]:
    """Calls of every tool: what is asked is the same for everybody, what is stored carries the persona's mark somewhere."""
    mark, chance = caller.mark, caller.chance
    ask, text = chance.choice(QUESTIONS), chance.choice(SHARED)
    own = f"{text} {mark} {chance.getrandbits(32):x}"
    named = mark if caller.exists else "Kyoto"  # a refusal repeats the name that was asked for
    marked = {"tags": [mark], "source": mark, "session_id": f"{mark}-{chance.randrange(3)}"}
    state = {"emotion": mark, "environment": f"{mark} の部屋"}
    return [
        ("remember", {"content": own, **marked, "state": state, "questions": [f"{ask} {mark}"]}),
        ("remember", {"content": text, **marked}),
        ("recall", {"query": ask}),
        ("recall", {"query": text, "top_k": 50, "max_tokens": 20_000}),
        ("recall", {"query": ask, "mode": "semantic", "hypothetical": text}),
        ("recall", {"query": ask, "mode": "keyword", "detail": "index"}),
        ("recall", {"mode": "recent", "top_k": 50}),
        ("recall", {"query": caller.foreign_key(), "keys": [caller.foreign_key(), caller.key()]}),
        ("get_context", {"query": ask}),
        ("revise", {"key": caller.key(), "content": f"{own} 改", "reason": mark}),
        ("revise", {"key": caller.foreign_key(), "content": f"{own} を書き換える"}),
        ("forget", {"keys": [caller.key()], "reason": mark, "dry_run": chance.random() < 0.5}),
        ("forget", {"keys": [caller.foreign_key()]}),
        ("remember", {"content": f"{own} 置換", "supersedes": caller.foreign_key(), "tags": [mark]}),
        ("update_context", {"emotion": mark, "user_info": {"name": mark}, "persona_info": {"nickname": mark}}),
        ("remember", {"content": f"[[{mark}の友|Person]]が来た {own}", "relations": [f"{mark} > knows > {mark}の友"], "tags": [mark]}),
        ("entity_neighbors", {"entity": named, "depth": 3}),
        ("entity_neighbors", {"entity": "Kyoto"}),
        ("find_path", {"source": named, "target": f"{named}の友", "algorithm": chance.choice(["shortest", "strongest", "all"])}),
        ("graph_snapshot", {"format": "json", "limit": 500}),
        ("relate", {"relations": [f"{mark} > likes > 苺"]}),
        ("unrelate", {"relation": f"{named} > likes > 苺", "reason": mark}),
        ("merge_entities", {}),
        ("merge_entities", {"entity": f"{named}の友", "into": named, "reason": named}),
        ("merge_entities", {"undo": chance.randrange(10**6, 10**7)}),
        ("ingest", {"text": own, "source": mark}),
        ("save_memory", {"content": f"{own} 保存", "category": mark, "importance_score": 0.7}),
        ("search_memories", {"query": ask, "top_k": 20}),
        ("build_context", {"query": ask}),
        ("create_memory", {"content": f"{own} 作成", "context_tags": [mark], "emotion_type": mark, "user_info": {"name": mark}}),
        ("read_memory", {"key": caller.key()}),
        ("read_memory", {"key": caller.foreign_key()}),
        ("update_memory", {"key": caller.key(), "content": f"{own} 更新"}),
        ("update_memory", {"key": caller.foreign_key(), "content": f"{own} 乗っ取り"}),
        ("delete_memory", {"key": caller.key()}),
        ("delete_memory", {"key": caller.foreign_key()}),
        ("list_memory", {"top_k": 30}),
        ("search_memory", {"query": ask, "tags": [mark, "x"], "tag_match_mode": "any"}),
        ("search_memory_rag", {"query": ask, "top_k": 10}),
        ("get_persona_context", {}),
        ("rebuild_vector_store", {}),
        ("explain_recall", {"query": ask}),
        ("history", {"key": caller.key()}),
        ("history", {"key": caller.foreign_key()}),
        ("restore_version", {"key": caller.key(), "revision": 1, "reason": mark}),
        ("restore_version", {"key": caller.foreign_key(), "revision": 1}),
        ("purge", {"keys": [caller.key(), caller.foreign_key()]}),
        ("purge", {}),
        ("advise", {"task": text}),
        ("report", {"task": text, "outcome": "worked", "steps": [own], "used": [caller.key(), caller.foreign_key()], "run": mark}),
        ("report", {"task": f"{mark}の仕事", "outcome": "failed", "sign": own, "instead": mark}),
        ("judge", {"keys": [caller.key(), caller.foreign_key()], "verdict": chance.choice(["helped", "hurt", "stale"])}),
        ("organize", {}),
        ("organize", {"merge": [caller.key()], "into": caller.key(), "reason": mark}),
        ("organize", {"merge": [caller.foreign_key()], "into": caller.key()}),
        ("organize", {"merge": [caller.key()], "into": caller.foreign_key()}),
        ("organize", {"undo": caller.foreign_key()}),
    ]


READING = ("recall", "advise", "judge", "explain_recall", "get_context", "search_memories", "build_context", "read_memory", "list_memory", "search_memory", "search_memory_rag",
           "get_persona_context", "rebuild_vector_store", "entity_neighbors", "find_path", "graph_snapshot", "unrelate", "merge_entities", "forget", "delete_memory", "revise", "update_memory", "history", "restore_version", "purge", "organize")  # fmt: skip


async def a_day(caller: Caller) -> set[str]:
    """Everything there is, in an order of chance. Returns which of it was done."""
    done: set[str] = set()
    calls = [call for call in tool_calls(caller) if caller.exists or call[0] in READING]
    errands: list[tuple[str, Any]] = [
        (name, (lambda name=name, arguments=arguments: caller.tool(name, **arguments))) for name, arguments in calls
    ]
    errands += [(uri, lambda uri=uri: caller.mcp.read_resource(uri)) for uri in RESOURCES]
    errands += [(name, lambda name=name: caller.mcp.get_prompt(name)) for name in ("session_start", "memory_protocol")]
    errands += [(route, lambda route=route: visit(caller, route)) for route in ROUTES if caller.exists or route not in OF_SOMEBODY]
    errands += [("lists", lambda: listed(caller))]
    caller.chance.shuffle(errands)
    for name, errand in errands:
        await errand()
        done.add(name)
    return done


async def visit(caller: Caller, route: str) -> None:
    """A route as this persona, in the way in which this caller says who it is."""
    if route in ("/api/memory", "/api/history", "/api/restore", "/api/purge", "/api/graph/memory-links", "/api/organize/unlink"):
        await visit_memory(caller, route)
        return
    if route in WHOLE_GRAPH:
        await visit_whole_graph(caller, route)
        return
    if route.startswith("/api/persona/"):
        await visit_whole(caller, route)
        return
    if route.startswith("/api/graph/"):
        await visit_graph(caller, route)
        return
    if route == "/api/import":
        mark = caller.mark
        rows = [{"content": text, "tags": [mark], "source": mark} for text in SHARED] + [
            {"content": f"持ち込み {mark} {caller.chance.random()}"},
            {"entity": f"{mark}の家", "description": f"{mark}が住む"},
            {"relation": "lives_in", "source": mark, "target": f"{mark}の家"},
        ]
        answer = await caller.http.post(caller.prefix + route, content="".join(json.dumps(row) + "\n" for row in rows))
    elif route.startswith("/api/conversation"):
        answer = await visit_conversation(caller, route)
    elif route == "/api/session/expire":
        await posted(caller, "/api/import", content=json.dumps({"content": f"残す話 {caller.mark}", "session_id": "kept"}))
        answer = await caller.http.post(caller.prefix + route, json={"session_id": "kept", "expires_at": "never"})
    else:
        if route == "/api/persona":  # it is of somebody who is there
            await visit(caller, "/api/import")
        sent = {"json": POSTED[route](caller)} if route in POSTED else {"params": ASKED.get(route)}
        answer = await caller.http.request("POST" if route in POSTED else "GET", caller.prefix + route, **sent)
    assert answer.status_code == 200, (route, answer.text)
    if route in ("/api/stats", "/api/memories", "/api/organize", "/api/import", "/api/persona", "/api/session/expire"):
        assert answer.json()["persona"] == caller.persona


async def visit_conversation(caller: Caller, route: str) -> httpx2.Response:
    """A conversation of its own, from its first turn until it is deleted."""
    address, identity = caller.prefix + "/api/conversation", f"{caller.chance.getrandbits(64):x}"
    said = [{"role": "user", "text": f"{SHARED[0]} {caller.mark}"}]
    await posted(caller, "/api/conversation", json={"id": identity, "number": 1, "model": "m", "messages": said})
    renamed = await caller.http.patch(address, json={"id": identity, "title": f"{caller.mark} {identity}"})
    answer = await caller.http.get(caller.prefix + route, params=None if route.endswith("s") else {"id": identity})
    gone = await caller.http.delete(address, params={"id": identity})
    assert (renamed.status_code, gone.status_code) == (200, 200), (renamed.text, gone.text)
    return answer


async def visit_whole_graph(caller: Caller, route: str) -> None:
    """The graph from every side; who is asked about is there."""
    mark, chance = caller.mark, caller.chance
    if caller.exists:
        await caller.tool("relate", relations=[f"{mark} > knows > {mark}の友"])
    asked = {
        "/api/graph/analytics": {"measure": chance.choice(["pagerank", "degree", "eigenvector", "betweenness"])},
        "/api/graph/snapshot": {"format": chance.choice(["vis", "json"]), "limit": "500"},
        "/api/graph/neighbors": {"entity": mark, "depth": "3"},
        "/api/graph/paths": {"source": mark, "target": f"{mark}の友"},
        "/api/graph/export": {"format": chance.choice(["graphml", "json"])},
    }
    answer = await caller.http.get(caller.prefix + route, params=asked.get(route))
    assert answer.status_code == 200, (route, answer.text)
    if route != "/api/graph/export":
        assert answer.json()["persona"] == caller.persona


async def visit_memory(caller: Caller, route: str) -> None:
    """A memory of its own, from its first word to the last that is left of it."""
    key = f"memory_20251030120000_{caller.chance.getrandbits(64):x}"
    await posted(caller, "/api/import", content=json.dumps({"content": f"一度きり {caller.mark} {key}", "key": key}))
    await caller.tool("revise", key=key, content=f"言い直し {caller.mark} {key}")
    if route == "/api/history":
        answer = await caller.http.get(caller.prefix + route, params={"key": key})
        assert (answer.status_code, answer.json()["persona"], len(answer.json()["versions"])) == (200, caller.persona, 1)
    elif route == "/api/memory":
        answer = await caller.http.get(caller.prefix + route, params={"key": key})
        assert (answer.status_code, answer.json()["persona"], answer.json()["memory"]["revision"]) == (200, caller.persona, 2)
    elif route == "/api/graph/memory-links":
        answer = await caller.http.get(caller.prefix + route, params={"key": key})
        assert (answer.status_code, answer.json()["persona"], answer.json()["key"]) == (200, caller.persona, key)
    elif route == "/api/organize/unlink":
        answer = await caller.http.post(caller.prefix + route, json={"newer": key, "earlier": caller.foreign_key()})
        assert (answer.status_code, "is not linked as newer than" in answer.text) == (404, True)
    elif route == "/api/restore":
        assert (await posted(caller, route, json={"key": key, "revision": 1}))["revision"] == 3
    else:
        await caller.tool("forget", keys=[key])
        code = (await posted(caller, route, json={"keys": [key]}))["confirm"]
        assert (await posted(caller, route, json={"keys": [key], "confirm": code}))["outcomes"] == [{"key": key, "outcome": "erased"}]


async def visit_graph(caller: Caller, route: str) -> None:
    """What the route shows, and somebody, or a type, made, merged, changed and taken away."""
    side = f"{caller.mark}-{caller.chance.getrandbits(64):x}"
    if route.endswith("types"):
        await posted(caller, route, json={"kind": "entity", "name": side})
        query = {"kind": "entity", "name": side}
    else:
        for name in (side, f"{side}-two"):
            await posted(
                caller, "/api/graph/entities", json={"name": name, "type": "Concept", "description": caller.mark, "aliases": [f"{name}-x"]}
            )
        if route.endswith("merges"):
            number = (await posted(caller, route, json={"entity": side, "into": f"{side}-two", "reason": caller.mark}))["merge"]
            await posted(caller, route, json={"undo": number})
        changed = await caller.http.patch(caller.prefix + "/api/graph/entity", json={"entity": side, "description": f"改 {caller.mark}"})
        assert (changed.status_code, changed.json()["persona"]) == (200, caller.persona), changed.text
        query = {"entity": side}
    asked = query if route.endswith("entity") else {"limit": "100"} if not route.endswith("types") else None
    shown = await caller.http.get(caller.prefix + route, params=asked)
    assert (shown.status_code, shown.json()["persona"]) == (200, caller.persona), shown.text
    gone = await caller.http.delete(caller.prefix + ("/api/graph/types" if "kind" in query else "/api/graph/entity"), params=query)
    assert (gone.status_code, gone.json()["persona"]) == (200, caller.persona), gone.text


async def visit_whole(caller: Caller, route: str) -> None:
    """A persona beside, that nobody else has: made, copied or renamed, merged into this one, erased."""
    side = f"side-{caller.chance.getrandbits(64):x}"
    await posted(caller, "/api/import", who=side, content=json.dumps({"content": f"別の人 {caller.mark} {side}", "tags": [caller.mark]}))
    if route.endswith(("copy", "rename")):
        told = await posted(caller, route, who=side, json={"to": f"{side}-x"})
        assert told["persona"] == f"{side}-x"
        await posted(caller, "/api/persona/erase", who=f"{side}-x", json={"confirm": f"{side}-x"})
        if route.endswith("rename"):
            return
    if route.endswith("merge"):
        await visit(caller, "/api/import")  # only into somebody who is there
        assert (await posted(caller, route, who=side, json={"into": caller.persona}))["taken"] == 1
    await posted(caller, "/api/persona/erase", who=side, json={})
    assert (await posted(caller, "/api/persona/erase", who=side, json={"confirm": side}))["erased"]


async def posted(caller: Caller, route: str, who: str | None = None, **body: Any) -> dict[str, Any]:
    """What a POST as this persona, or as another of the caller's own, is answered with."""
    address, headers = (route, {"X-Persona": who}) if who else (caller.prefix + route, {})
    answer = await caller.http.post(address, headers=headers, **body)
    assert answer.status_code == 200, (route, answer.text)
    return answer.json()


async def listed(caller: Caller) -> None:
    """What there is to list."""
    for listing in (caller.mcp.list_tools, caller.mcp.list_resources, caller.mcp.list_resource_templates, caller.mcp.list_prompts):
        await listing()
