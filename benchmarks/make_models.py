"""Makes model directories with the real shapes and random weights: as large and as slow as real models, with meaningless results.

    python -m benchmarks.make_models DIR     writes DIR/ruri-v3-30m and DIR/japanese-reranker-xsmall-v2, 150 MB each

They are loaded by the same code as the published models. The tokenizer has as many pieces, too: some trained on a few Japanese
texts, single characters, and for the rest pairs of characters that are rare in texts. It splits the sentences of the
benchmarks into small tokens (1.3 characters each), so speeds measured with it are too low rather than too high.
"""

# ruff: noqa: PLC0415  torch and the libraries on top of it take seconds to import

import argparse
import itertools
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.sets import loaded

EMBEDDER, RERANKER = "ruri-v3-30m", "japanese-reranker-xsmall-v2"
# In this order they have the ids 0 to 6.
SPECIALS = {
    "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "sep_token": "<sep>", "mask_token": "<mask>",
    "cls_token": "<cls>",
}  # fmt: skip
TAUGHT_PIECES = 8_000
RARE = -14.0  # of a piece that teaching did not meet; a pair of two such characters is rarer still, so that no text is cut into pairs
CHARACTERS = ((0x21, 0x7F), (0x3001, 0x3097), (0x30A1, 0x30FF), (0x4E00, 0x9FA0))  # ASCII, punctuation and kana, kanji


@dataclass(frozen=True, slots=True)
class Shape:
    """Of a ModernBERT. The default is that of both models, read from their published configurations."""

    vocabulary: int = 102_400
    hidden: int = 256
    layers: int = 10
    heads: int = 4
    intermediate: int = 1_024
    positions: int = 8_192


def make_embedder(directory: Path, shape: Shape, tokenizer: Any) -> Path:
    """A SentenceTransformer directory: mean pooling without a Normalize module, as ruri-v3 has it. `tokenizer` is of the same shape."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import ModernBertModel

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as parts:
        ModernBertModel(_config(shape)).eval().save_pretrained(parts)
        tokenizer.save_pretrained(parts)
        modules = [Transformer(parts), Pooling(shape.hidden, pooling_mode="mean")]
        SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(directory), create_model_card=False)
    return directory


def make_reranker(directory: Path, shape: Shape, tokenizer: Any) -> Path:
    """A CrossEncoder directory with one score for a pair, read from the first token."""
    import torch
    from transformers import ModernBertForSequenceClassification

    torch.manual_seed(1)
    ModernBertForSequenceClassification(_config(shape, num_labels=1)).eval().save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def make_tokenizer(shape: Shape) -> Any:
    """A Unigram tokenizer with so many pieces as the table of tokens has rows."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = dict(itertools.islice(_pieces(min(TAUGHT_PIECES, shape.vocabulary // 2)), shape.vocabulary))
    made = Tokenizer(models.Unigram(list(pieces.items()), unk_id=0))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never", split=False)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=shape.positions, model_input_names=["input_ids", "attention_mask"], **SPECIALS
    )


def _config(shape: Shape, **more: Any) -> Any:
    from transformers import ModernBertConfig

    return ModernBertConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=shape.positions,
        local_attention=128,
        global_attn_every_n_layers=3,
        classifier_pooling="cls",
        tie_word_embeddings=True,
        **{f"{name}_id": list(SPECIALS).index(name) for name in ("bos_token", "eos_token", "pad_token", "sep_token", "cls_token")},
        **more,
    )


def _pieces(taught: int) -> Iterator[tuple[str, float]]:
    """Every piece once, with its logarithmic probability: the special ones first, the likely ones next, then more than anybody wants."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    teaching = Tokenizer(models.Unigram())
    teaching.normalizer = normalizers.NFKC()
    teaching.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never", split=False)
    texts = (row["content"] for rows in loaded("corpus").memories.values() for row in rows)
    trainer = trainers.UnigramTrainer(
        vocab_size=taught, special_tokens=list(SPECIALS.values()), unk_token=SPECIALS["unk_token"], show_progress=False
    )
    teaching.train_from_iterator(texts, trainer)
    known = dict(json.loads(teaching.to_str())["model"]["vocab"])
    characters = [chr(code) for first, end in CHARACTERS for code in range(first, end)]
    new = [character for character in characters if character not in known]
    yield from known.items()
    yield from ((character, RARE) for character in new)
    yield from ((a + b, 3 * RARE) for a, b in itertools.product(new[::-1], repeat=2))


def make_both(target: Path, shape: Shape) -> tuple[Path, Path]:
    """The embedder's and the reranker's directory in `target`, in place of what was there. They have one tokenizer, as the real ones."""
    tokenizer = make_tokenizer(shape)
    directories = target / EMBEDDER, target / RERANKER
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    return make_embedder(directories[0], shape, tokenizer), make_reranker(directories[1], shape, tokenizer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, metavar="DIR")
    for made in make_both(parser.parse_args().directory, Shape()):
        print(made)
