"""Which memories are proposed to be merged: those that say the same, and none that differ in what matters."""

import random

import numpy as np
import pytest
from fakes import HashingEmbedder

from memory_mcp.config.settings import Privacy, Settings
from memory_mcp.domain import Draft
from memory_mcp.encoders.models import OFF, Centers, Models
from memory_mcp.index import sync
from memory_mcp.remember.forget import forget
from memory_mcp.remember.pipeline import remember_many
from memory_mcp.store.vectors import stored_vectors
from memory_mcp.store.vectors.index_cache import IndexCache
from memory_mcp.upkeep.memory_proposals import COMPARED, proposals

AT_LEISURE = "takes the better part of a minute: pytest tests/remember --thorough"


@pytest.fixture
def tidy(nilou, now):
    return lambda limit=50, embedder=None: proposals(nilou, Models(embedder, None, OFF, OFF), Settings(), now, limit)


def groups(found):
    return [(group.kept.content, [alike.memory.content for alike in group.similar]) for group in found.groups]


def test_proposals_follow_every_write(nilou, say, tidy, now):
    say("健太は苺のタルトが大好きだ")
    assert tidy().groups == tidy().groups == ()
    second = say("健太は苺のタルトが大好きだ！")
    assert len(tidy().groups) == len(tidy().groups) == 1
    forget(nilou, [second.key], reason=None, dry_run=False, now=now, privacy=Privacy())
    assert tidy().groups == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("健太の誕生日は7月3日です", "健太の誕生日は7月4日です"),
        ("会議は火曜の10時から始まる予定", "会議は火曜の11時から始まる予定"),
        ("健太はトマトを食べることができる", "健太はトマトを食べることができない"),
        ("She can eat peanuts and shrimp at any party", "She can not eat peanuts and shrimp at any party"),
        ("We met three friends in the old park, room 12", "We met three friends in the old park, room 21"),
        ("娘は七歳になって学校に通う", "娘は八歳になって学校に通う"),
    ],
)
def test_what_differs_in_a_number_or_a_no_is_not_proposed(say, tidy, one, other):
    say(one)
    say(other)
    assert tidy().groups == ()


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("健太は苺のタルトが大好きだ", "健太は苺のタルトが大好きだ！", "same words"),
        ("Kenta loves strawberry tarts", "kenta LOVES  strawberry tarts", "same text"),
        ("ＡＢＣ社で働いている", "ABC社で働いている", "same text"),
        ("彼女は毎朝六時に起きて公園を走っている", "彼女は毎朝六時に起きて公園を走っているよ", "same words"),
    ],
)
def test_what_says_the_same_is_proposed_and_why(say, tidy, one, other, why):
    say(one)
    say(other)
    (group,) = tidy().groups
    assert {group.kept.content, group.similar[0].memory.content} == {one, other}
    assert group.similar[0].why == why


def test_the_most_important_is_to_stay_then_the_one_that_says_most_then_the_latest(say, tidy):
    say("庭の桜が今年もきれいに咲いた")
    say("庭の桜が今年もきれいに咲いたよ")
    assert groups(tidy()) == [("庭の桜が今年もきれいに咲いたよ", ["庭の桜が今年もきれいに咲いた"])]
    say("庭の桜が今年もきれいに咲いた。", importance=0.8)
    assert tidy().groups[0].kept.importance == 0.8


def test_every_member_is_itself_like_the_one_that_stays(say, tidy):
    words = "赤 青 黄 緑 白 黒 茶 紫 橙 灰 桃 紺".split()
    for place in range(4):
        say(" ".join(f"{word}色" for word in words[place : place + 9]))
    for group in tidy().groups:
        assert all(alike.similarity >= 0.8 for alike in group.similar)
    members = [key for group in tidy().groups for key in (group.kept.key, *(alike.memory.key for alike in group.similar))]
    assert len(members) == len(set(members))


