"""Characters that no stored text may contain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import storable


@pytest.mark.parametrize(("text", "named", "place"), [("a\x00b", "NUL", 2), ("ab\ud83d", "U+D83D", 3)])
def test_what_cannot_be_stored_is_refused_with_its_name_and_place(text, named, place):
    with pytest.raises(InvalidInput, match="content") as refusal:
        storable(text, "content")
    assert named in str(refusal.value)
    assert f"at character {place}" in str(refusal.value)


@given(st.text())
def test_every_other_text_comes_back_as_it_is(text):
    if "\x00" not in text:
        assert storable(text, "content") == text
