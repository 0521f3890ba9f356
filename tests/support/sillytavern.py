"""The pictures of SillyTavern in docs/gateway.md: the real program before a running gateway, and what is remembered of a message to its first character.

npm install sillytavern && python tests/support/sillytavern.py node_modules/sillytavern
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from browser import opened
from processes import serving
from screenshots import PICTURES, save

from benchmarks.vendor import vendor

PORT, TAVERN_PORT = 8000, 18_123
TAVERN = f"http://127.0.0.1:{TAVERN_PORT}"
# It compiles its pages at its first start.
START_SECONDS = 300
HEADERS = 'X-Persona: "{{char}}"'
CHARACTER = "Seraphina"
SAID, ANSWERED = "I'm allergic to shrimp.", "I will remember the shrimp."


@contextmanager
def tavern(program: Path) -> Iterator[None]:
    """SillyTavern on `TAVERN_PORT`, with data of its own."""
    with tempfile.TemporaryDirectory() as directory:
        options = ["--port", str(TAVERN_PORT), "--listen", "false", "--browserLaunchEnabled", "false", "--dataRoot", directory]
        with front_end(["node", "server.js", *options, "--configPath", f"{directory}/config.yaml"], TAVERN, program):
            yield


@contextmanager
def front_end(command: Sequence[str], url: str, directory: Path, variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """A program that answers at this address, stopped at the end."""
    environment = {**os.environ, **(variables or {})}
    with subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until = time.monotonic() + START_SECONDS
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit(f"{command[0]} does not start")
                time.sleep(1)
            yield
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx2.get(url).status_code == 200
    except httpx2.HTTPError:
        return False


def main(program: Path) -> None:
    """Take the pictures, and talk."""
    with vendor() as model, tempfile.TemporaryDirectory() as directory, tavern(program), opened() as browser:
        config = {"embeddings_model": None, "reranker_model": None, "llm": {"vendors": {"local": {"url": model.url}}}}
        with serving(Path(directory), json.dumps(config), port=PORT) as server:
            for language, locale in (("en", "en-US"), ("ja", "ja-JP")):
                page = browser.new_context(locale=locale, viewport={"width": 640, "height": 760}).new_page()
                connect(page, server.url)
                save(page, PICTURES / f"sillytavern-{language}.webp")
            page = browser.new_context(locale="en-US", viewport={"width": 1280, "height": 900}).new_page()
            connect(page, server.url)
            model.steps = [ANSWERED]
            talk(page)
            until = time.monotonic() + 30
            while (kept := remembered(server.url)) != [ANSWERED, SAID] and time.monotonic() < until:
                time.sleep(0.5)
            print(f"{CHARACTER} remembers: {kept}")


def connect(page: Any, url: str) -> None:
    """Fill in what docs/gateway.md says, and connect."""
    page.goto(TAVERN)
    page.locator("#preloader").wait_for(state="detached")
    for button in page.locator(".popup-button-ok:visible").all():
        button.click()
    page.locator("#sys-settings-button .drawer-icon").click()
    page.locator("#main_api").select_option("openai")
    page.locator("#chat_completion_source").select_option("custom")
    page.locator("#custom_api_url_text").fill(f"{url}/v1")
    page.locator("#custom_model_id").fill("local/m")
    page.locator("#customize_additional_parameters").click()
    page.locator("#custom_include_headers").fill(HEADERS)
    page.locator(".popup-button-ok:visible").click()
    page.locator("#api_button_openai").click()
    page.locator("#model_custom_select option[value='local/m']").wait_for(state="attached")
    page.locator("#toast-container").evaluate_all("boxes => boxes.forEach((box) => box.remove())")
    page.wait_for_timeout(300)


def talk(page: Any) -> None:
    """Say something to the character."""
    page.locator("#sys-settings-button .drawer-icon").click()
    page.locator("#rightNavDrawerIcon").click()
    page.locator(".character_select", has_text=CHARACTER).click()
    page.locator("#chat .mes", has_text=CHARACTER).first.wait_for()
    page.locator("#send_textarea").fill(SAID)
    page.locator("#send_but").click()
    page.locator("#chat .mes", has_text=ANSWERED).wait_for()


def remembered(url: str) -> list[str]:
    """What the character's persona holds, the latest first."""
    found = httpx2.get(f"{url}/api/memories", headers={"X-Persona": CHARACTER}).json()
    return [memory["content"] for memory in found.get("memories", ())]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
