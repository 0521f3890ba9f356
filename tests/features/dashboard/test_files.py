"""The files of the dashboard: its texts in both languages, and the files of others with their licenses."""

import hashlib
import re
import tomllib

import icons
import pytest
from places import ROOT

from memory_mcp import errors
from memory_mcp.config.reading import load
from memory_mcp.config.settings import Privacy, documented_keys
from memory_mcp.features.dashboard import frame, memories
from memory_mcp.features.dashboard.words import WORDS
from memory_mcp.server.errors import status_of
from memory_mcp.server.refusals import Refused, refused
from memory_mcp.wording import catalog, in_language

DASHBOARD = ROOT / "memory_mcp" / "features" / "dashboard"
TEXTS = [*DASHBOARD.rglob("*.html"), *DASHBOARD.rglob("*.py"), *DASHBOARD.glob("app_pages/*.js")]
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in TEXTS)
PLACEHOLDER = re.compile(r"\{(\w+)\}")


def test_every_text_is_there_in_both_languages_with_the_same_placeholders():
    for name, texts in WORDS.items():
        assert len(texts) == 2, name
        assert all(text.strip() for text in texts), name
        assert set(PLACEHOLDER.findall(texts[0])) == set(PLACEHOLDER.findall(texts[1])), name


def test_every_text_is_used_and_every_used_text_exists():
    used = set(re.findall(r'\bt\(\s*"(\w+)"[,)]', SOURCES)) | set(re.findall(r"\bt\(\s*'(\w+)'[,)]", SOURCES))
    assert used <= set(WORDS)
    quoted = set(re.findall(r'"(\w+)"', SOURCES)) | set(re.findall(r"'(\w+)'", SOURCES))
    # `t.term("kind", …)`, `t("done_" ~ …)` and the third argument of a choice name texts by their first word.
    families = tuple(
        f"{kind}_" for kind in [*re.findall(r't(?:\.term)?\("(\w+?)_?"(?:,| ~)', SOURCES), "kind", "privacy", "shelf", "format", "clash"]
    )
    assert not [name for name in WORDS if name not in used | quoted and not name.startswith(families)]


@pytest.mark.feature("all")
def test_every_setting_is_explained_in_japanese_too():
    sentences = tomllib.loads(DASHBOARD.joinpath("settings.toml").read_text(encoding="utf-8"))
    keys = [key for key, _, _ in documented_keys()]
    assert set(sentences["keys"]) == set(keys)
    assert set(sentences["groups"]) == {key.rpartition(".")[0] for key in keys}
    assert all(re.search("[ぁ-んァ-ヶ一-龥]", sentence) for sentence in sentences["keys"].values())


def test_what_an_import_leaves_out_is_told_in_japanese_by_its_kind():
    sources = "".join(path.read_text(encoding="utf-8") for path in (DASHBOARD.parents[1] / "transfer" / "formats").glob("*.py"))
    assert set(re.findall(r'left_out="([^"]+)"', sources)) <= set(catalog()["left_out"])


def test_what_is_wrong_with_the_configuration_is_told_in_japanese():
    loaded = load('{"serverport": 1, "x": 1}', "config.json", {"MEMORY_MCP_SERVERPORT": "1"})
    assert [in_language(warning, "ja") for warning in loaded.warnings] == [
        "config.json: 'serverport' という設定はないため、無視されます。もしかして: 'server_port'",
        "config.json: 'x' という設定はないため、無視されます",
        "環境変数 MEMORY_MCP_SERVERPORT にあたる設定はありません。もしかして: MEMORY_MCP_SERVER_PORT",
    ]


def test_every_status_of_an_error_has_words_of_its_own():
    kinds = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.MemoryMCPError)]
    assert {str(status_of(kind.__new__(kind))) for kind in kinds} <= set(catalog()["status"])


def test_a_refusal_is_told_in_japanese_with_its_values_and_else_with_its_original():
    told = refused(
        errors.InvalidInput("top_k is {}", "it runs from 1 to {} here", "Leave it out for the default", repr("x"), 45), "ja", Privacy()
    )
    assert told == Refused("件数は 1 から 45 までです（入力: 'x'）。")
    unknown = refused(errors.MemoryNotFound("something new"), "ja", Privacy())
    assert unknown == Refused("見つかりませんでした。", "something new.")
    assert refused(errors.MemoryNotFound("something new"), "en", Privacy()) == Refused("something new.")


def test_the_files_of_others_are_listed_with_version_license_and_digest():
    vendor = DASHBOARD / "static" / "vendor"
    rows = re.findall(
        r"^\| `([^`]+)` \| .* \| ([\d.]+) \| \[\w+\]\((LICENSE\.\w+)\) \| `([0-9a-f]{64})` \|$",
        vendor.joinpath("README.md").read_text(),
        re.MULTILINE,
    )
    listed = {name: digest for name, _, _, digest in rows}
    licenses = {license_ for _, _, license_, _ in rows}
    assert {path.name for path in vendor.iterdir()} == {*listed, *licenses, "README.md"}
    for name, version, _, digest in rows:
        assert version in name
        assert hashlib.sha256(vendor.joinpath(name).read_bytes()).hexdigest() == digest
    declared = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]["license-files"]
    assert {f"memory_mcp/features/dashboard/static/vendor/{license_}" for license_ in licenses} <= set(declared)


def test_every_icon_of_a_page_is_in_the_sprite_and_none_is_left_over():
    sprite = icons.SPRITE.read_text(encoding="utf-8")
    assert set(re.findall('<symbol id="([^"]+)"', sprite)) == icons.used()


def test_every_file_that_a_page_names_exists():
    for name in re.findall(r"static\('([^']+)'\)", SOURCES):
        assert frame.static_address(name).startswith(f"/ui/static/{name}?v=")


@pytest.mark.parametrize(
    ("before", "after", "runs"),
    [
        ("健太は苺が好き。", "健太は桃が好き。", [("same", "健太は"), ("gone", "苺"), ("new", "桃"), ("same", "が好き。")]),
        ("I like tea.", "I like green tea.", [("same", "I like "), ("new", "green "), ("same", "tea.")]),
        (
            "飼い猫はもなか。よく登る。",
            "飼い猫はきなこ。よく登る。",
            [("same", "飼い猫は"), ("gone", "もなか"), ("new", "きなこ"), ("same", "。よく登る。")],
        ),
        ("東京都に住む", "東京に住む", [("gone", "東京都"), ("new", "東京"), ("same", "に住む")]),
        ("同じ", "同じ", [("same", "同じ")]),
        ("", "新しい", [("new", "新しい")]),
    ],
)
def test_a_diff_shows_whole_words_and_no_single_characters_that_stayed_within_a_change(before, after, runs):
    assert memories.changes(before, after) == runs


def test_long_texts_are_compared_by_sentences_and_very_long_ones_as_a_whole():
    sentences = [f"これは{number}番目の文です。" for number in range(300)]
    changed = [*sentences[:100], "新しい文です。", *sentences[101:]]
    runs = memories.changes("".join(sentences), "".join(changed))
    assert [run for run in runs if run[0] != "same"] == [("gone", sentences[100]), ("new", "新しい文です。")]
    assert [what for what, _ in memories.changes("あ。" * 5_000, "い。" * 5_000)] == ["gone", "new"]
