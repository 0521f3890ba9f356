"""`memory-mcp models`: lists, checks, downloads and exports the configured models."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_mcp.cli.japanese import tell, worded
from memory_mcp.cli.options import ConfigFile, DataDirectory, settings_of
from memory_mcp.config.reading import default_data_directory
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Found, Missing, Role, find
from memory_mcp.encoders.onnx.export_directory import DIRECTORY_NAME, find_configured
from memory_mcp.encoders.packaged import package
from memory_mcp.errors import EncoderFailed, MemoryMCPError
from memory_mcp.extras import require
from memory_mcp.wording import sentence

if TYPE_CHECKING:
    from memory_mcp.encoders.cache import Caches
    from memory_mcp.encoders.worker_pool import ModelPool

_PAIRS = (
    ("週末の予定は?", "土曜日は友だちと京都へ行く。"),
    ("週末の予定は?", "猫の名前はミケという。"),
    ("What does she like to eat?", "Her favourite food is strawberry cake."),
    ("What does she like to eat?", "The train leaves at nine."),
)

Embedder = Annotated[
    str | None, typer.Option("--embedder", help="Export this embedding model instead of the configured one.", metavar="MODEL")
]
Reranker = Annotated[str | None, typer.Option("--reranker", help="Export this reranker instead of the configured one.", metavar="MODEL")]
# What scripts of earlier versions pass; int8 is compared on built-in passages, and used where it is asked for.
Persona = Annotated[str | None, typer.Option("--persona", "-p", help="Not needed.", hidden=True, metavar="NAME")]
AcceptInt8 = Annotated[bool, typer.Option("--accept-int8", help="Not needed.", hidden=True)]

models = typer.Typer(name="models", help="The embedding model and the reranker: list, check, download, export.", no_args_is_help=True)


@models.command("list")
def list_models(config: ConfigFile = None, data: DataDirectory = None) -> None:
    """List the configured models and where they are, without loading them."""
    # Imported here: the other commands don't need the tables of languages.
    from memory_mcp.encoders.model_families import traits_of  # noqa: PLC0415

    settings = settings_of(config, must_exist=True)
    for role, name in _configured(settings):
        if name is None:
            typer.echo(f"{worded(role)}: {worded('none (null)')}")
            continue
        set_languages = settings.embeddings_languages if role == "embedder" else settings.reranker_languages
        elsewhere = availability.elsewhere(settings, role)
        location = Found(None) if elsewhere else find_configured(settings, name, role, _exports(data))
        traits = traits_of(name, location.directory if isinstance(location, Found) else None)
        languages = set_languages if set_languages is not None else traits.languages
        where = elsewhere or _where(location)
        typer.echo(f"{worded(role)}: {name}")
        tell("  where: {}", worded(where))
        tell("  languages: {}", ", ".join(languages) if languages else sentence("all"))
        known_traits = traits.with_known_prefixes() if role == "reranker" or settings.embeddings_class else traits
        if guess := known_traits.guess(languages_set=set_languages is not None):
            tell("  guessed: {}", guess)
    if settings.embeddings_model and (fallback := settings.embeddings_fallback) and fallback != settings.embeddings_model:
        typer.echo(f"{worded('fallback')}: {fallback}")
        tell("  where: {}", worded(_where(find_configured(settings, fallback, "embedder", _exports(data)))))


@models.command()
def check(config: ConfigFile = None, data: DataDirectory = None) -> None:
    """Load the configured models and run them. Exit status 0: all of them work."""
    # Imported here: the other commands don't load models.
    from memory_mcp.encoders.cache import Caches  # noqa: PLC0415
    from memory_mcp.encoders.worker_pool import ModelPool  # noqa: PLC0415

    settings = settings_of(config, must_exist=True)
    failed = False
    with ModelPool() as pool:
        for role, name in _configured(settings):
            if name is None:
                typer.echo(f"{worded(role)}: {worded('none (null)')}")
                continue
            try:
                run = _run_embedder if role == "embedder" else _run_reranker
                typer.echo(f"{worded(role)}: {worded(run(settings, pool, Caches(), _exports(data)))}")
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  libraries raise anything, even panics, at broken models; the other model must still be checked
                failed = True
                typer.echo(f"{worded(role)}: {worded(_message(name, error))}", err=True)
    if failed:
        raise typer.Exit(1)


@models.command()
def download(config: ConfigFile = None) -> None:
    """Download the configured models into the local cache, so that they need no network afterwards."""
    settings = settings_of(config, must_exist=True)
    failed = False
    for role, name in _configured(settings):
        if name is None or (elsewhere := availability.elsewhere(settings, role)):
            tell("{}: nothing to download ({})", worded(role), "null" if name is None else sentence("{} runs {}", name, elsewhere))
        elif Path(name).expanduser().is_dir():
            tell("{}: nothing to download ({} is a directory)", worded(role), name)
        elif role == "embedder" and package.is_named(name):
            tell("{}: nothing to download ({} comes with {})", worded(role), name, package.INSTALL)
        else:
            try:
                tell("{}: {} is in {}", worded(role), name, availability.download(name, role, show_progress=sys.stderr.isatty()))
            except MemoryMCPError as error:
                failed = True
                typer.echo(f"{worded(role)}: {worded(str(error))}", err=True)
    if failed:
        raise typer.Exit(1)


def _configured(settings: Settings) -> list[tuple[Role, str | None]]:
    roles: tuple[Role, ...] = ("embedder", "reranker")
    return [(role, availability.configured(settings, role)) for role in roles]


def _exports(data: Path | None) -> Path:
    return (data or default_data_directory()) / DIRECTORY_NAME


def _where(location: Found | Missing) -> str:
    match location:
        case Found(None):
            return "at the hub, not downloaded yet. Run `memory-mcp models download`, or let the server download it when it starts."
        case Found(directory):
            return str(directory)
        case Missing(why):
            return sentence("absent. {}", why)


def _run_embedder(settings: Settings, pool: "ModelPool", caches: "Caches", exports: Path) -> str:
    from memory_mcp.encoders.loading.loaders import Exports, load_embedder  # noqa: PLC0415  as above

    start = time.monotonic()
    embedder = load_embedder(settings, pool, caches, Exports(exports))
    loaded = time.monotonic()
    for query, _ in _PAIRS:
        embedder.embed_query(query)
    query_ms = (time.monotonic() - loaded) * 1_000 / len({query for query, _ in _PAIRS})
    embedder.close()
    limit = sentence("{} tokens", embedder.max_tokens) if embedder.max_tokens else "unknown"
    facts = (embedder.dimension, limit, f"{loaded - start:.1f}", f"{query_ms:.0f}", f"{embedder.generation}{_runs_on(embedder.backend)}")
    return sentence("{} works: dimension {}, limit {}, loaded in {} s, {} ms a query, generation {}", embedder.name, *facts)


def _run_reranker(settings: Settings, pool: "ModelPool", caches: "Caches", exports: Path) -> str:
    from memory_mcp.encoders.loading.loaders import Exports, load_reranker  # noqa: PLC0415  as above

    start = time.monotonic()
    reranker = load_reranker(settings, pool, caches, Exports(exports))
    loaded = time.monotonic()
    scores = [score for query, text in _PAIRS for score in reranker.score(query, [text]) or []]
    query_ms = (time.monotonic() - loaded) * 1_000 / len(_PAIRS)
    reranker.close()
    told = (
        "{} works: limit {} tokens, loaded in {} s, {} ms a pair, scores of fitting texts {} (ja) and {} (en), of unfitting ones {} and {}"
    )
    fitting_ja, unfitting_ja, fitting_en, unfitting_en = (f"{score:.3f}" for score in scores)
    seconds = (f"{loaded - start:.1f}", f"{query_ms:.0f}")
    shown = (fitting_ja, fitting_en, unfitting_ja, f"{unfitting_en}{_runs_on(reranker.backend)}")
    return sentence(told, reranker.name, reranker.max_tokens, *seconds, *shown)


def _runs_on(backend: str | None) -> str:
    """The runtime of a model as a clause, if the configuration does not name it."""
    return f", {backend}" if backend else ""


def _message(name: str, error: BaseException) -> str:
    from memory_mcp.encoders.failures import load_error  # noqa: PLC0415  as above

    return str(error) if isinstance(error, MemoryMCPError) else load_error(name, error)


@models.command("export-onnx")
def export_onnx(
    config: ConfigFile = None,
    data: DataDirectory = None,
    embedder: Embedder = None,
    reranker: Reranker = None,
    _persona: Persona = None,
    _accept_int8: AcceptInt8 = False,
) -> None:
    """Export the models to ONNX in the data directory. Doesn't affect a running server."""
    require("export-onnx", "models can't be exported")
    settings = settings_of(config, must_exist=True)
    directory = data or default_data_directory()
    wanted: list[tuple[Role, str | None]] = [
        ("embedder", embedder or _exportable(settings)),
        ("reranker", reranker or (None if settings.reranker_url else settings.reranker_model)),
    ]
    failed = False
    for role, name in wanted:
        if name is None:
            tell("{}: nothing to export", role)
            continue
        try:
            typer.echo(f"{worded(role)}: {_export(role, name, directory)}")
        except MemoryMCPError as error:
            failed = True
            typer.echo(f"{worded(role)}: {worded(str(error))}", err=True)
    if failed:
        raise typer.Exit(1)
    tell(
        'With "inference_backend": "auto", the default, a server uses this when it loads the models next; with "onnx", it uses nothing else.'
    )


