"""The checks of `memory-mcp doctor`: config.json, models, data directory, personas. They only read."""

import json
import os
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from memory_mcp.cli.options import MEBIBYTE, memories_in_words
from memory_mcp.client import discovery
from memory_mcp.client.connection import Connection
from memory_mcp.config.master_key import master_key
from memory_mcp.config.reading import default_token, load
from memory_mcp.config.settings import Settings, extras_needed
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Found, Missing, Role
from memory_mcp.encoders.onnx.export_directory import DIRECTORY_NAME, find_configured
from memory_mcp.encoders.torch.devices import has_driver
from memory_mcp.errors import (
    ConfigError,
    InvalidPersonaName,
    MemoryMCPError,
    NotInstalled,
    StartupError,
    StoreDamaged,
    StoreError,
    install_command,
    without_passwords,
)
from memory_mcp.extras import EXTRAS, is_installed
from memory_mcp.personas import cells
from memory_mcp.personas.cells import Cell
from memory_mcp.personas.directories import IDENTITY_NAME, is_lost, is_readable, personas_among
from memory_mcp.personas.names import addressed_name, directory_name, pool_of, store_name
from memory_mcp.personas.registry import names_in
from memory_mcp.personas.server_lock import LOCK_OWNER_NAME
from memory_mcp.store.files.access_tokens import FILE_NAME as TOKENS_NAME
from memory_mcp.store.files.access_tokens import read_tokens
from memory_mcp.store.files.encryption_keys import Keys, is_encrypted
from memory_mcp.store.files.persona_context import FILE_NAME as CONTEXT_NAME
from memory_mcp.store.files.persona_context import PersonaContext
from memory_mcp.store.inspection import Inspection, inspect
from memory_mcp.store.legacy.original_files import KEPT_NAME
from memory_mcp.store.operations import LOG_NAME, latest_logged
from memory_mcp.store.sqlite import network_drives
from memory_mcp.store.sqlite.database import DATABASE_NAME
from memory_mcp.upkeep.backup import Backups
from memory_mcp.upkeep.encryption import refuse_without_key, state
from memory_mcp.upkeep.older_data import older_items
from memory_mcp.wording import sentence

TOO_LITTLE_BYTES = 100 * MEBIBYTE
LITTLE_BYTES = 1024 * MEBIBYTE

RESTORE = "Stop the server, keep a copy of the directory, and restore a backup or an export"
LOST = f"What was written last is gone, as after {DATABASE_NAME}-wal was removed or an older copy took its place"
RECOVER = "Without one, `sqlite3 memory.sqlite .recover | sqlite3 recovered.sqlite` saves what can still be read"

Verdict = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `note` is for information; `wrong` requires action."""

    verdict: Verdict
    what: str
    sentence: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "sentence", without_passwords(self.sentence))


def ok(what: str, text: str, *values: object) -> Finding:
    """A finding that nothing is to be done about; here and below `text` has a `{}` for each value."""
    return Finding("ok", what, sentence(text, *values) if values else text)


def note(what: str, text: str, *values: object) -> Finding:
    """A finding for information."""
    return Finding("note", what, sentence(text, *values) if values else text)


def wrong(what: str, text: str, *values: object) -> Finding:
    """A finding that requires action."""
    return Finding("wrong", what, sentence(text, *values) if values else text)


def check_config(path: Path) -> tuple[Settings, list[Finding]]:
    """The settings, or the defaults if config.json is invalid, and the findings about the file."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else "{}"
        loaded = load(text, str(path))
    except (OSError, UnicodeDecodeError) as error:
        return Settings(), [wrong("config", "{} can't be read: {}. Make it a readable UTF-8 file.", path, error)]
    except ConfigError as error:
        return Settings(), [wrong("config", str(error))]
    read = ok("config", "{} can be used" if path.exists() else "{} does not exist: defaults are used", path)
    return loaded.settings, [read, *(note("config", "{}.", warning) for warning in loaded.warnings)]


def check_extras(settings: Settings) -> list[Finding]:
    """Which optional parts of the program are installed, and which of those that the configuration names are not."""
    there = [extra for extra in EXTRAS if is_installed(extra)]
    absent = [extra for extra in EXTRAS if extra not in there]
    installed, adding = ", ".join(there) or sentence("none"), install_command("NAME")
    partly = sentence("installed: {}; not: {}. {} adds one", installed, ", ".join(absent), adding)
    listed = partly if absent else sentence("installed: {}", installed)
    needed = [(key, value, extra) for key, value, extra in extras_needed(settings) if extra in absent]
    return [
        ok("extras", listed),
        *(note(key, str(NotInstalled(sentence("{} can't be used", value), extra))) for key, value, extra in needed),
    ]


