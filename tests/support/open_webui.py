"""The pictures of Open WebUI in docs/gateway.md: the real program before a running gateway, and what is remembered of two chats.

python -m venv place && place/bin/pip install open-webui && python tests/support/open_webui.py place/bin/open-webui
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from browser import opened
from processes import serving
from screenshots import PICTURES, save
from sillytavern import front_end

from benchmarks.vendor import vendor

PORT, WEBUI_PORT = 8000, 18_124
WEBUI = f"http://127.0.0.1:{WEBUI_PORT}"
PERSONA = "nilou"
SAID, ASKED = "I'm allergic to shrimp.", "What am I allergic to?"
SETTINGS = {
    "ENABLE_FORWARD_USER_INFO_HEADERS": "true",
    "RAG_SYSTEM_CONTEXT": "true",
    "WEBUI_AUTH": "false",
    "OFFLINE_MODE": "true",
    "ENABLE_OLLAMA_API": "false",
    "RAG_EMBEDDING_ENGINE": "openai",
    "WEBUI_SECRET_KEY": "of this run",
}


@contextmanager
def webui(program: Path) -> Iterator[None]:
    """Open WebUI on `WEBUI_PORT`, with data of its own."""
    with tempfile.TemporaryDirectory() as directory:
        command = [str(program.resolve()), "serve", "--host", "127.0.0.1", "--port", str(WEBUI_PORT)]
        with front_end(command, WEBUI, Path(directory), {**SETTINGS, "DATA_DIR": directory}):
            yield


def main(program: Path) -> None:
    """Take the pictures, and talk."""
    with vendor() as model, tempfile.TemporaryDirectory() as directory, webui(program), opened() as browser:
        config = {"embeddings_model": None, "reranker_model": None, "llm": {"vendors": {"local": {"url": model.url}}}}
        with serving(Path(directory), json.dumps(config), port=PORT) as server:
            for language, locale in (("ja", "ja-JP"), ("en", "en-US")):
                page = page_of(browser, locale)
                fill(page, f"{server.url}/p/{PERSONA}/v1")
                save(page, PICTURES / f"open-webui-{language}.webp")
            page.locator("button[type=submit]:visible").last.click()
            page.wait_for_timeout(3000)
            for text in (SAID, ASKED):
                talk(page, text)
            for asked in model.asked:
                print([message["content"][:90] for message in asked["messages"]])
            found = httpx2.get(f"{server.url}/api/memories", headers={"X-Persona": PERSONA}).json()["memories"]
            print(f"{PERSONA} remembers: {[(memory['session_id'], memory['content']) for memory in found]}")


def page_of(browser: Any, locale: str) -> Any:
    """A page of the program in a language, without its news."""
    page = browser.new_context(locale=locale, viewport={"width": 900, "height": 800}).new_page()
    page.goto(WEBUI)
    page.locator("#chat-input").wait_for()
    page.evaluate(f"localStorage.locale = '{locale}'")
    page.reload()
    page.locator("#chat-input").wait_for()
    page.wait_for_timeout(3000)
    for button in page.locator("[role=dialog] button, .modal button").all()[-1:]:
        button.click()
    return page


def fill(page: Any, url: str) -> None:
    """Fill in what docs/gateway.md says."""
    page.goto(f"{WEBUI}/admin/settings/connections")
    page.get_by_role("button", name="Add Connection").or_(page.get_by_role("button", name="接続を追加")).first.click()
    page.locator("#url-input").fill(url)
    page.locator("#select-bearer-or-session").select_option("none")
    page.wait_for_timeout(500)


def talk(page: Any, text: str) -> None:
    """Say something in a new chat, and wait until its title is made."""
    page.goto(WEBUI)
    page.locator("#chat-input").fill(text)
    page.keyboard.press("Enter")
    page.get_by_text(f"echo: {text}").first.wait_for()
    page.wait_for_timeout(5000)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
