"""Persona names and their directories."""

import unicodedata
from pathlib import PurePosixPath, PureWindowsPath

import pytest
from hostile_names import NOT_FILLED_IN
from hypothesis import assume, example, given
from hypothesis import strategies as st

from memory_mcp.errors import InvalidPersonaName
from memory_mcp.personas.names import NAME_LIMIT, addressed_name, canonical_name, directory_name, fold

TRICKY = [
    "a/b",
    "a_b",
    "a-b",
    "A-B",
    "a--b",
    "-a",
    "a-",
    "..",
    ".",
    "con",
    "COM1",
    "nul",
    "~",
    "a~b",
    "さくら",
    "サクラ",
    "ｻｸﾗ",
    "ß",
    "ss",
    "é",
    "a b",
    "a\\b",
    "a:b",
    "a*b",
]
LOOKALIKES = st.text(alphabet="aAａ-_./\\~éE\u0301ßs ｻサー0", min_size=1, max_size=12) | st.sampled_from(TRICKY)


def canonical_or_skip(name: str) -> str:
    try:
        return canonical_name(name)
    except InvalidPersonaName:
        assume(False)
        raise


def as_careless_file_systems_see(directory: str) -> str:
    return unicodedata.normalize("NFKC", directory).casefold()


@pytest.mark.parametrize("name", ["nilou", "a", "0", "hu-tao", "a" * 48])
def test_a_plain_name_is_its_own_directory(name):
    assert directory_name(canonical_name(name)) == name


@pytest.mark.parametrize("name", ["Nilou", "a" * 49, "a--b", "-a", "con", "nul", "com0", "さくら", "a_b", "a.b"])
def test_any_other_name_gets_a_directory_that_no_plain_name_has(name):
    assert "~" in directory_name(canonical_name(name))


def test_the_directory_of_an_unusual_name_can_still_be_read_by_its_owner():
    assert directory_name("さくら").startswith("さくら~")
    assert directory_name("Hu Tao!").startswith("hu-tao~")


def test_no_two_of_the_tricky_names_share_a_directory():
    directories = {as_careless_file_systems_see(directory_name(canonical_name(name))) for name in TRICKY}
    assert len(directories) == len(TRICKY)


@given(LOOKALIKES | st.text(), LOOKALIKES | st.text())
@example("Nilou", "nilou")
@example("\u00e9", "e\u0301")
def test_names_are_equal_exactly_when_their_directories_are(one, other):
    first, second = canonical_or_skip(one), canonical_or_skip(other)
    directories = [as_careless_file_systems_see(directory_name(name)) for name in (first, second)]
    assert (first == second) == (directories[0] == directories[1])


@given(LOOKALIKES | st.text(max_size=NAME_LIMIT))
def test_a_directory_lies_directly_inside_the_data_directory_on_every_system(name):
    directory = directory_name(canonical_or_skip(name))
    assert directory not in ("", ".", "..")
    assert PurePosixPath(directory).parts == (directory,)
    assert PureWindowsPath(directory).parts == (directory,)
    assert not set(directory) & set('<>:"/\\|?*')
    assert not directory.startswith(".")
    assert not directory.endswith((".", " "))
    assert len(directory.encode()) <= 255


@given(LOOKALIKES | st.text())
def test_a_canonical_name_is_its_own_canonical_name(name):
    canonical = canonical_or_skip(name)
    assert canonical_name(canonical) == canonical


def test_composed_and_decomposed_spellings_are_one_name():
    assert canonical_name("e\u0301") == canonical_name("\u00e9") == "\u00e9"
    assert canonical_name("か\u3099") == "が"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty"), ("   ", "empty"), (" nilou", "blank"), ("nilou\u3000", "blank"), ("x" * (NAME_LIMIT + 1), "limit"),
        ("\u3164", r"U\+3164"), ("nilou\uffa0", r"U\+FFA0"), ("ni\u034flou", r"U\+034F"), ("\ufe0f", "is empty"), ("\u2800", r"U\+2800"),
        ("か\u3099" * (NAME_LIMIT + 1), "201 characters"), ("a" + "\u0301\u0323" * 500, "1001 characters"),
        ("ni\u200blou", r"U\+200B at position 3"), ("ni\x00", r"U\+0000"), ("ni\nlou", r"U\+000A"), ("\ud800x", r"U\+D800"), ("a\u202eb", r"U\+202E"),
    ],
)  # fmt: skip
def test_an_unusable_name_is_refused_with_its_reason(name, reason):
    with pytest.raises(InvalidPersonaName, match=reason):
        canonical_name(name)


def test_a_name_may_have_as_many_characters_as_the_limit():
    assert canonical_name("あ" * NAME_LIMIT) == "あ" * NAME_LIMIT
    assert canonical_name("か\u3099" * NAME_LIMIT) == "が" * NAME_LIMIT
    assert canonical_name(unicodedata.normalize("NFD", "ᾂ") * NAME_LIMIT) == "ᾂ" * NAME_LIMIT


def test_folding_forgets_width_and_case_only():
    assert fold("Ｎｉｌｏｕ") == fold("nilou") != fold("nilo")


@pytest.mark.parametrize(("typed", "name"), [("ニィロウ❤\ufe0f", "ニィロウ❤"), ("葛\U000e0100城", "葛城")])
def test_what_chooses_the_picture_of_a_character_is_no_part_of_a_name(typed: str, name: str) -> None:
    assert canonical_name(typed) == name


# Brackets and signs in names that people have.
FILLED_IN = (
    "レオン (仮)", "[仮] レオン", "レオン{影}", "<3", "I <3 U", ">_<", "<(^_^)>", "{^_^}", "[._.]", "{{{(>_<)}}}", "<°)))><", "【さくら】", "「さくら」",
    "$100", "A$AP", "$uicideboy$", "100%", "50% off", "%", "$", "#1", "x<y>z", "a{b}c", "None of your business", "null island", "ヌル",
)  # fmt: skip


@pytest.mark.parametrize("name", NOT_FILLED_IN)
def test_a_placeholder_is_nobodys_name(name):
    with pytest.raises(InvalidPersonaName, match="a placeholder which was not filled in"):
        addressed_name(name)


def test_brackets_and_signs_that_enclose_no_placeholder_are_parts_of_names():
    assert [addressed_name(name) for name in FILLED_IN] == list(FILLED_IN)


def test_a_name_in_base64_is_decoded_and_then_a_name_like_any_other():
    assert addressed_name("b64:44GV44GP44KJ") == "さくら"
    assert addressed_name("b64:44OJ44Op44Kk44Oi44Oz8J+QiQ") == "ドライモン🐉"
    for encoded, reason in (
        ("44GV44GP44K", "not Base64"),
        ("!!", "not Base64"),
        ("", "is empty"),
        ("gqCCog==", "not Base64"),
        ("e3t1c2VyfX0=", "placeholder"),
    ):
        with pytest.raises(InvalidPersonaName, match=reason):
            addressed_name(f"b64:{encoded}")
