"""Entries that are nested deeper than any program writes them: they are refused by their place, in every format, and the rest is read."""

import json

import pytest

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import Format
from memory_mcp.transfer.formats.import_rows import ReadOptions
from memory_mcp.transfer.formats.readers import detect_format, json_lines
from memory_mcp.transfer.formats.table import ROWS
from memory_mcp.transfer.line_fields import DEPTH_LIMIT, parsed

LISTS, OBJECTS = "[]", '{"a": }'
DEPTHS = (DEPTH_LIMIT, 450, 700, 900, 200_000)
# A file of each kind, with @@ where the depth is, and the text of another entry that is read where the JSON can be.
FILES = {
    "conversations.json": '[{"mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": ["a"]}, "metadata": {"model_slug": @@}}}}}]',
    "memories.json": '{"results": [{"id": "1", "memory": "a", "metadata": @@}, {"id": "2", "memory": "next"}]}',
    "memory.json": '{"type": "entity", "name": "a", "observations": ["a"], "x": @@}\n{"type": "entity", "name": "b", "observations": ["next"]}',
    "export.json": '{"memories": [{"content": "a", "content_hash": "a", "metadata": {"x": @@}}, {"content": "next", "content_hash": "b"}]}',
    "skills.json": '{"next_id": 1, "skills": {"a": {"issue": "a", "keywords": @@}, "b": {"issue": "next"}}}',
    "session.jsonl": '{"type": "user", "message": {"content": @@}}\n{"type": "user", "message": {"content": "next"}}',
    "note.md": "---\nx: @@\n---\nnext",
}


def nested(kind, depth):
    opening, closing = ("[", "]") if kind is LISTS else ('{"a": ', "}")
    return opening * depth + ("" if kind is LISTS else "1") + closing * depth


@pytest.mark.parametrize("kind", [LISTS, OBJECTS])
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_format_is_read_or_refused_whatever_its_depth(tmp_path, name, depth, kind):
    path = tmp_path / name
    path.write_text(FILES[name].replace("@@", nested(kind, depth)))
    refused = []
    try:
        kind = Format.TRANSCRIPT if path.suffix == ".jsonl" else detect_format(path)
        items = ROWS[kind].read(path, ReadOptions(), lambda _: None)
        lines = list(json_lines(items, refused.append, lambda _: None, lambda _: None))
    except InvalidInput:
        assert depth == max(DEPTHS)
        return
    assert all(parsed(line) for line in lines if "version_of" not in line.decode())
    assert refused or any("next" in line.decode() for line in lines)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_line_of_any_depth_is_refused_for_it(depth):
    with pytest.raises(InvalidInput, match="the line is JSON that can't be read"):
        parsed(f'{{"content": "a", "metadata": {{"x": {nested(LISTS, depth)}}}}}'.encode())
    assert parsed(json.dumps({"content": "a", "metadata": json.loads(nested(OBJECTS, DEPTH_LIMIT - 1))}).encode())


def test_a_transcript_is_known_by_lines_that_can_be_read(tmp_path):
    path = tmp_path / "session.jsonl"
    path.write_text('{"type": "user", "message": {"content": "a"}, "sessionId": "s"}\n' + nested(LISTS, 200_000))
    assert detect_format(path) is Format.TRANSCRIPT
