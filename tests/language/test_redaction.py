"""Placeholders: what they stand for, that a second time changes nothing, and that a count tells of each."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from private_lines import lines

from memory_mcp.config.settings import Privacy
from memory_mcp.language.privacy import redaction
from memory_mcp.language.privacy.redaction import KINDS, Redaction

ALL = Privacy(**dict.fromkeys(KINDS, "redact"))
NONE = Privacy(**dict.fromkeys(KINDS, "off"))
CARD, TOKEN = "4111 1111 1111 1111", "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def test_the_kinds_of_the_settings_are_the_kinds_that_are_looked_for():
    assert set(Privacy.model_fields) == set(KINDS)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("連絡先はtaro@example.com", "連絡先は[REDACTED_EMAIL]"),
        ("電話は０９０－１２３４－５６７８です", "電話は[REDACTED_PHONE]です"),
        (f"カードは{CARD}、期限は12/27", "カードは[REDACTED_CREDIT_CARD]、期限は12/27"),
        ("postgres://app:s3cr3t@db.example.com/app", "postgres://[REDACTED_URL_CREDENTIALS]@db.example.com/app"),
        ("マイナンバーは123456789018", "マイナンバーは[REDACTED_MY_NUMBER]"),
        ("SSN: 536-22-8726", "SSN: [REDACTED_SSN]"),
        ("サーバーは192.168.1.10", "サーバーは[REDACTED_IP_ADDRESS]"),
        (f"{TOKEN}と{TOKEN}", "[REDACTED_API_KEY]と[REDACTED_API_KEY]"),
        ("健太は苺が好き", "健太は苺が好き"),
    ],
)
def test_a_placeholder_stands_where_it_stood(text, stored):
    assert Redaction(ALL).text(text) == stored


def test_by_default_what_opens_or_charges_goes_and_people_can_be_reached():
    found = Redaction(Privacy())
    text = f"太郎 090-1234-5678 taro@example.com {CARD} {TOKEN} 10.1.2.3"
    assert found.text(text) == "太郎 090-1234-5678 taro@example.com [REDACTED_CREDIT_CARD] [REDACTED_API_KEY] 10.1.2.3"
    assert (found.redacted, found.flagged) == ({"credit_card": 1, "api_key": 1}, {"phone": 1, "email": 1})


def test_what_is_off_is_neither_changed_nor_counted():
    found = Redaction(NONE)
    text = f"taro@example.com {CARD} {TOKEN}"
    assert (found.text(text), found.redacted, found.flagged) == (text, {}, {})


@given(st.lists(st.sampled_from(lines()), min_size=1, max_size=3), st.sampled_from(["\n", " ", "、", ""]))
def test_what_was_redacted_once_is_not_redacted_again(chosen, between):
    once = Redaction(ALL).text(between.join(line.text for line in chosen))
    again = Redaction(ALL)
    assert again.text(once) == once
    assert again.redacted == {}


def test_metadata_are_read_with_the_names_of_their_fields():
    value = {
        "api_key": "b7Gd92KsLq04ZnXv83Pe",
        "note": "b7Gd92KsLq04ZnXv83Pe",
        "deep": [{"token": "Zx8Kq2Lm9Pw4Rt7Yv1Bn"}, None, 1.5, True],
    }
    found = Redaction(ALL)
    kept = {"api_key": "[REDACTED_API_KEY]", "note": "b7Gd92KsLq04ZnXv83Pe", "deep": [{"token": "[REDACTED_API_KEY]"}, None, 1.5, True]}
    assert found.tree(value) == kept
    assert found.redacted == {"api_key": 2}


def test_whole_numbers_and_names_of_fields_are_read_too():
    value = {"number": 4111111111111111, "count": 1234567890, "taro@example.com": 1, "hana@example.com": 2}
    assert Redaction(ALL).tree(value) == {
        "number": "[REDACTED_CREDIT_CARD]",
        "count": 1234567890,
        "[REDACTED_EMAIL]": 1,
        "[REDACTED_EMAIL]_2": 2,
    }


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([line.text for line in lines()]) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=8), _JSON, max_size=4))
def test_metadata_that_were_redacted_once_are_not_redacted_again_and_stay_json(value):
    once = Redaction(ALL).tree(value)
    assert json.loads(json.dumps(once)) == once
    assert Redaction(ALL).tree(once) == once
    assert Redaction(NONE).tree(value) == value


def test_no_short_text_is_kept_after_memories_were_erased():
    Redaction(ALL).text("猫が好き")
    assert any(text == "猫が好き" for _, text in redaction._NOTHING_FOUND)
    redaction.forget_short_texts()
    assert not redaction._NOTHING_FOUND