def check_models(settings: Settings, data: Path) -> list[Finding]:
    """Whether the configured models are available. Loads nothing; `memory-mcp models check` does."""
    embedder = _model(settings, "embedder", settings.embeddings_model, data)
    fallback = settings.embeddings_fallback
    is_used = embedder.verdict != "ok" and fallback not in (None, settings.embeddings_model)
    standing_in = [_fallback(settings, fallback, data)] if fallback and is_used else []
    return [embedder, *standing_in, _model(settings, "reranker", settings.reranker_model, data)]


def check_encryption(settings: Settings, directory: Path) -> tuple[Keys, list[Finding]]:
    """The keys, and whether they decrypt all encrypted personas."""
    try:
        keys = Keys(master_key(settings.encryption), settings.encryption.enabled)
        there = state(directory)
        refuse_without_key(directory, keys, there.encrypted)
    except (ConfigError, StartupError, NotInstalled) as error:
        return Keys(), [wrong("encryption", "{} The server does not start.", error)]
    if keys.master is None:
        return keys, [ok("encryption", "none: everybody with access to the disk can read the memories")]
    counts = len(there.encrypted), len(there.encrypted) + len(there.plain), keys.master.id
    if there.plain and (keys.for_new or there.encrypted):
        told = "{} of {} persona(s) are encrypted; master key {}. `memory-mcp encrypt` encrypts the rest"
        found = note("encryption", told, *counts)
    else:
        found = ok("encryption", "{} of {} persona(s) are encrypted; master key {}", *counts)
    try:
        readable = readable_backups(directory, settings)
    except StoreError as error:
        readable = str(error)
    return keys, [found, *([note("backups", readable)] if readable else [])]


def readable_backups(directory: Path, settings: Settings) -> str:
    """What to do about the plain backups of encrypted personas, from before their encryption; empty if there are none."""
    plain = [made for made in Backups(directory, Keys()).listed(settings) if not made.sealed and is_encrypted(directory / made.folder)]
    if not plain:
        return ""
    return sentence(
        "{} backup(s) of encrypted personas are not encrypted, such as {}. Make new ones with `memory-mcp backup`, then remove those that `memory-mcp backup list` calls plain.",
        len(plain),
        plain[0].path,
    )


def check_data(directory: Path, keys: Keys, settings: Settings) -> list[Finding]:
    """Checks the data directory, the server that uses it, and every persona. Encrypted personas are opened with `keys`."""
    if not directory.exists():
        return [wrong("data", "{} does not exist. Name it with --data; `serve` creates it.", directory)]
    if not directory.is_dir():
        return [wrong("data", "{} is not a directory. Name the data directory with --data.", directory)]
    process = serving_process(directory)
    try:
        entries, _unreadable = personas_among(directory.iterdir())
    except OSError as error:
        return [wrong("data", "{} can't be read: {}. Fix its permissions.", directory, error.strerror)]
    server = ok("server", "process {} is serving this data", process) if process else ok("server", "none is serving this data")
    older = [(wrong if thing.refused else note)("older data", thing.sentence(done=False)) for thing in older_items(directory)]
    findings = [*_disk(directory, process), server, *(_unnamed_calls(directory) if process else []), *_cell(directory, settings)]
    findings += [*_tokens(directory, with_oauth=settings.oauth.is_on), *older, *_kept(directory)]
    closed = unreadable_paths(directory)
    findings += [_closed(directory, path) for path in closed]
    entries = [entry for entry in entries if not any(path.is_relative_to(entry) for path in closed)]
    if not entries and not closed:
        findings.append(ok("personas", "there is none yet: storing a memory creates one"))
    logged = latest_logged(directory)  # before the databases, which record an operation first
    return [*findings, *(finding for entry in entries for finding in _persona(entry, keys, logged, settings))]


