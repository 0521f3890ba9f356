"""Names of signers that a person may take for each other look the same to the program."""

import pytest

from memory_mcp.features.pools.archive import looks_of


@pytest.mark.parametrize(
    "name",
    ["Alіce Kuro", "ALICE  KURO", "Αlιce Kuro", "Aliϲe Kuro", "Aⅼice Kuro", "Alıce Kuro", "Ａｌｉｃｅ　Ｋｕｒｏ", "Al\u200bice Kuro"],
)
def test_a_name_in_letters_that_look_alike_is_the_same_name(name: str):
    assert looks_of(name) == looks_of("Alice Kuro")


@pytest.mark.parametrize("name", ["Alise Kuro", "Alice Kuno", "Elice Kuro"])
def test_another_name_is_another_name(name: str):
    assert looks_of(name) != looks_of("Alice Kuro")
