"""The pictures of docs/dashboard.md: a server with a few memories, and its pages in both languages.

python tests/screenshots.py
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

sys.path.insert(0, str(Path(__file__).parent))

from browser import opened
from processes import serving

PICTURES = Path(__file__).parents[1] / "docs" / "images"
CONFIG = {"embeddings_model": None, "reranker_model": None}
PERSONA = "さくら"
LINES = [
    {"key": "memory_city", "content": "太郎さんは横浜に住んでいる。", "source": "太郎"},
    {
        "key": "memory_move",
        "content": "太郎さんは鎌倉に引っ越した。海まで歩いて五分。",
        "source": "太郎",
        "supersedes": "memory_city",
        "tags": ["引っ越し"],
    },
    {
        "key": "memory_cake",
        "content": "太郎さんは苺のショートケーキが大好き。誕生日は10月17日。",
        "source": "太郎",
        "tags": ["食べ物", "誕生日"],
        "importance": 0.8,
    },
    {"content": "毎週火曜の夜は英会話教室に通っている。", "source": "太郎", "tags": ["習慣"]},
    {"content": "毎週火曜の夜は英会話の教室に通っている。", "source": "太郎"},
    {"content": "来週の金曜に美咲さんのピアノの発表会がある。", "source": "太郎", "tags": ["予定"]},
    {
        "content": "[[美咲|Person]]さんは[[太郎|Person]]さんの妹。[[京都|Location]]の大学に通う。",
        "relations": ["美咲 > sibling_of > 太郎", "美咲 > studies_in > 京都"],
    },
    {
        "content": "太郎さんは[[花子|Person]]さんと[[青空商事|Organization]]で働く。",
        "relations": ["太郎 > works_at > 青空商事", "花子 > works_at > 青空商事"],
    },
    {"content": "花子さんは[[ピアノ|Concept]]が好き。美咲さんも弾く。", "relations": ["花子 > likes > ピアノ", "美咲 > plays > ピアノ"]},
    {"content": "Taro prefers tea to coffee after six.", "source": "Taro", "tags": ["food"]},
    {"content": "仕事の打ち合わせは午前中がよい。", "source": "太郎", "kind": "experience"},
]
PAGES = {
    "today-ja": ("today", "ja", "light", 1000),
    "memories-ja": ("memories", "ja", "light", 1000),
    "ask-en": ("ask?q=太郎さんはどこに引っ越した？", "en", "light", 1000),
    "people-en": ("people/picture", "en", "dark", 1000),
    "settings-ja": ("house/settings", "ja", "light", 1000),
    "log-en": ("house/log", "en", "light", 1000),
    "import-ja": ("house/import", "ja", "light", 1000),
    "memory-en": ("memory?key=memory_move", "en", "dark", 1000),
}


def main() -> None:
    """Take the pictures anew."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory), json.dumps(CONFIG)) as server, opened() as browser:
        headers = {"X-Persona": quote(PERSONA)}
        httpx2.post(f"{server.url}/api/import", content="".join(json.dumps(line) + "\n" for line in LINES).encode(), headers=headers)
        for name, (path, language, scheme, width) in PAGES.items():
            context = browser.new_context(locale=language, color_scheme=scheme, viewport={"width": width, "height": 700})
            page = context.new_page()
            page.goto(f"{server.url}/p/{quote(PERSONA)}/ui/{path}")
            if path == "house/import":
                _import(page)
            page.locator("#decide[hx-get]").wait_for(state="detached")
            if page.locator(".graph").count():
                page.locator("[data-drawn]").wait_for()
            page.screenshot(path=PICTURES / f"{name}.png", full_page=name == "people-en")
            context.close()


def _import(page: Any) -> None:
    """Import a file, one line of which is broken."""
    rows = [json.dumps({"content": f"{number}日目の日記。"}) for number in range(1, 40)]
    body = "\n".join([*rows, "{"]).encode()
    page.locator("input[type=file]").set_input_files({"name": "日記.jsonl", "mimeType": "text/plain", "buffer": body})
    page.locator("main form button").click()
    page.locator("#job h3").wait_for()


if __name__ == "__main__":
    main()
