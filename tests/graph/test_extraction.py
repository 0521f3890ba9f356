"""Who and what a text names: marks, known names, rules; and how well the rules do on labelled memories that they were not made on."""

import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import DATA

from memory_mcp.dates.spans import composed_with_places
from memory_mcp.errors import InvalidInput
from memory_mcp.features.graph import dictionary
from memory_mcp.features.graph.dictionary import installed
from memory_mcp.graph.extract.extraction import TEXT_LIMIT, extract_mentions
from memory_mcp.language.names import UNKNOWN_TYPE, Candidate, Gazetteer, Match, Mention, bare, fold, without_overlaps
from memory_mcp.language.relation_notation import parse_relation
from memory_mcp.store.graph.schema import ENTITY_TYPES

TYPES = [row[0] for row in ENTITY_TYPES]
LABELLED = DATA / "labelled"


class Names:
    """Names that are known, each of one entity: name and type by number, and what else it is called."""

    def __init__(self, known=()):
        self.known = dict(enumerate(known, 1))
        self.called = {(name, number) for number, (name, _) in self.known.items()}

    def learn(self, mention):
        """As a memory that names it would have it known from then on."""
        number = mention.entity or next((number for number, (name, _) in self.known.items() if name == mention.name), len(self.known) + 1)
        type_ = mention.type or mention.likely or UNKNOWN_TYPE
        if number not in self.known or self.known[number][1] == UNKNOWN_TYPE:
            self.known[number] = (mention.name, mention.likely or type_)
        self.called |= {(name, number) for name in (mention.name, *mention.aliases)}

    def found_in(self, text):
        places = Gazetteer(sorted(self.called)).find(*composed_with_places(text))
        called = [
            Match(
                start,
                end,
                tuple(Candidate(number, *self.known[number], bare(self.known[number][0]) == bare(text[start:end])) for number in who),
            )
            for start, end, who in places
        ]
        return extract_mentions(text, TYPES, called)


def named(text, **known):
    return [(mention.name, mention.type) for mention in Names(known.items()).found_in(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[田中]]と会った", [("田中", None)]),
        ("[[田中|Person]]と会った", [("田中", "Person")]),
        ("[[プロジェクトA|task]]を始めた", [("プロジェクトA", "Task")]),
        ("[[メモ帳#見出し]]に書いた", [("メモ帳", None)]),
        ("[[ ]]と[[]]は空", []),
        ("[[閉じない", []),
    ],
)
def test_what_is_marked_is_named_as_marked(text, expected):
    assert named(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "[[健太]]さん",
        "[[健太|ケンちゃん]]が来た",
        "[[田中]]先生に習う",
    ],
)
def test_an_honorific_of_a_mark_tells_a_person(text):
    assert [mention.likely for mention in extract_mentions(text, TYPES) if mention.method == "marked"] == ["Person"]


@pytest.mark.parametrize(
    "text",
    [
        "[[計画]]は友達と始めた",
        "[[みどり会]]さんは親切",
        "[[Rex]] is my son's dog",
    ],
)
def test_what_else_is_near_a_mark_tells_no_person(text):
    assert [mention.likely for mention in extract_mentions(text, TYPES) if mention.method == "marked"] == [None]


def test_a_handle_may_have_hyphens_within():
    assert named("@minji-kim and @taro- wrote") == [("minji-kim", "Person"), ("taro", "Person")]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("毎年10月17日は集まる", "10月17日"),
        ("例年十月十七日に集まる", "10月17日"),
        ("毎年、10月17日に集まる", "10月17日"),
        ("２０２６年１０月１７日に会う", "2026-10-17"),
    ],
)
def test_a_day_of_every_year_and_one_in_wide_digits_are_days(text, day):
    assert named(text) == [(day, "TimeUnit")]


def test_the_host_of_an_address_whose_password_was_taken_out_is_no_handle():
    assert named("postgres://[REDACTED_URL_CREDENTIALS]@localhost/x と https://[REDACTED_URL_CREDENTIALS]@dbhost.jp/a") == []


def test_after_the_bar_of_a_mark_may_stand_another_name():
    (mention,) = extract_mentions("[[田中太郎|たなっち]]が来た", TYPES)
    assert (mention.name, mention.aliases) == ("田中太郎", ("たなっち",))


def test_a_mark_goes_before_what_a_rule_would_say_of_the_same_words():
    assert named("[[田中さん|Organization]]の会議") == [("田中さん", "Organization")]


