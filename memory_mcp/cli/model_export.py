"""`memory-mcp models export-onnx`: writes the models for `inference_backend: onnx`, and measures how well int8 ranks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp.cli.options import ConfigFile, DataDirectory, settings_of
from memory_mcp.config.reading import default_data_directory
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Missing, Role, find
from memory_mcp.errors import EncoderFailed, MemoryMCPError

if TYPE_CHECKING:
    from memory_mcp.encoders.onnx.export_directory import Export

TEXTS = 500

Embedder = Annotated[str | None, typer.Option("--embedder", help="Another embedding model than the configured one.", metavar="MODEL")]
Reranker = Annotated[str | None, typer.Option("--reranker", help="Another reranker than the configured one.", metavar="MODEL")]
Persona = Annotated[
    str | None, typer.Option("--persona", "-p", help="Measure int8 on this persona's memories. Default: on all.", metavar="NAME")
]

AcceptInt8 = Annotated[
    bool,
    typer.Option(
        "--accept-int8", help="Let int8 be used where nothing proves yet that it ranks well, as with few memories. Never where it doesn't."
    ),
]


def export_onnx(
    config: ConfigFile = None,
    data: DataDirectory = None,
    persona: Persona = None,
    embedder: Embedder = None,
    reranker: Reranker = None,
    accept_int8: AcceptInt8 = False,
) -> None:
    """Write the models as ONNX beside the data, and measure how int8 ranks your memories. Needs no server, and disturbs none."""
    settings = settings_of(config)
    directory = data or default_data_directory()
    wanted: list[tuple[Role, str | None]] = [
        ("embedder", embedder or (None if settings.embeddings_class else settings.embeddings_model)),
        ("reranker", reranker or settings.reranker_model),
    ]
    texts = _texts(directory, persona)
    failed = False
    for role, name in wanted:
        if name is None:
            typer.echo(f"{role}: nothing to export")
            continue
        try:
            typer.echo(f"{role}: {_exported(role, name, directory, texts, accept_int8)}")
        except MemoryMCPError as error:
            failed = True
            typer.echo(f"{role}: {error}", err=True)
    if failed:
        raise typer.Exit(1)
    typer.echo(
        'Set "inference_backend": "onnx" in config.json, and "onnx_precision": "int8" where int8 ranks well. A server takes it live.'
    )


def _exported(role: Role, name: str, data: Path, texts: Sequence[str], accepted: bool) -> str:
    # torch and what stands on it, which the other commands do without.
    from memory_mcp.encoders.onnx import export_directory, exporter, ranking_agreement  # noqa: PLC0415

    found = find(name, role)
    if isinstance(found, Missing):
        raise EncoderFailed(found.reason.rstrip("."))
    source = found.directory or availability.download(name, role, show_progress=False)
    target = export_directory.directory_for(name, role, data / export_directory.DIRECTORY_NAME)
    export = exporter.export_embedder if role == "embedder" else exporter.export_reranker
    typer.echo(f"{role}: {name} is being exported, which takes half a minute …", err=True)
    export(name, source, target)
    own = len(texts) >= export_directory.MIN_TEXTS
    return _told(ranking_agreement.measure(target, texts if own else ranking_agreement.SENTENCES, own, accepted), target)


def _told(export: "Export", target: Path) -> str:
    from memory_mcp.encoders.onnx.export_directory import AGREEMENT_MEASURE, FILE_NAMES, weight_names  # noqa: PLC0415  as above

    megabytes = {
        precision: sum((target / name).stat().st_size for name in weight_names(export, precision)) / 1e6 for precision in FILE_NAMES
    }
    measured = export.agreement
    if measured is None:
        raise EncoderFailed(f"{export.model} is exported", "how int8 ranks was not measured")
    on = f"{measured.texts} {'memories' if measured.own else 'built-in sentences'}"
    return (
        f"{export.model} is in {target}\n"
        f"  fp32: {megabytes['fp32']:.0f} MB, answers as torch does (largest difference {export.difference:.1g})\n"
        f"  int8: {megabytes['int8']:.0f} MB, {measured.alike:.0%} {AGREEMENT_MEASURE[export.role]}, rank correlation {measured.spearman:.3f} "
        f"(on {on}; {measured.telling} of {measured.queries} queries tell)\n"
        f"  {_verdict(export)}"
    )


def _verdict(export: "Export") -> str:
    from memory_mcp.encoders.onnx.export_directory import ranks_differently, unproven  # noqa: PLC0415  as above

    if ranks_differently(export):
        return "int8 is refused: it ranks too differently"
    missing = unproven(export)
    if missing is None:
        return "int8 may be used"
    why, remedy = missing
    return f"int8 may be used because you accept it: {why}" if export.int8_accepted else f"int8 is refused: {why}. {remedy}"


def _texts(data: Path, persona: str | None) -> list[str]:
    """What the newest memories say, of one persona or of all alike."""
    # The stores and their libraries, as above.
    from memory_mcp.personas.directories import is_persona  # noqa: PLC0415
    from memory_mcp.personas.names import canonical_name, directory_name  # noqa: PLC0415
    from memory_mcp.store.inspection import latest_texts  # noqa: PLC0415
    from memory_mcp.store.sqlite.database import DATABASE_NAME  # noqa: PLC0415

    if persona is not None:
        homes = [data / directory_name(canonical_name(persona))]
        if not is_persona(homes[0]):
            raise EncoderFailed(f"there is no persona {persona!r} in {data}", "", "Say another with --persona, or leave it out for all")
    else:
        homes = sorted(entry for entry in data.iterdir() if is_persona(entry)) if data.is_dir() else []
    found = [text for home in homes for text in latest_texts(home / DATABASE_NAME, max(1, TEXTS // len(homes)))]
    return list(dict.fromkeys(text for text in found if text.strip()))
