"""What the tests of pages in a browser do there: go on, press keys, and ask axe-core what is not accessible."""

import json
from importlib.resources import files
from urllib.parse import quote

import httpx2
import pytest

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def send(url, persona, *lines, **headers):
    """Stores memories."""
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    answer = httpx2.post(f"{url}/api/import", content=body, headers={"X-Persona": quote(persona), **headers})
    assert answer.json()["stored"] + answer.json().get("graph", 0) == len(lines), answer.text


def follow(page, locator):
    """Clicks what leads to another page, and waits until that is there whole."""
    with page.expect_navigation():
        locator.click()


def press_until(page, key, selector):
    """Presses a key until the focus is where somebody would want it."""
    for _ in range(60):
        page.keyboard.press(key)
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"{selector} is not reached by {key}")


def violations(page):
    """What axe-core objects to."""
    page.evaluate(AXE)
    found = page.evaluate("() => axe.run({resultTypes: ['violations']})")["violations"]
    return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]
