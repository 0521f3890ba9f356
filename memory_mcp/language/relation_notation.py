"""The notation of stated relations: 「田中 > works_on > プロジェクトA」, with an optional type after a bar: 田中|Person."""

import re
from collections.abc import Collection

from memory_mcp.domain import StatedRelation
from memory_mcp.errors import InvalidInput
from memory_mcp.language.entity_types import type_of_word
from memory_mcp.language.names import NAME_LIMIT, is_invisible
from memory_mcp.language.unstorable import storable

RELATION_TYPE_LIMIT = 50
_ARROW = re.compile("->|>|→|＞")
_FORM = 'Write it as "A > works_on > B"'
_ONE_EACH = 'Send a list with one relation in each entry: ["A > works_on > B", "B > knows > C"]'


def parse_relation(text: str, types: Collection[str]) -> StatedRelation:
    """A relation from its notation.

    Raises:
        InvalidInput: it is not three names with `>` between them; one is empty, too long or can't be stored; both ends are the same and of
            one type.
    """
    parts = [part.strip().removeprefix("[[").removesuffix("]]").strip() for part in _ARROW.split(storable(text, "the relation").strip())]
    if len(parts) > 3 and any(sign in text for sign in ",;、；\n"):
        raise InvalidInput("the relation {} can't be read", "it seems to hold several", _ONE_EACH, repr(text[:80]))
    if len(parts) != 3 or any(map(is_invisible, parts)):
        raise InvalidInput("the relation {} can't be read", "it is not three names with > between them", _FORM, repr(text[:80]))
    (source, source_type), (target, target_type) = _typed(parts[0], types), _typed(parts[2], types)
    relation = re.sub(r"\s+", "_", parts[1])
    if (
        is_invisible(source)
        or is_invisible(target)
        or len(source) > NAME_LIMIT
        or len(target) > NAME_LIMIT
        or len(relation) > RELATION_TYPE_LIMIT
    ):
        raise InvalidInput(
            "the relation {} can't be kept",
            "names have 1 to {} characters, a relation's type at most {}",
            "Shorten it, and put the rest into content",
            repr(text[:80]),
            NAME_LIMIT,
            RELATION_TYPE_LIMIT,
        )
    if source == target and (source_type is None or target_type is None or source_type == target_type):
        raise InvalidInput(
            "the relation {} has the same name at both ends",
            "",
            "Name two different ones, or say of what type each is: A|Person > born_in > A|Location",
            repr(text[:80]),
        )
    return StatedRelation(source, relation, target, source_type, target_type)


def with_types(relation: StatedRelation, types: Collection[str]) -> StatedRelation:
    """The relation with the types after its bars, of those that the persona has added itself."""
    source = (relation.source, relation.source_type) if relation.source_type else _typed(relation.source, types)
    target = (relation.target, relation.target_type) if relation.target_type else _typed(relation.target, types)
    if not (source[0] and target[0]):
        return relation
    return StatedRelation(source[0], relation.relation, target[0], source[1], target[1])


def format_relation(relation: StatedRelation) -> str | None:
    """The notation that `parse_relation` reads: `田中|Person > works_on > プロジェクトA`. None where a name contains an arrow."""
    types = [type_ for type_ in (relation.source_type, relation.target_type) if type_]
    source = f"{relation.source}|{relation.source_type}" if relation.source_type else relation.source
    target = f"{relation.target}|{relation.target_type}" if relation.target_type else relation.target
    text = f"{source} > {relation.relation} > {target}"
    try:
        return text if parse_relation(text, types) == relation else None
    except InvalidInput:
        return None


def validity(valid_from: str | None, valid_to: str | None) -> str:
    """The suffix for the days on which a relation holds: ` (2010-04-01..2015-03-31)`; empty where none is stated."""
    return f" ({valid_from or ''}..{valid_to or ''})" if valid_from or valid_to else ""


def _typed(name: str, types: Collection[str]) -> tuple[str, str | None]:
    before, bar, after = name.rpartition("|")
    type_ = type_of_word(after, types) if bar else None
    return (before.strip(), type_) if type_ else (name, None)
