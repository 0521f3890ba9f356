"""Whatever name somebody sends: it leads to one directory, to nobody else's, and never out of the data directory."""

import json
import os
import socket
import unicodedata
from base64 import b64encode
from pathlib import Path, PurePosixPath, PureWindowsPath
from urllib.parse import quote, urlsplit

import pytest
from figures import Figure
from hostile_names import BASES, HOSTILE, NOT_FILLED_IN, addressed_or_none, as_careless_systems_see, canonical_or_none, changed_names
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import RunningServer, serving

from memory_mcp.config.settings import Privacy
from memory_mcp.errors import StoreError
from memory_mcp.personas.names import directory_name
from memory_mcp.personas.registry import Personas
from memory_mcp.remember.pipeline import remember
from memory_mcp.remember.validation import draft
from memory_mcp.store import memories

RESERVED_ON_WINDOWS = {"con", "prn", "aux", "nul", "conin$", "conout$", *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³")}


class Claimed:
    """Which canonical name has which directory, over everything that was tried."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.owners: dict[str, str] = {}
        self.collisions = 0

    def claim(self, name: str) -> None:
        """Notes where a name leads; a second name at the same place is a collision."""
        self.names.add(name)
        canonical = canonical_or_none(name)
        if canonical is None:
            return
        directory = directory_name(canonical)
        assert_lies_in_the_data_directory(directory)
        owner = self.owners.setdefault(as_careless_systems_see(directory), canonical)
        self.collisions += owner != canonical
        assert owner == canonical, f"{owner!r} and {canonical!r} share {directory!r}"


def assert_lies_in_the_data_directory(directory: str) -> None:
    assert PurePosixPath(directory).parts == PureWindowsPath(directory).parts == (directory,)
    assert directory not in ("", ".", "..")
    assert not set(directory) & set('<>:"/\\|?*')
    assert not any(unicodedata.category(character)[0] in "CZ" for character in directory)
    assert not directory.startswith((".", " "))
    assert not directory.endswith((".", " "))
    assert directory.partition(".")[0].casefold() not in RESERVED_ON_WINDOWS
    assert len(unicodedata.normalize("NFD", directory).encode()) <= 255
    assert len(unicodedata.normalize("NFD", directory).encode("utf-16-le")) <= 255 * 2


@pytest.mark.slow
def test_names_that_differ_have_directories_that_differ_also_where_case_and_width_do_not_count(figure: Figure, thorough: bool) -> None:
    claimed = Claimed()
    for name in changed_names():
        claimed.claim(name)

    @settings(max_examples=4_000 if thorough else 400, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(HOSTILE, min_size=20, max_size=20))
    def try_names(names: list[str]) -> None:
        for name in names:
            claimed.claim(name)

    try_names()
    figure("persona names tried", f"{len(claimed.names):,} ({len(claimed.owners):,} different personas)")
    figure("persona names, collisions", claimed.collisions)
    assert len(claimed.owners) > 5_000


@given(HOSTILE)
def test_equal_names_lead_to_one_directory_however_they_are_composed(name: str) -> None:
    found = {canonical_or_none(unicodedata.normalize(form, name)) for form in ("NFC", "NFD")} | {canonical_or_none(name)}
    # Decomposed, a name may be too long to be looked at: it is refused then, and nobody else's.
    assert len(found - {None}) <= 1
    assert len({directory_name(canonical) for canonical in found - {None}}) <= 1


@pytest.fixture(scope="module")
def distinct_names() -> list[str]:
    return sorted({canonical for base in BASES if (canonical := canonical_or_none(base))})


def written(personas: Personas, name: str, content: str, now, zone) -> None:
    with personas.writing(name) as persona:
        remember(persona, draft(content, now=now, zone=zone), now=now, zone=zone, privacy=Privacy())


def contents(personas: Personas, name: str) -> list[str]:
    with personas.reading(name) as persona, persona.database.read() as connection:
        return [row[0] for row in connection.execute("SELECT content FROM memories ORDER BY id")]


@pytest.mark.slow
def test_on_the_disk_every_name_keeps_its_own_memory_and_nothing_lies_elsewhere(
    tmp_path: Path, distinct_names: list[str], now, zone, figure: Figure
) -> None:
    outside = tmp_path / "around"
    data = outside / "memory"
    outside.mkdir()
    personas = Personas(data, open_limit=8)
    for name in distinct_names:
        assert contents(personas, name) == []
        written(personas, name, f"only of {name}", now, zone)
    personas.close()
    again = Personas(data, open_limit=8)
    assert again.names() == distinct_names
    for name in distinct_names:
        assert contents(again, name) == [f"only of {name}"]
        assert json.loads((data / directory_name(name) / "persona.json").read_text(encoding="utf-8")) == {"name": name}
    again.close()
    assert [entry.name for entry in outside.iterdir()] == ["memory"]
    directories = [entry.name for entry in data.iterdir() if entry.is_dir() and entry.name != ".personas"]
    assert len({as_careless_systems_see(directory) for directory in directories}) == len(distinct_names)
    figure("hostile names written to the disk and read back", len(distinct_names))


@pytest.mark.parametrize("name", ["nilou", "さくら", "A-B", ".."])
def test_a_directory_that_somebody_made_beforehand_for_another_name_is_not_used(personas, data_directory, now, zone, name) -> None:
    directory = data_directory / directory_name(name)
    directory.mkdir()
    (directory / "persona.json").write_text(json.dumps({"name": "collei"}), encoding="utf-8")
    with pytest.raises(StoreError, match="belongs to 'collei'"):
        written(personas, name, "x", now, zone)
    assert [entry.name for entry in directory.iterdir()] == ["persona.json"]
    assert personas.names() == []


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
@pytest.mark.parametrize("identity", ["named", "unnamed, as an older server left it"])
def test_a_link_to_the_directory_of_another_persona_is_not_followed(personas, data_directory, now, zone, identity) -> None:
    written(personas, "nilou", "only of nilou", now, zone)
    if identity != "named":
        (data_directory / "nilou" / "persona.json").unlink()
    (data_directory / "dehya").symlink_to(data_directory / "nilou", target_is_directory=True)
    with pytest.raises(StoreError, match="dehya"):
        contents(personas, "dehya")
    with pytest.raises(StoreError, match="dehya"):
        written(personas, "dehya", "only of dehya", now, zone)
    assert contents(personas, "nilou") == ["only of nilou"]


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_backup_of_hard_links_beside_a_persona_keeps_nobody_out(data_directory, now, zone) -> None:
    personas = Personas(data_directory)
    written(personas, "nilou", "only of nilou", now, zone)
    personas.close()
    (data_directory / "nilou-backup").mkdir()
    for file in ("memory.sqlite", "persona.json"):
        (data_directory / "nilou-backup" / file).hardlink_to(data_directory / "nilou" / file)
    again = Personas(data_directory)
    assert again.names() == ["nilou"]
    assert contents(again, "nilou") == ["only of nilou"]
    with pytest.raises(StoreError, match="belongs to 'nilou'"):
        contents(again, "nilou-backup")
    again.close()


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_a_link_to_the_database_of_another_persona_is_not_followed(data_directory, now, zone, link) -> None:
    before = Personas(data_directory)
    written(before, "nilou", "only of nilou", now, zone)
    before.close()
    (data_directory / "dehya").mkdir()
    make = Path.symlink_to if link == "symbolic" else Path.hardlink_to
    make(data_directory / "dehya" / "memory.sqlite", data_directory / "nilou" / "memory.sqlite")
    personas = Personas(data_directory)
    with pytest.raises(StoreError, match="dehya shares its database with another persona"):
        contents(personas, "dehya")
    with pytest.raises(StoreError, match="dehya shares its database with another persona"):
        written(personas, "dehya", "only of dehya", now, zone)
    personas.close()


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_directory_that_its_owner_has_moved_to_another_disk_and_linked_is_used(personas, data_directory, tmp_path, now, zone) -> None:
    (tmp_path / "big disk").mkdir()
    (data_directory / "nilou").symlink_to(tmp_path / "big disk", target_is_directory=True)
    written(personas, "nilou", "far away", now, zone)
    assert contents(personas, "nilou") == ["far away"]
    with personas.reading("nilou") as persona, persona.database.read() as connection:
        assert memories.counts(connection)["memories"] == 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    with serving(tmp_path_factory.mktemp("names"), '{"embeddings_model": null, "reranker_model": null}') as server:
        yield server


def raw_get(server: RunningServer, path: bytes, header: bytes | None = None) -> tuple[int, bytes]:
    """The status and the body of a GET whose bytes no client library has looked at."""
    address = urlsplit(server.url)
    lines = [b"GET " + path + b" HTTP/1.1", b"Host: 127.0.0.1", b"Connection: close"]
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        connection.sendall(b"\r\n".join([*lines, *([b"X-Persona: " + header] if header is not None else []), b"", b""]))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def percent(name: str, change=str.upper) -> bytes:
    """Every byte percent-encoded."""
    return "".join(change(f"%{byte:02x}") for byte in name.encode()).encode()


def served_as(answer: tuple[int, bytes]) -> str | None:
    """The persona that was served, None if the request was refused in our words or in those of HTTP."""
    status, body = answer
    if status != 200:
        assert status == 400, answer
        return None
    return json.loads(body)["persona"]


@pytest.mark.slow
def test_a_name_that_a_client_did_not_fill_in_is_nobody_however_it_is_sent(server: RunningServer, figure: Figure) -> None:
    served = tried = 0
    for name in NOT_FILLED_IN:
        base64 = b"b64:" + b64encode(name.encode())
        ways: list[tuple[bytes, bytes | None]] = [
            (b"/api/stats", percent(name)),
            (b"/api/stats", base64),
            (b"/p/" + percent(name) + b"/api/stats", None),
        ]
        if name.isascii():
            ways.append((b"/api/stats", name.encode()))
        served += sum(served_as(raw_get(server, *way)) is not None for way in ways)
        tried += len(ways)
    figure("headers not filled in", tried)
    figure("headers not filled in, served as a persona", served)
    assert served == 0


@pytest.mark.slow
def test_every_encoding_of_a_name_in_a_header_or_a_path_is_that_name_and_no_other(server: RunningServer, figure: Figure) -> None:
    asked = 0
    for base in BASES:
        if any("\ud800" <= character <= "\udfff" for character in base):
            continue
        expected = addressed_or_none(base)
        path = b"/p/" + percent(base) + b"/api/stats"
        ways = {
            "percent": raw_get(server, b"/api/stats", percent(base)),
            "lower percent": raw_get(server, b"/api/stats", percent(base, str.lower)),
            "sparing percent": raw_get(server, b"/api/stats", quote(base, safe="").encode()),
            "path": raw_get(server, path),
            "path and header": raw_get(server, path, percent(base)),
        }
        if base.strip() == base and base.isprintable() and "%" not in base and base:
            ways["bytes"] = raw_get(server, b"/api/stats", base.encode())
        for way, answer in ways.items():
            assert served_as(answer) == expected, (base[:80], way)
        asked += len(ways)
        encoded = percent(base).decode()
        if len(encoded) < 2_000:
            assert served_as(raw_get(server, b"/api/stats", percent(encoded))) == addressed_or_none(encoded), base[:80]
        if expected is not None:
            conflict = raw_get(server, path, percent(f"{base}-"))
            assert conflict[0] == 400, (base[:80], conflict)
        asked += 2
    figure("persona names sent over HTTP, in every encoding", asked)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "shift_jis", "euc_jp", "utf-16-le", "utf-7", "utf-8-sig"])
def test_a_name_in_another_encoding_is_refused_or_another_name_but_never_somebody_elses(server: RunningServer, encoding: str) -> None:
    for base in ("é", "ß", "さくら", "Å", "µ"):
        try:
            sent = base.encode(encoding)
        except UnicodeEncodeError:
            continue
        served = {served_as(raw_get(server, b"/api/stats", quote(sent).encode()))}
        if not set(sent) & {0, 10, 13}:
            served.add(served_as(raw_get(server, b"/api/stats", sent)))
        assert len(served) == 1
        assert not served & {"default", base, *BASES}


@pytest.mark.slow
def test_a_name_of_thousands_of_characters_is_refused_in_words_and_the_server_goes_on(server: RunningServer) -> None:
    for long in ("x" * 10_000, "あ" * 5_000, "a" + "\u0301\u0323" * 10_000, "x" * 60_000):
        status, body = raw_get(server, b"/api/stats", long.encode())
        assert status == 400
        assert b"characters: 200 are the limit" in body or b"x" * 100 not in body
        assert raw_get(server, b"/p/" + quote(long[:5_000]).encode() + b"/api/stats")[0] == 400
    assert served_as(raw_get(server, b"/api/stats", b"nilou")) == "nilou"