def _exportable(settings: Settings) -> str | None:
    """The configured embedder, unless it runs elsewhere or is the packaged one, which onnxruntime runs anyway."""
    name = settings.embeddings_model
    return None if availability.elsewhere(settings, "embedder") or (name and package.is_named(name)) else name


def _export(role: Role, name: str, data: Path) -> str:
    # Imported here: the other commands don't need torch.
    from memory_mcp.encoders.onnx import export_directory, exporter  # noqa: PLC0415

    model = find(name, role)
    if isinstance(model, Missing):
        raise EncoderFailed("{}", "", "", model.reason.rstrip("."))
    source = model.directory or availability.download(name, role, show_progress=False)
    target = export_directory.directory_for(name, role, data / export_directory.DIRECTORY_NAME)
    tell("{}: {} is being exported, which takes half a minute …", role, name, err=True)
    export = (exporter.export_embedder if role == "embedder" else exporter.export_reranker)(name, source, target)
    fp32, int8 = (
        sum((target / file).stat().st_size for file in export_directory.weight_names(export, precision)) / 1e6
        for precision in export_directory.FILE_NAMES
    )
    return (
        f"{export.model} is in {target}\n"
        f"  fp32: {fp32:.0f} MB, answers as torch does (largest difference {export.difference:.1g})\n"
        f"  int8: {int8:.0f} MB, {export.int8_order}"
    )
