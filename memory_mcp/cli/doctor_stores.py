"""What `memory-mcp doctor` says of the stores that this machine is known to have, and of databases in a data directory that no server reads."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memory_mcp.cli.doctor_checks import Finding, note, ok
from memory_mcp.cli.options import configured_address, memories_in_words, store_of
from memory_mcp.client import stores
from memory_mcp.client.connection import Connection
from memory_mcp.client.discovery import PROBE_SECONDS, serving
from memory_mcp.config.reading import default_server_url
from memory_mcp.errors import InvalidPersonaName, MemoryMCPError, StoreError
from memory_mcp.personas.directories import is_readable, personas_among
from memory_mcp.personas.names import pool_of
from memory_mcp.personas.registry import names_in
from memory_mcp.store.files.encryption_keys import Keys
from memory_mcp.store.inspection import memories_in
from memory_mcp.store.sqlite.cipher import is_plain
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.wording import sentence

NAMES_SHOWN = 3
# Of the databases of older servers, which are listed apart.
OLDER_ENDING = ".sqlite"


@dataclass(frozen=True, slots=True)
class KnownStore:
    """A store of this machine: its directory or, where only that is known, the address of its server; its personas and how many memories
    they have, as far as that is told here."""

    where: str
    state: str
    personas: frozenset[str] | None = None
    memories: int | None = None

    def holds(self) -> str:
        """`2 persona(s), 5 memories`."""
        if self.personas is None:
            return "what it tells only with a token"
        if self.memories is None:
            return sentence("{} persona(s)", len(self.personas))
        return sentence("{} persona(s), {}", len(self.personas), memories_in_words(self.memories))


def check_stores(directory: Path, keys: Keys) -> list[Finding]:
    """Every store of this machine that is known: that of `directory`, those that are named here, the user's, and that of each server that
    answers where one is expected. A persona that is in several is named."""
    found = list(_known(directory, keys))
    used = _used_here()
    findings = []
    for store in found:
        is_used = store.where == used
        told = "{} holds {}: {}, and commands here use it" if is_used else "{} holds {}: {}"
        verdict = ok if is_used or len(found) == 1 else note
        findings.append(verdict("store", sentence(told, store.where, store.holds(), store.state)))
    count = Counter(name for store in found for name in store.personas or ())
    if several := sorted(name for name, places in count.items() if places > 1):
        told = "{} in more than one of them: name the one that you mean with MEMORY_MCP_DATA or --url."
        findings.append(note("store", told, _listed(several)))
    return findings


def check_left_alone(directory: Path) -> list[Finding]:
    """The databases in a data directory that are neither a persona's nor an older server's: no server reads them."""
    with suppress(OSError):
        left = sorted(str(path.relative_to(directory)) for path in _strange_databases(directory))
        if left:
            told = "{} database(s) that no persona has stay as they are: {}. `memory-mcp import FILE` takes over what it can read of one."
            return [note("older data", told, len(left), _listed(left))]
    return []


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:NAMES_SHOWN])}{', …' if len(names) > NAMES_SHOWN else ''}"


def _known(directory: Path, keys: Keys) -> Iterator[KnownStore]:
    directories = {path.resolve(): path for path in [directory, *stores.known_directories()] if path.is_dir()}
    seen = set()
    addresses = [address for address in (default_server_url(), configured_address()) if address]
    for path in directories.values():
        server = serving(path, _stranger, *addresses)
        if server:
            seen.add(server.instance(PROBE_SECONDS))
        state = sentence("the server at {} serves it", server.url) if server else "no server serves it"
        yield KnownStore(str(path.resolve()), state, *_counted(path, keys))
    for address in addresses:
        instance = _stranger(address).instance(PROBE_SECONDS)
        if instance is not None and instance not in seen:
            seen.add(instance)
            yield KnownStore(address, "a server of another directory answers", *_told(_stranger(address)))


def _stranger(address: str, _secret: str | None = None) -> Connection:
    """Without a token: it is not for whoever answers there."""
    return Connection(address)


def _used_here() -> str:
    with suppress(MemoryMCPError):
        store = store_of(None, None)
        return str(store.directory.resolve()) if store.directory else store.served().url
    return ""


def _counted(directory: Path, keys: Keys) -> tuple[frozenset[str], int | None]:
    """The personas of a directory, and their memories; None for these where a database can't be read here."""
    counts: list[int | None] = []
    entries: Iterable[Path] = ()
    with suppress(OSError):
        entries, _unreadable = personas_among(directory.iterdir())
    for entry in entries:
        try:
            counts.append(memories_in(entry / DATABASE_NAME, keys.of(entry)))
        except StoreError:
            counts.append(None)
    known = [count for count in counts if count is not None]
    with suppress(OSError, InvalidPersonaName):
        names = frozenset(name for name in names_in(directory) if not pool_of(name))
        return names, sum(known) if len(known) == len(counts) else None
    return frozenset(), None


def _told(server: Connection) -> tuple[frozenset[str], int] | tuple[None, None]:
    """What a server tells of its personas and their memories."""
    listed: list[dict[str, object]] = []
    with suppress(MemoryMCPError):
        page = server.get_json("/api/personas")
        listed += page["personas"]
        while "next" in page:
            page = server.get_json("/api/personas", after=page["next"])
            listed += page["personas"]
        return frozenset(str(each["name"]) for each in listed), sum(int(str(each.get("memories", 0))) for each in listed)
    return None, None


def _strange_databases(directory: Path) -> Iterator[Path]:
    entries = list(directory.iterdir())
    personas, _unreadable = personas_among(entries)
    for entry in entries:
        if entry.is_file() and entry.suffix != OLDER_ENDING and is_plain(entry):
            yield entry
        elif entry.is_dir() and not entry.name.startswith(".") and entry not in personas and is_readable(entry):
            yield from (path for path in entry.iterdir() if path.is_file() and is_plain(path))
