"""The documentation against the code: what exists is documented, with the defaults and limits it has, and no link leads nowhere."""

import asyncio
import functools
import json
import os
import re
import tomllib
import unicodedata
from pathlib import Path
from urllib.parse import unquote

import pytest
import typer
from places import ROOT
from starlette.routing import Route

from memory_mcp.cli import app as command_line
from memory_mcp.cli.connect import ClientName
from memory_mcp.config.reading import load
from memory_mcp.config.settings import FIRST_KEYS, NEEDS_RESTART, Settings, documented_keys
from memory_mcp.domain import KEYS_LIMIT, TOKEN_SCOPES
from memory_mcp.language.labels import LABEL_LIMIT, LIST_LIMIT
from memory_mcp.remember.validation import CONTENT_LIMIT
from memory_mcp.search import question
from memory_mcp.server.actions import context
from memory_mcp.server.application import TOOLSETS, mcp_server, scope_needs
from memory_mcp.server.arguments import flat_properties
from memory_mcp.server.mcp.tools import tools_of
from memory_mcp.transfer.line_fields import FIELDS

pytestmark = pytest.mark.feature("all")

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.joinpath("docs").rglob("*.md")])
README_LIMIT = 8_000  # characters: what somebody reads who has not decided yet
PAGE_LIMIT = 20 * 1024  # bytes


def texts(*names, lang=""):
    """Pages of docs/, one after another."""
    return "\n".join(ROOT.joinpath("docs", f"{name}{lang}.md").read_text(encoding="utf-8") for name in names)


WITH_KEYS = ("configuration", "keys-search", "keys-server")
CONFIGURATION = texts("configuration")
TOOLS = texts("tools", "tools-recall", "tools-remember", "tools-graph", "tools-upkeep")
TOKENS, ROUTES, LINES = texts("tokens"), texts("routes"), texts("json-lines")

KEYS = list(documented_keys())
# The older names share one table instead of a section each.
ARGUMENTS = [
    (tool.name, argument)
    for name in TOOLSETS
    if name != "compat"
    for tool in tools_of([name])
    for argument in tool.parameters["properties"]
]
TRANSLATIONS = sorted(ROOT.joinpath("docs").glob("*.ja.md"))
COMMANDS = sorted(typer.main.get_command(command_line).commands)

_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#{1,6}) +(.+?)\s*$", re.MULTILINE)
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose(text):
    """A page without its fenced blocks, where a # is a comment."""
    return _FENCE.sub("", text)


@functools.cache
def links(text):
    """Where the links of a page lead; what looks like one inside code is none."""
    return [unquote(link) for link in _LINK.findall(_CODE.sub("", prose(text)))]


