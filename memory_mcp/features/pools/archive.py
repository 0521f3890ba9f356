"""A pack: memories to give away, as one signed file of JSON lines. The first line describes the rest, and is signed; the rest are lines of an
export.

What is packed, and what is taken out of a pack, is the same: what memories and the graph say, and nothing of how they were used or of what was done
to them. So the lines of a stranger can't forget anything; that they replace and change nothing either, the import sees to (`additions`).
"""

import base64
import hashlib
import json
import re
import secrets
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memory_mcp.errors import InvalidInput, InvalidPersonaName
from memory_mcp.language.privacy.redaction import KINDS, find
from memory_mcp.personas.names import canonical_name
from memory_mcp.remember.deduplication import ORIGIN
from memory_mcp.store.experience_text import read
from memory_mcp.store.files.signing_keys import is_signed_by
from memory_mcp.store.memories import is_drawn_key
from memory_mcp.upkeep.privacy_scan import leaves, masked

FORMAT = 1
SUFFIX = ".memorypack"
# Every pack that is signed begins with this: no signature for something else is one of a pack.
_SIGNED_AS = b"memory-mcp pack\n"
MANIFEST_BYTES = 64 * 1024
NAME_LIMIT = 100
# Of a longer chain of memories that replace each other, the rest is stored in the order of the pack.
LONGEST_CHAIN = 100
# Categories of characters that show nothing, and further ones that don't: Unicode's default ignorable marks and letters.
_UNSEEN = frozenset(["Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"])
_IGNORED = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# After folding: Greek and Cyrillic letters that look like Latin ones, digits that look like letters, katakana to hiragana, kanji that
# look like katakana, and strokes.
_LOOK_ALIKES: Mapping[int, int | str] = {
    # What is an i is an l: each letter is replaced once.
    **str.maketrans("аеорсухіјѕԁһԛԝѵӏвкмнтαοερυικνχβτμγϲσıɑг", "aeopcyxljsdhqwvlbkmhtaoepylkvxbtmycclar"),
    **str.maketrans("01i|", "olll"),
    **{katakana: katakana - 0x60 for katakana in range(0x30A1, 0x30F7)},
    **str.maketrans("二口力夕工八卜千三", "にろかたえはとちみ"),
    **dict.fromkeys(map(ord, "一‐‑‒–—―−ー─"), "-"),
}
# The fields of each kind of line that a pack may have; the first kind whose name is a field of a line is its kind.
_FIELDS: Mapping[str, frozenset[str]] = {
    "entity_type": frozenset({"entity_type", "display_name", "description", "color"}),
    "relation_type": frozenset({"relation_type", "display_name", "description", "directed"}),
    "entity": frozenset({"entity", "type", "subtype", "description", "aliases", "importance"}),
    "relation": frozenset({"relation", "source", "source_type", "target", "target_type", "valid_from", "valid_to", "notes", "weight"}),
    "content": frozenset(
        "key content created_at updated_at tags occurred_at importance source session_id kind state questions relations supersedes category "
        "privacy_level expires_at".split()
    ),
}
_NOT_PACKED = (
    "version_of",
    "persona_context",
    "pieces_of",
    "notes_of",
    "merged_entity",
    "distinct_entity",
    "link",
    "mention",
    "merged_memory",
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The first line of a pack. `sha256`: of all bytes after the first line; `signer`: the name that the owner of `public_key` gives itself."""

    name: str
    signer: str
    made_at: str
    made_by: str
    lines: int
    memories: int
    sha256: str
    public_key: str
    format: int = FORMAT

    def __post_init__(self) -> None:
        """Refuse what can't be shown as it is.

        Raises:
            InvalidInput: a text is no visible text, or a number no number.
        """
        for text in (self.name, self.signer):
            check_name(text)
        texts = self.made_at, self.made_by, self.sha256, self.public_key
        if not all(isinstance(text, str) and text.isprintable() and len(text) <= NAME_LIMIT for text in texts):
            raise InvalidInput("the first line of the pack has a text that can't be shown", "", "Ask for another pack")
        if not all(type(number) is int for number in (self.lines, self.memories)):
            raise InvalidInput("the first line of the pack has a number that is none", "", "Ask for another pack")

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the signer's key, which identifies the signer."""
        return hashlib.sha256(self.public_key.encode()).hexdigest()[:32]


def check_name(name: str) -> None:
    """Refuse a name of a pack or of a signer that could be shown as another.

    Raises:
        InvalidInput: it is no text, empty, too long, or has characters that can't be seen.
    """
    try:
        canonical_name(name)
    except (InvalidPersonaName, TypeError):
        is_visible = False
    else:
        is_visible = name.isprintable() and len(name) <= NAME_LIMIT
    if not is_visible:
        raise InvalidInput("a name of the pack is empty, too long or invisible", "", "Use at most {} visible characters", NAME_LIMIT)


def looks_of(name: str) -> str:
    """What two names have in common that a person may take for each other: without case, width, blanks and marks that can't be seen, and with one
    letter for those that look alike in Latin, Greek and Cyrillic, or in kana and kanji."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    visible = "".join(char for char in folded if unicodedata.category(char) not in _UNSEEN and not _IGNORED.match(char))
    return visible.translate(_LOOK_ALIKES)


@dataclass(frozen=True, slots=True)
class PrivateFinding:
    """Private data in a line: its key, the kind, and how it begins."""

    key: str
    kind: str
    sample: str


@dataclass(slots=True)
class Packing:
    """Makes the lines of a pack out of those of an export. Sessions keep what belongs together, and lose their names."""

    findings: list[PrivateFinding] = field(default_factory=list)
    memories: int = 0
    _salt: bytes = field(default_factory=lambda: secrets.token_bytes(16))

    def lines(self, exported: Iterable[bytes]) -> Iterator[bytes]:
        """The lines, each with its line feed."""
        for line in exported:
            row = packed(json.loads(line))
            if row is None:
                continue
            if session := row.get("session_id"):
                row["session_id"] = hashlib.sha256(self._salt + session.encode()).hexdigest()[:12]
            self.memories += "content" in row
            self.findings += findings_in(row)
            yield json.dumps(row, ensure_ascii=False).encode() + b"\n"


def packed(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of a line that a pack contains; None for a line that does not belong in a pack."""
    if any(kind in row for kind in _NOT_PACKED) or row.get("deleted_at") or row.get("privacy_level") == "secret" or _has_failed(row):
        return None
    kind = next((kind for kind in _FIELDS if kind in row), None)
    return {name: value for name, value in row.items() if name in _FIELDS[kind]} if kind else None


def _has_failed(row: Mapping[str, Any]) -> bool:
    """Whether this is a way to do a task that mostly failed: without its counts it would be advised."""
    verdicts = [entry["verdict"] for entry in row.get("feedback") or ()] if row.get("kind") == "experience" else []
    return verdicts.count("failed") > verdicts.count("worked") and not read(str(row.get("content"))).is_pitfall


def findings_in(row: Mapping[str, Any]) -> Iterator[PrivateFinding]:
    """Findings to review before a pack is given away: private data of every known kind, and memories marked as private."""
    key = str(row.get("key") or row.get("entity") or row.get("relation") or "")
    if row.get("privacy_level") == "private":
        yield PrivateFinding(key, "privacy_level", "private")
    # In a key, underscores stand between words, and hyphens may stand in numbers; it may be percent-encoded.
    texts = {
        name: f"{written}\n{written.replace('-', ' ')}" if name in ("key", "supersedes") else value
        for name, value in row.items()
        if name != "session_id" and not (name in ("key", "supersedes") and is_drawn_key(str(value)))
        for written in [unquote(str(value)).replace("_", " ")]
    }
    text = "\n".join(leaves(texts))
    for finding in find(text, KINDS):
        yield PrivateFinding(key, finding.kind, masked(text[finding.start : finding.end]))


def signed(manifest: Mapping[str, Any], key: Ed25519PrivateKey) -> bytes:
    """The first line of a pack: the fields of a `Manifest`, and their signature."""
    signature = base64.b64encode(key.sign(_signed_bytes(manifest))).decode()
    return json.dumps({"memory_mcp_pack": manifest, "signature": signature}, ensure_ascii=False).encode() + b"\n"


def public_key_of(key: Ed25519PrivateKey) -> str:
    """The public half as in a manifest."""
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def verified(path: Path) -> Manifest:
    """The first line of a pack, after its signature and every byte of it were checked.

    Raises:
        InvalidInput: it is no pack, or it was changed after it was signed.
    """
    try:
        with path.open("rb") as file:
            head = file.readline(MANIFEST_BYTES)
            rest = hashlib.file_digest(file, "sha256").hexdigest()
        tree = json.loads(head)
        fields, signature = tree["memory_mcp_pack"], base64.b64decode(tree["signature"], validate=True)
        if fields["format"] != FORMAT:
            raise InvalidInput("{} is of another version", "{} and not {}", "Update Memory MCP", path.name, repr(fields["format"]), FORMAT)
        public_key = base64.b64decode(fields["public_key"], validate=True)
        manifest = Manifest(**fields)
    except OSError as error:
        raise InvalidInput("{} can't be read", "{}", "Check the path", path, error.strerror or str(error)) from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput("{} is no pack", "its first line is no manifest", "Ask for the file again", path.name) from error
    if rest != manifest.sha256 or not is_signed_by(public_key, signature, _signed_bytes(fields)):
        raise InvalidInput("{} was changed after it was signed", "", "Don't install it; ask for the file again", path.name)
    return manifest


def rows_of(path: Path, manifest: Manifest) -> Iterator[bytes]:
    """The lines of a verified pack for an import, with a tag that names the pack: entities first, each memory after the one that it replaces,
    relations last. A memory replaces only what is in the same pack.

    Raises:
        InvalidInput: a line is no JSON object.
    """
    origin = {ORIGIN: {"format": "pack", "pack": manifest.name, "signer": manifest.fingerprint}}
    with path.open("rb") as file:
        file.readline(MANIFEST_BYTES)
        start = file.tell()
        places, replaced = _places(path, file)
        for place in sorted(places, key=lambda place: _depth(place, replaced)):
            file.seek(start + place.offset)
            row = dict(packed(_row(path, file.readline())) or {})
            if row.get("supersedes") not in replaced:
                row.pop("supersedes", None)
            if "content" in row:
                tags = row.get("tags") if isinstance(row.get("tags"), list) else []
                row["tags"] = list(dict.fromkeys([*(tags or []), f"pack:{manifest.name}"]))
                row["metadata"] = origin
            yield json.dumps(row, ensure_ascii=False).encode()


class _Place(NamedTuple):
    """Where a line begins, its kind, and what its memory replaces."""

    offset: int
    kind: str
    supersedes: str | None


def _places(path: Path, file: BinaryIO) -> tuple[list[_Place], dict[str, str | None]]:
    """The places of the lines that an import takes, and what each key of the pack replaces."""
    places, replaced, offset = list[_Place](), dict[str, str | None](), 0
    for line in file:
        row = packed(_row(path, line))
        if row is not None:
            target = row.get("supersedes")
            places.append(_Place(offset, next(kind for kind in _FIELDS if kind in row), target if isinstance(target, str) else None))
            if isinstance(key := row.get("key"), str):
                replaced[key] = places[-1].supersedes
        offset += len(line)
    return places, replaced


def _depth(place: _Place, replaced: Mapping[str, str | None]) -> int:
    """The place of a line in the order of an import: for a memory, how many of the pack's it replaces, directly and through those."""
    if place.kind in ("entity_type", "relation_type", "entity"):
        return 0
    if place.kind == "relation":
        return len(replaced) + 2
    seen = set[str]()
    target = place.supersedes
    while target and target in replaced and target not in seen and len(seen) < LONGEST_CHAIN:
        seen.add(target)
        target = replaced[target]
    return 1 + len(seen)


def _row(path: Path, line: bytes) -> Mapping[str, Any]:
    """The object of a line; an empty one for a line that holds something else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("{} has a line that is no JSON", "", "Ask for the file again", path.name) from error
    return row if isinstance(row, dict) else {}


def _signed_bytes(fields: Mapping[str, Any]) -> bytes:
    return _SIGNED_AS + json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
