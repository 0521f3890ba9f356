"""Reads character cards (V1, V2, V3), as JSON, in a picture (PNG, WebP) or in a zip (CHARX): who the persona is, and the lorebook of its world.

What a program tells its model (system prompts, example dialogues) is no memory. Fields without a place here stay with the persona: an
export as a card gives them back.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from memory_mcp.errors import InvalidInput
from memory_mcp.transfer.formats import lorebooks
from memory_mcp.transfer.formats.import_rows import ImportItem, ReadOptions, Report, storable, text_in
from memory_mcp.transfer.formats.json_stream import OTHER_FILES
from memory_mcp.transfer.formats.macros import with_names
from memory_mcp.transfer.formats.picture_text import HEAD_BYTES, TEXT_LIMIT_BYTES, is_picture, texts
from memory_mcp.transfer.formats.sources import Source, whole
from memory_mcp.transfer.line_fields import is_too_deep
from memory_mcp.transfer.non_memory_lines import CARD, CONTEXT, ON_KNOWN
from memory_mcp.wording import sentence

FORM = "character"
SPECS = ("chara_card_v2", "chara_card_v3")
ZIP_ENTRY = "card.json"
PICTURES = frozenset({".png", ".apng", ".webp"})
# A field of a card → that of persona_info.
INFO = {
    "name": "name",
    "nickname": "nickname",
    "description": "description",
    "personality": "personality",
    "scenario": "scenario",
    "first_mes": "greeting",
}
# What the oldest programs, text-generation-webui and Agnai call them.
_OLDEST = {
    "greeting": "first_mes",
    "context": "description",
    "sampleChat": "mes_example",
    "char_name": "name",
    "char_persona": "description",
    "world_scenario": "scenario",
    "char_greeting": "first_mes",
    "example_dialogue": "mes_example",
}
BOOK = "character_book"
# The field of what stands for a number that is written in a way of its own.
NUMBER = "memory_mcp_number"
# For the program and its model, not about the character.
LEFT_OUT = {
    "system_prompt": "system prompts",
    "post_history_instructions": "instructions after the chat (post_history_instructions)",
    "mes_example": "example dialogues (mes_example)",
    "alternate_greetings": "alternate greetings",
    "group_only_greetings": "alternate greetings",
}
FIELD_LIMIT, KEPT_LIMIT_BYTES = 20_000, 100_000
_IN_PNG = (b"ccv3", b"chara")
# The bytes of a text, as numbers.
_NUMBERS = re.compile(rb"(?:\d{1,3},)+\d{1,3}\0{0,9}")


@dataclass(frozen=True, slots=True)
class Card:
    """A card: its fields, and the object that has them under `data` since V2."""

    fields: Mapping[str, Any]
    around: Mapping[str, Any]

    @property
    def version(self) -> str:
        return {"chara_card_v2": "V2", "chara_card_v3": "V3"}.get(str(self.around.get("spec")), "V1")


def is_card(first: Mapping[str, Any]) -> bool:
    """Whether a JSON object is a character card."""
    if first.get("spec") in SPECS:
        return isinstance(first.get("data"), dict)
    fields = {_OLDEST.get(name, name) for name in first}
    return (
        {"name", "first_mes"} <= fields and bool(fields & {"description", "personality", "scenario", "mes_example"}) and "spec" not in first
    )


def read(source: Source, options: ReadOptions, report: Report) -> Iterator[ImportItem]:
    """Yields the rows of a card, or of a lorebook. Calls `report` with what a card is."""
    names = source.names()
    found, character = 0, options.character
    for name in [ZIP_ENTRY] if ZIP_ENTRY in names else sorted(names, key=lambda name: name.lower().endswith(".json")):
        if len(names) > 1 and PurePosixPath(name).suffix.lower() not in {*PICTURES, ".json"}:
            yield ImportItem(name, left_out=OTHER_FILES)
            continue
        try:
            value = _object(source, name)
            card = _card(value) if is_card(value) else None
            if card and found:
                yield ImportItem(name, refused="It is another character. Import it into a persona of its own.")
                continue
            found += card is not None
            if card:
                character = character or name_in(card.fields)
                yield from _card_items(card, name, options, report)
            else:
                yield from _book_items(value, name, replace(options, character=character), source.label)
        except InvalidInput as error:
            yield ImportItem(name, refused=str(error))
    yield from (ImportItem(name, left_out="pictures and files") for name in (names if ZIP_ENTRY in names else ()) if name != ZIP_ENTRY)


def _object(source: Source, name: str) -> dict[str, Any]:
    with source.open(name) as file:
        head = file.read(HEAD_BYTES)
    data = _in_picture(source, name) if is_picture(head) else whole(source, name, TEXT_LIMIT_BYTES)
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_float=_number)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("{} has no card that can be read", "{}", "Export it again", name, str(error)[:200]) from error
    if not isinstance(value, dict) or is_too_deep(value):
        raise InvalidInput("{} has no card that can be read", "it is no JSON object, or nested too deeply", "Export it again", name)
    return value


def _number(literal: str) -> float | dict[str, str]:
    """A number that any program writes as it is here; another one, such as 1.50, with how it is written, so that an export gives it back."""
    number = float(literal)
    return number if repr(number) == literal else {NUMBER: literal}


def _in_picture(source: Source, name: str) -> bytes:
    with source.open(name) as file:
        found = texts(file, name, frozenset(_IN_PNG))
    text = next((found[keyword] for keyword in _IN_PNG if keyword in found), None)
    if text is None:
        raise InvalidInput(
            "{} is a picture without a character card", "it has no text chara or ccv3", "Export the card again, as PNG or JSON", name
        )
    if text.lstrip().startswith(b"{"):
        return text.rstrip(b"\0")
    if _NUMBERS.fullmatch(text):
        return bytes(int(number) & 0xFF for number in text.rstrip(b"\0").split(b","))
    try:
        return base64.b64decode(text)
    except binascii.Error as error:
        raise InvalidInput("{} has no card that can be read", "{}", "Export it again", name, error) from error


def _card(value: Mapping[str, Any]) -> Card:
    if value.get("spec") in SPECS:
        return Card(value["data"], value)
    fields = {_OLDEST.get(name, name): entry for name, entry in value.items()}
    if isinstance(value.get("persona"), dict):  # of Agnai: what the character has, in lists
        fields["description"] = _of_attributes(value["persona"].get("attributes"))
    return Card(fields, {})


def _of_attributes(attributes: object) -> str:
    listed = attributes.items() if isinstance(attributes, dict) else ()
    lines = [(name, ", ".join(filter(None, map(text_in, values)))) for name, values in listed if isinstance(values, list)]
    return "\n".join(text if name == "text" else f"{name}: {text}" for name, text in lines if text)


def name_in(fields: Mapping[str, Any]) -> str:
    """What somebody is called, by the fields of a card or by `persona_info`."""
    return text_in(fields.get("nickname")).strip() or text_in(fields.get("name")).strip()


def _card_items(card: Card, where: str, options: ReadOptions, report: Report) -> Iterator[ImportItem]:
    user = options.me or ""
    name = name_in(card.fields)
    info = {ours: with_names(storable(text_in(card.fields.get(theirs))), name, user).strip() for theirs, ours in INFO.items()}
    for field in [field for field, text in info.items() if len(text) > FIELD_LIMIT]:
        yield ImportItem(
            where, refused=sentence("Its {} has {} characters; {} are the limit.", field, f"{len(info.pop(field)):,}", f"{FIELD_LIMIT:,}")
        )
    info = {field: text for field, text in info.items() if text}
    kept = _kept(card)
    if len(json.dumps(kept, ensure_ascii=False).encode(errors="replace")) > KEPT_LIMIT_BYTES:
        yield ImportItem(where, refused=sentence("Its further fields have more than {} bytes and are not kept.", f"{KEPT_LIMIT_BYTES:,}"))
        kept = {}
    yield ImportItem(
        where, {CONTEXT: {"persona_info": info, **({CARD: kept} if kept else {})}, ON_KNOWN: "replace" if options.replace else "keep"}
    )
    book = card.fields.get(BOOK)
    book = book if isinstance(book, dict) else {}
    for field, kind in LEFT_OUT.items():
        value = card.fields.get(field)
        count = sum(bool(text_in(entry).strip()) for entry in (value if isinstance(value, list) else [value]))
        yield from [ImportItem(f"{where}, {field}", left_out=kind)] * count
    entries = len(lorebooks.entries_of(book))
    report(sentence("{} is a character card ({}): {}; entries of its lorebook: {}", where, card.version, ", ".join(info), entries))
    id_ = text_in(card.fields.get("name")).strip() or name  # a nickname may come later
    yield from lorebooks.items(book, f"{where}, {BOOK}", name, user, id_=id_, names={name} - {id_})


def _book_items(value: Mapping[str, Any], where: str, options: ReadOptions, label: str) -> Iterator[ImportItem]:
    if not lorebooks.is_lorebook(value):
        yield ImportItem(where, refused="It is neither a character card nor a lorebook.")
        return
    book = value["data"] if value.get("spec") == "lorebook_v3" else value
    name, stem = text_in(book.get("name")).strip(), PurePosixPath(where).stem
    former = set() if name else {label} - {stem}  # once, all files of a zip had its name
    yield from lorebooks.items(book, where, name or stem, options.me or "", options.character, names=former)


def _kept(card: Card) -> dict[str, Any]:
    """What has no place here: of the card, of what is around its fields, and of its lorebook."""
    book = card.fields.get(BOOK)
    parts = {
        "fields": {name: value for name, value in card.fields.items() if name not in {*INFO, *LEFT_OUT, BOOK}},
        "around": {name: value for name, value in card.around.items() if name not in {*INFO, *LEFT_OUT, "spec", "spec_version", "data"}},
        "book": {name: value for name, value in book.items() if name != "entries"} if isinstance(book, dict) else {},
    }
    return {part: value for part, value in parts.items() if value}
