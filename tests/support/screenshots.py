"""The pictures of docs/dashboard.md and docs/design.md: a server with some memories, and its pages in both languages, light and dark, on a desk and on a phone.

python tests/support/screenshots.py [PAGE ...]
"""

import base64
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from browser import opened
from openai_wire import vendor
from places import ROOT
from processes import serving

PICTURES = ROOT / "docs" / "images"
CONFIG = {"embeddings_model": None, "reranker_model": None}
QUALITY = 65
NOW = datetime.now(UTC)
PERSONAS = {"ja": "さくら", "en": "Sakura"}
OTHERS = {"ja": "レオン", "en": "Leon"}
# Desks and phones, light and dark: each page in each language has one of both.
SIZES = {"desk": {"viewport": {"width": 1280, "height": 820}}, "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True}}
LOOKS = (("ja", "light", "desk"), ("ja", "dark", "phone"), ("en", "dark", "desk"), ("en", "light", "phone"))
# Page → its path in Japanese and in English.
PAGES = {
    "today": ("today", "today"),
    "memories": ("memories", "memories"),
    "memory": ("memory?key=moved", "memory?key=moved"),
    "replace": ("memories/new?supersedes=coffee", "memories/new?supersedes=coffee"),
    "ask": ("ask?q=悠斗さんはどこに引っ越した？", "ask?q=Where did Yuto move?"),
    "people": ("people/picture", "people/picture"),
    "person": ("people/one?entity=美咲", "people/one?entity=Misaki"),
    "chat": ("chat/one", "chat/one"),
    "manage": ("house", "house"),
    "import": ("house/import", "house/import"),
    "log": ("house/log", "house/log"),
    "settings": ("house/settings", "house/settings"),
    "tokens": ("house/tokens", "house/tokens"),
    "find": ("house", "house"),
    "first": ("today", "today"),
}


def day(ahead: int, language: str) -> str:
    """A day to come, as somebody says it."""
    date = NOW + timedelta(days=ahead)
    return f"{date.month}月{date.day}日" if language == "ja" else f"{date:%B} {date.day}"


def lines(language: str) -> list[dict[str, Any]]:
    """The memories: Japanese and English, who said it, days ago, further fields."""
    yuto, misaki, kenta = ("悠斗", "美咲", "健太") if language == "ja" else ("Yuto", "Misaki", "Kenta")
    told: list[tuple[str, str, str, float, dict[str, Any]]] = [
        ("悠斗さんは横浜に住んでいる。", "Yuto lives in Yokohama.", yuto, 60, {"key": "city"}),
        ("悠斗さんは鎌倉に引っ越した。海まで歩いて五分。", "Yuto moved to Kamakura, five minutes on foot to the sea.", yuto, 9, {"key": "moved", "supersedes": "city", "tags": ["家" if language == "ja" else "home"]}),
        ("悠斗さんは海老アレルギー。外食のときは必ず店に確かめる。", "Yuto is allergic to shrimp; ask the restaurant every time.", yuto, 45, {"importance": 1.0, "tags": ["keep"]}),
        ("悠斗さんは苺のショートケーキが大好き。", "Yuto loves strawberry shortcake.", yuto, 30, {"key": "cake", "tags": ["食べ物" if language == "ja" else "food"]}),
        ("毎週火曜の夜は英会話教室に通っている。", "Every Tuesday evening Yuto has an English lesson.", yuto, 20, {}),
        ("毎週火曜の夜は英会話の教室に通っている。", "Every Tuesday evening, Yuto has an English lesson.", yuto, 3, {}),
        (f"{day(6, 'ja')}に美咲さんのピアノの発表会がある。花を買っていく。", f"Misaki's piano recital is on {day(6, 'en')}; bring flowers.", yuto, 2, {"tags": ["予定" if language == "ja" else "plan"]}),
        (f"{day(1, 'ja')}の15時に歯医者の予約を入れた。", f"Dentist at three on {day(1, 'en')}.", yuto, 1, {}),
        (f"{day(11, 'ja')}から二泊で箱根へ行く。", f"From {day(11, 'en')} two nights in Hakone.", misaki, 1, {}),
        ("[[美咲|Person]]さんは[[悠斗|Person]]さんの妹。[[京都|Location]]の大学に通う。", "[[Misaki|Person]] is [[Yuto|Person]]'s sister. She studies in [[Kyoto|Location]].", yuto, 12, {"relations": [f"{misaki} > sibling_of > {yuto}", f"{misaki} > studies_in > {'京都' if language == 'ja' else 'Kyoto'}"]}),
        ("悠斗さんは[[健太|Person]]さんと[[青空商事|Organization]]で働く。", "Yuto works with [[Kenta|Person]] at [[Aozora|Organization]].", yuto, 18, {"relations": [f"{name} > works_at > {'青空商事' if language == 'ja' else 'Aozora'}" for name in (yuto, kenta)]}),
        ("健太さんは[[ピアノ|Concept]]が好き。美咲さんも弾く。", "Kenta likes the [[piano|Concept]]; Misaki plays it, too.", kenta, 7, {"relations": [f"{kenta} > likes > {'ピアノ' if language == 'ja' else 'piano'}", f"{misaki} > plays > {'ピアノ' if language == 'ja' else 'piano'}"]}),
        ("悠斗さんは朝のコーヒーがないと動けない。", "Yuto needs coffee in the morning.", yuto, 25, {"key": "coffee"}),
        ("飼い猫はもなか。カーテンによく登る。", "The cat is called Monaka and climbs the curtains.", yuto, 5, {}),
        ("仕事の打ち合わせは午前中に入れるとうまくいく。", "Meetings go well in the morning.", yuto, 8, {"kind": "experience"}),
        ("来年は自転車を買い換えたい。", "Next year Yuto wants a new bicycle.", yuto, 4, {}),
        ("鎌倉の海で朝日を見た。", "Yuto saw the sun rise over the sea.", yuto, 6, {}),
    ]  # fmt: skip
    index = 0 if language == "ja" else 1
    return [
        {"content": (ja, en)[index], "source": source, "created_at": (NOW - timedelta(days=ago)).isoformat(), **rest}
        for ja, en, source, ago, rest in told
    ]


TALK = {
    "ja": ("誕生日のケーキ、何がいいと思う？", "悠斗 ケーキ", "**苺のショートケーキ**が大好きでしたよね。海老は使わないお店にしましょう。"),
    "en": (
        "Which cake for the birthday?",
        "Yuto cake",
        "You love **strawberry shortcake**. I would order that, from a place without shrimp.",
    ),
}


@contextmanager
def filled() -> Iterator[tuple[str, Any]]:
    """The address of a server with the memories, and the vendor of its chats."""
    with vendor() as model, tempfile.TemporaryDirectory() as directory:
        environment = {"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": model.url}
        with serving(Path(directory), json.dumps(CONFIG), environment=environment) as server:
            for language, persona in PERSONAS.items():
                body = "".join(json.dumps(line) + "\n" for line in lines(language)).encode()
                httpx2.post(f"{server.url}/api/import", content=body, headers={"X-Persona": quote(persona)}).raise_for_status()
                httpx2.patch(
                    f"{server.url}/api/memory",
                    json={"key": "moved", "tags": ["鎌倉" if language == "ja" else "Kamakura"], "reason": "…"},
                    headers={"X-Persona": quote(persona)},
                ).raise_for_status()
            yield server.url, model


def main(wanted: list[str]) -> None:
    """Take the pictures anew."""
    PICTURES.mkdir(exist_ok=True)
    with filled() as (url, model), opened() as browser:
        for name in wanted or PAGES:
            for language, scheme, size in LOOKS:
                context = browser.new_context(base_url=url, locale=language, color_scheme=scheme, **SIZES[size])
                page = context.new_page()
                persona = OTHERS[language] if name == "first" else PERSONAS[language]
                page.goto(f"/p/{quote(persona)}/ui/{PAGES[name][language == 'en']}")
                page.goto(f"{page.url}{'&' if '?' in page.url else '?'}banner=closed")
                arranged(page, name, language, size, model)
                save(page, PICTURES / f"{name}-{language}-{scheme}-{size}.webp")
                context.close()


def arranged(page: Any, name: str, language: str, size: str, model: Any) -> None:
    """Bring a page into the state that its picture shows."""
    page.locator("#decide[hx-get]").wait_for(state="detached")
    if page.locator(".graph").count():
        page.locator("[data-drawn]").wait_for()
    if name == "memories" and size == "desk":
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.locator("#memory-head").wait_for()
    if name == "find":
        page.keyboard.press("Control+k")
        page.locator("#palette input").fill("ピアノ" if language == "ja" else "piano")
        page.locator("#palette .found[data-q]:not([data-q='']) ul").first.wait_for()
    if name == "import":
        rows = [
            json.dumps({"content": f"{number}日目の日記。" if language == "ja" else f"Diary, day {number}."}) for number in range(1, 40)
        ]
        body = "\n".join([*rows, "{"]).encode()
        page.locator("input[type=file]").set_input_files({"name": "diary.jsonl", "mimeType": "text/plain", "buffer": body})
        page.locator("[name=dry_run]").check()
        page.locator("main form button").first.click()
        page.locator("#job h3").wait_for()
    if name == "chat":
        asked, query, answer = TALK[language]
        model.steps = [{"name": "recall", "arguments": json.dumps({"query": query})}, answer]
        page.locator("[name=model]").fill("openai:gpt-x")
        page.locator("textarea").fill(asked)
        page.locator("#say button").first.click()
        page.locator(".said.assistant").wait_for()
        page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)


def save(page: Any, path: Path) -> None:
    """A picture of what a visitor sees without scrolling, small enough for a page of the documentation."""
    shot = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    path.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main(sys.argv[1:])
