"""The import rows that every reader yields, and conversions to their fields: keys, tags, times, text that can be stored.

A row's key is derived from the other program's own ids. Importing the same export again, or continuing an interrupted
import, therefore recognizes every memory that is already stored.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import LABEL_LIMIT, LIST_LIMIT, UNSTORABLE
from memory_mcp.language.names import is_assistant
from memory_mcp.language.sentences import split
from memory_mcp.remember.deduplication import ORIGIN
from memory_mcp.remember.validation import CONTENT_LIMIT
from memory_mcp.transfer.line_fields import is_too_deep

Row = dict[str, Any]
Report = Callable[[str], None]

_QUOTED = re.compile(r"'[^']{0,500}'|\"[^\"]{0,500}\"|\d++")
# The parts of an identity are joined with this.
_BETWEEN = chr(31)
# In the year 2286.
_LARGEST_SECONDS = 10_000_000_000
TOO_DEEP = "It is nested too deeply."
NO_OBJECT = "It is not an object."
WITHOUT_TEXT = "memories without a text"
# The places that are named of what is left out, of each kind.
PLACES_NAMED = 3
# The examples that a report gives of what was refused.
EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the importer says of a file: the own name in its chats, the zone of its times without an offset (None: the server's), whether the character of
    a card is to replace who the persona is, and what the persona is called, of whom a lorebook without a card speaks."""

    me: str | None = None
    zone: ZoneInfo | None = None
    replace: bool = False
    character: str = ""

    @classmethod
    def of(cls, me: str | None, zone: str | None, *, replace: bool = False) -> "ReadOptions":
        """The options as they are typed. Raises InvalidInput if there is no such zone."""
        name = (zone or "").strip()
        try:
            return cls((me or "").strip() or None, ZoneInfo(name) if name else None, replace)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InvalidInput("{} is no time zone", "", "Name an IANA time zone such as Asia/Tokyo or UTC", repr(name)) from error


NO_OPTIONS = ReadOptions()


@dataclass(frozen=True, slots=True)
class ImportItem:
    """One entry of a file: a row to store, the reason why it was refused, or the kind of what is left out of it on purpose, in the plural
    ("pictures"). `where` locates the entry for messages."""

    where: str
    row: Row | None = None
    refused: str = ""
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class KindCount:
    """How many there are of one kind, and where the first of them are."""

    kind: str
    count: int
    places: tuple[str, ...]

    @property
    def where(self) -> str:
        """Such as `a.md; b.md; …`."""
        return "; ".join(self.named)

    @property
    def named(self) -> list[str]:
        """The places, and `…` if there are further ones."""
        return [*self.places, *(["…"] if self.count > len(self.places) else [])]


