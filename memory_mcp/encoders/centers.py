"""What the vectors of a model are like, measured with built-in texts: the centers of each language, and whether the model knows the language.

A model puts a text nearer to all texts of its language, and a question nearer to all questions, than their contents warrant. With these means subtracted,
vectors compare contents (docs/decisions/0025-what-vectors-count.md). Of a language that it knows, most questions are then nearer to their own answer than to
those of others.
"""

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from memory_mcp.encoders.embedding import Identity, TextModel
from memory_mcp.encoders.failures import BULK_SECONDS, first_line
from memory_mcp.encoders.model_families import OF_QUESTIONS, OF_TEXTS
from memory_mcp.encoders.models import CENTERED, Centers, Vectors

# The least share of pairs of a question's own answer and another one that a model which knows the language orders rightly. Random vectors: half of them, at
# most .63 of the 132 pairs of a language; all-MiniLM-L6-v2 in Japanese .59, in English 1; multilingual-e5-small .98 and .99.
LEAST_TOLD_APART = 0.75
# The least share of pairs of statements with and without a common sentence that a model orders rightly which reads texts at all, whatever languages it knows.
# multilingual-e5-small 1 in both languages, all-MiniLM-L6-v2 .97 in Japanese, which it does not know; random vectors .5, at most .75 in the better of the two (of 600 drawn).
LEAST_READ = 0.8
# How many stored texts are asked for in one call, and how long all may take until the rest is put off.
PART, SECONDS = 6, BULK_SECONDS

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Language:
    """Ordinary statements, of two sentences and embedded as memories are: with a day, and some with a speaker. And ordinary questions, with an answer to each
    in other words. `code`: as in a list of languages."""

    code: str
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    answers: tuple[str, ...]

    @property
    def answered(self) -> tuple[str, ...]:
        """Two questions that one of the `passages` answers: where somebody lives, and when the meeting is."""
        return self.questions[2], self.questions[7]

    @property
    def passages(self) -> tuple[str, ...]:
        """Half of the statements, which have each sentence twice, as a cross-encoder reads them: without the day."""
        return tuple(statement.partition("] ")[2] for statement in self.statements[:9])


