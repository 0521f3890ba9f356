"""The notation of stated relations: 「田中 > works_on > プロジェクトA」, with an optional type after a bar: 田中|Person, 田中|人物."""

import re
from collections.abc import Collection, Mapping

from memory_mcp.domain import StatedRelation
from memory_mcp.errors import InvalidInput
from memory_mcp.language.labels import storable
from memory_mcp.language.names import NAME_LIMIT, is_invisible
from memory_mcp.lexicon import mapping

RELATION_TYPE_LIMIT = 50
_ARROW = re.compile("->|>|→|＞")
_FORM = 'Write it as "A > works_on > B"'
_ONE_EACH = 'Send a list with one relation in each entry: ["A > works_on > B", "B > knows > C"]'

_TYPES = "Person Location Event Concept Object Organization TimeUnit Task Document Technology".split()
# As `type_of_word` takes them: display names, of which there are none here, by type.
STANDARD_TYPES: Mapping[str, str] = dict.fromkeys(_TYPES, "")
_TYPE_OF_WORD = {
    word: type_ for type_ in _TYPES for language in ("ja", "en") for word in mapping(language, "entity_types")[type_.casefold()].split()
}


def type_of_word(word: str, types: Collection[str]) -> str | None:
    """The type with this name, or for which this is another word; None where there is none.

    `types`: display names by type, or type names alone. The list of names may be incomplete, so other words are recognized with a mapping
    only.
    """
    wanted = word.strip().casefold()
    shown = types.items() if isinstance(types, Mapping) else ()
    by_name = {str(name).casefold(): known for known, name in shown} | {known.casefold(): known for known in types}
    other = _TYPE_OF_WORD.get(wanted)
    return by_name.get(wanted) or (other if shown and other in types else None)


def parse_relation(text: str, types: Collection[str]) -> StatedRelation:
    """A relation from its notation.

    Raises:
        InvalidInput: it is not three names with `>` between them; one is empty, too long or can't be stored; both ends are the same and of
            one type.
    """
    shown = repr(text[:80])
    parts = [part.strip().removeprefix("[[").removesuffix("]]").strip() for part in _ARROW.split(storable(text, "the relation").strip())]
    if len(parts) > 3 and any(sign in text for sign in ",;、；\n"):
        raise InvalidInput("the relation {} can't be read", "it seems to hold several", _ONE_EACH, shown)
    if len(parts) != 3 or any(map(is_invisible, parts)):
        raise InvalidInput("the relation {} can't be read", "it is not three names with > between them", _FORM, shown)
    (source, source_type), (target, target_type) = _typed(parts[0], types), _typed(parts[2], types)
    relation = "_".join(parts[1].split())
    if any(is_invisible(end) or len(end) > NAME_LIMIT for end in (source, target)) or len(relation) > RELATION_TYPE_LIMIT:
        why = "names have 1 to {} characters, a relation's type at most {}"
        do = "Shorten it, and put the rest into content"
        raise InvalidInput("the relation {} can't be kept", why, do, shown, NAME_LIMIT, RELATION_TYPE_LIMIT)
    if source == target and (source_type is None or target_type is None or source_type == target_type):
        apart = "Name two different ones, or say of what type each is: A|Person > born_in > A|Location"
        raise InvalidInput("the relation {} has the same name at both ends", "", apart, shown)
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


def _typed(name: str, types: Collection[str]) -> tuple[str, str | None]:
    before, bar, after = name.rpartition("|")
    type_ = type_of_word(after, types) if bar else None
    return (before.strip(), type_) if type_ else (name, None)
