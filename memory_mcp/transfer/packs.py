"""A pack: memories to give away, as one signed file of JSON lines. The first line describes the rest, and is signed; the rest are lines of an
export.

What is packed, and what is taken out of a pack, is the same: what memories and the graph say, and nothing of how they were used or of what was done
to them. So the lines of a stranger can neither forget nor replace anything.
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memory_mcp.errors import InvalidInput
from memory_mcp.store.files.signing_keys import is_signed_by
from memory_mcp.text.experience_text import read
from memory_mcp.text.privacy.redaction import KINDS, find
from memory_mcp.upkeep.privacy_scan import leaves, masked

FORMAT = 1
SUFFIX = ".memorypack"
# Every pack that is signed begins with this: no signature for something else is one of a pack.
_SIGNED_AS = b"memory-mcp pack\n"
MANIFEST_BYTES = 64 * 1024
# The fields of each kind of line that a pack may have.
_FIELDS: Mapping[str, frozenset[str]] = {
    "content": frozenset(
        "key content created_at updated_at tags occurred_at importance source session_id kind state questions relations supersedes category "
        "privacy_level expires_at".split()
    ),
    "entity_type": frozenset({"entity_type", "display_name", "description", "color"}),
    "relation_type": frozenset({"relation_type", "display_name", "description", "directed"}),
    "entity": frozenset({"entity", "type", "subtype", "description", "aliases", "importance"}),
    "relation": frozenset({"relation", "source", "source_type", "target", "target_type", "valid_from", "valid_to", "notes", "weight"}),
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

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the signer's key, which identifies the signer."""
        return hashlib.sha256(self.public_key.encode()).hexdigest()[:32]


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
    kind = next((kind for kind in ("entity_type", "relation_type", "entity", "relation", "content") if kind in row), None)
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
    text = "\n".join(leaves({name: value for name, value in row.items() if name not in ("key", "session_id")}))
    for finding in find(text, KINDS):
        yield PrivateFinding(key, finding.kind, masked(text[finding.start : finding.end]))


def signed(manifest: Manifest, key: Ed25519PrivateKey) -> bytes:
    """The first line of a pack."""
    signature = base64.b64encode(key.sign(_signed_bytes(asdict(manifest)))).decode()
    return json.dumps({"memory_mcp_pack": asdict(manifest), "signature": signature}, ensure_ascii=False).encode() + b"\n"


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
            raise InvalidInput(f"{path.name} is of another version", f"{fields['format']!r} and not {FORMAT}", "Update Memory MCP")
        public_key = base64.b64decode(fields["public_key"], validate=True)
        manifest = Manifest(**fields)
    except OSError as error:
        raise InvalidInput(f"{path} can't be read", error.strerror or str(error), "Check the path") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInput(f"{path.name} is no pack", "its first line is no manifest", "Ask for the file again") from error
    if rest != manifest.sha256 or not is_signed_by(public_key, signature, _signed_bytes(fields)):
        raise InvalidInput(f"{path.name} was changed after it was signed", "", "Don't install it; ask for the file again")
    return manifest


def rows_of(path: Path, manifest: Manifest) -> Iterator[bytes]:
    """The lines of a verified pack for an import, with a tag that names the pack. A memory replaces only what is in the same pack.

    Raises:
        InvalidInput: a line is no JSON object.
    """
    keys = {row["key"] for row in _rows(path) if isinstance(row.get("key"), str)}
    for line in _rows(path):
        row = packed(line)
        if row is None:
            continue
        if row.get("supersedes") not in keys:
            row.pop("supersedes", None)
        if "content" in row:
            tags = row.get("tags") if isinstance(row.get("tags"), list) else []
            row["tags"] = list(dict.fromkeys([*(tags or []), f"pack:{manifest.name}"]))
        yield json.dumps(row, ensure_ascii=False).encode()


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open("rb") as file:
        file.readline(MANIFEST_BYTES)
        for line in file:
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InvalidInput(f"{path.name} has a line that is no JSON", "", "Ask for the file again") from error
            if isinstance(row, dict):
                yield row


def _signed_bytes(fields: Mapping[str, Any]) -> bytes:
    return _SIGNED_AS + json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