@pytest.mark.parametrize("text", ["ダイズと散歩した", "今日もダイズが吠えた", "ﾀﾞｲｽﾞは元気", "(ダイズ)"])
def test_a_known_name_is_found_however_it_is_written_and_without_spaces(text):
    assert named(text, ダイズ="Object") == [("ダイズ", "Object")]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("カナダへ行く", "カナ"),
        ("さくらんぼを食べた", "さくら"),
        ("Annapolis is far", "Anna"),
        ("森林を歩く", "森"),
        ("Tanakaya", "Tanaka"),
    ],
)
def test_a_known_name_is_not_found_inside_a_longer_word(text, name):
    assert name not in [found for found, _ in named(text, **{name: "Person"})]


def test_where_the_longer_of_two_known_names_is_only_a_part_of_a_word_the_shorter_counts():
    assert named("アンナは来た", アン="Person", アンナ="Person") == [("アンナ", "Person")]
    assert named("田中先生が来た", 田中="Person", 田中先="Person") == [("田中", "Person")]


def test_the_place_of_a_mention_is_its_place_in_the_text_as_it_was_written():
    text = "㍿ｶﾞｷﾞの田中さん"
    (mention,) = [one for one in extract_mentions(text, TYPES) if one.type == "Person"]
    assert text[mention.start : mention.end] == "田中さん"
    folded, places = composed_with_places(text)
    assert len(places) == len(folded) + 1


@given(st.text(st.sampled_from("aＡßİé森あアがかｶ゛ﾞ㍿ \u0301\u3099\u0323"), max_size=20))
def test_each_part_of_a_folded_text_comes_from_its_place(text):
    folded, places = composed_with_places(text)
    assert list(places) == sorted(places)
    for begin, end in itertools.pairwise(sorted({*places})):
        part = "".join(character for character, place in zip(folded, places, strict=False) if place == begin)
        assert part == unicodedata.normalize("NFKC", text[begin:end]).casefold()


def test_names_are_compared_without_width_case_and_honorifics():
    assert fold("ＴＡＲＯ") == fold("taro")
    assert bare("田中さん") == bare("田中様") == bare("田中部長") == "田中"
    assert bare("さん") == "さん"
    assert bare("あっくん") == "あっくん"
    assert bare("ﾖｯちゃん") == "ヨッちゃん"


def test_a_relation_is_three_names_with_arrows_between_them():
    said = parse_relation("田中|Person > works_on > [[プロジェクトA]]", TYPES)
    assert (said.source, said.source_type, said.relation, said.target, said.target_type) == (
        "田中",
        "Person",
        "works_on",
        "プロジェクトA",
        None,
    )
    assert parse_relation("A -> knows -> B", TYPES).relation == "knows"
    assert parse_relation("田中 → 住んでいる → 京都", TYPES).relation == "住んでいる"


@pytest.mark.parametrize(
    "text", ["", "A", "A > B", "A > x > A", "A > > B", "A > x > B > C", f"{'あ' * 101} > x > B", f"A > {'x' * 51} > B"]
)
def test_what_is_no_relation_is_refused_with_the_form_that_is_wanted(text):
    with pytest.raises(InvalidInput):
        parse_relation(text, TYPES)


def test_a_long_text_without_any_name_takes_no_time_and_names_nobody():
    assert named("あ" * 20_000) == []
    assert named("様" * 20_000) == []
    assert named("[[" * 10_000) == []


def labelled(language):
    """(half, text, names with their types) of every line."""
    half = 1
    for line in (LABELLED / f"entities_{language}.tsv").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            half += line.startswith("# second")
            continue
        text, _, names = line.partition("\t")
        yield half, text, [tuple(name.strip().rsplit(":", 1)) for name in names.split(",") if name.strip()]


@pytest.mark.parametrize(("language", "precision_floor", "recall_floor"), [("ja", 0.97, 0.6), ("en", 0.97, 0.9)])
def test_the_rules_find_the_names_of_memories_that_they_were_not_made_on(language, precision_floor, recall_floor, figure):
    found = expected = right = typed = lines = 0
    for half, text, names in labelled(language):
        if half != 2:
            continue
        got = dict(named(text))
        lines += 1
        found += len(got)
        expected += len({name for name, _ in names})
        right += len(got.keys() & {name for name, _ in names})
        typed += sum(got.get(name) == type_ for name, type_ in dict(names).items())
    precision, recall = right / found, right / expected
    figure(
        f"names by rules alone, {language}, {lines} memories",
        f"precision {precision:.2f}, recall {recall:.2f}, type right {typed / right:.2f}",
    )
    assert precision >= precision_floor
    assert recall >= recall_floor