class LeftOut:
    """What an import leaves out: by kind, how many and where the first of them are."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[int, list[str]]] = {}

    def kinds(self) -> list[KindCount]:
        """Sorted by kind."""
        return [KindCount(kind, count, tuple(positions)) for kind, (count, positions) in sorted(self._kinds.items())]

    def add(self, item: ImportItem) -> None:
        count, positions = self._kinds.get(item.left_out, (0, []))
        self._kinds[item.left_out] = (
            count + 1,
            positions if len(positions) == PLACES_NAMED or item.where in positions else [*positions, item.where],
        )

    def sentence(self) -> str:
        """Such as `left out: templates: 2 (a.md; b.md), thoughts: 14 (…)`; empty where nothing is left out."""
        kinds = [f"{counted.kind}: {counted.count} ({counted.where})" for counted in self.kinds()]
        return f"left out: {', '.join(kinds)}" if kinds else ""


def examples(refused: Iterable[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """Examples of what was refused, given the places and reasons: the first place of each reason, the reason, and how many others it has. A reason that
    quotes what it refuses counts once for all that it quotes."""
    reasons: dict[str, list[Any]] = {}
    for where, reason in refused:
        known = reasons.setdefault(_QUOTED.sub("", reason), [where, reason, -1])
        known[2] += 1
    return [(where, reason, others) for where, reason, others in reasons.values()][:EXAMPLES]


def memory_rows(
    where: str,
    form: str,
    identity: tuple[str, ...],
    content: str,
    *,
    origin: Mapping[str, Any],
    former: Iterable[tuple[str, ...]] = (),
    **fields: Any,
) -> Iterator[ImportItem]:
    """Yields the row of one memory, or several rows if the content exceeds `CONTENT_LIMIT`; none if the content is blank.

    The key is derived from `form` and `identity`; `former` are the forms and identities under which it may be stored instead. `origin` goes into the metadata. Empty fields are left out.
    """
    text = storable(content)
    if not text.strip():
        return
    if is_too_deep([fields, dict(origin)]):
        yield ImportItem(where, refused=TOO_DEEP)
        return
    row = {name: _storable(value) for name, value in fields.items() if value not in (None, [], "", {})}
    for name in ("source", "session_id"):
        row.update({name: row[name].strip()[:LABEL_LIMIT]} if row.get(name) else {})
    if "tags" in row:
        row["tags"] = tags(row["tags"])
    metadata = row.pop("metadata", {})
    pieces = split(text, CONTENT_LIMIT, overlap=0)
    # Once: an identity may have the whole text.
    known_as = [(known_form, _digest(known_identity)) for known_form, *known_identity in ((form, *identity), *former)]
    for index, piece in enumerate(pieces):
        part = text[piece.start : piece.end].strip()
        if not part:
            continue
        origin_fields = {"format": form, **{name: value for name, value in _storable(dict(origin)).items() if value not in (None, "", [])}}
        origin_fields.update({"piece": index} if len(pieces) > 1 else {})
        key, *former_keys = (_key(known_form, digest, index) for known_form, digest in known_as)
        row |= {"former_keys": former_keys} if former_keys else {}
        yield ImportItem(where, {"key": key, "content": part, **row, "metadata": {**metadata, ORIGIN: origin_fields}})


def role_of(source: str | None, by_user: bool) -> str | None:
    """The role to store with a line: that of an assistant, and of a person who has an assistant's name."""
    return ("user" if is_assistant(source) else None) if by_user else "assistant"


def key_of(form: str, *identity: str) -> str:
    """The key of the entry that another program identifies by `identity`."""
    return _key(form, _digest(identity))


def _digest(identity: Iterable[str]) -> "hashlib._Hash":
    return hashlib.sha256(_BETWEEN.join(map(storable, identity)).encode())


def _key(form: str, digest: "hashlib._Hash", piece: int = 0) -> str:
    of_piece = digest.copy()
    of_piece.update(f"{_BETWEEN}{piece}".encode() if piece else b"")
    return f"{form}_{of_piece.hexdigest()[:24]}"


def unread(fields: Mapping[str, Any], read: Set[str]) -> dict[str, Any]:
    """The fields of an entry that a reader has no place for and that say something. They are kept in the metadata."""
    return {name: value for name, value in fields.items() if name not in read and value not in (None, "", [], {})}


def tags(values: list[Any]) -> list[str]:
    """Valid tags from any values: unique, not blank, at most `LIST_LIMIT`."""
    unique = dict.fromkeys(storable(str(value)).strip(" #")[:LABEL_LIMIT].strip() for value in values if isinstance(value, str | int))
    return [tag for tag in unique if tag][:LIST_LIMIT]


def moment(value: object) -> str | None:
    """Converts ISO text, or seconds or milliseconds since 1970, to ISO text; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return _iso(value)
    if not math.isfinite(number) or number <= 0:
        return None
    for _ in range(3):  # milliseconds, microseconds, nanoseconds
        number /= 1000 if number > _LARGEST_SECONDS else 1
    try:
        return datetime.fromtimestamp(number, UTC).isoformat() if number < _LARGEST_SECONDS else None
    except (ValueError, OverflowError, OSError):
        return None


def text_in(value: object) -> str:
    """The value if it is a string, otherwise an empty string."""
    return value if isinstance(value, str) else ""


def fields_of(value: object) -> Mapping[str, Any]:
    """The value if it is an object, otherwise none of its fields."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """The dicts in a list; empty if the value is not a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def storable(text: str) -> str:
    """Replaces NUL and unpaired surrogates with �. Surrogate pairs that an export escaped separately are joined first."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if UNSTORABLE.search(text) else text
    return UNSTORABLE.sub("�", joined)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(name)): _storable(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _iso(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    return when.isoformat() if when.year > 1 else None
