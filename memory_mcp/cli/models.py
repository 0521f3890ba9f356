"""`memory-mcp models`: which models are configured, where they are, whether they work; and downloading them."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from memory_mcp.cli import model_export
from memory_mcp.cli.options import ConfigFile, DataDirectory, settings_of
from memory_mcp.config.reading import default_data_directory
from memory_mcp.config.settings import Settings
from memory_mcp.encoders.loading import availability
from memory_mcp.encoders.loading.availability import Found, Missing, Role
from memory_mcp.encoders.onnx.export_directory import DIRECTORY_NAME, find_configured
from memory_mcp.errors import MemoryMCPError

if TYPE_CHECKING:
    from memory_mcp.encoders.cache import Caches
    from memory_mcp.encoders.worker_pool import ModelPool

_PAIRS = (
    ("週末の予定は?", "土曜日は友だちと京都へ行く。"),
    ("週末の予定は?", "猫の名前はミケという。"),
    ("What does she like to eat?", "Her favourite food is strawberry cake."),
    ("What does she like to eat?", "The train leaves at nine."),
)

models = typer.Typer(help="The embedding model and the reranker: list, check, download.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds the group of commands."""
    models.command("list")(list_models)
    models.command()(check)
    models.command()(download)
    models.command("export-onnx")(model_export.export_onnx)
    app.add_typer(models, name="models")


def list_models(config: ConfigFile = None, data: DataDirectory = None) -> None:
    """Say which models are configured, and where they are. Loads nothing."""
    # What the tables of languages say is for those who ask only.
    from memory_mcp.encoders.model_families import known_languages  # noqa: PLC0415

    settings = settings_of(config)
    for role, name in _configured(settings):
        if name is None:
            typer.echo(f"{role}: none (null)")
            continue
        set_languages = settings.embeddings_languages if role == "embedder" else settings.reranker_languages
        languages = set_languages if set_languages is not None else known_languages(name)
        typer.echo(
            f"{role}: {name}\n  where: {_where(settings, role, name, _exports(data))}\n  languages: {', '.join(languages) if languages else 'all'}"
        )


def check(config: ConfigFile = None, data: DataDirectory = None) -> None:
    """Load the configured models and ask them something. Exit status 0: those that are wanted work."""
    # Loading needs what the other commands do without.
    from memory_mcp.encoders.cache import Caches  # noqa: PLC0415
    from memory_mcp.encoders.worker_pool import ModelPool  # noqa: PLC0415

    settings = settings_of(config)
    failed = False
    with ModelPool() as pool:
        for role, name in _configured(settings):
            if name is None:
                typer.echo(f"{role}: none (null)")
                continue
            try:
                ask = _asked_embedder if role == "embedder" else _asked_reranker
                typer.echo(f"{role}: {ask(settings, pool, Caches(), _exports(data))}")
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001  libraries raise what they like, and panic, at broken models; the other is still to be checked
                failed = True
                typer.echo(f"{role}: {_said(name, error)}", err=True)
    if failed:
        raise typer.Exit(1)


def download(config: ConfigFile = None) -> None:
    """Put the configured models into the local cache, so that they are there without a network from then on."""
    settings = settings_of(config)
    failed = False
    for role, name in _configured(settings):
        if name is None or (role == "embedder" and settings.embeddings_class):
            typer.echo(f"{role}: nothing to download ({'null' if name is None else settings.embeddings_class})")
        elif Path(name).expanduser().is_dir():
            typer.echo(f"{role}: nothing to download ({name} is a directory)")
        else:
            try:
                typer.echo(f"{role}: {name} is in {availability.download(name, role, show_progress=sys.stderr.isatty())}")
            except MemoryMCPError as error:
                failed = True
                typer.echo(f"{role}: {error}", err=True)
    if failed:
        raise typer.Exit(1)


def _configured(settings: Settings) -> Iterator[tuple[Role, str | None]]:
    yield "embedder", settings.embeddings_model
    yield "reranker", settings.reranker_model


def _exports(data: Path | None) -> Path:
    return (data or default_data_directory()) / DIRECTORY_NAME


def _where(settings: Settings, role: Role, name: str, exports: Path) -> str:
    if role == "embedder" and settings.embeddings_class:
        return f"the class {settings.embeddings_class}"
    match find_configured(settings, name, role, exports):
        case Found(None):
            return "at the hub, not downloaded yet. Run `memory-mcp models download`, or let the server do it when it starts."
        case Found(directory):
            return str(directory)
        case Missing(why):
            return f"absent. {why}"


def _asked_embedder(settings: Settings, pool: "ModelPool", caches: "Caches", exports: Path) -> str:
    from memory_mcp.encoders.loading.loaders import Exports, load_embedder  # noqa: PLC0415  as above
    from memory_mcp.encoders.loading.model_slot import release  # noqa: PLC0415

    began = time.monotonic()
    embedder = load_embedder(settings, pool, caches, Exports(exports))
    loaded = time.monotonic()
    for query, _ in _PAIRS:
        embedder.embed_query(query)
    asked_ms = (time.monotonic() - loaded) * 1_000 / len({query for query, _ in _PAIRS})
    release(embedder)
    limit = f"{embedder.max_tokens} tokens" if embedder.max_tokens else "not told"
    return (
        f"{embedder.name} works: dimension {embedder.dimension}, limit {limit}, "
        f"loaded in {loaded - began:.1f} s, {asked_ms:.0f} ms a query, generation {embedder.generation}"
    )


def _asked_reranker(settings: Settings, pool: "ModelPool", caches: "Caches", exports: Path) -> str:
    from memory_mcp.encoders.loading.loaders import Exports, load_reranker  # noqa: PLC0415  as above

    began = time.monotonic()
    reranker = load_reranker(settings, pool, caches, Exports(exports))
    loaded = time.monotonic()
    scores = [score for query, text in _PAIRS for score in reranker.score(query, [text]) or []]
    asked_ms = (time.monotonic() - loaded) * 1_000 / len(_PAIRS)
    return (
        f"{reranker.name} works: limit {reranker.max_tokens} tokens, loaded in {loaded - began:.1f} s, {asked_ms:.0f} ms a pair, "
        f"scores of fitting texts {scores[0]:.3f} (ja) and {scores[2]:.3f} (en), of unfitting ones {scores[1]:.3f} and {scores[3]:.3f}"
    )


def _said(name: str, error: BaseException) -> str:
    from memory_mcp.encoders.failures import load_error  # noqa: PLC0415  as above

    return str(error) if isinstance(error, MemoryMCPError) else load_error(name, error)
