"""`memory-mcp pack`: a pool or a persona as one signed file to give away, and the packs of others."""

import hashlib
import json
import tempfile
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp import __version__
from memory_mcp.cli.feature import Commands
from memory_mcp.cli.import_export import report, written_to
from memory_mcp.cli.japanese import named, named_counts, tell
from memory_mcp.cli.options import DataDirectory, PersonaName, PoolName, Url, connection, memories_in_words
from memory_mcp.cli.progress import progress
from memory_mcp.config.reading import default_data_directory
from memory_mcp.errors import InvalidInput
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from memory_mcp.features.pools.archive import Manifest, PrivateFinding

FINDINGS_SHOWN = 20

group = typer.Typer(name="pack", help="A pool or a persona as one signed file to give away, and the packs of others.", no_args_is_help=True)

PackFile = Annotated[Path, typer.Argument(help="A pack.", metavar="FILE", exists=True, dir_okay=False)]


@group.command()
def make(
    file: Annotated[Path, typer.Argument(help="The file to write.", metavar="FILE")],
    name: Annotated[str, typer.Option("--name", help="What the pack is called.", metavar="NAME")],
    signer: Annotated[str, typer.Option("--signer", help="What you call yourself.", metavar="NAME")],
    with_findings: Annotated[bool, typer.Option("--with-findings", help="Also if private data were found in it.")] = False,
    persona: PersonaName = None,
    pool: PoolName = None,
    url: Url = None,
    data: DataDirectory = None,
) -> None:
    """Write a pack. Exit status 1: private data were found, and nothing was written."""
    # Imported here: the other commands don't need the stores and their libraries.
    from memory_mcp.features.pools.archive import Manifest, Packing, check_name, public_key_of, signed  # noqa: PLC0415
    from memory_mcp.store.files.signing_keys import own_key  # noqa: PLC0415

    name, signer = name.strip(), signer.strip()
    for what in (name, signer):
        check_name(what)
    server, packing, digest, lines = connection(url, persona, pool=pool), Packing(), hashlib.sha256(), 0
    with tempfile.TemporaryFile() as body, progress("packing", None) as advance:
        for line in packing.lines(server.export_lines()):
            body.write(line)
            digest.update(line)
            lines += 1
            advance(1)
        if packing.findings:
            _show_findings(packing.findings)
            if not with_findings:
                tell("Nothing was written. Revise these memories, or give them away all the same: --with-findings", err=True)
                raise typer.Exit(1)
        if not lines:
            raise InvalidInput("there is nothing to pack", "the store is empty", "Name another with --persona or --pool")
        key = own_key(data or default_data_directory())
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        made_by = f"memory-mcp {__version__}"
        manifest = Manifest(name, signer, made_at, made_by, lines, packing.memories, digest.hexdigest(), public_key_of(key))
        body.seek(0)
        with written_to(file) as target:
            target.write(signed(asdict(manifest), key))
            for block in iter(lambda: body.read(1 << 20), b""):
                target.write(block)
    tell("{}: {}, signed by {} ({})", file, memories_in_words(manifest.memories), manifest.signer, manifest.fingerprint)


@group.command()
def inspect(file: PackFile, data: DataDirectory = None) -> None:
    """Show what a pack says of itself and who signed it. Nothing is installed. Exit status 1: it was changed after it was signed."""
    from memory_mcp.features.pools.archive import findings_in, rows_of, verified  # noqa: PLC0415  as above

    manifest = verified(file)
    tell(
        "{}: {} in {} lines, made at {} by {}",
        manifest.name,
        memories_in_words(manifest.memories),
        manifest.lines,
        manifest.made_at,
        manifest.made_by,
    )
    tell(_signer(manifest, data or default_data_directory()))
    rows = [json.loads(line) for line in rows_of(file, manifest)]
    for row in rows[:3]:
        typer.echo(f"  {row.get('content') or row}"[:200])
    _show_findings([finding for row in rows for finding in findings_in(row)])


@group.command()
def install(
    file: PackFile,
    trust: Annotated[
        str | None, typer.Option("--trust", help="A signer with a new key, by its fingerprint.", metavar="FINGERPRINT")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be stored, already known or refused.")] = False,
    persona: PersonaName = None,
    pool: PoolName = None,
    url: Url = None,
    data: DataDirectory = None,
) -> None:
    """Import a pack into a persona or a pool. Each memory gets the tag `pack:NAME`. Exit status 1: something was refused."""
    from memory_mcp.features.pools.archive import looks_of, rows_of, verified  # noqa: PLC0415  as above
    from memory_mcp.store.files.signing_keys import known_signers, remember_signer  # noqa: PLC0415  as above

    manifest, directory = verified(file), data or default_data_directory()
    known = known_signers(directory)
    names = {looks_of(seen["name"]) for seen in known.values()}
    if manifest.fingerprint not in known and looks_of(manifest.signer) in names and trust != manifest.fingerprint:
        raise InvalidInput(
            "{} signed with another key than before",
            "it may be somebody else of that name",
            "Ask them; if {} is theirs, use --trust {}",
            manifest.signer,
            manifest.fingerprint,
            manifest.fingerprint,
        )
    tell(_signer(manifest, directory))
    with progress("installing", manifest.lines) as advance:
        counts = connection(url, persona, pool=pool).import_rows(rows_of(file, manifest), advance, dry_run=dry_run, adds_only=True)
    report(counts, [sentence("line {}", error["line"] + 1) for error in counts["errors"]])
    if not dry_run:
        remember_signer(directory, manifest.fingerprint, manifest.signer, datetime.now(UTC))
    if counts["refused"]:
        raise typer.Exit(1)


def _signer(manifest: "Manifest", directory: Path) -> str:
    from memory_mcp.store.files.signing_keys import known_signers  # noqa: PLC0415  as above

    seen = known_signers(directory).get(manifest.fingerprint)
    if seen is None:
        return sentence(
            "signed by {} ({}): a key that was never seen here, and nobody vouches for the name", manifest.signer, manifest.fingerprint
        )
    return sentence("signed by {} ({}): the same key as since {}", seen["name"], manifest.fingerprint, seen["first_seen"][:10])


def _show_findings(findings: "list[PrivateFinding]") -> None:
    for finding in findings[:FINDINGS_SHOWN]:
        typer.echo(f"{finding.key}: {named('data', finding.kind)} {finding.sample}", err=True)
    if findings:
        counts = named_counts("data", Counter(finding.kind for finding in findings))
        tell("may be private: {}. Names of people are not looked for: read it before you give it away.", counts, err=True)


COMMANDS = Commands(data=(group,))