@pytest.mark.skipif(installed() is None, reason="SudachiPy is not installed: the extra sudachi")
def test_a_dictionary_finds_some_names_that_the_rules_do_not_and_costs_little(figure):
    names = dictionary.ProperNouns(installed())
    found = expected = right = by_rules = 0
    for half, text, told in labelled("ja"):
        if half == 2:
            rules = extract_mentions(text, TYPES)
            free = [one for one in names.find(text) if all(one.end <= other.start or one.start >= other.end for other in rules)]
            got, wanted = {one.name for one in (*rules, *free)}, {name for name, _ in told}
            found, expected, right = found + len(got), expected + len(wanted), right + len(got & wanted)
            by_rules += len({one.name for one in rules} & wanted)
    figure("names by rules and SudachiPy, ja, 77 memories", f"precision {right / found:.2f}, recall {right / expected:.2f}")
    assert right > by_rules
    assert right / found >= 0.9


def measured(got, wanted):
    """Precision and recall of names found, memory by memory."""
    right, found, expected = (
        sum(map(len, part)) for part in zip(*((one & other, one, other) for one, other in zip(got, wanted, strict=True)), strict=True)
    )
    return right / found, right / expected


def test_known_names_find_what_the_rules_can_not(figure):
    """Each name that is labelled anywhere is known: what is left are the rules' own faults."""
    for language in ("ja", "en"):
        rows = [(text, dict(told)) for _, text, told in labelled(language)]
        names = Names({name: type_ for _, told in rows for name, type_ in told.items()}.items())
        precision, recall = measured([{one.name for one in names.found_in(text)} for text, _ in rows], [set(told) for _, told in rows])
        figure(f"names by rules and known names, {language}, {len(rows)} memories", f"precision {precision:.2f}, recall {recall:.2f}")
        assert recall >= 0.97


@pytest.mark.parametrize(("language", "precision_floor", "recall_floor"), [("ja", 0.98, 0.6), ("en", 0.98, 0.92)])
def test_names_that_are_learned_one_by_one_do_not_swallow_later_ones(language, precision_floor, recall_floor, figure):
    """As a persona's memories come: each name that one names is known to the next."""
    names = Names()
    got, wanted = [], []
    for _, text, told in labelled(language):
        found = names.found_in(text)
        got.append({mention.name for mention in found})
        wanted.append({name for name, _ in told})
        for mention in found:
            if mention.subtype != "family":
                names.learn(mention)
    precision, recall = measured(got, wanted)
    figure(f"names as they are learned, {language}, {len(got)} memories", f"precision {precision:.3f}, recall {recall:.3f}")
    assert precision >= precision_floor
    assert recall >= recall_floor


@given(
    st.lists(
        st.builds(
            lambda start, length, method: Mention("x", None, start, start + length, method),
            st.integers(0, 30),
            st.integers(1, 9),
            st.sampled_from(["marked", "known", "rule"]),
        ),
        max_size=30,
    )
)
def test_of_mentions_that_overlap_the_more_trusted_stays_then_the_longer_then_the_first(mentions):
    stays = []
    for one in sorted(mentions, key=lambda mention: (-mention.confidence, mention.start - mention.end, mention.start)):
        if all(one.end <= other.start or other.end <= one.start for other in stays):
            stays.append(one)
    assert without_overlaps(mentions) == sorted(stays, key=lambda mention: mention.start)


@pytest.mark.parametrize(
    ("said", "times"),
    [("ア", 0), ("Aa. ", 0), ("Then Happy Birthday Caroline met Oscar. ", 500), ("昨日、健太さんが田中先生に会った。", 1175)],
)
def test_as_much_of_a_text_as_is_looked_at_is_read_whatever_it_repeats(said, times):
    """What is read again for each name in it takes minutes: the test's own timeout tells."""
    names = Names([("Caroline", "Person"), ("健太", "Person"), ("田中", "Person")])
    found = names.found_in((said * TEXT_LIMIT)[:TEXT_LIMIT])
    assert sum(mention.method == "known" for mention in found) >= times