def test_what_is_in_the_trash_or_replaced_or_says_nothing_is_not_compared(say, tidy, nilou, now):
    gone = say("健太は苺のタルトが大好きだ").key
    replaced = say("健太は苺のタルトが大好きだ。").key
    say("健太は苺のタルトが大好きだ！", supersedes=replaced)
    forget(nilou, [gone], reason=None, dry_run=False, now=now, privacy=Privacy())
    for _ in range(3):
        say("おはようございます", session_id=str(_))
    found = tidy()
    assert found.groups == ()
    assert found.low_value_count == 3


def test_with_stored_vectors_the_meaning_is_compared_as_well(say, nilou, now, zone, tidy):
    one, other = say("She adores strawberries").key, say("苺が何より好きな人だ").key
    say("The train leaves from platform nine tonight")
    embedder, indexes = HashingEmbedder(), IndexCache()
    sync.prepare(nilou, embedder, [embedder.generation])
    while sync.apply_queue(nilou, embedder, indexes, zone=zone).waiting:
        pass
    found = tidy(embedder=embedder)
    assert found.meaning
    assert found.groups == ()

    def alike(connection):
        ids = stored_vectors.ids(connection, embedder.generation)
        vector = np.zeros((2, 64), np.float32)
        vector[:, 5] = 1
        stored_vectors.write(connection, embedder.generation, ids[:2].tolist(), vector)

    nilou.database.write(alike)
    (group,) = tidy(embedder=embedder).groups
    assert {group.kept.key, group.similar[0].memory.key} == {one, other}
    assert group.similar[0].why == "same meaning"
    without = tidy()
    assert not without.meaning
    assert without.groups == ()


def test_where_no_memory_has_a_vector_of_its_own_words_are_compared(say, nilou, now, zone, tidy):
    embedder, point = HashingEmbedder(), np.eye(2, 64, dtype=np.float32)
    embedder.centers = Centers(point, point, known=(True, True), spread=0.1)
    say("今日は渋谷でラーメンを食べた。" * 200)
    sync.prepare(nilou, embedder, [embedder.generation])
    while sync.apply_queue(nilou, embedder, IndexCache(), zone=zone).waiting:
        pass
    assert not tidy(embedder=embedder).meaning


def test_lists_are_cut_and_everything_is_counted(say, tidy):
    for number in range(6):
        name = "桜梅桃松竹菊"[number] * 3
        say(f"{name}の庭で静かにお茶を飲んだ")
        say(f"{name}の庭で静かにお茶を飲んだ。")
    found = tidy(2)
    assert len(found.groups) == 2
    assert found.groups_count == 6


def test_very_long_texts_are_not_compared(say, tidy):
    long = "庭の桜が今年もきれいに咲いた。" * 200
    say(long)
    say(long + "また来年。")
    found = tidy()
    assert (found.compared, found.of, found.groups) == (0, 2, ())


@pytest.mark.slow
def test_what_takes_too_much_memory_is_not_compared(nilou, now, zone, tidy, thorough):
    if not thorough:
        pytest.skip(AT_LEISURE)
    chance = random.Random(3)
    rows = [Draft("".join(chr(chance.randrange(0x4E00, 0x9000)) for _ in range(1_900))) for _ in range(500)]
    remember_many(nilou, rows, now=now, zone=zone, privacy=Privacy())
    assert 400 < tidy().compared < 450


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["as people talk", "one template", "nearly one text"])
def test_ten_thousand_memories_are_compared(nilou, now, zone, tidy, figure, kind, thorough):
    if not thorough and kind != "one template":
        pytest.skip(AT_LEISURE)
    chance = random.Random(3)
    letters = "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほ山川空海花鳥風月雨雪"

    def text(number):
        if kind == "one template":
            return f"日常の散歩、その{number}番目の話"
        if kind == "nearly one text":
            return "公園で友だちと会ってコーヒーを飲んだ。" + "".join(chance.choices(letters, k=2))
        return "".join(chance.choices(letters, k=chance.randrange(10, 60)))

    for _ in range(10):
        remember_many(nilou, [Draft(text(number)) for number in range(1_000)], now=now, zone=zone, privacy=Privacy())
    found = tidy(10)
    figure(f"memories compared, {kind}", found.compared)
    assert found.compared <= COMPARED
    assert len(found.groups) <= 10
