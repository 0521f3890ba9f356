"""The documentation as a site: built strictly, in both languages, and loading nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys

import pytest
from places import ROOT

TRANSLATED = sorted(page.name.removesuffix(".ja.md") for page in ROOT.joinpath("docs").glob("*.ja.md") if page.name != "index.ja.md")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A strict build fails for a link or an anchor that leads nowhere, and for a page that the navigation leaves out."""
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(directory)]
    built = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return directory


def text(page):
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TRANSLATED)
def test_each_translation_stands_where_the_english_page_does(site, name):
    assert '<html lang="en"' in text(site / name / "index.html")
    assert '<html lang="ja"' in text(site / "ja" / name / "index.html")
    (title,) = re.findall(r"^# (.+)$", text(ROOT / "docs" / f"{name}.ja.md").partition("\n\n")[0], re.MULTILINE)
    assert f"<title>{title} - Memory MCP</title>" in text(site / "ja" / name / "index.html")
    headings = [re.findall(r"<h([1-6])\b", text(site / folder / name / "index.html")) for folder in ("", "ja")]
    assert headings[0] == headings[1]


def test_links_to_english_headings_lead_to_the_translated_ones(site):
    assert re.search(r'href="\.\./tools-recall/#degraded"', text(site / "ja" / "langchain" / "index.html"))
    assert 'id="degraded"' in text(site / "ja" / "tools-recall" / "index.html")


def test_what_lies_outside_of_docs_is_linked_in_the_repository(site):
    assert "/blob/main/plugins/README.md" in text(site / "clients" / "index.html")
    assert "/blob/main/memory_mcp/search/signals.py" in text(site / "architecture" / "index.html")


def test_a_page_loads_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]+)"|<link\b[^>]*\bhref="([^"]+)"', text(page))
        assert [address for pair in loaded for address in pair if re.match(r"(?:https?:)?//", address)] == []
        # The theme asks api.github.com about the repository that it shows there, and a CDN for what draws diagrams.
        assert 'data-md-component="source"' not in text(page)
        assert 'class="mermaid"' not in text(page)


def test_both_languages_are_searched(site):
    index = json.loads(text(site / "search" / "search_index.json"))
    assert index["config"]["lang"] == ["en", "ja"]
    places = {entry["location"] for entry in index["docs"]}
    assert {"tools-recall/#recall", "ja/tools-recall/#recall"} <= places