def serving_process(directory: Path) -> int | None:
    """The id of the process that uses the data directory, according to its lock file; None if there is none."""
    try:
        process = int(json.loads((directory / LOCK_OWNER_NAME).read_text(encoding="utf-8"))["process"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if sys.platform == "win32":  # os.kill would end the process there
        return process
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return None  # it ended without cleaning up; the operating system released its lock
    except PermissionError:
        pass  # a process of another user
    return process


def _disk(directory: Path, process: int | None) -> Iterator[Finding]:
    free = shutil.disk_usage(directory).free
    verdict = wrong if free < TOO_LITTLE_BYTES else note if free < LITTLE_BYTES else ok
    yield verdict("disk", sentence("{} MiB are free in {}", f"{free // MEBIBYTE:,}", directory))
    if not os.access(directory, os.W_OK | os.X_OK):
        if process:
            told = "{} is not writable for this user; the running server may be another. Fix its permissions."
            yield note("data", sentence(told, directory))
        else:
            yield wrong("data", "{} is not writable for this user. Fix its permissions.", directory)
    if network_drives.is_on_network_drive(directory):
        told = "{} lies on a network drive: slower, and only one machine may use it. A local disk is better."
        yield note("data", told, directory)


def unreadable_paths(directory: Path) -> list[Path]:
    """What this user can't read in the data directory and in those of personas, such as files of another user."""

    def is_closed(path: Path) -> bool:
        return not (is_readable(path) if path.is_dir() else os.access(path, os.R_OK) or not path.exists())

    entries = sorted(directory.iterdir())
    inner = [path for entry in entries if entry.is_dir() and not is_closed(entry) for path in sorted(entry.iterdir())]
    return [path for path in (*entries, *inner) if is_closed(path)]


def _closed(directory: Path, path: Path) -> Finding:
    """What it means that this user can't read something. File systems make lost+found; no persona and no file of ours has such a name."""
    name = path.relative_to(directory).parts[0]
    is_ours = name.startswith((".", LOG_NAME)) or "~" in name or directory_name(name) == name or Path(name).suffix in (".json", ".sqlite")
    told = (
        "this user can't read it. If it is a persona's or the server's, give it to the user that the server runs as (chown -R); else leave it: "
        "all others are served."
    )
    return (wrong if is_ours else note)(str(path.relative_to(directory)), told)


def _unnamed_calls(directory: Path) -> list[Finding]:
    """How many calls the running server has answered as `default` because they named no persona, where there are others."""
    try:
        server = discovery.serving(directory, lambda url, secret: Connection(url, default_token(), secret=secret))
        counts = server.get_json("/ready").get("calls_without_persona", {}) if server else {}
    except MemoryMCPError:  # it has just ended, or wants another token
        return []
    if not counts:
        return []
    ways = ", ".join(f"{entry} {count:,}" for entry, count in sorted(counts.items()))
    told = "calls since the start without X-Persona, answered as default although there are other personas: {}. Add the header to their clients."
    return [note("calls", told, ways)]


def _cell(directory: Path, settings: Settings) -> list[Finding]:
    """The cell that this directory is of, unless it is the only one, and an error where the configuration says another."""
    try:
        cell = cells.fitting(directory, Cell.configured(settings.cell), lambda: names_in(directory))
    except StartupError as error:
        return [wrong("cell", "{} The server does not start.", error)]
    return [] if cell.is_whole else [ok("cell", str(cell))]


def _kept(directory: Path) -> list[Finding]:
    """The originals that adoption kept, which only the user may delete."""
    files = [path for path in (directory / KEPT_NAME).rglob("*") if path.is_file()]
    if not files:
        return []
    size = sum(path.stat().st_size for path in files) // MEBIBYTE
    told = "the originals of adopted data are kept in {} ({} MiB). Remove them when you no longer need them."
    return [note("older data", told, KEPT_NAME, f"{size:,}")]


def _tokens(directory: Path, *, with_oauth: bool) -> list[Finding]:
    """Whether calls require a token, how many tokens there are, and whether other users can read the file."""
    try:
        tokens = read_tokens(directory)
    except StoreError as error:
        return [wrong("tokens", "{} Until then the server refuses all calls.", error)]
    if tokens is None and with_oauth:
        return [ok("tokens", "every call requires one, of OAuth; there are no others")]
    if tokens is None:
        return [ok("tokens", "there are none: everybody who can reach the server can read and write everything")]
    states = Counter(token.state(datetime.now(UTC)) for token in tokens.values())
    counted = ", ".join(f"{count} {state}" for state, count in states.items()) or "there is none, so all calls are refused"
    findings = [(ok if states["in force"] else note)("tokens", sentence("every call requires one; {}", counted))]
    if os.name != "nt" and (directory / TOKENS_NAME).stat().st_mode & 0o077:
        told = "{} can be read or changed by other users. Run: chmod 600 {}"
        findings.append(note("tokens", told, TOKENS_NAME, directory / TOKENS_NAME))
    return findings


_NO_DRIVER = (
    "{}, but embeddings_device is cuda, and no driver of a GPU is installed here. Set it to cpu or auto. "
    "Until then search works without it and reports that."
)


def _model(settings: Settings, role: Role, name: str | None, data: Path) -> Finding:
    if name is None:
        return ok(role, "none, as configured")
    if where := availability.elsewhere(settings, role):
        return ok(role, "{}, {}", name, where)
    match find_configured(settings, name, role, data / DIRECTORY_NAME):
        case Found(None):
            return note(role, "{} is not downloaded yet. Run `memory-mcp models download`, or let the server download it.", name)
        case Found(directory):
            there = sentence("{} is available", name) if str(directory) == name else sentence("{} is available ({})", name, directory)
            return note(role, _NO_DRIVER, there) if settings.embeddings_device == "cuda" and not has_driver() else ok(role, there)
        case Missing(why):
            return note(role, "{} Until then search works without it and reports that.", why)


def _fallback(settings: Settings, name: str, data: Path) -> Finding:
    match find_configured(settings, name, "embedder", data / DIRECTORY_NAME):
        case Found(_):
            return ok("fallback", "{} is used until the embedder is there, and every answer says so", name)
        case Missing(why):
            return note("fallback", why)


def _persona(entry: Path, keys: Keys, logged: Mapping[str, str], settings: Settings) -> list[Finding]:
    name, findings = _identity(entry)
    try:
        key = keys.of(entry)
    except StoreError as error:
        return [*findings, wrong(name, "{} It can't be checked.", error)]
    try:
        PersonaContext(entry / CONTEXT_NAME, key).read()
    except StoreDamaged as error:
        findings.append(wrong(name, str(error)))
    if is_lost(entry) and (entry / IDENTITY_NAME).exists():
        return [*findings, wrong(name, "{} is missing, empty or cut off. {}.", DATABASE_NAME, RESTORE)]
    return [*findings, _database(name, inspect(entry / DATABASE_NAME, key, logged.get(name)), settings)]


def _unreached(name: str) -> list[Finding]:
    """A finding for a persona that an earlier version made for a name which clients can't send any more."""
    try:
        is_reached = bool(pool_of(name)) or addressed_name(name) == name
    except InvalidPersonaName:
        is_reached = False
    if is_reached:
        return []
    rename = f"memory-mcp persona rename {shlex.quote(name)} NAME"
    return [note(name, "no client reaches it by this name, which nobody filled in. Give it another with `{}`.", rename)]


def _identity(entry: Path) -> tuple[str, list[Finding]]:
    """The name of a persona by its identity file, and the findings if that doesn't match the directory."""
    path = entry / IDENTITY_NAME
    try:
        name = str(json.loads(path.read_text(encoding="utf-8"))["name"])
        fits = store_name(name) == name and directory_name(name) == entry.name
    except FileNotFoundError:
        name, fits = entry.name, directory_name(entry.name) == entry.name
    except (OSError, ValueError, KeyError, TypeError, RecursionError, InvalidPersonaName) as error:
        told, remedy = "{} can't be used: {}. The server can't serve this persona. {}", 'Restore it: {"name": "the exact name"}'
        return entry.name, [wrong(entry.name, told, IDENTITY_NAME, error, remedy)]
    if fits:
        return name, _unreached(name)
    if name == entry.name:
        return name, []  # a directory of an older server, which is reported separately
    mismatch = f"its directory {entry.name} should be named {directory_name(name)}"
    return name, [wrong(name, "{}. The server ignores it; rename the directory, or restore the right {}.", mismatch, IDENTITY_NAME)]


def _database(name: str, inspection: Inspection, settings: Settings) -> Finding:
    if inspection.faults:
        return wrong(name, "{} is damaged: {}. {}. {}.", DATABASE_NAME, "; ".join(inspection.faults), RESTORE, RECOVER)
    if inspection.refused:
        return wrong(name, inspection.refused)
    if inspection.malformed:
        rows = "; ".join(f"{key} ({', '.join(columns)})" for key, columns in inspection.malformed)
        how = "They are recalled and exported without these. Correct them, or restore a backup"
        return wrong(name, "memories with values that can't be read, such as {}. {}.", rows, how)
    if inspection.is_behind:
        return wrong(name, "the last operation in {} is not in {}. {}. {}.", LOG_NAME, DATABASE_NAME, LOST, RESTORE)
    if inspection.outdated:
        return note(name, "{} in an older format: the server migrates it when it opens it.", memories_in_words(inspection.memories))
    trash = sentence(", {} in the trash", f"{inspection.in_trash:,}") if inspection.in_trash else ""
    is_waiting = inspection.waiting and settings.embeddings_model
    waiting = sentence(", {} waiting for a vector", f"{inspection.waiting:,}") if is_waiting else ""
    return ok(name, "{}{}{}; database and lexical index are sound", memories_in_words(inspection.memories), trash, waiting)
