"""Small real models: directories as sentence-transformers loads them, a few layers with random weights, made in a second.

Their answers mean nothing, but everything around them is what a user's model goes through: the tokenizer, prefixes, padding,
pooling, the cross-encoder's head.

    python -m tests.model_directories DIRECTORY     writes DIRECTORY/ruri-v3-tiny and DIRECTORY/japanese-reranker-tiny
"""

# ruff: noqa: PLC0415  the libraries take seconds to import, and only the tests of real models need them

import json
import logging
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

from memory_mcp.encoders.loading.availability import Role

SENTENCES = (
    "昨日は公園で友だちと会って、コーヒーを飲みました。",
    "彼女は苺のケーキが好きで、毎週日曜日に焼きます。",
    "来月、京都へ旅行に行く予定です。夕飯は何にしますか。",
    "仕事でPythonのプログラムを書いて、テストも書いた。",
    "検索クエリ: 今日は誰と話しましたか。",
    "検索文書: 猫の名前はミケといいます。",
    "I met a friend in the park yesterday and we had coffee.",
    "She likes strawberry cake and bakes one every Sunday.",
    "Next month I am going to travel to Kyoto by train.",
    "The tests of the program passed, so the release can be made.",
)
LAYERS = 3
_SPECIALS = {
    "unk_token": "<unk>",
    "bos_token": "<s>",
    "eos_token": "</s>",
    "pad_token": "<pad>",
    "sep_token": "<sep>",
    "cls_token": "<cls>",
}
_SPECIALS["mask_token"] = "<mask>"


def make_embedder(directory: Path, dimension: int = 32, *, seed: int = 0, max_tokens: int = 256, pooling: str = "mean") -> Path:
    """A SentenceTransformer directory: ModernBERT and pooling without a Normalize module, as ruri-v3 is made.

    A directory whose name begins with `ruri-v3-` gets ruri's prefixes when it is loaded.
    """
    _import_quietly()
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import ModernBertModel

    torch.manual_seed(seed)
    parts = directory.with_name(f"{directory.name}.parts")
    ModernBertModel(_config(dimension, max_tokens)).eval().save_pretrained(parts)
    _tokenizer(max_tokens).save_pretrained(parts)
    SentenceTransformer(modules=[Transformer(str(parts)), Pooling(dimension, pooling_mode=pooling)], device="cpu").save_pretrained(
        str(directory), create_model_card=False
    )
    shutil.rmtree(parts)
    return directory


def make_reranker(directory: Path, *, seed: int = 0, labels: int = 1, max_tokens: int = 256) -> Path:
    """A CrossEncoder directory, as the hotchpotch rerankers are made. The head is scaled up, so that scores differ visibly."""
    _import_quietly()
    import torch
    from transformers import ModernBertForSequenceClassification

    torch.manual_seed(seed)
    model = ModernBertForSequenceClassification(_config(32, max_tokens, num_labels=labels)).eval()
    with torch.no_grad():
        model.classifier.weight.mul_(20)
    model.save_pretrained(directory)
    _tokenizer(max_tokens).save_pretrained(directory)
    return directory


def export_of(source: Path, role: Role, exports: Path) -> Path:
    """What `memory-mcp models export-onnx` makes of a model directory: its place among `exports`."""
    _import_quietly()
    from memory_mcp.encoders.onnx import exporter
    from memory_mcp.encoders.onnx.export_directory import directory_for

    place = directory_for(str(source), role, exports)
    (exporter.export_embedder if role == "embedder" else exporter.export_reranker)(str(source), source, place)
    return place


def break_tokenizer(directory: Path) -> None:
    """Damages a model so that the tokenizers library panics when it is loaded: what it raises is no `Exception`."""
    tokenizer = json.loads((directory / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")


def _config(dimension: int, max_tokens: int, **more: Any) -> Any:
    from transformers import ModernBertConfig

    return ModernBertConfig(
        vocab_size=_tokenizer(max_tokens).vocab_size,
        hidden_size=dimension,
        intermediate_size=dimension * 2,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        max_position_embeddings=max_tokens,
        local_attention=16,
        pad_token_id=3,
        bos_token_id=1,
        eos_token_id=2,
        cls_token_id=5,
        sep_token_id=4,
        **more,
    )


def _tokenizer(max_tokens: int) -> Any:
    """A small Unigram tokenizer, trained on the sentences here."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    order = ["<unk>", "<s>", "</s>", "<pad>", "<sep>", "<cls>", "<mask>"]
    trained = Tokenizer(models.Unigram())
    trained.normalizer = normalizers.NFKC()
    trained.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never", split=False)
    trained.train_from_iterator(
        SENTENCES, trainers.UnigramTrainer(vocab_size=400, special_tokens=order, unk_token="<unk>", show_progress=False)
    )
    trained.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=trained, model_max_length=max_tokens, model_input_names=["input_ids", "attention_mask"], **_SPECIALS
    )


def _import_quietly() -> None:
    """The libraries warn of each other when they are imported, and draw progress bars. Neither is ours to test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import sentence_transformers  # noqa: F401
        from transformers.utils import logging as transformers_logging
    transformers_logging.disable_progress_bar()
    logging.getLogger("transformers").setLevel(logging.ERROR)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    print(make_embedder(target / "ruri-v3-tiny"))
    print(make_reranker(target / "japanese-reranker-tiny"))
