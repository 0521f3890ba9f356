"""Personas whose names an older server stored as the header had them: percent-encoded, or UTF-8 read as Latin-1."""

import unicodedata
from urllib.parse import quote

import httpx2
import pytest
from older_stores import CURRY, STORES, adopt, exported, make_store, rows_of, started
from processes import serving

from memory_mcp import cli
from memory_mcp.features.adoption.layout import legacy_items
from memory_mcp.personas.names import directory_name

pytestmark = pytest.mark.slow

NILOU = "ニィロウ"
ENCODINGS = {
    "percent-encoded": quote(NILOU),
    "percent-encoded in lowercase": quote(NILOU).lower(),
    "read as Latin-1": NILOU.encode().decode("latin-1"),
    "percent-encoded with a blank": quote("my persona"),
    "read as Latin-1, on a file system that decomposes": unicodedata.normalize("NFD", "é".encode().decode("latin-1")),
}
NAMES = {"percent-encoded with a blank": "my persona", "read as Latin-1, on a file system that decomposes": "é"}


@pytest.mark.parametrize("place", ["{}/memory.sqlite", "{}.sqlite"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_encoded_name_is_decoded_when_it_is_adopted(data_directory, figure, encoding, place):
    make_store(data_directory / place.format(ENCODINGS[encoding]), STORES["with tags"])
    name = NAMES.get(encoding, NILOU)
    with started(data_directory) as personas:
        assert personas.names() == [name]
        assert len(exported(personas, name)) == 2
    assert legacy_items(data_directory) == []
    assert adopt(data_directory) == []
    figure("encoded names of personas decoded", 1)


@pytest.mark.parametrize("name", ["nilou", "100%", "%zz", "さくら", "café", "Ã", "%0a", "%00x", "%93%FA%96%7B"])
def test_a_name_that_encodes_none_stays_as_it_is(data_directory, name):
    make_store(data_directory / name / "memory.sqlite", STORES["with tags"])
    with started(data_directory) as personas:
        assert personas.names() == [name]


def test_of_several_forms_of_a_name_the_plain_one_is_served_and_the_others_stay(data_directory, caplog):
    for folder in (NILOU, ENCODINGS["percent-encoded"], ENCODINGS["read as Latin-1"]):
        make_store(data_directory / folder / "memory.sqlite", STORES["without tags" if folder == NILOU else "with tags"])
    refused = {item.source for item in adopt(data_directory) if item.refused}
    assert refused == {ENCODINGS["percent-encoded"], ENCODINGS["read as Latin-1"]}
    for folder in refused:
        assert len(rows_of(data_directory / folder / "memory.sqlite")) == 2
        assert f"memory-mcp import {folder}/memory.sqlite --persona {NILOU}".replace("'", "") in caplog.text.replace("'", "")
    with started(data_directory) as personas:
        assert personas.names() == [NILOU]
        assert "tags" not in exported(personas, NILOU)[0]


def test_an_encoded_name_of_a_persona_that_exists_is_left_and_doctor_says_so(data_directory, tmp_path, capsys):
    with started(data_directory) as personas, personas.writing(NILOU):
        pass
    make_store(data_directory / ENCODINGS["percent-encoded"] / "memory.sqlite", STORES["with tags"])
    assert cli.run(["adopt", "--dry-run", "--data", str(data_directory)]) == 1
    assert "first with --dry-run" in capsys.readouterr().out
    config = tmp_path / "config.json"
    config.write_text('{"embeddings_model": null, "reranker_model": null}')
    assert cli.run(["doctor", "--config", str(config), "--data", str(data_directory)]) == 1
    assert "never merged automatically" in capsys.readouterr().out
    assert not (data_directory / directory_name(ENCODINGS["percent-encoded"])).exists()


@pytest.mark.parametrize("encoding", ["percent-encoded", "read as Latin-1"])
def test_a_client_that_sends_the_same_header_finds_its_memories(tmp_path, encoding):
    header = ENCODINGS[encoding].encode("latin-1")
    make_store(tmp_path / "memory" / ENCODINGS[encoding] / "memory.sqlite", STORES["with tags"])
    with serving(tmp_path, '{"embeddings_model": null, "reranker_model": null}') as server:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "カレー"}}}
        headers = {b"X-Persona": header, b"accept": b"application/json, text/event-stream"}
        answer = httpx2.post(f"{server.url}/mcp", json=message, headers=headers, trust_env=False, timeout=60)
        assert [hit["key"] for hit in answer.json()["result"]["structuredContent"]["hits"]] == [CURRY["key"]]


def test_what_was_left_can_be_added_with_a_dry_run_before(tmp_path):
    make_store(tmp_path / "memory" / NILOU / "memory.sqlite", STORES["without tags"])
    left = tmp_path / "memory" / ENCODINGS["percent-encoded"] / "memory.sqlite"
    make_store(left, STORES["with times of every kind"])
    with serving(tmp_path, '{"embeddings_model": null, "reranker_model": null}') as server:
        foreseen = server.memory_mcp("import", str(left), "--persona", NILOU, "--dry-run").stdout
        done = server.memory_mcp("import", str(left), "--persona", NILOU).stdout
    assert foreseen.endswith(f"{NILOU}: 4 would be stored, 0 known already, 1 would be refused\n")
    assert done.endswith(f"{NILOU}: 4 stored, 0 known already, 1 refused\n")
