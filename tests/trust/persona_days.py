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
ROUTES = ("/health", "/ready", "/api/personas", "/api/stats", "/api/export", "/api/import", "/api/openapi.json")

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
        ("entity_neighbors", {"entity": mark, "depth": 3}),
        ("entity_neighbors", {"entity": "Kyoto"}),
        ("find_path", {"source": mark, "target": f"{mark}の友", "algorithm": chance.choice(["shortest", "strongest", "all"])}),
        ("graph_snapshot", {"format": "json", "limit": 500}),
        ("relate", {"relations": [f"{mark} > likes > 苺"]}),
        ("unrelate", {"relation": f"{mark} > likes > 苺", "reason": mark}),
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
    ]


READING = ("recall", "get_context", "search_memories", "build_context", "read_memory", "list_memory", "search_memory", "search_memory_rag",
           "get_persona_context", "rebuild_vector_store", "entity_neighbors", "find_path", "graph_snapshot", "unrelate", "forget", "delete_memory", "revise", "update_memory")  # fmt: skip


async def a_day(caller: Caller) -> set[str]:
    """Everything there is, in an order of chance. Returns which of it was done."""
    done: set[str] = set()
    calls = [call for call in tool_calls(caller) if caller.exists or call[0] in READING]
    errands: list[tuple[str, Any]] = [
        (name, (lambda name=name, arguments=arguments: caller.tool(name, **arguments))) for name, arguments in calls
    ]
    errands += [
        (f"memory://{name}", lambda name=name: caller.mcp.read_resource(f"memory://{name}")) for name in ("info", "stats", "status")
    ]
    errands += [(name, lambda name=name: caller.mcp.get_prompt(name)) for name in ("session_start", "memory_protocol")]
    errands += [(route, lambda route=route: visit(caller, route)) for route in ROUTES if caller.exists or route != "/api/import"]
    errands += [("lists", lambda: listed(caller))]
    caller.chance.shuffle(errands)
    for name, errand in errands:
        await errand()
        done.add(name)
    return done


async def visit(caller: Caller, route: str) -> None:
    """A route as this persona, in the way in which this caller says who it is."""
    if route == "/api/import":
        mark = caller.mark
        rows = [{"content": text, "tags": [mark], "source": mark} for text in SHARED] + [
            {"content": f"持ち込み {mark} {caller.chance.random()}"}
        ]
        answer = await caller.http.post(caller.prefix + route, content="".join(json.dumps(row) + "\n" for row in rows))
    else:
        answer = await caller.http.get(caller.prefix + route, params={"include_deleted": "true"} if route == "/api/export" else None)
    assert answer.status_code == 200, (route, answer.text)
    if route in ("/api/stats", "/api/import"):
        assert answer.json()["persona"] == caller.persona


async def listed(caller: Caller) -> None:
    """What there is to list."""
    for listing in (caller.mcp.list_tools, caller.mcp.list_resources, caller.mcp.list_resource_templates, caller.mcp.list_prompts):
        await listing()
