"""The centers of a language among a model's vectors: the means of ordinary statements and of ordinary questions.

A multilingual model puts a text nearer to all texts of its language, and a question nearer to all questions, than their contents warrant. With these means
subtracted, vectors compare contents (docs/decisions/0025-what-vectors-count.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memory_mcp.encoders.models import Centers, Vectors


@dataclass(frozen=True, slots=True)
class Language:
    """Ordinary statements, of two sentences and embedded as memories are: with a day, and some with a speaker. And ordinary questions."""

    statements: tuple[str, ...]
    questions: tuple[str, ...]

    @property
    def answered(self) -> tuple[str, ...]:
        """Two questions that one of the `passages` answers: where somebody lives, and when the meeting is."""
        return self.questions[2], self.questions[7]

    @property
    def passages(self) -> tuple[str, ...]:
        """Half of the statements, which have each sentence twice, as a cross-encoder reads them: without the day."""
        return tuple(statement.partition("] ")[2] for statement in self.statements[:9])


_JAPANESE = Language(
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
)
_ENGLISH = Language(
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
)
LANGUAGES = (_JAPANESE, _ENGLISH)


def centers_of(embed_query: Callable[[str], Any], embed_documents: Callable[[list[str]], Any]) -> Centers:
    """The centers of a model for each language, from vectors of any length."""
    return Centers(
        statements=np.stack([_mean(embed_documents(list(language.statements))) for language in LANGUAGES]),
        questions=np.stack([_mean([embed_query(question) for question in language.questions]) for language in LANGUAGES]),
    )


def _mean(vectors: Sequence[Any]) -> Vectors:
    rows = np.asarray(vectors, np.float32)
    return np.asarray((rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(axis=0), np.float32)