@functools.cache
def rows(text):
    """The cells of every table row, by the first one without its backticks."""
    lines = [line for line in prose(text).splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`"): row for row in cells}


@functools.cache
def section(text, heading):
    """What stands below a heading, up to the next of its level or above."""
    start = re.search(rf"^(#+) +{re.escape(heading)}\s*$", text, re.MULTILINE)
    assert start, f"there is no heading {heading!r}"
    rest = text[start.end() :]
    end = re.search(rf"^#{{1,{len(start[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


@functools.cache
def anchors(text):
    """What GitHub makes of the headings."""
    found = set()
    for _, title in _HEADING.findall(prose(text)):
        kept = (letter for letter in title.lower() if letter in " -_" or unicodedata.category(letter)[0] in "LNM")
        found.add("".join(kept).strip().replace(" ", "-"))
    return found


def documented_rows(lang="", heading="Keys"):
    """The rows of all keys, which are on three pages."""
    return {key: row for name in WITH_KEYS for key, row in rows(section(texts(name, lang=lang), heading)).items()}


@pytest.mark.parametrize(("key", "default"), [(key, default) for key, default, _ in KEYS])
def test_every_configuration_key_is_documented_with_its_default(key, default):
    row = documented_rows().get(key)
    assert row, f"{WITH_KEYS} have no row for {key}"
    assert row[1] == f"`{json.dumps(default, ensure_ascii=False)}`"
    assert row[2]
    assert row[3]


@pytest.mark.parametrize("key", [key for key, _, _ in KEYS])
def test_the_documentation_says_which_keys_need_a_restart(key):
    needs = key.split(".")[0] in NEEDS_RESTART
    assert documented_rows()[key][4] == ("yes" if needs else "no")


@pytest.mark.parametrize(("page", "heading"), [("configuration.md", "Keys"), ("configuration.ja.md", "項目")])
def test_the_keys_that_people_change_come_first(page, heading):
    table = list(rows(section(ROOT.joinpath("docs", page).read_text(encoding="utf-8"), heading)))
    assert tuple(table[2 : 2 + len(FIRST_KEYS)]) == FIRST_KEYS


def test_no_configuration_key_is_documented_that_does_not_exist():
    documented = set(documented_rows()) - {"key", "---"}
    assert documented == {key for key, _, _ in KEYS}


def test_the_documented_words_are_the_ones_that_a_key_takes():
    table = documented_rows()
    for key, spec in json_schema_words(Settings).items():
        assert set(spec) <= set(re.findall(r"`([^`]+)`", table[key][2])), key


def json_schema_words(group):
    """The enumerated words of each key, from the JSON schema."""
    schema = group.model_json_schema()
    found = {}

    def walk(properties, prefix=""):
        for name, spec in properties.items():
            if "$ref" in spec:
                walk(schema["$defs"][spec["$ref"].rpartition("/")[2]]["properties"], f"{prefix}{name}.")
            elif "enum" in spec:
                found[f"{prefix}{name}"] = spec["enum"]

    walk(schema["properties"])
    assert found
    return found


def test_the_variables_in_the_documentation_are_variables():
    documented = set(re.findall(r"MEMORY_MCP_[A-Z_]*[A-Z]", CONFIGURATION))
    assert {"MEMORY_MCP_CONFIG", "MEMORY_MCP_DATA", "MEMORY_MCP_URL", "MEMORY_MCP_TOKEN", "MEMORY_MCP_PERSONA"} <= documented
    examples = re.findall(r"^(MEMORY_MCP_\w+)=(.*)$", CONFIGURATION, re.MULTILINE)
    assert len(examples) >= 4
    loaded = load("{}", "config.json", {name: value.strip("'") for name, value in examples})
    assert not loaded.warnings
    assert loaded.settings != Settings()


def test_the_shipped_config_file_is_good():
    text = ROOT.joinpath("config.json").read_text(encoding="utf-8")
    assert not load(text, "config.json", {}).warnings


@pytest.mark.parametrize(("tool", "argument"), ARGUMENTS)
def test_every_tool_and_argument_is_documented(tool, argument):
    row = rows(section(TOOLS, f"`{tool}`")).get(argument)
    assert row, f"docs/tools.md says nothing of {argument} of {tool}"


@pytest.mark.parametrize("tool", tools_of(["core"]), ids=lambda tool: tool.name)
def test_the_documentation_has_no_argument_that_a_tool_lacks_and_the_types_of_the_others(tool):
    table = section(TOOLS, f"`{tool.name}`").split("\n\n| field |")[0]
    documented = {name: row for name, row in rows(table).items() if name not in ("argument", "---")}
    assert set(documented) == set(tool.parameters["properties"])
    for name, spec in tool.parameters["properties"].items():
        of_strings = "object of strings" if "additionalProperties" in flat_properties(tool.operation.arguments)[name] else "object"
        kind = {"array": "list of strings", "object": of_strings}.get(spec["type"], spec["type"])
        assert documented[name][1] == kind, name
        assert (documented[name][2] == "required") == (name in tool.parameters.get("required", [])), name


@pytest.mark.parametrize("tool", tools_of(["core"]), ids=lambda tool: tool.name)
def test_every_tool_has_an_example_that_is_json_and_stands_in_both_readmes(tool):
    (example,) = re.findall(r"```json\n(.*?)```", section(TOOLS, f"`{tool.name}`"), re.DOTALL)
    assert json.loads(example)["persona"]
    for name in ("README.md", "README.ja.md"):
        assert f"| `{tool.name}` |" in ROOT.joinpath(name).read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", tools_of(["compat"]), ids=lambda tool: tool.name)
def test_every_older_name_stands_in_one_table_with_its_arguments_and_no_others(tool):
    row = rows(section(TOOLS, "Older names")).get(tool.name)
    assert row, f"docs/tools.md says nothing of {tool.name}"
    documented = set(re.findall(r"`([a-z_]+)`", row[1])) - {"any", "all"}
    assert documented == set(tool.parameters["properties"])
    assert row[2]
    assert row[3]


def test_every_toolset_is_named_where_the_configuration_is_documented():
    row = documented_rows()["toolsets"]
    assert set(re.findall(r"`([a-z]+)`", row[2])) == set(TOOLSETS)


@pytest.mark.parametrize(
    ("tool", "argument", "limit"),
    [
        ("remember", "content", f"{CONTENT_LIMIT:,}"),
        ("revise", "content", f"{CONTENT_LIMIT:,}"),
        ("remember", "source", str(LABEL_LIMIT)),
        ("remember", "tags", str(LIST_LIMIT)),
        ("recall", "query", f"{question.QUERY_LIMIT:,}"),
        ("recall", "top_k", f"1 to {question.TOP_K_LIMIT}"),
        ("recall", "keys", str(KEYS_LIMIT)),
        ("recall", "max_tokens", f"{question.TOKENS_FLOOR} to {question.TOKENS_LIMIT:,}"),
        ("get_context", "query", f"{question.QUERY_LIMIT:,}"),
        ("get_context", "max_tokens", f"{question.TOKENS_FLOOR} to {question.TOKENS_LIMIT:,}"),
        ("forget", "keys", f"1 to {KEYS_LIMIT}"),
        ("update_context", "emotion", f"{context.FIELD_LIMIT:,}"),
    ],
)
def test_the_documented_limits_are_the_ones_in_force(tool, argument, limit):
    assert limit in rows(section(TOOLS, f"`{tool}`"))[argument][3]


def test_the_scopes_that_everything_needs_are_documented_as_they_are():
    table = rows(section(TOKENS, "Scopes").partition("What each thing needs:")[2])
    documented = {name: set(re.findall(r"`(\w+)`", row[1])) for name, row in table.items() if name != "---" and "`" in row[0]}
    assert documented == {name: set(needs) for name, needs in scope_needs().items()}
    assert set(TOKEN_SCOPES) <= set(rows(section(TOKENS, "Scopes")))


def test_every_http_route_is_documented():
    app = mcp_server(Settings()).http_app(path="/mcp")
    routes = [(route.path, route.methods) for route in app.routes if isinstance(route, Route) and route.path != "/mcp"]
    assert ("/health", {"GET", "HEAD"}) in routes
    for path, methods in routes:
        for method in methods - {"HEAD"}:
            assert f"| `{method} {path}` |" in section(ROUTES, "Routes")


def test_every_resource_is_documented():
    found = asyncio.run(mcp_server(Settings()).list_resources())
    assert found
    for resource in found:
        assert f"| `{resource.uri}` |" in section(TOOLS, "Resources")


def test_every_prompt_is_documented_with_its_arguments():
    found = asyncio.run(mcp_server(Settings()).list_prompts())
    assert found
    for prompt in found:
        row = rows(section(TOOLS, "Prompts"))[prompt.name]
        for argument in prompt.arguments or []:
            assert f"`{argument.name}`" in row[1]


def test_every_field_of_a_json_line_is_documented():
    documented = re.findall(r"`([a-z_]+)`", "".join(row[0] for row in rows(section(LINES, "Fields")).values()))
    assert sorted(documented) == sorted(FIELDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented_in_both_languages(command):
    for name in ("docs/commands.md", "docs/commands.ja.md"):
        assert f"| `memory-mcp {command}` |" in ROOT.joinpath(name).read_text(encoding="utf-8")


def test_every_client_that_connect_knows_is_in_both_readmes():
    for name in ("README.md", "README.ja.md"):
        text = ROOT.joinpath(name).read_text(encoding="utf-8")
        for client in ClientName:
            assert f"`{client}`" in text


@pytest.mark.parametrize("page", sorted(ROOT.joinpath("docs").rglob("*.md")), ids=lambda page: page.name)
def test_a_page_is_short_enough_to_be_looked_through(page):
    assert page.stat().st_size <= PAGE_LIMIT


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    for link in links(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert target.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), f"{link}: no such heading"


def test_every_page_that_the_code_points_to_exists():
    sources = [path.read_text(encoding="utf-8") for path in ROOT.joinpath("memory_mcp").rglob("*.py")]
    named = {name for source in sources for name in re.findall(r"docs/[\w./-]+\.md", source)}
    assert named
    assert [name for name in named if not ROOT.joinpath(name).exists()] == []


@functools.cache
def targets(page):
    """The pages that a page has links to."""
    leads = {Path(os.path.normpath(page.parent / link.partition("#")[0])) for link in links(page.read_text(encoding="utf-8"))}
    return leads & {*PAGES}


def reached(page):
    """The pages that links lead to from a page, from those, and so on."""
    found, todo = set(), {page}
    while todo:
        found |= todo
        todo = set().union(*map(targets, todo)) - found
    return found


@pytest.mark.parametrize(("readme", "index", "pages"), [("README.md", "index.md", PAGES), ("README.ja.md", "index.ja.md", TRANSLATIONS)])
def test_every_page_is_reached_from_the_readme_and_every_page_of_docs_from_the_index(readme, index, pages):
    found = reached(ROOT / readme)
    assert [page.name for page in pages if page not in found] == []
    in_docs = {page for page in pages if page.parent == ROOT / "docs" and (page in TRANSLATIONS) == (index == "index.ja.md")}
    linked = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in links((ROOT / "docs" / index).read_text(encoding="utf-8"))}
    assert sorted(page.name for page in in_docs - linked if page.name != index) == []


def test_every_page_is_in_the_navigation_of_the_site():
    named = set(re.findall(r"[-:] ([\w./*-]+\.md)$", ROOT.joinpath("mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {path for pattern in named for path in ROOT.joinpath("docs").glob(pattern)}
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - {*TRANSLATIONS} <= pages


def original(translation):
    return translation.with_name(translation.name.replace(".ja.md", ".md")).read_text(encoding="utf-8")


def code_of(text):
    """What a text writes as code: each span in backquotes, and each line of its blocks without a comment."""
    blocks = "\n".join(block[0] for block in re.finditer(r"^ *```.*?^ *``` *$", text, re.MULTILINE | re.DOTALL))
    return set(_CODE.findall(prose(text))) | {f" {line}".partition(" # ")[0].strip() for line in blocks.splitlines()}


def table_numbers(text):
    """The numbers in each row of a page's tables, with the code in its first cell."""
    lines = [line for line in prose(text).splitlines() if line.startswith("|")]
    return [(sorted(_CODE.findall(line.split("|")[1])), set(re.findall(r"\d[\d,.]*\d|\d", line))) for line in lines]


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: page.name)
def test_a_japanese_page_names_every_key_argument_command_and_route_that_the_english_one_names(page):
    assert code_of(original(page)) - code_of(page.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize("page", TRANSLATIONS, ids=lambda page: page.name)
def test_a_japanese_page_has_the_headings_the_tables_and_their_numbers_of_the_english_one(page):
    english, japanese = original(page), page.read_text(encoding="utf-8")
    assert [len(marks) for marks, _ in _HEADING.findall(prose(japanese))] == [len(marks) for marks, _ in _HEADING.findall(prose(english))]
    assert [key for key, _ in table_numbers(japanese)] == [key for key, _ in table_numbers(english)]
    for (key, wanted), (_, there) in zip(table_numbers(english), table_numbers(japanese), strict=True):
        assert wanted <= there, key


def test_the_japanese_page_says_of_each_key_what_the_dashboard_says():
    sentences = tomllib.loads(ROOT.joinpath("memory_mcp/features/dashboard/settings.toml").read_text(encoding="utf-8"))["keys"]
    table = documented_rows(".ja", "項目")
    assert {key: table[key][3] for key, sentence in sentences.items() if not table[key][3].startswith(sentence)} == {}
    assert {key: table[key][1] for key, _, _ in KEYS} == {key: f"`{json.dumps(default, ensure_ascii=False)}`" for key, default, _ in KEYS}


def test_both_readmes_have_the_same_outline_snippets_and_numbers():
    english, japanese = (ROOT.joinpath(name).read_text(encoding="utf-8") for name in ("README.md", "README.ja.md"))
    outlines = [[len(marks) for marks, _ in _HEADING.findall(prose(text))] for text in (english, japanese)]
    assert outlines[0] == outlines[1]
    snippets = [re.findall(r"```json\n(.*?)```", text, re.DOTALL) for text in (english, japanese)]
    assert snippets[0] == snippets[1]
    shares = [re.findall(r"(\d+) %", text) for text in (english, japanese)]
    assert shares[0]
    assert shares[0] == shares[1]


@pytest.mark.parametrize("name", ["README.md", "README.ja.md"])
def test_a_readme_is_read_in_some_minutes(name):
    assert len(ROOT.joinpath(name).read_text(encoding="utf-8")) <= README_LIMIT


@pytest.mark.parametrize("name", ["README.md", "README.ja.md"])
def test_the_snippets_of_the_readme_are_json(name):
    snippets = re.findall(r"```json\n(.*?)```", ROOT.joinpath(name).read_text(encoding="utf-8"), re.DOTALL)
    assert len(snippets) >= 2
    for snippet in snippets:
        assert json.loads(snippet)


def named_paths(text):
    """What a page names in backquotes that reads like a path of the repository: `search/signals.py`, `store/`, `search/pipeline.py:score`."""
    flat = " ".join(_CODE.findall(prose(text)))
    return [name.partition(":")[0] for name in re.findall(r"`((?:[\w.-]+/)+[\w.-]*(?::[\w.]+)?|[\w-]+\.py(?::[\w.]+)?)`", flat)]


@pytest.mark.parametrize(
    ("page", "named"), [("docs/architecture.md", "search/pipeline.py"), ("CONTRIBUTING.md", "memory_mcp/llm/vendors.py")]
)
def test_every_path_that_the_pages_for_developers_name_exists(page, named):
    paths = named_paths(ROOT.joinpath(page).read_text(encoding="utf-8"))
    assert named in paths
    assert not [path for path in paths if not any((place / path).exists() for place in (ROOT / "memory_mcp", ROOT))]


def test_every_name_after_a_path_on_the_architecture_page_is_in_that_file():
    page = ROOT.joinpath("docs/architecture.md").read_text(encoding="utf-8")
    for path, name in re.findall(r"`([\w./-]+\.py):(\w+)`", page):
        file = next(place / path for place in (ROOT / "memory_mcp", ROOT) if (place / path).exists())
        assert re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")), f"{path} has no {name}"