_JAPANESE = Language(
    "ja",
    (
        "[2025-03-02] 午後は近所を散歩して、新しいパン屋を見つけた。新しい職場は静かで働きやすい。",
        "[2025-03-04] 田中: 先週から英会話に通いはじめたんだ。昨日の映画、すごくおもしろかった！",
        "[2025-03-09] 会議は木曜の十時に変わった。部屋の掃除をしたら、なくした鍵が出てきた。",
        "[2025-03-15] 佐藤: うん、それでいいよ。甘いものはあまり食べない。",
        "[2025-03-21] 父は長野の出身で、いまは千葉に住んでいる。ありがとう。また来週ね。",
        "[2025-04-01] 新しい職場は静かで働きやすい。連休は家族で海へ行った。風が強かった。",
        "[2025-04-06] 鈴木: 昨日の映画、すごくおもしろかった！パソコンの調子が悪く、修理に出した。",
        "[2025-04-12] 部屋の掃除をしたら、なくした鍵が出てきた。体の調子はだいぶよくなってきたよ。",
        "[2025-04-18] 甘いものはあまり食べない。妹の結婚式は秋に決まった。",
        "[2025-04-25] 高橋: ありがとう。また来週ね。毎朝七時に起きて、体操をしている。",
        "[2025-05-03] 連休は家族で海へ行った。風が強かった。本を読むのが好きで、月に五冊は読むかな。",
        "[2025-05-10] パソコンの調子が悪く、修理に出した。雨で試合が中止になった。残念だ。",
        "[2025-05-17] 伊藤: 体の調子はだいぶよくなってきたよ。引っ越しの費用は思ったより高かった。",
        "[2025-05-24] 妹の結婚式は秋に決まった。午後は近所を散歩して、新しいパン屋を見つけた。",
        "[2025-06-01] 毎朝七時に起きて、体操をしている。先週から英会話に通いはじめたんだ。",
        "[2025-06-08] 渡辺: 本を読むのが好きで、月に五冊は読むかな。会議は木曜の十時に変わった。",
        "[2025-06-15] 雨で試合が中止になった。残念だ。うん、それでいいよ。",
        "[2025-06-22] 引っ越しの費用は思ったより高かった。父は長野の出身で、いまは千葉に住んでいる。",
    ),
    (
        "昨日は何をしていた？",
        "誕生日はいつ？",
        "どこに住んでいるの？",
        "好きな食べ物は？",
        "あの計画はどうなった？",
        "先生の名前を覚えている？",
        "なぜ予定が変わったのか",
        "会議は何時からだっけ？",
        "犬の名前は何ですか？",
        "その本は誰が薦めてくれた？",
        "旅行にはいくらかかった？",
        "休みの日は何をして過ごす？",
    ),
    (
        "家でずっとゲームをしていたよ。",
        "六月三日に生まれた。",
        "去年から横浜のアパートで暮らしている。",
        "カレーがいちばんおいしいと思う。",
        "プロジェクトは予算が足りず、中止になった。",
        "担任は山本という人だった。",
        "台風が来るので、日程を来週にずらした。",
        "打ち合わせは午後二時に始まる。",
        "うちの柴犬はポチという。",
        "友達の勧めで、この小説を読みはじめた。",
        "京都への二泊三日で五万円ほど使った。",
        "週末はたいてい釣りに出かける。",
    ),
)
_ENGLISH = Language(
    "en",
    (
        "[2025-03-02] Went for a walk this afternoon and found a new bakery. The new office is quiet and pleasant to work in.",
        "[2025-03-04] Tom: I started taking Spanish classes last week. The movie last night was so good!",
        "[2025-03-09] The meeting moved to Thursday at ten. While cleaning the room I found the key I had lost.",
        "[2025-03-15] Anna: Yeah, that works for me. She hardly ever eats sweets.",
        "[2025-03-21] His father comes from Ohio and lives in Boston now. Thanks a lot. See you next week then.",
        "[2025-04-01] The new office is quiet and pleasant to work in. We drove to the sea with the family. It was windy.",
        "[2025-04-06] Sarah: The movie last night was so good! The computer keeps crashing, so it went in for repair.",
        "[2025-04-12] While cleaning the room I found the key I had lost. I'm feeling much better these days.",
        "[2025-04-18] She hardly ever eats sweets. My sister's wedding will be in the fall.",
        "[2025-04-25] Mark: Thanks a lot. See you next week then. I get up at seven every morning and stretch.",
        "[2025-05-03] We drove to the sea with the family. It was windy. I love reading, about five books a month.",
        "[2025-05-10] The computer keeps crashing, so it went in for repair. The game was called off because of the rain. A pity.",
        "[2025-05-17] Julia: I'm feeling much better these days. Moving turned out to be more expensive than expected.",
        "[2025-05-24] My sister's wedding will be in the fall. Went for a walk this afternoon and found a new bakery.",
        "[2025-06-01] I get up at seven every morning and stretch. I started taking Spanish classes last week.",
        "[2025-06-08] Peter: I love reading, about five books a month. The meeting moved to Thursday at ten.",
        "[2025-06-15] The game was called off because of the rain. A pity. Yeah, that works for me.",
        "[2025-06-22] Moving turned out to be more expensive than expected. His father comes from Ohio and lives in Boston now.",
    ),
    (
        "What did you do yesterday?",
        "When is her birthday?",
        "Where does he live now?",
        "What is my favorite food?",
        "What came of that plan?",
        "Do you remember the teacher's name?",
        "Why did the schedule change?",
        "What time does the meeting start?",
        "What is the dog called?",
        "Who recommended that book?",
        "How much did the trip cost?",
        "How do they spend their days off?",
    ),
    (
        "Stayed home all day and played games.",
        "She was born on June 3.",
        "He moved into an apartment in Denver last year.",
        "Nothing tastes better than curry, I think.",
        "The project was dropped for lack of money.",
        "Our class was taught by a Mr. Hill.",
        "With the storm coming, they put it off by a week.",
        "We all get together at two in the afternoon.",
        "Our puppy goes by Biscuit.",
        "A friend talked me into reading this novel.",
        "Three days in Rome came to about 800 dollars.",
        "On weekends they mostly go fishing.",
    ),
)
LANGUAGES = (_JAPANESE, _ENGLISH)


