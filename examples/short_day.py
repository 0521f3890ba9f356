"""A demo of two personas on one server: what each remembers, that they are isolated, and a setting that changes at run time.

    python examples/short_day.py

Starts its own server on a free port with a temporary data directory, and removes everything afterwards.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from memory_mcp.client.connection import Connection

ANNOUNCEMENT = "Memory MCP listens on "
SAKURA, NILOU = "さくら", "nilou"

console = Console()


def main() -> None:
    """Runs the demo. Exits with an error if a check fails."""
    with tempfile.TemporaryDirectory(prefix="memory-mcp-demo-") as directory:
        config = Path(directory, "config.json")
        config.write_text(json.dumps({"reranker_top_n": 5, "timezone": "Asia/Tokyo"}), encoding="utf-8")
        with server(config, Path(directory, "memory")) as url:
            console.rule("[bold]one server, two personas")
            console.print(f"{url}   X-Persona: {SAKURA}   ·   X-Persona: {NILOU}")
            sakura, nilou = Connection(url, persona=SAKURA), Connection(url, persona=NILOU)
            morning(sakura, nilou)
            noon(sakura, nilou)
            evening(sakura, config)
            night(sakura, nilou)
    console.rule("[bold green]end of the demo")


def morning(sakura: Connection, nilou: Connection) -> None:
    """Stores memories for each persona."""
    console.rule("朝: 覚える")
    for content in (
        "ユーザーの太郎さんは苺のショートケーキが大好き。",
        "太郎さんの妹の美咲さんは京都の大学に通っている。",
        "太郎さんは金曜の夜にピアノの発表会がある。",
    ):
        remember(sakura, SAKURA, content, source="太郎")
    remember(sakura, SAKURA, "夕飯は太郎さんとカレーを食べた。", source="太郎", occurred_at="昨日")
    remember(nilou, NILOU, "旅人さんは甘いものが苦手で、ナツメヤシのお菓子も断った。", source="旅人")
    remember(nilou, NILOU, "次の公演はスメールの大劇場で、演目は「花神誕祭の夢」。", source="旅人")


def noon(sakura: Connection, nilou: Connection) -> None:
    """Asks each persona, also about memories of the other."""
    console.rule("昼: 思い出す")
    expect(recall(sakura, SAKURA, "太郎さんの大好きなケーキは？"), "苺")
    expect(recall(sakura, SAKURA, "昨日の夕飯なに？"), "カレー")
    expect(recall(nilou, NILOU, "甘いものは好き？"), "苦手")
    console.print("[dim]…and about memories of the other persona:")
    expect_nothing_of(recall(nilou, NILOU, "苺のショートケーキ、カレー、ピアノの発表会"), "太郎")
    expect_nothing_of(recall(sakura, SAKURA, "旅人さんの公演の演目"), "旅人")


def evening(sakura: Connection, config: Path) -> None:
    """Edits config.json while the server is running: the next call uses it."""
    console.rule("夕方: config.json を書き換える")
    before = recall(sakura, SAKURA, "太郎さん")
    config.write_text(json.dumps({"reranker_top_n": 2, "timezone": "Asia/Tokyo"}), encoding="utf-8")
    after = recall(sakura, SAKURA, "太郎さん")
    console.print(f"reranker_top_n 5 → 2: {len(before['hits'])} hits before, [bold]{len(after['hits'])}[/] after")
    check(len(before["hits"]) > 2 and len(after["hits"]) == 2, "the edit did not take effect")
    config.write_text('{"reranker_top_n": 2', encoding="utf-8")
    check(len(recall(sakura, SAKURA, "太郎さん")["hits"]) == 2, "a broken edit changed something")
    config_error = sakura.get_json("/ready")["config_error"]
    console.print(f"a broken edit keeps the last valid settings, and is reported: [yellow]{config_error}")
    check(bool(config_error), "the broken edit was not reported")


def night(sakura: Connection, nilou: Connection) -> None:
    """Replaces a memory, forgets one, and gets the context of the next conversation."""
    console.rule("夜: 考えが変わる、忘れる、振り返る")
    cake = recall(sakura, SAKURA, "ショートケーキ")["hits"][0]["key"]
    remember(sakura, SAKURA, "太郎さんは最近、苺よりチーズケーキが好きになった。", supersedes=cake)
    expect_nothing_of(recall(sakura, SAKURA, "太郎さんはどんなケーキが好き？"), "ショートケーキ")
    key = recall(nilou, NILOU, "演目")["hits"][0]["key"]
    console.print(nilou.call_tool("forget", {"keys": [key]})["outcomes"][0])
    expect_nothing_of(recall(nilou, NILOU, "公演の演目"), "花神誕祭")
    sakura.call_tool("update_context", {"emotion": "嬉しい", "user_info": {"name": "太郎"}})
    context = sakura.call_tool("get_context", {"query": "今日の太郎さん"})
    console.print(f"[bold]{SAKURA}[/] get_context: {context['memories']} memories, state {context['state']}, user {context['user_info']}")
    for hit in context["hits"]:
        console.print(f"   [dim]{hit['_source']:9}[/] {hit['content']}")


def remember(connection: Connection, name: str, content: str, **more: str) -> None:
    """Stores a memory and prints it."""
    answer = connection.call_tool("remember", {"content": content, **more})
    check(answer["stored"] and answer["persona"] == name, "it was not stored for the right persona")
    console.print(f"[bold]{name}[/] ← {content}")


def recall(connection: Connection, name: str, query: str) -> dict[str, Any]:
    """Recalls memories, and prints them with the search mode."""
    answer = connection.call_tool("recall", {"query": query})
    check(answer["persona"] == name, "another persona answered")
    contents = " / ".join(hit["content"] for hit in answer["hits"]) or "[dim]nothing[/]"
    degraded = f" [dim]({answer['mode']}; {', '.join(answer['degraded'])})[/]" if answer["degraded"] else f" [dim]({answer['mode']})[/]"
    console.print(f"[bold]{name}[/] ? {query}{degraded}\n   → {contents}")
    return answer


def expect(answer: dict[str, Any], word: str) -> None:
    """Checks that the first hit contains `word`."""
    check(bool(answer["hits"]) and word in answer["hits"][0]["content"], f"the first hit should contain {word}")


def expect_nothing_of(answer: dict[str, Any], word: str) -> None:
    """Checks that no hit contains `word`."""
    check(not any(word in hit["content"] for hit in answer["hits"]), f"no hit may contain {word}")


def check(passed: bool, failure: str) -> None:
    """Exits with an error unless `passed`."""
    if not passed:
        raise SystemExit(f"check failed: {failure}")


@contextmanager
def server(config: Path, data: Path) -> Iterator[str]:
    """A server process on a free port; yields its URL."""
    command = [sys.executable, "-m", "memory_mcp", "serve", "--port", "0", "--config", str(config), "--data", str(data)]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}  # the demo downloads no models, but uses models that are available
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=offline) as process:
        try:
            output = []
            for line in process.stderr or ():
                output.append(line)
                if line.startswith(ANNOUNCEMENT):
                    yield line.removeprefix(ANNOUNCEMENT).strip()
                    return
            raise SystemExit("the server did not start:\n" + "".join(output))
        finally:
            process.terminate()
            process.communicate(timeout=30)


if __name__ == "__main__":
    main()
