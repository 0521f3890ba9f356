"""Finds what tells the asked attribute of another owner: 「美咲の身長は158cm」 for 陸の身長は？, where another memory names 陸.

It has most of the words of the question and answers another one. What answers this one may share the name alone: 「陸は身体測定で94cmになった」
(docs/decisions/0055-other-owners.md).
"""

from collections.abc import Mapping, Sequence
from heapq import nlargest

import apsw

from memory_mcp.domain import Candidate, Origin
from memory_mcp.language.changes import LONGEST
from memory_mcp.language.owners import Noun, asked_attribute, owners_of, plain, without_shared_end
from memory_mcp.store import memories
from memory_mcp.store.lexical import bm25_index

# So many of the best matches are read, and so many characters of each.
COMPARED, CHARACTERS_LIMIT = 20, 2_000


def mark_other_owners(connection: apsw.Connection, query: str, candidates: Sequence[Candidate], origins: Mapping[int, Origin]) -> None:
    """Sets `of_another` of the candidates that tell what the query asks for, but of somebody or something else, and, by words alone, `lacks_owner` of
    those that tell it of nobody and don't name whom the query asks about; of none, if none of the best names that."""
    asked = asked_attribute(plain(query))
    if asked is None:
        return
    attribute, owners = asked
    best = nlargest(COMPARED, candidates, key=lambda candidate: (candidate.lexical or 0.0, candidate.nearness or 0.0))
    contents = memories.contents(connection, [candidate.memory_id for candidate in best])
    texts = {memory_id: plain(f"{origins[memory_id].source or ''} {content[:CHARACTERS_LIMIT]}") for memory_id, content in contents.items()}
    told = {memory_id: owners_of(attribute, text) for memory_id, text in texts.items() if len(text) <= LONGEST}
    # One without owners, or only with the last of those that are asked for, may be meant.
    different = {memory_id: both for memory_id, others in told.items() if others and all(both := without_shared_end(owners, others))}
    by_words_alone = all(candidate.nearness is None for candidate in best)
    naming = {owner: _naming(connection, owner, texts) for owner in owners} if different or by_words_alone else {}
    names = [name for owner in owners for memory_id in naming[owner] for name in owner.names_in(texts[memory_id])] if by_words_alone else []
    for candidate in best if naming else ():
        wanted, others = different.get(candidate.memory_id, (owners, ()))
        about = {memory_id for owner in wanted for memory_id in naming[owner]}
        session = origins[candidate.memory_id].session_id
        if candidate.memory_id in about or (session and session in {origins[memory_id].session_id for memory_id in about}):
            continue
        if candidate.memory_id not in different:
            text = texts[candidate.memory_id]
            candidate.lacks_owner = (
                by_words_alone and bool(about) and not told.get(candidate.memory_id) and not any(name.is_in(text) for name in names)
            )
            continue
        # 「大輔の奥さん」 is not whom 奥さんの誕生日 asks about.
        own = [texts[memory_id] for memory_id in about if not any(f"の{owner.text}" in texts[memory_id] for owner in wanted)]
        # Who is named together may be the same: 「犬を飼い始めた、コタロウっていう」.
        candidate.of_another = bool(own) and not any(all(other.is_in(text) for other in others) for text in own)


def _naming(connection: apsw.Connection, owner: Noun, texts: Mapping[int, str]) -> set[int]:
    """The memories that name an owner: in their own text, or by another word there or in the turn beside it."""
    others = list(owner.meanings - {owner.text})
    had = bm25_index.matched(connection, others, list(texts)) if others else {}
    return {memory_id for memory_id, text in texts.items() if owner.is_in(text) or had.get(memory_id)}