class _Asked:
    """The vectors that a model gives for the built-in texts, asked for in small parts, so that what fails is taken up where it stopped."""

    def __init__(self, model: TextModel) -> None:
        self._model = model
        self._questions: dict[str, Any] = {}
        self._texts: dict[str, Any] = {}

    def all(self) -> tuple[list[Vectors], list[Vectors], list[Vectors]]:
        """The statements, the questions and the answers of each language, each of shape (texts, dimension) and of rows of length 1.

        Raises:
            TimeoutError: the model is too slow.
            Exception: whatever the model raises.
        """
        until = time.monotonic() + SECONDS
        texts = [text for language in LANGUAGES for text in (*language.statements, *language.answers) if text not in self._texts]
        for part in (texts[start : start + PART] for start in range(0, len(texts), PART)):
            self._texts.update(zip(part, self._model.embed_documents(part), strict=True))
            _check(until)
        for question in (question for language in LANGUAGES for question in language.questions):
            if question not in self._questions:
                self._questions[question] = self._model.embed_query(question)
                _check(until)
        return (
            [_unit([self._texts[text] for text in language.statements]) for language in LANGUAGES],
            [_unit([self._questions[text] for text in language.questions]) for language in LANGUAGES],
            [_unit([self._texts[text] for text in language.answers]) for language in LANGUAGES],
        )


def measured(identity: Identity, model: TextModel) -> Identity:
    """The same with the centers of the model's vectors, if it knows one of the languages, and without those that it does not know. A model that knows neither
    is as it was, unless it does not read texts at all. So is one that fails or takes too long, and `measure` of it tries again."""
    asked = _Asked(model)

    def attempt(level: int = logging.DEBUG) -> Identity:
        try:
            return _described(identity, *asked.all())
        except Exception as error:  # noqa: BLE001  each model raises its own errors
            reason = f"{type(error).__name__}: {first_line(error)}"
            logger.log(level, "%s is used without having been measured, which is tried again later: %s", identity.name, reason)
            return replace(identity, measure=attempt)

    return attempt(logging.WARNING)


def centers_of(model: TextModel) -> Centers:
    """The centers of a model for each language, from vectors of any length, and which of the languages it knows.

    Raises:
        Exception: whatever the model raises.
    """
    return _centers(*_Asked(model).all())


def _described(identity: Identity, statements: list[Vectors], questions: list[Vectors], answers: list[Vectors]) -> Identity:
    centers, traits = _centers(statements, questions, answers), identity.traits
    known = {code for code, is_known in zip(CENTERED, centers.known, strict=True) if is_known}
    if known:
        weight = OF_QUESTIONS if traits.prefixes.query != traits.prefixes.document else OF_TEXTS
        return replace(
            identity, centers=replace(centers, weight=weight).among(traits.languages), traits=traits.without({*CENTERED} - known)
        )
    reads = [_read(language.statements, rows) >= LEAST_READ for language, rows in zip(LANGUAGES, statements, strict=True)]
    return identity if any(reads) else replace(identity, traits=traits.without(CENTERED))


def _centers(statements: list[Vectors], questions: list[Vectors], answers: list[Vectors]) -> Centers:
    nearness = [_apart(asked) @ _apart(answered).T for asked, answered in zip(questions, answers, strict=True)]
    known = tuple(told_apart(rows) >= LEAST_TOLD_APART for rows in nearness)
    others = [rows[~np.eye(len(rows), dtype=bool)] for rows, is_known in zip(nearness, known, strict=True) if is_known]
    return Centers(
        statements=np.stack([rows.mean(axis=0) for rows in statements]),
        questions=np.stack([rows.mean(axis=0) for rows in questions]),
        known=known,
        spread=float(np.concatenate(others).std()) if others else 0.0,
    )


def told_apart(nearness: Vectors) -> float:
    """The share of pairs of its own answer and another one of which a question is nearer to its own. `nearness`: of shape (questions, answers), in the same
    order."""
    nearer = nearness.diagonal()[:, None] > nearness
    return float(nearer.sum() / (nearness.size - len(nearness)))


def _read(statements: Sequence[str], vectors: Vectors) -> float:
    """The share of pairs, one of two statements with a common sentence and one of two without, of which the first two are nearer to each other."""
    sentences = [{*re.split(r"[。！.!] *", re.sub(r"^\[.*?\] (\w+: )?", "", text))} - {""} for text in statements]
    first, second = np.triu_indices(len(sentences), 1)
    is_alike = np.array([not sentences[one].isdisjoint(sentences[other]) for one, other in zip(first, second, strict=True)])
    rows = _apart(vectors)
    nearness = (rows @ rows.T)[first, second]
    return float((nearness[is_alike][:, None] > nearness[~is_alike]).mean())


def _check(until: float) -> None:
    if time.monotonic() > until:
        raise TimeoutError(f"it took more than {SECONDS:g} s")


def _apart(rows: Vectors) -> Vectors:
    return _unit(rows - rows.mean(axis=0))


def _unit(vectors: Any) -> Vectors:
    rows = np.asarray(vectors, np.float32)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12)), np.float32)
