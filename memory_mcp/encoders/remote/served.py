"""What a server of models reports about itself: its API, and the model that it runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_mcp.encoders.loading.availability import Role
from memory_mcp.encoders.model_families import own_name
from memory_mcp.encoders.remote.connection import Connection
from memory_mcp.errors import EncoderFailed

ASK_SECONDS = 5.0
BATCH = 32  # the maximum of Text Embeddings Inference, unless it reports another
_LISTED_NAMES = 5


@dataclass(frozen=True, slots=True)
class Served:
    """`root` goes before the paths, `name` is the model's name in requests, `model` the one that shows its family, `revision` what changes
    with its weights, as far as the server knows. `extra` goes into every request."""

    api: str
    software: str
    root: str
    name: str
    model: str
    revision: str = ""
    max_tokens: int | None = None
    batch: int = BATCH
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """What distinguishes it from other models, as far as the server reports it."""
        return f"{self.model}@{self.revision}"


def ask(connection: Connection, name: str, role: Role, api: str) -> Served:
    """Asks the server for its API, unless `api` names it, and whether it serves the model `name`.

    Raises:
        EncoderFailed: it does not answer, or runs another model.
    """
    if api in ("auto", "tei"):
        info = connection.get("/info", ASK_SECONDS).content
        if isinstance(info, dict) and isinstance(info.get("model_id"), str):
            return _text_embeddings_inference(connection, info, name, role)
        if api == "tei":
            raise EncoderFailed("{} can't be used", "{}/info does not answer as Text Embeddings Inference does", "", name, connection.url)
    roots = [""] if re.search(r"/v\d+$", connection.url) else ["/v1", ""]
    for root in roots:
        listed = _listed(connection.get(f"{root}/models", ASK_SECONDS).content)
        if listed:
            return _from_list(connection, listed, root, name, role)
    # Some services have no list. The first call shows whether this is one.
    return Served(_list_api(role), "a service without a list of models", roots[0], name, name)


def _text_embeddings_inference(connection: Connection, info: Mapping[str, Any], name: str, role: Role) -> Served:
    names = [info["model_id"], *([info["served_model_name"]] if isinstance(info.get("served_model_name"), str) else [])]
    if _matching(name, names) is None:
        raise _another_model(connection, name, names[:1], role)
    kinds = {str(kind).lower() for kind in info.get("model_type") or ()}
    wanted = "embedding" if role == "embedder" else "reranker"
    if kinds and wanted not in kinds:
        raise EncoderFailed("{} can't be used", "{} runs it as {}, not as {}", "", name, connection.url, ", ".join(sorted(kinds)), wanted)
    return Served(
        "tei",
        f"Text Embeddings Inference {info.get('version') or ''}".strip(),
        "",
        name,
        info["model_id"],
        str(info.get("model_sha") or ""),
        _positive(info.get("max_input_length")),
        _positive(info.get("max_client_batch_size")) or BATCH,
    )


def _from_list(connection: Connection, listed: Sequence[Mapping[str, Any]], root: str, name: str, role: Role) -> Served:
    matching = _matching(name, [entry["id"] for entry in listed])
    if matching is None:
        raise _another_model(connection, name, [entry["id"] for entry in listed], role)
    entry = next(entry for entry in listed if entry["id"] == matching)
    owner = str(entry.get("owned_by") or "")
    is_vllm = owner == "vllm"
    revision = _ollama_digest(connection, matching) if ":" in matching else ""
    software = {"vllm": "vLLM", "infinity": "Infinity"}.get(owner, "Ollama" if revision else "a service with a list of models")
    model = entry["root"] if isinstance(entry.get("root"), str) and entry["root"] else matching
    return Served(
        _list_api(role),
        software,
        root,
        matching,
        model,
        revision,
        _positive(entry.get("max_model_len")),
        extra={"truncate_prompt_tokens": -1} if is_vllm else {},  # without it, vLLM refuses a text that is too long
    )


def _ollama_digest(connection: Connection, name: str) -> str:
    """The digest of a model's weights, if the server is Ollama. Its names all have a tag."""
    content = connection.get("/api/tags", ASK_SECONDS).content
    models = content.get("models") if isinstance(content, dict) else None
    tags = models if isinstance(models, list) else []
    return next((str(tag.get("digest") or "") for tag in tags if isinstance(tag, dict) and tag.get("name") == name), "")


def _listed(content: Any) -> list[Mapping[str, Any]]:
    entries = content.get("data") if isinstance(content, dict) else None
    return [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)] if isinstance(entries, list) else []


def _matching(name: str, names: Sequence[str]) -> str | None:
    """The one of a server's names that means the model: with or without an organization, a directory, or Ollama's tag."""
    exact = next((there for there in names if there in (name, f"{name}:latest")), None)
    return exact or next((there for there in names if own_name(name) and own_name(there) == own_name(name)), None)


def _another_model(connection: Connection, name: str, names: Sequence[str], role: Role) -> EncoderFailed:
    setting = "embeddings_model" if role == "embedder" else "reranker_model"
    listed = ", ".join(names[:_LISTED_NAMES]) + (f" and {len(names) - _LISTED_NAMES} more" if len(names) > _LISTED_NAMES else "")
    return EncoderFailed(
        "{} can't be used", "{} runs {}", "Set {} to what it runs, or run {} there", name, connection.url, listed, setting, name
    )


def _list_api(role: Role) -> str:
    return "openai" if role == "embedder" else "cohere"


def _positive(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
