"""Tokens of exported models: cut off and filled up as the library itself would."""

import dataclasses
from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from memory_mcp.encoders.onnx.export_directory import Export, Padding
from memory_mcp.encoders.onnx.tokenization import Inputs, Tokenizers

WORDS = [f"w{number}" for number in range(40)]
EXPORT = Export(
    role="reranker",
    model="model",
    fingerprint="",
    dimension=None,
    max_tokens=12,
    query_prefix="",
    document_prefix="",
    prefix_version="plain",
    inputs=("input_ids", "attention_mask", "token_type_ids"),
    padding=Padding(3, "<pad>", 0, "right"),
    truncation_side="right",
    difference=0.0,
    sha256={},
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    specials = ["<s>", "</s>", "<unk>", "<pad>"]
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate([*specials, *WORDS])}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("limit", [5, 8, 12, 15])
def test_pairs_and_texts_become_what_the_library_makes_of_them(file: Path, side: str, limit: int):
    export = dataclasses.replace(EXPORT, max_tokens=limit, padding=Padding(3, "<pad>", 0, side), truncation_side=side)
    inputs = Inputs(Tokenizers().get(file, "sum"), export)
    library = Tokenizer.from_file(str(file))
    library.enable_truncation(limit, strategy="longest_first", direction=side)
    library.enable_padding(direction=side, pad_id=3, pad_token="<pad>")
    texts = [" ".join(WORDS[:count]) for count in (0, 1, 4, 5, 6, 9, 14)]
    for batch in (texts, *[[(one, other) for other in texts] for one in texts]):
        expected = library.encode_batch(batch)
        found = inputs(batch)
        assert found["input_ids"].tolist() == [encoding.ids for encoding in expected]
        assert found["attention_mask"].tolist() == [encoding.attention_mask for encoding in expected]
        assert found["token_type_ids"].tolist() == [encoding.type_ids for encoding in expected]


def test_models_with_the_same_tokenizer_share_it_as_long_as_one_uses_it(file: Path):
    tokenizers = Tokenizers()
    first = tokenizers.get(file, "sum")
    assert tokenizers.get(file, "sum") is first
    assert tokenizers.get(file, "another") is not first
