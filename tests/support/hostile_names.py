"""Persona names that somebody might try in order to reach another persona's memories, or a place outside the data directory."""

import itertools
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import quote

from hypothesis import strategies as st

from memory_mcp.errors import InvalidPersonaName
from memory_mcp.personas.names import addressed_name, canonical_name, directory_name

BASES = (
    "nilou", "Nilou", "a/b", "a_b", "a-b", "A-B", "a\\b", "a:b", "a b", "a--b", "a~b", "-a", "a-", ".", "..", "...", "../..", "../nilou",
    "/etc/passwd", "C:\\con", "%2e%2e", "%252e%252e", "100%", "%", "%00", "\\x00", "~", "~root", "$HOME", "*", "?", "|", "<a>", '"', "'; --",
    "con", "CON", "con.txt", "nul", "nul.json", "aux ", "com1", "COM1.log", "com¹", "lpt0", "lpt9.sqlite", "conin$",
    "memory.sqlite", "memory_operations.log", ".server.lock", "vector_store", "persona.json", "default",
    "さくら", "サクラ", "ｻｸﾗ", "がく", "か\u3099く", "ガク", "ｶﾞｸ", "\uff0e\uff0e", "\u2024\u2024", "\u2025", "a\uff0fb", "a\u2044b", "a\u2215b", "①", "1", "１",
    "ß", "ss", "SS", "ẞ", "ſs", "ı", "i", "I", "İ", "i\u0307", "ﬁ", "fi", "K", "\u212a", "Å", "\u212b", "σ", "ς", "Σ", "µ", "μ", "é", "e\u0301", "É",
    "\u1e9e", "ǰ", "ᾂ", "각", "\u1100\u1161\u11a8", "🦊", "🇯🇵", "👍", "👍🏽", "👨\u200d👩\u200d👧", "❤", "❤\ufe0f", "葛", "葛\U000e0100", "x" * 200, "x" * 201, "あ" * 200,
    "x" * 10_000, "a\u0301" * 5_000, "\u202ea/b", "a\u200eb", "\u2066nilou\u2069", "nilou\u3164", "\ufeffnilou", "ni\x00lou", "\ud800", "", " ", "\u3000",
)  # fmt: skip

# What clients send in place of a name that they have not filled in.
NOT_FILLED_IN = (
    "${env:PERSONA}", "${input:persona}", "${PERSONA:-default}", "${{ secrets.PERSONA }}", "$PERSONA", "$persona", "$env:PERSONA", "$(whoami)",
    "%PERSONA%", "%persona%", "#{persona}", "%{persona}", "{{LIBRECHAT_USER_NAME}}", "{{ $json.name }}", "user-{{user_id}}", "{{char}}さん", "<%= name %>",
    "{persona}", "{0}", "{}", "<name>", "<your persona>", "<YOUR-PERSONA>", "<<persona>>", "<ペルソナ名>", "＜名前＞", "[persona]", "[your persona]",
    "[object Object]", "[]", "null", "NULL", "None", "undefined",
)  # fmt: skip

Change = Callable[[str], str]
CHANGES: tuple[Change, ...] = (
    lambda name: name,
    str.lower,
    str.upper,
    str.swapcase,
    str.casefold,
    str.title,
    lambda name: unicodedata.normalize("NFC", name),
    lambda name: unicodedata.normalize("NFD", name),
    lambda name: unicodedata.normalize("NFKC", name),
    lambda name: unicodedata.normalize("NFKD", name),
    lambda name: "".join(chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else character for character in name),
    lambda name: quote(name, safe="", errors="replace"),
    lambda name: quote(quote(name, safe="", errors="replace"), safe=""),
    lambda name: name + ".",
    lambda name: name + " ",
    lambda name: " " + name,
    lambda name: "." + name,
    lambda name: "../" + name,
    lambda name: name + "/",
    lambda name: name + "/../nilou",
    lambda name: name + ".txt",
    lambda name: name + "::$DATA",
    lambda name: name + "\x00",
    lambda name: name + "\u200b",
    lambda name: name + "\u0301",
    lambda name: "\u202e" + name[::-1],
    lambda name: name.replace("/", "_"),
    lambda name: name.replace("/", "-"),
    lambda name: name.replace("-", "_"),
    lambda name: name.replace("a", "а"),  # a Cyrillic one
    lambda name: f"{name}~0123456789abcdef0123",
    lambda name: directory_name(unicodedata.normalize("NFC", name).encode(errors="replace").decode())[:200],
)


def changed_names() -> Iterator[str]:
    """Every base, changed in every way, and then in one more."""
    for base, first, second in itertools.product(BASES, CHANGES, CHANGES):
        yield second(first(base))


HOSTILE = (
    st.builds(lambda base, first, second: second(first(base)), st.sampled_from(BASES), st.sampled_from(CHANGES), st.sampled_from(CHANGES))
    | st.text(alphabet="aAａ-_./\\~%02eEé\u0301ßsSıİiー゛かガｶﾞ ", min_size=1, max_size=10)
    | st.text(max_size=210)
)


def canonical_or_none(name: str) -> str | None:
    """The canonical name, None where there is none."""
    try:
        return canonical_name(name)
    except InvalidPersonaName:
        return None


def addressed_or_none(name: str) -> str | None:
    """The name as which a client that sends this is served, None where it is refused."""
    try:
        return addressed_name(name)
    except InvalidPersonaName:
        return None


def as_careless_systems_see(directory: str) -> str:
    """A directory's name on a file system that ignores case and width and normalises; Windows drops dots and blanks at the end."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", directory).casefold()).rstrip(". ")
