"""Every way in which a persona's own files can be damaged: it alone is refused, clearly, and nothing is put in the place of what was there."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from crashing import BY_WORDS, crashing
from figures import Figure
from processes import command
from writers import Caller, Refused

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

MEMORIES = 100
PAGE = 4096

Harm = Callable[[Path], object]


def garble(database: Path, start: int, length: int) -> None:
    """Random bytes in the place of some."""
    content = bytearray(database.read_bytes())
    content[start : start + length] = random.Random(0).randbytes(length)
    database.write_bytes(content)


def pages(database: Path) -> int:
    return database.stat().st_size // PAGE


# What is done to memory.sqlite after the server was stopped in good order.
STORE_HARMS: Mapping[str, Harm] = {
    "header-overwritten": lambda d: garble(d, 0, 100),
    "header-zeroed": lambda d: d.write_bytes(bytes(100) + d.read_bytes()[100:]),
    "first-page-garbled": lambda d: garble(d, 0, PAGE),
    "schema-garbled": lambda d: garble(d, 100, PAGE - 100),
    "middle-garbled": lambda d: garble(d, 2 * PAGE, (pages(d) - 3) * PAGE),
    "all-zero": lambda d: d.write_bytes(bytes(d.stat().st_size)),
    "no-length": lambda d: d.write_bytes(b""),
    "one-byte": lambda d: d.write_bytes(d.read_bytes()[:1]),
    "half-a-page": lambda d: d.write_bytes(d.read_bytes()[: PAGE // 2]),
    "one-page": lambda d: d.write_bytes(d.read_bytes()[:PAGE]),
    "half-of-it": lambda d: d.write_bytes(d.read_bytes()[: pages(d) // 2 * PAGE]),
    "lacks-its-last-page": lambda d: d.write_bytes(d.read_bytes()[:-PAGE]),
    "text": lambda d: d.write_text("ない" * 5_000),
    "gone": lambda d: d.unlink(),
    "directory": lambda d: (d.unlink(), d.mkdir()),
}
IDENTITY_HARMS: Mapping[str, Harm] = {
    "identity-empty": lambda d: d.write_bytes(b""),
    "identity-truncated": lambda d: d.write_bytes(d.read_bytes()[:7]),
    "identity-not-utf8": lambda d: d.write_bytes(b"\xff\xfe\x00"),
    "identity-a-list": lambda d: d.write_text("[]"),
    "identity-of-another": lambda d: d.write_text('{"name": "somebody-else"}'),
}
CONTEXT_HARMS: Mapping[str, Harm] = {
    "context-empty": lambda d: d.write_bytes(b""),
    "context-truncated": lambda d: d.write_bytes(d.read_bytes()[:20]),
    "context-not-utf8": lambda d: d.write_bytes(b"\xff\xfe\x00"),
    "context-a-list": lambda d: d.write_text("[]"),
    "context-people-a-text": lambda d: d.write_text('{"user_info": "空"}'),
    "context-time-a-text": lambda d: d.write_text('{"last_conversation_time": "いつか"}'),
    "context-time-a-number": lambda d: d.write_text('{"last_conversation_time": 17}'),
    "context-state-a-list": lambda d: d.write_text('{"current_emotion": ["嬉しい"], "environment": null}'),
}


def fill(tmp_path: Path, names: list[str]) -> Path:
    with crashing(tmp_path, BY_WORDS) as server:
        for name in names:
            lines = [json.dumps({"content": f"{name}の散歩{number}、{'海辺' * 20}"}) for number in range(MEMORIES)]
            with Caller(server, name) as caller:
                caller.imported("\n".join(lines).encode())
                caller("update_context", emotion="嬉しい")
        assert server.stop() == 0
    return server.data


def contents(directory: Path) -> dict[str, bytes]:
    return {
        entry.name: entry.read_bytes() for entry in directory.iterdir() if entry.is_file() and not entry.name.endswith(("-wal", "-shm"))
    }


def refusals(caller: Caller, name: str) -> list[str]:
    """The words in which every way to use a persona is refused."""
    said = []
    for tool, arguments in (
        ("recall", {"query": "散歩7"}),
        ("recall", {"mode": "recent"}),
        ("remember", {"content": f"{name}の新しい散歩"}),
        ("get_context", {}),
        ("forget", {"keys": ["memory_1"]}),
    ):
        with pytest.raises(Refused) as refused:
            caller(tool, **arguments)
        said.append(str(refused.value))
    response = caller.get("/api/export")
    assert response.is_error
    return [*said, response.json()["error"]]


def test_a_damaged_store_is_refused_with_a_reason_and_left_as_it_is_while_the_others_work(tmp_path: Path, figure: Figure) -> None:
    harms = {**STORE_HARMS, **IDENTITY_HARMS}
    data = fill(tmp_path, [*harms, "intact"])
    for name, harm in harms.items():
        harm(data / name / ("memory.sqlite" if name in STORE_HARMS else "persona.json"))
    before = {name: contents(data / name) for name in harms}

    survived = []
    with crashing(tmp_path, BY_WORDS) as server:
        for name in harms:
            with Caller(server, name) as caller:
                said = refusals(caller, name)
            assert [words for words in said if name not in words] == [], said
            assert [words for words in said if "/" in words.replace("read/write", "") or "Traceback" in words] == [], said
            with Caller(server, "intact") as caller:
                assert caller("recall", query=f"{name} 散歩7")["hits"]
                assert caller("remember", content=f"{name}が壊れていた")["stored"]
            survived.append(name)
        with Caller(server, "intact") as caller:
            listed = {persona["name"]: persona for persona in caller.get("/api/personas").json()["personas"]}
        told = command("doctor", "--config", str(server.config), "--data", str(data))
        assert server.stop() == 0
    assert [name for name in STORE_HARMS if "error" not in listed[name]] == []
    assert "error" not in listed["intact"]
    assert {name: contents(data / name) for name in harms} == before
    assert told.returncode == 1
    wrong = [line.removeprefix("wrong  ") for line in told.stdout.splitlines() if line.startswith("wrong")]
    assert [name for name in harms if not any(name in line and "estore" in line for line in wrong)] == []
    figure("damaged stores injected", len(harms))
    figure("damaged stores survived, with every other persona at work", len(survived))


def test_a_damaged_context_costs_the_context_and_no_memory(tmp_path: Path, figure: Figure) -> None:
    data = fill(tmp_path, list(CONTEXT_HARMS))
    for name, harm in CONTEXT_HARMS.items():
        harm(data / name / "persona_context.json")
    before = {name: (data / name / "persona_context.json").read_bytes() for name in CONTEXT_HARMS}
    unreadable, left, survived = list[str](), list[str](), list[str]()
    with crashing(tmp_path, BY_WORDS) as server:
        for name in CONTEXT_HARMS:
            with Caller(server, name) as caller:
                told = caller("get_context", query="散歩7")
                assert told["hits"]
                assert caller("recall", query="散歩7")["hits"][0]["content"].startswith(f"{name}の散歩7、")
                if told.get("degraded"):
                    assert "persona_context.json" in told["degraded"][0]
                    unreadable.append(name)
                if caller("remember", content=f"{name}の新しい散歩").get("degraded"):
                    left.append(name)
                survived.append(name)
        assert "Traceback" not in server.log.read_text(encoding="utf-8")
    assert unreadable == [name for name in CONTEXT_HARMS if name != "context-state-a-list"]
    assert left == [name for name in unreadable if "time" not in name]
    assert {name: (data / name / "persona_context.json").read_bytes() for name in left} == {name: before[name] for name in left}
    figure("damaged contexts injected", len(CONTEXT_HARMS))
    figure("damaged contexts survived", len(survived))
