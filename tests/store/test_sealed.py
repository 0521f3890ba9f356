"""Sealed files: they come back as they were, and nothing else does."""

import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mcp.errors import KeyRefused, StoreDamaged
from memory_mcp.store.files.sealed import CHUNK_BYTES, HEADER_BYTES, TAG_BYTES, SealedReader, SealedWriter, required_key, seal, unseal

KEY = bytes(range(32))
SIZES = (0, 1, 1000, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_sealed_comes_back_whatever_its_size(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    sealed = seal(content, KEY)
    assert unseal(sealed, KEY) == content
    chunks = max(1, -(-size // CHUNK_BYTES))
    assert len(sealed) == HEADER_BYTES + size + TAG_BYTES * chunks


@given(pieces=st.lists(st.binary(max_size=50)), reads=st.integers(1, 40))
def test_it_does_not_matter_in_which_pieces_it_is_written_and_read(pieces: list[bytes], reads: int) -> None:
    file = io.BytesIO()
    with SealedWriter(file, KEY) as writer:
        for piece in pieces:
            writer.write(piece)
    file.seek(0)
    reader = io.BufferedReader(SealedReader(file, KEY))
    assert b"".join(iter(lambda: reader.read(reads), b"")) == b"".join(pieces)


def test_the_same_is_never_sealed_the_same_way_twice() -> None:
    assert seal(b"the same", KEY) != seal(b"the same", KEY)


def parts(sealed: bytes) -> tuple[bytes, list[bytes]]:
    body, size = sealed[HEADER_BYTES:], CHUNK_BYTES + TAG_BYTES
    return sealed[:HEADER_BYTES], [body[at : at + size] for at in range(0, len(body), size)]


def test_chunks_that_are_cut_off_left_out_moved_or_of_another_file_are_noticed() -> None:
    header, chunks = parts(seal(bytes(3 * CHUNK_BYTES + 5), KEY))
    other = parts(seal(bytes(3 * CHUNK_BYTES + 5), KEY))[1]
    wrong = {
        "cut off at a chunk": chunks[:-1],
        "cut off within one": [*chunks[:-1], chunks[-1][:-1]],
        "all gone": [],
        "one left out": [chunks[0], *chunks[2:]],
        "two exchanged": [chunks[1], chunks[0], *chunks[2:]],
        "one twice": [chunks[0], *chunks],
        "something added": [*chunks, b"x"],
        "of another file": [other[0], *chunks[1:]],
    }
    for what, left in wrong.items():
        with pytest.raises(StoreDamaged, match="changed or cut off"):
            unseal(header + b"".join(left), KEY)
        assert what


@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_no_bit_can_be_changed(place: int, bit: int) -> None:
    sealed = bytearray(seal(b"a memory" * 20, KEY))
    sealed[place % len(sealed)] ^= 1 << bit
    with pytest.raises((StoreDamaged, KeyRefused)):
        unseal(bytes(sealed), KEY)


def test_another_key_is_told_from_damage_and_the_file_says_which_it_wants() -> None:
    sealed = seal(b"a memory", KEY)
    with pytest.raises(KeyRefused, match=required_key(sealed)):
        unseal(sealed, bytes(32))


def test_what_broke_off_while_it_was_written_does_not_look_whole() -> None:
    file = io.BytesIO()
    with suppress(KeyboardInterrupt), SealedWriter(file, KEY) as writer:
        writer.write(b"half of it")
        raise KeyboardInterrupt
    with pytest.raises(StoreDamaged):
        unseal(file.getvalue(), KEY)


@pytest.mark.parametrize("content", [b"", b"MMSEALED", b"SQLite format 3\x00" + bytes(100), b"MMSEALED\x02" + bytes(60)])
def test_what_is_no_sealed_file_is_said_to_be_none(content: bytes) -> None:
    with pytest.raises(StoreDamaged, match="isn't a sealed file"):
        unseal(content, KEY)
