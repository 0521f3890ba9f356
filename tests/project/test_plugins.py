"""The plugins for agents say what the product says: its version, its instructions, its hooks."""

import json
from pathlib import Path
from typing import Any

import pytest

import memory_mcp
from memory_mcp.cli.client_recipes import ClientName, recipe_of
from memory_mcp.cli.connect import Language, instructions
from memory_mcp.cli.hook import BEGINNINGS, ENDINGS

ROOT = Path(memory_mcp.__file__).parents[1]
PLUGINS = ROOT / "plugins"
HOOKS = {
    "memory/hooks/hooks.json": ClientName.CLAUDE_CODE,
    "memory/hooks/codex.json": ClientName.CODEX,
    "gemini/hooks/hooks.json": ClientName.GEMINI,
}


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "manifest", ["memory/.claude-plugin/plugin.json", "memory/.codex-plugin/plugin.json", "gemini/gemini-extension.json"]
)
def test_a_manifest_has_the_version_of_the_product_and_names_files_that_exist(manifest: str) -> None:
    found = read(PLUGINS / manifest)
    assert found["version"] == memory_mcp.__version__
    named = [value for value in found.values() if isinstance(value, str) and value.startswith("./")]
    assert [name for name in named if not (PLUGINS / "memory" / name).exists()] == []


def test_the_marketplaces_lead_to_the_plugin() -> None:
    (claude,) = read(ROOT / ".claude-plugin/marketplace.json")["plugins"]
    (codex,) = read(ROOT / ".agents/plugins/marketplace.json")["plugins"]
    assert claude["source"] == codex["source"]["path"] == "./plugins/memory"
    assert claude["name"] == codex["name"] == read(PLUGINS / "memory/.claude-plugin/plugin.json")["name"]


def test_a_model_is_told_the_same_as_by_connect() -> None:
    told = instructions(Language.ENGLISH)
    assert (PLUGINS / "gemini/GEMINI.md").read_text(encoding="utf-8") == told
    head, _, text = (PLUGINS / "memory/skills/memory/SKILL.md").read_text(encoding="utf-8").partition("---\n\n")
    assert text == told
    assert "name: memory\n" in head


@pytest.mark.parametrize(("file", "client"), HOOKS.items())
def test_the_hooks_run_at_the_events_at_which_connect_writes_them(file: str, client: ClientName) -> None:
    recipe = recipe_of(client)
    written = read(PLUGINS / file)["hooks"]
    hooks = recipe.hooks if recipe else None
    assert hooks is not None
    assert list(written) == hooks.events
    assert set(written) <= BEGINNINGS | ENDINGS
    limit = {"timeout": hooks.timeout} if hooks.timeout else {}
    assert all(groups == [{"hooks": [{"type": "command", "command": "memory-mcp hook", **limit}]}] for groups in written.values())
