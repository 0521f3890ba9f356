"""A sentence keeps its id and its values on every way, and the catalog has the Japanese of what the product says and of nothing else."""

import ast
import copy
import pickle
import re
import tomllib

import pytest
from error_wordings import PACKAGE, said_by, sayings, unplaced, wordings

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import InvalidInput, MemoryMCPError, NotInstalled
from memory_mcp.server.errors import wording
from memory_mcp.wording import Sentence, catalog, clauses, in_japanese, sentence

TOO_LONG = InvalidInput("{} is too long", "{} bytes are the limit", "Split it", "a {} file", 3)


def test_an_error_says_its_values_in_english_and_keeps_its_id_and_them():
    assert str(TOO_LONG) == "a {} file is too long: 3 bytes are the limit. Split it."
    assert (TOO_LONG.what, TOO_LONG.why, TOO_LONG.do) == ("a {} file is too long", "3 bytes are the limit", "Split it")
    assert TOO_LONG.sentence.id == "{} is too long: {} bytes are the limit. Split it."
    assert TOO_LONG.sentence.values == ("a {} file", "3")
    assert in_japanese(str(TOO_LONG)) == "a {} file が大きすぎます（3 バイトまで）。分割してください。"


def test_a_sentence_stays_one_in_a_copy_in_another_process_and_as_json():
    nested = sentence("{} can't be read: {}", "x", sentence("{} memories", 3))
    for same in (copy.deepcopy(nested), pickle.loads(pickle.dumps(nested)), Sentence.of_json(nested.as_json())):  # noqa: S301  our own
        assert (same, same.id, same.values[1].id) == (nested, nested.id, "{} memories")  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(TOO_LONG))  # noqa: S301  our own
    assert (str(again), again.sentence.id) == (str(TOO_LONG), TOO_LONG.sentence.id)


def test_an_error_may_repeat_the_clauses_of_another_and_a_text_without_values_may_have_braces():
    repeated = InvalidInput(TOO_LONG.what, TOO_LONG.why, TOO_LONG.do)
    assert repeated.sentence.id == TOO_LONG.sentence.id
    assert str(MemoryMCPError("write {} or {0}", "", 'Send {"content": "…"}')) == 'write {} or {0}. Send {"content": "…"}.'
    assert in_japanese(str(NotInstalled(sentence("{} can't be loaded", "m")))) == (
        'm を読み込めません（追加の models が入っていません）。次を実行してください: pip install "persona-memory-mcp[models]"'
    )


def test_passwords_of_addresses_and_private_values_are_in_neither_language():
    error = InvalidInput("{} can't be read", "{}", "Fetch it again", "http://me:secret@host/x", "no")
    assert "secret" not in str(error) + "".join(error.sentence.values)
    private = InvalidInput("{} is {}: it must be {}", "", "Correct it, or omit the field", "content", "me@example.com", "a string")
    words = wording(str(private), Privacy(email="redact"))
    assert "me@example.com" not in words
    assert "me@example.com" not in (in_japanese(words) or "")


def test_clauses_are_said_one_after_another():
    said = clauses([sentence("unknown key {} is ignored", "'x'"), sentence("did you mean {}?", "'y'")])
    assert said == "unknown key 'x' is ignored; did you mean 'y'?"
    assert in_japanese(said) == "'x' という設定はないため、無視されます。もしかして: 'y'"


@pytest.mark.slow
def test_the_catalog_has_what_the_product_says_and_nothing_else():
    constants = {
        node.value.strip()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    recipes = tomllib.loads((PACKAGE / "cli/recipes.toml").read_text(encoding="utf-8")).values()
    constants |= {text for recipe in recipes for text in recipe.values() if isinstance(text, str)}
    said = wordings() | sayings() | constants | MADE
    assert [text for section in ("sentences", "values") for text in catalog()[section] if text.strip() not in said] == []


# Made of parts: the sources of a context, what became of a memory, fields, scopes, an error with a reason more.
MADE = {f"[{source}]" for source in ("core", "recent", "semantic", "summary", "upcoming")}
MADE |= {"already forgotten", "not found", "would forget", "occurred", "would be"}
MADE |= {"no entity is named {}: {}; {}. Take a name from a memory, or look at graph_snapshot."}
MADE |= {"the scope {}", "the scopes {} and {}", "the scopes {} and {} and {}"}


@pytest.mark.slow
def test_the_catalog_has_why_an_entry_of_a_file_is_refused():
    reasons = {
        text
        for path in (PACKAGE / "transfer").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.keyword) and node.arg == "refused"
        for text in said_by(node.value)
    }
    assert "It has no text (content)." in reasons
    assert [text for text in sorted(reasons - {"", "{}"}) if text not in catalog()["sentences"]] == []


def test_the_japanese_has_only_values_of_the_sentence():
    for section in ("sentences", "values"):
        for english, japanese in catalog()[section].items():
            assert {int(number) for number in re.findall(r"\{(\d)\}", japanese)} <= set(range(english.count("{}"))), english


@pytest.mark.slow
def test_no_error_formats_its_own_words():
    assert unplaced() == []
